#include "src/executor/turn_loader.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/executor/clock.h"

namespace sluice::executor {

Status TurnLoader::start(std::span<const int> cpus, const model::FileKey* key) noexcept {
  SLUICE_ASSIGN_OR_RETURN(Decoders decoders, make_decoders_(graph_, key));
  SLUICE_ASSIGN_OR_RETURN(auto reads, model::make_reads(source_, options_.method, options_.in_flight, cpus, "turns"));
  engine_.open(std::move(reads), std::move(decoders));
  return {};
}

void TurnLoader::begin(const plan::Plan& plan, std::span<const std::uint32_t> stretches, const BoundGuards& guards,
                       std::byte* arena) noexcept {
  if (engine_.in_flight() > 0)
    static_cast<void>(engine_.give_up(fail(make_io_error(graph_.name, "reads of an earlier step have not ended", ETIMEDOUT))));
  plan_ = &plan;
  stretches_ = stretches;
  guards_ = &guards;
  arena_ = arena;
  turn_ = steps_done_ = next_turn_ = 0;
  next_load_ = 0;
  base_ = engine_.pushed();
  streamed_ = static_cast<std::uint64_t>(
      std::count_if(plan.loads.begin(), plan.loads.end(), [](const plan::Load& load) { return load.streamed(); }));
  skip_to_next();
  fill();
}

void TurnLoader::next_turn() noexcept {
  base_ += turn_ == 0 ? plan_->loads.size() : streamed_;
  ++turn_;
  steps_done_ = 0;
  fill();
}

bool TurnLoader::await(const std::array<std::uint32_t, kPasses.size()>& loads) noexcept {
  const std::uint64_t needed = base_ + loads[static_cast<std::size_t>(turn_ == 0 ? Pass::kFirst : Pass::kPeriod)];
  if (engine_.published() >= needed && engine_.status()) return true;
  const std::int64_t start = wall_now_ns();
  while (engine_.status() && engine_.published() < needed) {
    fill();
    if (!engine_.pending()) {
      static_cast<void>(
          engine_.give_up(fail(ErrorCode::kInternal, graph_.name, "a step of a subgraph waits for a load that cannot start")));
      break;
    }
    static_cast<void>(engine_.step([this] { return look(); }));
  }
  busy_ns_ += wall_now_ns() - start;
  return engine_.status().has_value();
}

void TurnLoader::step_over() noexcept {
  ++steps_done_;
  fill();
}

Status TurnLoader::end() noexcept {
  while (engine_.status() && engine_.in_flight() > 0) static_cast<void>(engine_.await_read([this] { return look(); }));
  const Status status = engine_.status() ? source_.check_unchanged() : engine_.status();
  if (engine_.settle(kPatienceNs)) engine_.forget();
  return status;
}

std::int64_t TurnLoader::take_busy_ns() noexcept { return std::exchange(busy_ns_, 0); }

/// Goes to the first load from the next one on that runs in its turn.
void TurnLoader::skip_to_next() noexcept {
  if (streamed_ == 0 && next_turn_ > 0) return;
  while (next_load_ == plan_->loads.size() || !runs(next_turn_, next_load_)) {
    if (next_load_ < plan_->loads.size()) {
      ++next_load_;
      continue;
    }
    ++next_turn_;
    next_load_ = 0;
    if (streamed_ == 0) return;
  }
}

/// Is the gate of the next load open? Of the turn to come, only what lies in the tail of this one.
bool TurnLoader::may_start() const noexcept {
  if (next_turn_ > turn_ + 1 || (streamed_ == 0 && next_turn_ > 0)) return false;
  const std::int64_t gate = plan_->loads[next_load_].gate;
  const auto done = static_cast<std::int64_t>(steps_done_);
  if (next_turn_ <= turn_) return done >= gate;
  return plan_->repeat && gate < 0 && done >= static_cast<std::int64_t>(plan_->steps.size()) + gate;
}

void TurnLoader::fill() noexcept {
  for (engine_.fill(); engine_.has_room() && may_start(); ++next_load_, skip_to_next()) {
    const plan::Load& load = plan_->loads[next_load_];
    std::byte* const region = arena_ + plan_->buffer(load.target).offset.count();
    const bool spared = next_turn_ == turn_ && !guards_->wants(static_cast<std::uint32_t>(next_load_), steps_done_);
    engine_.push(spared ? ReadRequest{.range = {load.file.offset, Bytes()}, .stored = region, .raw = region}
                        : lay_out(graph_, load.file, stretches_[load.first_stretch], load.stretch_count, region));
  }
}

}  // namespace sluice::executor

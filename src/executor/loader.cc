#include "src/executor/loader.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "sluice/core/hash.h"
#include "src/executor/checksum_error.h"
#include "src/executor/clock.h"

namespace sluice::executor {
namespace {

// The loader's frames: a system call and a checksum.
constexpr std::size_t kStackBytes = 64 * 1024;
// How often a wait for a read looks whether it was called off.
constexpr std::int64_t kGlanceNs = 50'000'000;
// How long a failed or cancelled run waits for the reads that are still under way: several of them on a slow card.
constexpr std::int64_t kPatienceNs = 250'000'000;

tl::unexpected<Error> cancelled(std::string_view name) noexcept {
  return fail(ErrorCode::kCancelled, name, "the run was called off while its weights were read");
}

}  // namespace

Loader::Loader(const LoaderContext& context, const ReadOptions& options) noexcept
    : graph_(context.graph),
      plan_(context.plan),
      held_(context.held),
      source_(context.source),
      arena_(context.arena),
      options_(options),
      steps_(context.steps),
      loads_(context.loads) {}

Loader::~Loader() {
  stopping_ = true;
  steps_.interrupt();
  begun_.advance();
  thread_.join();
}

Status Loader::start(std::span<const int> cpus) noexcept {
  SLUICE_ASSIGN_OR_RETURN(reads_, model::make_reads(source_, options_.method, options_.in_flight, cpus, "loader"));
  return thread_.start("loader", kStackBytes, &Loader::thread_main, this, cpus);
}

void Loader::begin(Pass pass, std::uint64_t steps_base) noexcept {
  asked_ = pass;
  draining_ = false;
  steps_base_ = steps_base;
  begun_.advance();
}

Status Loader::drain(const Executor* next) noexcept {
  draining_ = true;
  next_ = next;
  begun_.advance();
  return finish();
}

Status Loader::finish() noexcept {
  ended_.wait_for(begun_.count());
  return result_;
}

void Loader::cancel() noexcept {
  cancelled_ = true;
  steps_.interrupt();
}

void Loader::rearm() noexcept {
  rested_.wait_for(begun_.count());
  cancelled_ = false;
  steps_.rearm();
}

/// Reads of a failed run may have been left to the system: their slots and regions are taken until they end, or `called_off`.
template <class CalledOff>
Status Loader::clear_leftovers(const CalledOff& called_off) noexcept {
  const std::int64_t patience = options_.timeout_ms > 0 ? options_.timeout_ms * 1'000'000 : std::numeric_limits<std::int64_t>::max();
  const std::int64_t start = wall_now_ns();
  while (!settle(kGlanceNs)) {
    if (called_off()) return cancelled(graph_.name);
    if (wall_now_ns() - start > patience) {
      return fail(make_io_error(graph_.name, "reads of an earlier run have not ended", ETIMEDOUT));
    }
  }
  return {};
}

void Loader::thread_main(void* self) noexcept {
  Loader& loader = *static_cast<Loader*>(self);
  for (std::uint64_t run = 1;; ++run) {
    loader.begun_.wait_for(run);
    if (loader.stopping_) break;
    if (loader.draining_) {
      loader.drain_reads();
      continue;
    }
    loader.busy_since_ns_ = wall_now_ns();
    loader.publish(loader.run_loads());
    loader.ahead_result_ = loader.result_ ? loader.pump(true, run) : Status();
    loader.counting_.busy_ns += wall_now_ns() - loader.busy_since_ns_;
    loader.rested_.advance();
  }
  // Nobody may have the arena while the system still writes to it, however long that takes.
  loader.settle(std::numeric_limits<std::int64_t>::max());
}

void Loader::drain_reads() noexcept {
  result_ = clear_leftovers([this] { return next_ != nullptr && next_->cancelled(); });
  ahead_result_ = Status();
  counting_ = {};  // what was begun is no run's
  ended_.advance();
  rested_.advance();
}

void Loader::publish(Status result) noexcept {
  const std::int64_t now = wall_now_ns();
  counting_.busy_ns += now - std::exchange(busy_since_ns_, now);
  stats_ = std::exchange(counting_, {});
  if (!result) {
    settle(kPatienceNs);
    loads_.interrupt();
  }
  result_ = result;
  ended_.advance();
}

Status Loader::run_loads() noexcept {
  const Status ahead = std::exchange(ahead_result_, Status());
  base_ = steps_base_;
  pass_ = asked_;
  if (pass_ != Pass::kPeriod) {
    SLUICE_RETURN_IF_ERROR(clear_leftovers([this] { return stopped(); }));
    front_ = end_ = 0;
    ahead_ = false;
    enter(0);
  } else {
    SLUICE_RETURN_IF_ERROR(ahead);
    take_over();
  }
  SLUICE_RETURN_IF_ERROR(pump(false, 0));
  return source_.check_unchanged();
}

/// Runs loads until this run's have all ended; or (`ahead`) those of the next run until its `begin` has come or no gate of theirs is left.
Status Loader::pump(bool ahead, std::uint64_t run) noexcept {
  while (ahead ? begun_.count() == run : !ahead_ || (front_ != end_ && !pieces_[front_ % model::kReadSlots].ahead)) {
    if (stopped()) return cancelled(graph_.name);
    fill();
    if (front_ != end_) {
      SLUICE_RETURN_IF_ERROR(pieces_[front_ % model::kReadSlots].arrived ? take_piece() : await_piece(ahead, run));
    } else {
      if (parked_) return {};
      if (!wait_for_gate()) return cancelled(graph_.name);
    }
  }
  return {};
}

/// What was started ahead is of the run under way from now on.
void Loader::take_over() noexcept {
  for (std::uint32_t i = front_; i != end_; ++i) pieces_[i % model::kReadSlots].ahead = false;
  ahead_ = false;
  parked_ = false;
  if (next_load_ == plan_.loads.size()) enter(next_load_);
}

/// Goes to the first load from `load` on that runs; behind the last, to the first of the next run whose gate lies in this one.
void Loader::enter(std::uint32_t load) noexcept {
  const auto count = static_cast<std::uint32_t>(plan_.loads.size());
  const auto skipped = [&](std::uint32_t k) { return k < count && !runs_in(ahead_ ? Pass::kPeriod : pass_, plan_.loads[k], held_[k]); };
  while (skipped(load)) ++load;
  if (load == count && !ahead_) {
    ahead_ = true;
    for (load = 0; skipped(load);) ++load;
  }
  next_load_ = load;
  next_at_ = load < count ? plan_.loads[load].file.offset : Bytes();
  parked_ = load == count || (ahead_ && (!plan_.repeat || plan_.loads[load].gate >= 0));
}

/// The count of steps at which the gate of the next load opens.
std::uint64_t Loader::awaited_steps() const noexcept {
  const std::int64_t gate = plan_.loads[next_load_].gate;
  if (ahead_) return base_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(plan_.steps.size()) + gate);
  return gate > 0 ? base_ + static_cast<std::uint64_t>(gate) : base_;
}

bool Loader::gate_open() const noexcept { return next_at_ != plan_.loads[next_load_].file.offset || steps_.count() >= awaited_steps(); }

/// Sleeps until the next load may start. False when the run was called off.
bool Loader::wait_for_gate() noexcept {
  counting_.busy_ns += wall_now_ns() - busy_since_ns_;
  const bool open = steps_.wait_for(awaited_steps());
  busy_since_ns_ = wall_now_ns();
  return open;
}

void Loader::fill() noexcept {
  while (!parked_ && in_flight_ < options_.in_flight && end_ - front_ < model::kReadSlots && gate_open()) start_piece();
}

void Loader::start_piece() noexcept {
  const plan::Load& load = plan_.loads[next_load_];
  Piece& piece = pieces_[end_ % model::kReadSlots];
  piece = {next_load_, {next_at_, std::min(options_.size, load.file.end() - next_at_)}, wall_now_ns(), 0, ahead_, false};
  if (options_.bytes_per_second_limit > 0) {
    device_free_ns_ = std::max(device_free_ns_, piece.started_ns) +
                      static_cast<std::int64_t>(static_cast<double>(piece.range.size.count()) / options_.bytes_per_second_limit * 1e9);
    piece.due_ns = device_free_ns_;
  }
  std::byte* region = arena_ + plan_.buffer(load.target).offset.count();
  reads_->start(static_cast<int>(end_ % model::kReadSlots), piece.range, region + (next_at_ - load.file.offset).count());
  ++end_;
  ++in_flight_;
  next_at_ += piece.range.size;
  if (next_at_ >= load.file.end()) enter(next_load_ + 1);
}

/// Waits until one more piece has arrived. Time is counted in glances, so that a process that was stopped for a while does not take its own
/// absence for the disk's.
Status Loader::await_piece(bool ahead, std::uint64_t run) noexcept {
  for (std::int64_t waited_ns = 0;; waited_ns += kGlanceNs) {
    const model::ReadQueue::Ended ended = reads_->wait(kGlanceNs);
    if (ended.slot >= 0) {
      --in_flight_;
      pieces_[static_cast<std::size_t>(ended.slot)].arrived = true;
      return ended.status;
    }
    if (stopped()) return cancelled(graph_.name);
    if (ahead && begun_.count() != run) return {};  // what was asked for meanwhile decides what becomes of the piece
    if (options_.timeout_ms > 0 && waited_ns / 1'000'000 >= options_.timeout_ms) {
      return fail(make_io_error(graph_.name, "a read of the model file does not end", ETIMEDOUT));
    }
  }
}

/// Verifies the piece at the front, and counts its load when that is whole.
Status Loader::take_piece() noexcept {
  const Piece& piece = pieces_[front_ % model::kReadSlots];
  if (piece.due_ns > 0) pause_until(piece.due_ns);
  const plan::Load& load = plan_.loads[piece.load];
  if (piece.range.offset == load.file.offset) next_stretch_ = load.first_stretch;
  SLUICE_RETURN_IF_ERROR(verify(load, piece.range.end()));
  counting_.bytes_read += piece.range.size;
  if (piece.range.end() >= load.file.end()) loads_.advance();
  ++front_;
  return {};
}

/// Compares the stretches of `load` that lie whole below file offset `arrived`, from the last one compared on.
Status Loader::verify(const plan::Load& load, Bytes arrived) noexcept {
  const std::byte* region = arena_ + plan_.buffer(load.target).offset.count();
  for (; next_stretch_ < load.first_stretch + load.stretch_count; ++next_stretch_) {
    const model::Stretch& stretch = graph_.stretches[next_stretch_];
    if (stretch.offset + stretch.stored_size > arrived) return {};
    const std::byte* bytes = region + (stretch.offset - load.file.offset).count();
    if (xxh3_64({bytes, stretch.stored_size.count()}) != stretch.xxh3) {
      return fail(checksum_error(graph_.name, stretch.offset));
    }
  }
  return {};
}

void Loader::pause_until(std::int64_t due_ns) const noexcept {
  for (std::int64_t left = due_ns - wall_now_ns(); left > 0 && !stopped(); left = due_ns - wall_now_ns()) {
    const timespec rest{0, static_cast<long>(std::min(left, kGlanceNs))};
    nanosleep(&rest, nullptr);
  }
}

/// Waits until no read is under way; what they bring is nobody's. False when that takes longer than `patience_ns`.
bool Loader::settle(std::int64_t patience_ns) noexcept {
  const std::int64_t start = wall_now_ns();
  while (in_flight_ > 0) {
    if (reads_->wait(kGlanceNs).slot >= 0) {
      --in_flight_;
    } else if (wall_now_ns() - start > patience_ns) {
      return false;
    }
  }
  return true;
}

}  // namespace sluice::executor

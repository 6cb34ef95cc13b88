#include "src/executor/loader.h"

#include <algorithm>
#include <utility>

#include "src/executor/clock.h"

namespace sluice::executor {
namespace {

// The loader's frames: a system call and a checksum, or OpenSSL's.
constexpr std::size_t kStackBytes = 64 * 1024;

}  // namespace

Loader::Loader(const LoaderContext& context, const ReadOptions& options, MakeDecoders make) noexcept
    : graph_(context.graph),
      plan_(context.plan),
      held_(context.held),
      guards_(context.guards),
      source_(context.source),
      arena_(context.arena),
      options_(options),
      make_decoders_(make),
      steps_(context.steps),
      loads_(context.loads),
      engine_(context.graph, options) {}

Loader::~Loader() {
  stopping_ = true;
  steps_.interrupt();
  begun_.advance();
  thread_.join();
}

Status Loader::start(std::span<const int> cpus, const model::FileKey* key) noexcept {
  SLUICE_ASSIGN_OR_RETURN(Decoders decoders, make_decoders_(graph_, key));
  SLUICE_ASSIGN_OR_RETURN(auto reads, model::make_reads(source_, options_.method, options_.in_flight, cpus, "loader"));
  engine_.open(std::move(reads), std::move(decoders));
  return thread_.start("loader", kStackBytes, &Loader::thread_main, this, cpus);
}

void Loader::begin(Pass pass, std::uint64_t steps_base, bool ahead) noexcept {
  asked_ = pass;
  asked_ahead_ = ahead;
  draining_ = false;
  steps_base_ = steps_base;
  begun_.advance();
}

Status Loader::drain(const Executor* next, std::int64_t patience_ns) noexcept {
  draining_ = true;
  next_ = next;
  drain_patience_ns_ = patience_ns;
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
    if (loader.result_) static_cast<void>(loader.pump(true, run));  // an error is kept for the next run
    loader.counting_.busy_ns += wall_now_ns() - loader.busy_since_ns_;
    loader.rested_.advance();
  }
  // The arena must not be used while the system still writes to it, however long that takes.
  loader.engine_.settle(kForever);
}

void Loader::drain_reads() noexcept {
  result_ = engine_.clear(Successor(next_, drain_patience_ns_));
  static_cast<void>(engine_.take_bytes_read());
  counting_ = {};  // what was begun is no run's
  ended_.advance();
  rested_.advance();
}

void Loader::publish(const Status& result) noexcept {
  const std::int64_t now = wall_now_ns();
  counting_.busy_ns += now - std::exchange(busy_since_ns_, now);
  counting_.bytes_read = engine_.take_bytes_read();
  stats_ = std::exchange(counting_, {});
  if (!result) {
    engine_.settle(kPatienceNs);
    loads_.interrupt();
  }
  result_ = result;
  ended_.advance();
}

Status Loader::run_loads() noexcept {
  base_ = steps_base_;
  pass_ = asked_;
  reads_ahead_ = asked_ahead_;
  if (pass_ != Pass::kPeriod) {
    SLUICE_RETURN_IF_ERROR(engine_.clear([this] { return stopped() ? Verdict::kCallOff : Verdict::kGoOn; }));
    ahead_ = false;
    std::fill(times_.begin(), times_.end(), LoadTime{});
    enter(0);
  } else {
    SLUICE_RETURN_IF_ERROR(engine_.status());  // of what was begun ahead
    take_over();
  }
  SLUICE_RETURN_IF_ERROR(pump(false, 0));
  return source_.check_unchanged();
}

/// Runs loads until this run's have all ended; or (`ahead`) those of the next run until its `begin` has come or no gate of theirs is left.
Status Loader::pump(bool ahead, std::uint64_t run) noexcept {
  // What was asked for meanwhile decides what becomes of a piece of the next run.
  const auto look = [&] { return stopped() ? Verdict::kCallOff : ahead && begun_.count() != run ? Verdict::kLeave : Verdict::kGoOn; };
  while (ahead ? begun_.count() == run : !ahead_ || engine_.published() < own_loads_) {
    if (stopped()) return engine_.call_off();
    fill();
    if (engine_.pending()) {
      const std::uint64_t before = engine_.published();
      SLUICE_RETURN_IF_ERROR(engine_.step(look));
      if (engine_.published() != before) {
        note_end(before);
        loads_.advance();
      }
    } else {
      SLUICE_RETURN_IF_ERROR(engine_.status());
      if (parked_) return {};
      if (!wait_for_gate()) return engine_.call_off();
    }
  }
  return {};
}

/// What was started ahead is of the run under way from now on.
void Loader::take_over() noexcept {
  ahead_ = false;
  parked_ = false;
  times_.swap(times_ahead_);  // places that requests under way were given stay theirs
  std::fill(times_ahead_.begin(), times_ahead_.end(), LoadTime{});
  if (next_load_ == plan_.loads.size()) enter(next_load_);
}

/// Goes to the first load from `load` on that runs; behind the last, to the first of the next run whose gate lies in this one.
void Loader::enter(std::uint32_t load) noexcept {
  const auto count = static_cast<std::uint32_t>(plan_.loads.size());
  const auto skipped = [&](std::uint32_t k) { return k < count && !runs_in(ahead_ ? Pass::kPeriod : pass_, plan_.loads[k], held_[k]); };
  while (skipped(load)) ++load;
  if (load == count && !ahead_) {
    ahead_ = true;
    own_loads_ = engine_.pushed();
    for (load = 0; skipped(load);) ++load;
  }
  next_load_ = load;
  parked_ = load == count || (ahead_ && (!plan_.repeat || !reads_ahead_ || plan_.loads[load].gate >= 0));
}

/// The count of steps at which the gate of the next load opens.
std::uint64_t Loader::gate_steps() const noexcept {
  const std::int64_t gate = plan_.loads[next_load_].gate;
  if (ahead_) return base_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(plan_.steps.size()) + gate);
  return gate > 0 ? base_ + static_cast<std::uint64_t>(gate) : base_;
}

/// Is it known already that no step will want the next load? Of the next run nothing is known yet.
bool Loader::spared() const noexcept { return !ahead_ && !guards_.wants(next_load_, steps_.count() - base_); }

/// Sleeps until the next load may start, or it is known whether it is wanted. False when the run was called off.
bool Loader::wait_for_gate() noexcept {
  std::uint64_t awaited = gate_steps();
  const std::uint64_t known = ahead_ ? 0 : guards_.known_next(next_load_, steps_.count() - base_);
  if (known > 0) awaited = std::min(awaited, base_ + known);
  counting_.busy_ns += wall_now_ns() - busy_since_ns_;
  const bool open = steps_.wait_for(awaited);
  busy_since_ns_ = wall_now_ns();
  return open;
}

void Loader::fill() noexcept {
  for (engine_.fill(); !parked_ && engine_.has_room() && (gate_open() || spared()); enter(next_load_ + 1)) {
    note_start();
    engine_.push(next_request());
  }
}

ReadRequest Loader::next_request() const noexcept {
  const plan::Load& from = plan_.loads[next_load_];
  std::byte* const region = arena_ + plan_.buffer(from.target).offset.count();
  if (spared()) return {.range = {from.file.offset, Bytes()}, .stored = region, .raw = region};
  return lay_out(graph_, from.file, from.first_stretch, from.stretch_count, region);
}

void Loader::note_start() noexcept {
  if (times_.empty()) return;
  LoadTime& time = (ahead_ ? times_ahead_ : times_)[next_load_];
  time = {.begin_ns = wall_now_ns()};
  timed_[engine_.pushed() % model::kReadSlots] = &time;
}

void Loader::note_end(std::uint64_t request) noexcept {
  if (times_.empty()) return;
  LoadTime& time = *timed_[request % model::kReadSlots];
  time.end_ns = wall_now_ns();
  time.decode_ns = engine_.take_decode_ns();
}

}  // namespace sluice::executor

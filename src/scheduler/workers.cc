// What a worker does: takes a run from the board, runs its units, gives way between steps and, where it may, between parts of one.
#include <algorithm>
#include <utility>

#include "src/core/turns_of_processor.h"
#include "src/scheduler/dispatcher.h"

namespace sluice::scheduler {

void Dispatcher::work(void* context) noexcept {
  Worker& worker = *static_cast<Worker*>(context);
  // Compute threads give way to every other thread that wakes up on their processor: callers, timed processors, loaders, waiters for a
  // device.
  const FleetProcessor& processor = worker.dispatcher->fleet_.processors[worker.number];
  if (worker.dispatcher->fleet_.computes(worker.number)) work_in_turns_of(kLongTurnNs);
  if (processor.clock) {  // as a device interrupts: even a caller gives way to it
    wake_on_time();
    work_in_turns_of(kShortTurnNs);
  }
  worker.dispatcher->measure(worker);
  worker.dispatcher->serve(worker);
}

void Dispatcher::measure(Worker& worker) noexcept {
  const Status status = fleet_.measure(worker.number, options_);
  {
    const std::lock_guard lock(mutex_);
    worker.status = status;
    worker.measured = true;
  }
  ended_.notify_all();
}

void Dispatcher::serve(Worker& worker) noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    worker.assigned_changed.wait(lock, [&] { return closing_ || worker.assigned; });
    if (!worker.assigned) return;
    execute(worker, lock);
  }
}

/// The board's run of this processor, as the worker's.
void Dispatcher::take(Worker& worker, Assignment& assignment) noexcept {
  const State& state = board_->state();
  worker.assigned = false;
  assignment.run = state.processors[worker.number].run;
  const JobState& job = state.job(assignment.run.job);
  assignment.pays_dispatch = assignment.run.first == 0 || !state.runs_last(worker.number, assignment.run.job, assignment.run.first - 1);
  JobRecord* const record = jobs_.find_on_board(job.ticket);
  assignment.ticket = job.ticket;
  assignment.model = job.model;
  assignment.region = between_.region_of(assignment.run.job);
  between_.hold(assignment.region);
  assignment.memory = {std::span(record->inputs).first(record->input_count), std::span(record->outputs).first(record->output_count),
                       between_.bytes(assignment.region)};
  assignment.epoch = worker.epoch;
  assignment.began = now();
}

void Dispatcher::execute(Worker& worker, std::unique_lock<std::mutex>& lock) noexcept {
  Assignment assignment;
  take(worker, assignment);
  Assignment* const outer = std::exchange(worker.current, &assignment);
  worker.attention = wants_attention(worker);  // between the decision and here it may have been told already
  bool lost = false;
  const Status status = run_units(worker, assignment, lock, lost);
  worker.current = outer;
  if (status) rescue_outputs(worker, assignment);
  between_.let_go(assignment.region);
  if (!assignment.abandoned) end_run(worker, assignment, status, lost);
  decide();
}

Status Dispatcher::run_units(Worker& worker, Assignment& assignment, std::unique_lock<std::mutex>& lock, bool& lost) noexcept {
  for (UnitIndex u = assignment.run.first; u < assignment.run.last; ++u) {
    assignment.unit = u;
    const UnitProgram& unit = fleet_.models[assignment.model.index()].programs[worker.number][u];
    const Status status = run_program(worker, assignment, unit, lock);
    if (!status) {
      lost = unit.program->lost();
      return status;
    }
  }
  return {};
}

/// Did somebody ask that this run end? Else a cancellation that it met came too late for the run before.
bool Dispatcher::called_off(const Worker& worker, const Assignment& assignment) const noexcept {
  return closing_ || assignment.abandoned || assignment.epoch != worker.epoch || board_->state().job(assignment.run.job).dropped;
}

Status Dispatcher::run_once(Worker& worker, const Assignment& assignment, const UnitProgram& unit,
                            std::unique_lock<std::mutex>& lock) noexcept {
  worker.copying = true;
  lock.unlock();
  Status status = give_inputs(unit, assignment.memory);
  lock.lock();
  worker.copying = false;
  if (!status) return status;
  worker.running = unit.program.get();
  lock.unlock();
  status = unit.program->run();
  lock.lock();
  worker.running = nullptr;
  return status;
}

Status Dispatcher::run_program(Worker& worker, Assignment& assignment, const UnitProgram& unit,
                               std::unique_lock<std::mutex>& lock) noexcept {
  assignment.unit_began = now();
  assignment.interrupted = false;
  Status status;
  do {
    status = run_once(worker, assignment, unit, lock);
  } while (!status && status.error().code == ErrorCode::kCancelled && !called_off(worker, assignment));
  if (!status) return status;
  // Too late: another run makes the outputs, or they are no longer wanted.
  if (assignment.epoch != worker.epoch) return fail(ErrorCode::kCancelled, "run", "the run was given up");
  worker.copying = true;
  lock.unlock();
  status = take_outputs(unit, assignment.memory);
  lock.lock();
  worker.copying = false;
  count_handed_over(worker, assignment, unit);
  board_->set_now(now());
  const Time took = board_->state().now - assignment.unit_began;
  assignment.in_units += took;
  if (status && !assignment.interrupted) board_->observed(ProcessorId(worker.number), assignment.unit, took);
  assignment.pays_dispatch = assignment.pays_dispatch && !assignment.interrupted;
  return status;
}

void Dispatcher::count_handed_over(const Worker& worker, const Assignment& assignment, const UnitProgram& unit) noexcept {
  for (std::size_t i = 0; i < unit.inputs.size(); ++i) {
    const TensorPlace& place = unit.inputs[i];
    if (place.kind != TensorPlace::Kind::kBetween) continue;
    const std::size_t maker = board_->state().place(assignment.run.job, place.maker);
    const bool between_cpus = fleet_.computes(worker.number) && fleet_.computes(maker);
    (between_cpus ? handed_over_.between_cpus : handed_over_.others) += Bytes(place.bytes);
    const bool in_place = unit.input_placed[i] && fleet_.makes_in_place(fleet_.models[assignment.model.index()], maker, place);
    if (between_cpus && !in_place) handed_over_.copied_there += Bytes(place.bytes);
  }
}

/// From here on the results of this processor's run are not used: if it writes to its job's memory, the job leaves that memory to it.
/// Finished tensors go with the job.
void Dispatcher::part_regions(std::size_t p) noexcept {
  const ProcessorState& processor = board_->state().processors[p];
  if (!processor.busy || !fleet_.computes(p) || fleet_.between_bytes() == 0) return;
  const JobSlot slot = processor.run.job;
  const FleetModel& model = fleet_.models[board_->state().job(slot).model.index()];
  const std::span<std::byte> before = between_.bytes(between_.leave(slot)), now = between_.bytes(between_.region_of(slot));
  for (const TensorPlace& place : model.places)
    if (place.kind == TensorPlace::Kind::kBetween && place.bytes > 0 && board_->state().phase(slot, place.maker) == UnitPhase::kDone)
      std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(place.at), place.bytes, now.begin() + static_cast<std::ptrdiff_t>(place.at));
}

/// Another run of the same job was given up meanwhile, and the job has other memory than this run has written to.
void Dispatcher::rescue_outputs(const Worker& worker, const Assignment& assignment) noexcept {
  if (assignment.abandoned || assignment.epoch != worker.epoch || between_.region_of(assignment.run.job) == assignment.region) return;
  const std::span<std::byte> before = between_.bytes(assignment.region), now = between_.bytes(between_.region_of(assignment.run.job));
  const std::vector<UnitProgram>& units = fleet_.models[assignment.model.index()].programs[worker.number];
  for (UnitIndex u = assignment.run.first; u < assignment.run.last; ++u)
    for (const TensorPlace& place : units[u].outputs)
      if (place.kind == TensorPlace::Kind::kBetween)
        std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(place.at), place.bytes,
                    now.begin() + static_cast<std::ptrdiff_t>(place.at));
}

void Dispatcher::end_run(Worker& worker, const Assignment& assignment, const Status& status, bool lost) noexcept {
  board_->set_now(now());
  const ProcessorId id(worker.number);
  keep_event(assignment, worker.number, status.has_value());
  worker.statistics.busy += now() - assignment.began;
  // A timed processor may be well again by the time that its run says that it died.
  const std::shared_ptr<TimedClock>& clock = fleet_.processors[worker.number].clock;
  worker.gone = lost && (!clock || clock->dead());
  if (assignment.epoch != worker.epoch) {
    if (!worker.gone && !closing_) board_->back(id);
    worker.statistics.usable = !worker.gone;
    return;
  }
  if (lost) {
    give_up(worker.number);
    worker.statistics.usable = !worker.gone;
    if (!worker.gone) board_->back(id);
    return;
  }
  ++worker.statistics.runs;
  if (status && assignment.pays_dispatch)
    board_->observed_dispatch(id, board_->state().now - board_->state().processors[worker.number].began - assignment.in_units);
  if (!status && !board_->state().job(assignment.run.job).dropped) {
    jobs_.find_on_board(assignment.ticket)->result.status = status;
    board_->fail(assignment.run.job);
  }
  board_->finished(id);
}

void Dispatcher::at_boundary(void* worker, const executor::StepEvent& /*step*/) noexcept {
  if (static_cast<Worker*>(worker)->attention.load(std::memory_order_relaxed)) look_up(*static_cast<Worker*>(worker), Place::kBetweenSteps);
}

void Dispatcher::between_parts(void* worker) noexcept { look_up(*static_cast<Worker*>(worker), Place::kInStep); }

bool Dispatcher::makes_in_job_memory(const Worker& worker) const noexcept {
  const Assignment& assignment = *worker.current;
  const std::vector<bool>& placed = fleet_.models[assignment.model.index()].programs[worker.number][assignment.unit].output_placed;
  return std::find(placed.begin(), placed.end(), true) != placed.end();
}

/// Not inside a step of a unit that makes a tensor in the job's memory: called off meanwhile, it would write there until the step is over, where
/// another job may be by then. The end of the step sees to it.
void Dispatcher::look_up(Worker& worker, Place place) noexcept {
  Dispatcher& self = *worker.dispatcher;
  std::unique_lock lock(self.mutex_);
  if (place == Place::kInStep && (worker.current == nullptr || self.makes_in_job_memory(worker))) return;
  worker.attention = false;
  if (worker.current == nullptr || worker.running == nullptr) return;
  if (self.called_off(worker, *worker.current)) {
    worker.running->cancel();
  } else if (self.wants_way(worker)) {
    self.give_way(worker, lock);
  }
}

/// Is there a job that this run should, and can, give way to? It needs another part of the arena than the run.
bool Dispatcher::wants_way(const Worker& worker) const noexcept {
  const State& state = board_->state();
  if (worker.paused || is_urgent(worker.current->model) || !state.processors[worker.number].giving_way) return false;
  const int priority = state.job(worker.current->run.job).priority;
  for (const JobSlot slot : state.live) {
    const JobState& job = state.job(slot);
    if (!job.dropped && job.running == 0 && job.priority > priority && is_urgent(job.model)) return true;
  }
  return false;
}

/// The job that waits for the rest of its unit still exists and wants it, and no other worker has begun it.
bool Dispatcher::may_resume(const Worker& worker) const noexcept {
  if (closing_) return false;
  const State& state = board_->state();
  const JobSlot slot = worker.current->run.job;
  const JobState& job = state.job(slot);
  if (job.live && state.phase(slot, worker.current->unit) != UnitPhase::kPending &&
      state.place(slot, worker.current->unit) != worker.number)
    return false;
  return job.live && !job.dropped && job.ticket == worker.current->ticket && job.interrupted == worker.current->unit &&
         job.interrupted_on.index() == worker.number;
}

/// Returns when the run that gave way is to go on, or has been called off.
void Dispatcher::give_way(Worker& worker, std::unique_lock<std::mutex>& lock) noexcept {
  Assignment& assignment = *worker.current;
  backends::Program* const program = std::exchange(worker.running, nullptr);
  const ProcessorId id(worker.number);
  const ProcessorState& processor = board_->state().processors[worker.number];
  board_->set_now(now());
  const Time expected = profile_->time(assignment.model, assignment.unit, worker.number);
  const Time rest = std::max(expected - (now() - assignment.unit_began), expected / 16);
  worker.statistics.busy += now() - assignment.began;
  ++worker.statistics.interruptions;
  ++jobs_.find_on_board(assignment.ticket)->result.interruptions;
  keep_event(assignment, worker.number, false);
  board_->interrupted(id, assignment.unit, rest);
  assignment.interrupted = true;
  worker.paused = true;
  decide();
  while (true) {
    const bool mine = worker.assigned && board_->state().job(processor.run.job).ticket == assignment.ticket;
    if (mine && processor.run.first == assignment.unit && may_resume(worker)) break;
    if (worker.assigned && is_urgent(board_->state().job(processor.run.job).model)) {
      execute(worker, lock);
      continue;
    }
    if (worker.assigned || !may_resume(worker)) {
      assignment.abandoned = true;
      break;
    }
    worker.assigned_changed.wait(lock);
  }
  worker.paused = false;
  worker.running = program;
  if (assignment.abandoned) {
    program->cancel();
    return;
  }
  worker.assigned = false;
  worker.attention = wants_attention(worker);
  assignment.run = processor.run;
  assignment.began = now();
  assignment.epoch = worker.epoch;
}

void Dispatcher::keep_event(const Assignment& assignment, std::size_t processor, bool finished) noexcept {
  if (events_.size() == events_.capacity()) return;
  const JobRecord* const record = jobs_.find_on_board(assignment.ticket);
  events_.push_back({assignment.began, now(), record == nullptr ? 0 : record->result.ticket, assignment.model, ProcessorId(processor),
                     assignment.run.first, assignment.run.last, finished});
}

}  // namespace sluice::scheduler

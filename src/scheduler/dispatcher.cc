#include "src/scheduler/dispatcher.h"

#include <algorithm>
#include <utility>

#include "src/core/out_of_memory.h"

namespace sluice::scheduler {
namespace {

// What a run takes (engine.h, kLeastStack), an urgent one on top of it, and the planner's frames in neither.
constexpr std::size_t kStackBytes = 1 << 20;

Status check_tensors(const FleetModel& model, const JobTensors& tensors) noexcept {
  const auto refuse = [&](const char* reason, std::size_t needed, std::size_t found) {
    return fail(make_error(ErrorCode::kInvalidArgument, model.options.name, reason, needed, found));
  };
  // A pointer of C's, with the size that the port has.
  const auto is_nowhere = [](const auto& bytes) { return bytes.data() == nullptr && !bytes.empty(); };
  if (tensors.inputs.size() != model.inputs.size())
    return refuse("a job has one tensor for each input of its model", model.inputs.size(), tensors.inputs.size());
  if (tensors.outputs.size() != model.outputs.size())
    return refuse("a job has one tensor for each output of its model", model.outputs.size(), tensors.outputs.size());
  for (std::size_t i = 0; i < model.inputs.size(); ++i)
    if (tensors.inputs[i].size() != model.inputs[i].size())
      return refuse("the data does not have the size of the input", model.inputs[i].size(), tensors.inputs[i].size());
  for (std::size_t i = 0; i < model.outputs.size(); ++i)
    if (tensors.outputs[i].size() != model.outputs[i].size() && (!tensors.outputs[i].empty() || model.units.units.size() > 1))
      return refuse("the room does not have the size of the output", model.outputs[i].size(), tensors.outputs[i].size());
  if (std::any_of(tensors.inputs.begin(), tensors.inputs.end(), is_nowhere) ||
      std::any_of(tensors.outputs.begin(), tensors.outputs.end(), is_nowhere))
    return fail(ErrorCode::kInvalidArgument, model.options.name, "the pointer to a tensor of the job is null");
  return {};
}

}  // namespace

std::string_view name_of(Outcome outcome) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"met", "late", "dropped", "cancelled", "failed"};
  return kNames[static_cast<std::size_t>(outcome)];
}

Dispatcher::~Dispatcher() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (const FleetProcessor& processor : fleet_.processors)
      if (processor.clock) processor.clock->close();
    for (std::size_t s = 0; board_ && s < board_->state().jobs.size(); ++s)
      if (board_->state().jobs[s].live) board_->drop(JobSlot(s));
    for (const std::unique_ptr<Worker>& worker : workers_) {
      worker->attention = true;
      if (worker->running != nullptr) worker->running->cancel();
    }
  }
  for (const std::unique_ptr<Worker>& worker : workers_) worker->assigned_changed.notify_all();
  for (const std::unique_ptr<Worker>& worker : workers_) worker->thread.join();
  watched_.notify_all();
  watch_.join();
  std::unique_lock lock(mutex_);
  if (board_) collect();
  while (tell(lock)) continue;
}

Status Dispatcher::add_processors() {
  if (options_.processors.empty()) options_.processors.emplace_back();
  for (const ProcessorOptions& processor : options_.processors) SLUICE_RETURN_IF_ERROR(fleet_.add_processor(processor));
  if (options_.limits.jobs < 1 || options_.limits.jobs > JobTable::kPlaces / 3)
    return fail(ErrorCode::kInvalidArgument, "jobs", "the table of jobs has 1 to 21845 places");
  if (!(options_.smoothing > 0 && options_.smoothing <= 1))
    return fail(ErrorCode::kInvalidArgument, "smoothing", "is a share above 0, up to 1");
  if (options_.warmup_runs < 0 || options_.profile_runs < 1)
    return fail(ErrorCode::kInvalidArgument, "profile runs", "are one or more, after none or more to warm up");
  for (std::size_t p = 0; p < fleet_.processors.size(); ++p) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    worker.dispatcher = this;
    worker.number = p;
    worker.statistics.name = fleet_.processors[p].options.name;
    worker.statistics.kind = kind_of(fleet_.processors[p].options);
    fleet_.processors[p].boundary = {at_boundary, &worker};
    fleet_.processors[p].between_parts = {&worker.attention, between_parts, &worker};
  }
  return {};
}

Result<ModelId> Dispatcher::add_model(std::shared_ptr<const sluice::Model> model, const ModelOptions& options) {
  return or_out_of_memory(options.name, [&]() -> Result<ModelId> {
    if (started_) return fail(ErrorCode::kInvalidArgument, options.name, "models are added before the scheduler is started");
    SLUICE_RETURN_IF_ERROR(fleet_.add_model(std::move(model), options));
    return ModelId(fleet_.models.size() - 1);
  });
}

Status Dispatcher::start() {
  if (started_ || fleet_.models.empty())
    return fail(ErrorCode::kInvalidArgument, "scheduler", "is started once, after a model was added to it");
  started_ = true;
  return or_out_of_memory("scheduler", [&]() -> Status {
    SLUICE_RETURN_IF_ERROR(fleet_.build(options_, options_.limits.jobs));
    SLUICE_RETURN_IF_ERROR(measure_all());
    fleet_.settle_times();
    std::vector<Model> models;
    std::vector<ProcessorId> fixed;
    std::size_t inputs = 0, outputs = 0;
    for (const FleetModel& model : fleet_.models) {
      fixed.push_back(model.options.fixed.valid() ? model.options.fixed : ProcessorId(fixed.size() % fleet_.processors.size()));
      models.push_back(model.units);
      inputs = std::max(inputs, model.inputs.size());
      outputs = std::max(outputs, model.outputs.size());
    }
    const Device device = fleet_.device();
    profile_.emplace(device, models, options_.smoothing);
    board_.emplace(device, *profile_, options_.limits);
    memory_.emplace(board_->state(), fixed);
    decisions_.emplace(most_decisions(board_->state()));
    jobs_ = JobTable(options_.limits.jobs * 3, inputs, outputs);
    between_ = HandOver(options_.limits.jobs, fleet_.spare_regions(), fleet_.between_bytes());
    events_.reserve(options_.trace_runs);
    {
      const std::lock_guard lock(mutex_);
      epoch_ = std::chrono::steady_clock::now();
      serving_ = true;
    }
    return watch_.start("watch", kStackBytes, watch, this);
  });
}

/// All processors at once: what they take from each other is in the times.
Status Dispatcher::measure_all() {
  for (const std::unique_ptr<Worker>& worker : workers_)
    SLUICE_RETURN_IF_ERROR(worker->thread.start("worker", kStackBytes, work, worker.get(), options_.processors[worker->number].cpus));
  std::unique_lock lock(mutex_);
  for (const std::unique_ptr<Worker>& worker : workers_) {
    ended_.wait(lock, [&] { return worker->measured; });
    SLUICE_RETURN_IF_ERROR(worker->status);
  }
  return {};
}

Time Dispatcher::now() const noexcept { return (std::chrono::steady_clock::now() - epoch_).count(); }

Status Dispatcher::check(ModelId model, const JobTensors& tensors, const JobOptions& options) const noexcept {
  if (!serving_) return fail(ErrorCode::kInvalidArgument, "scheduler", "takes jobs when it has been started");
  if (closing_) return fail(ErrorCode::kInvalidArgument, "scheduler", "is about to end and takes no more jobs");
  if (!model.valid() || model.index() >= fleet_.models.size())
    return fail(ErrorCode::kInvalidArgument, "model", "the scheduler has no model of this number");
  if (options.app >= kMostApps || options.deadline <= 0)
    return fail(ErrorCode::kInvalidArgument, "job", "its app is a number below 16, its deadline is to come");
  return check_tensors(fleet_.models[model.index()], tensors);
}

Result<Submission> Dispatcher::submit(ModelId model, const JobTensors& tensors, const JobOptions& options) noexcept {
  const std::lock_guard lock(mutex_);
  SLUICE_RETURN_IF_ERROR(check(model, tensors, options));
  board_->set_now(now());
  JobRecord* const record = jobs_.take();
  const Time moment = board_->state().now;
  const Time deadline = options.deadline >= kNever - moment ? kNever : moment + options.deadline;
  const int priority = options.priority + (is_urgent(model) ? 1 : 0);
  const JobSlot slot = board_->submit({model, deadline, priority}, record != nullptr);
  ++apps_[options.app].submitted;
  if (!slot.valid()) {
    if (record != nullptr) record->phase = JobRecord::Phase::kFree;
    ++apps_[options.app].refused;
    return fail(ErrorCode::kInvalidArgument, "jobs", "as many jobs are live, or have not been waited for, as the scheduler has room for");
  }
  record->slot = slot;
  record->board_ticket = board_->state().job(slot).ticket;
  record->options = options;
  record->result.model = model;
  record->result.app = options.app;
  record->result.submitted = moment;
  record->input_count = tensors.inputs.size();
  record->output_count = tensors.outputs.size();
  std::copy(tensors.inputs.begin(), tensors.inputs.end(), record->inputs.begin());
  std::copy(tensors.outputs.begin(), tensors.outputs.end(), record->outputs.begin());
  decide();
  Submission submission{.ticket = record->result.ticket};
  const bool live = record->phase == JobRecord::Phase::kLive;
  if (live) submission.expected_end = record->result.predicted = board_->state().job(slot).expected_end;
  // Only our policy says when a job ends; it has said nothing yet where that is never.
  submission.holds = live && (deadline >= kNever || submission.expected_end < kNever || policy_->decide != &sluice);
  if (submission.holds || !options.only_if_it_holds) return submission;
  record->options.done = nullptr;
  if (live) board_->drop(slot);
  collect();
  record->phase = JobRecord::Phase::kFree;
  return fail(ErrorCode::kCancelled, "job", "as things stand its deadline cannot hold");
}

Result<JobResult> Dispatcher::wait(Ticket ticket) noexcept {
  std::unique_lock lock(mutex_);
  JobRecord* record = jobs_.find(ticket);
  const bool to_be_told = record != nullptr && record->options.done != nullptr;
  // Another waiter may take it first; its place then belongs to another job.
  if (!to_be_told)
    ended_.wait(lock, [&] {
      record = jobs_.find(ticket);
      return record == nullptr || record->phase == JobRecord::Phase::kEnded;
    });
  if (record == nullptr || to_be_told) return fail(ErrorCode::kInvalidArgument, "ticket", "there is no such job to wait for");
  record->phase = JobRecord::Phase::kFree;
  return record->result;
}

Status Dispatcher::cancel(Ticket ticket) noexcept {
  const std::lock_guard lock(mutex_);
  JobRecord* const record = jobs_.find(ticket);
  if (record == nullptr) return fail(ErrorCode::kInvalidArgument, "ticket", "there is no such job to cancel");
  if (record->phase == JobRecord::Phase::kEnded || board_->state().job(record->slot).dropped) return {};
  board_->set_now(now());
  record->cancelled = true;
  board_->cancel(record->slot);
  decide();
  return {};
}

void Dispatcher::drain() noexcept {
  std::unique_lock lock(mutex_);
  if (serving_) ended_.wait(lock, [&] { return board_->state().live.empty() && !telling_ && jobs_.next_to_tell() == nullptr; });
}

/// Asks the policy and hands out what it says. Whatever happened before is on the board.
void Dispatcher::decide() noexcept {
  if (closing_) return collect();
  const Time begin = now();
  board_->set_now(begin);
  decisions_->clear();
  policy_->decide(board_->state(), *memory_, *decisions_);
  board_->apply(decisions_->all());
  const Time took = now() - begin;
  ++decided_;
  decision_time_ += took;
  longest_decision_ = std::max(longest_decision_, took);
  for (const ProcessorId id : board_->started()) workers_[id.index()]->assigned = true;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (wants_attention(*worker)) worker->attention = true;
    if (worker->assigned || worker->paused) worker->assigned_changed.notify_one();
  }
  collect();
  if (next_event() < watch_wakes_) watched_.notify_one();
}

/// Is there anything that the run of this processor should look at?
bool Dispatcher::wants_attention(const Worker& worker) const noexcept {
  const ProcessorState& processor = board_->state().processors[worker.number];
  return closing_ || (processor.busy && (processor.giving_way || board_->state().job(processor.run.job).dropped));
}

void Dispatcher::collect() noexcept {
  if (board_->ended().empty()) return;
  for (const JobState& job : board_->ended()) end_job(job, *jobs_.find_on_board(job.ticket));
  board_->forget_ended();
  ended_.notify_all();
}

void Dispatcher::end_job(const JobState& job, JobRecord& record) noexcept {
  JobResult& result = record.result;
  Statistics& app = apps_[record.options.app];
  result.ended = board_->state().now;
  if (record.cancelled) {
    result.outcome = Outcome::kCancelled;
    ++app.cancelled;
  } else if (job.dropped) {
    result.outcome = result.status ? Outcome::kDropped : Outcome::kFailed;
    ++(result.status ? app.dropped : app.failed);
  } else {
    result.outcome = result.ended <= job.deadline ? Outcome::kMet : Outcome::kLate;
    ++(result.outcome == Outcome::kMet ? app.met : app.late);
  }
  record.phase = JobRecord::Phase::kEnded;
  if (record.options.done != nullptr) watched_.notify_one();
}

void Dispatcher::watch(void* self) noexcept { static_cast<Dispatcher*>(self)->watch_over(); }

void Dispatcher::watch_over() noexcept {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    if (tell(lock)) continue;
    watch_wakes_ = next_event();
    if (watch_wakes_ >= kNever)
      watched_.wait(lock);
    else
      watched_.wait_until(lock, epoch_ + std::chrono::nanoseconds(watch_wakes_));
    if (closing_ || now() < watch_wakes_) continue;
    board_->set_now(now());
    give_up_overdue();
    decide();
  }
}

Time Dispatcher::next_event() const noexcept {
  const State& state = board_->state();
  Time next = kNever;
  for (const JobSlot slot : state.live)  // a deadline that passes is news to a policy
    if (state.job(slot).deadline >= state.now && state.job(slot).deadline < kNever) next = std::min(next, state.job(slot).deadline + 1);
  for (const std::unique_ptr<Worker>& worker : workers_) {
    const ProcessorState& processor = state.processors[worker->number];
    if (processor.busy) next = std::min(next, std::max(overdue_at(processor), state.now + kMillisecond));
  }
  return next;
}

Time Dispatcher::overdue_at(const ProcessorState& processor) const noexcept {
  const double most = options_.overdue_factor * static_cast<double>(processor.run.expected) + static_cast<double>(options_.overdue_slack);
  return processor.began + static_cast<Time>(std::min(most, static_cast<double>(kNever / 2)));
}

void Dispatcher::give_up_overdue() noexcept {
  for (const std::unique_ptr<Worker>& worker : workers_) {
    const ProcessorState& processor = board_->state().processors[worker->number];
    // A worker that has not woken yet is no processor that hangs, and would not say when it is back.
    if (processor.busy && !worker->copying && !worker->assigned && board_->state().now >= overdue_at(processor)) give_up(worker->number);
  }
}

/// Its run is for others; what it may still bring is not wanted.
void Dispatcher::give_up(std::size_t p) noexcept {
  Worker& worker = *workers_[p];
  const ProcessorState& processor = board_->state().processors[p];
  ++worker.epoch;
  ++worker.statistics.losses;
  worker.statistics.usable = false;
  worker.assigned = false;
  worker.attention = true;
  if (processor.busy) ++jobs_.find_on_board(board_->state().job(processor.run.job).ticket)->result.losses;
  if (worker.running != nullptr) worker.running->cancel();
  part_regions(p);
  board_->lost(ProcessorId(p));
  if (worker.paused) worker.assigned_changed.notify_one();
}

/// Calls one `done`; without the lock. Whether there was one.
bool Dispatcher::tell(std::unique_lock<std::mutex>& lock) noexcept {
  JobRecord* const record = jobs_.next_to_tell();
  if (record == nullptr) return false;
  const JobResult result = record->result;
  const JobOptions options = record->options;
  record->phase = JobRecord::Phase::kFree;
  telling_ = true;
  lock.unlock();
  options.done(options.context, result);
  lock.lock();
  telling_ = false;
  ended_.notify_all();
  return true;
}

Time Dispatcher::expected_time(ModelId model, ProcessorId processor) const noexcept {
  const std::lock_guard lock(mutex_);
  if (!serving_ || model.index() >= fleet_.models.size() || processor.index() >= workers_.size()) return kNever;
  Time sum = 0;
  for (UnitIndex u = 0; u < fleet_.models[model.index()].units.units.size(); ++u) {
    const Time time = profile_->time(model, u, processor.index());
    if (time >= kNever) return kNever;
    sum += time;
  }
  return sum;
}

std::vector<UnitSupport> Dispatcher::units(ModelId model) const {
  std::vector<UnitSupport> units;
  if (model.index() >= fleet_.models.size()) return units;
  const FleetModel& entry = fleet_.models[model.index()];
  for (std::size_t u = 0; u < entry.unit_ends.size(); ++u) {
    const std::size_t first = u == 0 ? 0 : entry.unit_ends[u - 1];
    UnitSupport unit{first, entry.unit_ends[u] - first, {}};
    for (std::size_t p = 0; p < fleet_.processors.size(); ++p)
      if (entry.units.units[u].times[p] < kNever) unit.processors.push_back(ProcessorId(p));
    units.push_back(std::move(unit));
  }
  return units;
}

std::vector<Fallback> Dispatcher::fallbacks() const {
  const std::lock_guard lock(mutex_);
  std::vector<Fallback> all;
  if (!serving_) return all;
  for (const FleetProcessor& processor : fleet_.processors) all.insert(all.end(), processor.fallbacks.begin(), processor.fallbacks.end());
  return all;
}

std::span<const std::vector<std::byte>> Dispatcher::reference_outputs(ModelId model) const noexcept {
  if (!serving_ || model.index() >= fleet_.models.size()) return {};
  return fleet_.models[model.index()].outputs;
}

SchedulerStatistics Dispatcher::statistics() const {
  const std::lock_guard lock(mutex_);
  SchedulerStatistics statistics;
  if (board_) statistics.jobs = board_->statistics();
  statistics.apps = apps_;
  for (const std::unique_ptr<Worker>& worker : workers_) statistics.processors.push_back(worker->statistics);
  statistics.decisions = decided_;
  statistics.longest_decision = longest_decision_;
  statistics.decision_time = decision_time_;
  statistics.memory = fleet_.given;
  statistics.handed_over = handed_over_;
  return statistics;
}

std::vector<RunEvent> Dispatcher::trace() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

Status Dispatcher::emulate(const Fault& fault) noexcept {
  if (!fault.processor.valid() || fault.processor.index() >= fleet_.processors.size() || !fleet_.processors[fault.processor.index()].clock)
    return fail(ErrorCode::kInvalidArgument, "fault", "only a timed processor has emulated faults");
  fleet_.processors[fault.processor.index()].clock->emulate(fault);
  if (fault.kind != Fault::Kind::kWell) return {};
  const std::lock_guard lock(mutex_);
  Worker& worker = *workers_[fault.processor.index()];
  if (!serving_ || !worker.gone) return {};
  worker.gone = false;
  worker.statistics.usable = true;
  board_->back(fault.processor);
  decide();
  return {};
}

}  // namespace sluice::scheduler

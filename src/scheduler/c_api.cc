#include "src/engine/c_api.h"

#include <array>
#include <mutex>
#include <new>
#include <utility>

#include "sluice/scheduler/scheduler.h"
#include "src/core/out_of_memory.h"

using sluice::ErrorCode;
using sluice::c_api::report;
using sluice::scheduler::JobResult;
using sluice::scheduler::ModelId;
using sluice::scheduler::Scheduler;

/// Whom a job's end is told to.
struct Caller {
  sluice_scheduler* scheduler = nullptr;
  sluice_job_done done = nullptr;
  void* context = nullptr;
};

struct sluice_scheduler {
  std::vector<std::shared_ptr<const sluice::Model>> models{};  // as they were added
  std::mutex mutex{};                                          // guards the callers that are free
  std::vector<Caller> callers{};
  std::vector<Caller*> free{};
  std::unique_ptr<Scheduler> scheduler{};  // ends before all that its jobs name

  /// nullptr: the table of live jobs is full.
  Caller* take(sluice_job_done done, void* context) noexcept {
    const std::lock_guard lock(mutex);
    if (free.empty()) return nullptr;
    Caller* const caller = free.back();
    free.pop_back();
    *caller = {this, done, context};
    return caller;
  }
  void give_back(Caller* caller) noexcept {
    const std::lock_guard lock(mutex);
    free.push_back(caller);
  }
};

namespace {

// Tensors of one job, on its caller's stack.
constexpr std::size_t kMostPorts = 64;

static_assert(static_cast<int>(sluice::scheduler::Outcome::kFailed) == SLUICE_JOB_FAILED);

sluice_status null_argument() noexcept {
  return report(sluice::make_error(ErrorCode::kInvalidArgument, "argument", "a pointer is null that must not be"));
}

sluice_job_result result_of(const JobResult& result) noexcept {
  const sluice_status status = result.status ? SLUICE_OK : sluice::c_api::status_of(result.status.error().code);
  return {result.ticket, static_cast<sluice_outcome>(result.outcome), status, result.ended - result.submitted};
}

sluice::scheduler::SchedulerOptions options_of(const sluice_scheduler_options& given) {
  sluice::scheduler::SchedulerOptions options;
  options.budget = std::min(sluice::Bytes(given.budget_bytes), sluice::kUnlimitedBytes);
  options.scope = given.scope == SLUICE_SCOPE_PROCESS ? sluice::BudgetScope::kProcess : sluice::BudgetScope::kLibrary;
  options.reserve = sluice::Bytes(given.reserve_bytes);
  if (given.policy != nullptr) options.policy = given.policy;
  options.limits.jobs = given.most_jobs;
  for (std::size_t i = 0; i < given.processor_count; ++i) {
    const sluice_processor_options& from = given.processors[i];
    sluice::scheduler::ProcessorOptions& processor = options.processors.emplace_back();
    if (from.cpus != nullptr) processor.cpus.assign(from.cpus, from.cpus + from.cpu_count);
    if (from.threads != 0) processor.threads = from.threads;
    if (from.compute_slowdown != 0) processor.compute_slowdown = from.compute_slowdown;
  }
  return options;
}

/// The caller's pointers with the sizes that the ports have.
template <class Byte, class Pointer>
void views_of(const sluice::model::Graph& graph, const std::vector<sluice::model::Port>& ports, const Pointer* given,
              std::array<std::span<Byte>, kMostPorts>& views) noexcept {
  for (std::size_t i = 0; i < ports.size(); ++i)
    views[i] = {static_cast<Byte*>(given[i]), static_cast<std::size_t>(graph.bytes_of(ports[i]).count())};
}

}  // namespace

extern "C" {

sluice_scheduler_options sluice_default_scheduler_options(void) {
  return {SLUICE_UNLIMITED, SLUICE_SCOPE_LIBRARY, 0, nullptr, nullptr, 0, 64};
}

sluice_status sluice_scheduler_create(const sluice_scheduler_options* options, sluice_scheduler** scheduler) {
  if (scheduler == nullptr || (options != nullptr && options->processor_count > 0 && options->processors == nullptr))
    return null_argument();
  *scheduler = nullptr;
  const sluice_scheduler_options given = options == nullptr ? sluice_default_scheduler_options() : *options;
  if (given.scope != SLUICE_SCOPE_LIBRARY && given.scope != SLUICE_SCOPE_PROCESS)
    return report(sluice::make_error(ErrorCode::kInvalidArgument, "scope", "neither SLUICE_SCOPE_LIBRARY nor SLUICE_SCOPE_PROCESS"));
  return report(sluice::or_out_of_memory("scheduler", [&]() -> sluice::Status {
    auto handle = std::make_unique<sluice_scheduler>();
    SLUICE_ASSIGN_OR_RETURN(handle->scheduler, Scheduler::create(options_of(given)));
    handle->callers.resize(3 * given.most_jobs);  // a job that is over is told of a little later
    for (Caller& caller : handle->callers) handle->free.push_back(&caller);
    *scheduler = handle.release();
    return {};
  }));
}

sluice_status sluice_scheduler_add_model(sluice_scheduler* scheduler, const sluice_model* model, int32_t urgent, size_t* number) {
  if (scheduler == nullptr || model == nullptr || number == nullptr) return null_argument();
  return report(sluice::or_out_of_memory("scheduler", [&]() -> sluice::Status {
    const sluice::model::Graph& graph = model->model->graph();
    if (graph.inputs.size() > kMostPorts || graph.outputs.size() > kMostPorts)
      return sluice::fail(ErrorCode::kUnsupported, graph.name, "a job of the C API has at most 64 inputs and 64 outputs");
    scheduler->models.reserve(scheduler->models.size() + 1);
    sluice::scheduler::ModelOptions options;
    options.urgent = urgent != 0;
    SLUICE_ASSIGN_OR_RETURN(const ModelId id, scheduler->scheduler->add_model(model->model, options));
    scheduler->models.push_back(model->model);
    *number = id.index();
    return {};
  }));
}

sluice_status sluice_scheduler_start(sluice_scheduler* scheduler) {
  return scheduler == nullptr ? null_argument() : report(scheduler->scheduler->start());
}

sluice_status sluice_scheduler_submit(sluice_scheduler* scheduler, const sluice_job* job, uint64_t* ticket, int32_t* holds) {
  if (scheduler == nullptr || job == nullptr || ticket == nullptr || job->inputs == nullptr || job->outputs == nullptr)
    return null_argument();
  if (job->model >= scheduler->models.size())
    return report(sluice::make_error(ErrorCode::kInvalidArgument, "model", "the scheduler has no model of this number"));
  const sluice::model::Graph& graph = scheduler->models[job->model]->graph();
  std::array<std::span<const std::byte>, kMostPorts> inputs;
  std::array<std::span<std::byte>, kMostPorts> outputs;
  views_of(graph, graph.inputs, job->inputs, inputs);
  views_of(graph, graph.outputs, job->outputs, outputs);
  sluice::scheduler::JobOptions options;
  if (job->deadline_ns != 0) options.deadline = job->deadline_ns;
  options.priority = job->priority;
  options.app = job->app;
  options.only_if_it_holds = job->only_if_it_holds != 0;
  Caller* const caller = job->done == nullptr ? nullptr : scheduler->take(job->done, job->context);
  if (job->done != nullptr && caller == nullptr)
    return report(sluice::make_error(ErrorCode::kInvalidArgument, "jobs", "as many jobs are live as the scheduler has room for"));
  if (caller != nullptr) {
    options.context = caller;
    options.done = [](void* context, const JobResult& result) noexcept {
      Caller& to_tell = *static_cast<Caller*>(context);
      const Caller copy = to_tell;
      copy.scheduler->give_back(&to_tell);
      const sluice_job_result told = result_of(result);
      copy.done(copy.context, &told);
    };
  }
  const auto submission = scheduler->scheduler->submit(
      ModelId(job->model), {std::span(inputs).first(graph.inputs.size()), std::span(outputs).first(graph.outputs.size())}, options);
  if (!submission) {
    if (caller != nullptr) scheduler->give_back(caller);
    return report(submission.error());
  }
  *ticket = submission->ticket;
  if (holds != nullptr) *holds = submission->holds ? 1 : 0;
  return SLUICE_OK;
}

sluice_status sluice_scheduler_wait(sluice_scheduler* scheduler, uint64_t ticket, sluice_job_result* result) {
  if (scheduler == nullptr || result == nullptr) return null_argument();
  const auto ended = scheduler->scheduler->wait(ticket);
  if (!ended) return report(ended.error());
  *result = result_of(*ended);
  if (!ended->status) report(ended->status);  // the text is sluice_last_error()'s
  return SLUICE_OK;
}

sluice_status sluice_scheduler_cancel(sluice_scheduler* scheduler, uint64_t ticket) {
  return scheduler == nullptr ? null_argument() : report(scheduler->scheduler->cancel(ticket));
}

sluice_status sluice_scheduler_statistics_of(const sluice_scheduler* scheduler, sluice_scheduler_statistics* statistics) {
  if (scheduler == nullptr || statistics == nullptr) return null_argument();
  return report(sluice::or_out_of_memory("scheduler", [&]() -> sluice::Status {
    const sluice::scheduler::Statistics jobs = scheduler->scheduler->statistics().jobs;
    *statistics = {jobs.submitted, jobs.met, jobs.late, jobs.dropped, jobs.cancelled, jobs.failed, jobs.refused};
    return {};
  }));
}

void sluice_scheduler_close(sluice_scheduler* scheduler) { delete scheduler; }

}  // extern "C"

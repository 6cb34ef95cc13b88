#include "sluice/scheduler/scheduler.h"

#include <unistd.h>

#include "src/core/out_of_memory.h"
#include "src/scheduler/dispatcher.h"

namespace sluice::scheduler {

namespace {

/// A forked child has none of its parent's workers, and locks that they share with callers may stay locked in it: the child's calls are
/// refused or do nothing, and objects that it cannot end are left as they are.
class OfOneProcess final : public Scheduler {
 public:
  explicit OfOneProcess(std::unique_ptr<Dispatcher> dispatcher) noexcept : dispatcher_(std::move(dispatcher)) {}
  ~OfOneProcess() override {
    if (foreign()) static_cast<void>(dispatcher_.release());
  }

  Result<ModelId> add_model(std::shared_ptr<const sluice::Model> model, const ModelOptions& options) override {
    if (foreign()) return refusal();
    return dispatcher_->add_model(std::move(model), options);
  }
  Status start() override {
    if (foreign()) return refusal();
    return dispatcher_->start();
  }
  Result<Submission> submit(ModelId model, const JobTensors& tensors, const JobOptions& options) noexcept override {
    if (foreign()) return refusal();
    return dispatcher_->submit(model, tensors, options);
  }
  Result<JobResult> wait(Ticket ticket) noexcept override {
    if (foreign()) return refusal();
    return dispatcher_->wait(ticket);
  }
  Status cancel(Ticket ticket) noexcept override {
    if (foreign()) return refusal();
    return dispatcher_->cancel(ticket);
  }
  void drain() noexcept override {
    if (!foreign()) dispatcher_->drain();
  }
  Time now() const noexcept override { return dispatcher_->now(); }
  std::vector<UnitSupport> units(ModelId model) const override {
    return foreign() ? std::vector<UnitSupport>() : dispatcher_->units(model);
  }
  std::vector<Fallback> fallbacks() const override { return foreign() ? std::vector<Fallback>() : dispatcher_->fallbacks(); }
  std::span<const std::vector<std::byte>> reference_outputs(ModelId model) const noexcept override {
    return dispatcher_->reference_outputs(model);
  }
  Time expected_time(ModelId model, ProcessorId processor) const noexcept override { return dispatcher_->expected_time(model, processor); }
  SchedulerStatistics statistics() const override { return foreign() ? SchedulerStatistics() : dispatcher_->statistics(); }
  std::vector<RunEvent> trace() const override { return foreign() ? std::vector<RunEvent>() : dispatcher_->trace(); }
  Status emulate(const Fault& fault) noexcept override {
    if (foreign()) return refusal();
    return dispatcher_->emulate(fault);
  }

 private:
  bool foreign() const noexcept { return ::getpid() != process_; }
  static tl::unexpected<Error> refusal() noexcept {
    return fail(ErrorCode::kInvalidArgument, "scheduler",
                "the scheduler belongs to the process that this one was forked from: make one here");
  }

  const pid_t process_ = ::getpid();
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace

static_assert(find_policy("least_slack_time_first") == find_policy("least_slack"), "Band's names are aliases");

std::span<const Policy> policies() noexcept { return kPolicies; }

Result<std::unique_ptr<Scheduler>> Scheduler::create(const SchedulerOptions& options) {
  return or_out_of_memory("scheduler", [&]() -> Result<std::unique_ptr<Scheduler>> {
    const Policy* const policy = find_policy(options.policy);
    if (policy == nullptr)
      return fail(ErrorCode::kInvalidArgument, options.policy, "no policy has this name (docs/scheduling.md lists them)");
    auto scheduler = std::make_unique<Dispatcher>(options, *policy);
    SLUICE_RETURN_IF_ERROR(scheduler->add_processors());
    return std::make_unique<OfOneProcess>(std::move(scheduler));
  });
}

}  // namespace sluice::scheduler

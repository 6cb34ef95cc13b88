#include "sluice/scheduler/scheduler.h"

#include "src/core/out_of_memory.h"
#include "src/scheduler/dispatcher.h"

namespace sluice::scheduler {

static_assert(find_policy("least_slack_time_first") == find_policy("least_slack"), "Band's names are aliases");

std::span<const Policy> policies() noexcept { return kPolicies; }

Result<std::unique_ptr<Scheduler>> Scheduler::create(const SchedulerOptions& options) {
  return or_out_of_memory("scheduler", [&]() -> Result<std::unique_ptr<Scheduler>> {
    const Policy* const policy = find_policy(options.policy);
    if (policy == nullptr)
      return fail(ErrorCode::kInvalidArgument, options.policy, "no policy has this name (docs/scheduling.md lists them)");
    auto scheduler = std::make_unique<Dispatcher>(options, *policy);
    SLUICE_RETURN_IF_ERROR(scheduler->add_processors());
    return scheduler;
  });
}

}  // namespace sluice::scheduler

#include "sluice/scheduler/scheduler.h"

namespace sluice::scheduler {

static_assert(find_policy("least_slack_time_first") == find_policy("least_slack"), "Band's names are aliases");

std::span<const Policy> policies() noexcept { return kPolicies; }

}  // namespace sluice::scheduler

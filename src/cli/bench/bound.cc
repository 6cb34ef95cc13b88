#include "src/cli/bench/bound.h"

#include <algorithm>

#include "src/cli/text.h"

namespace sluice::cli::bench_detail {

Bound bound_of(const BoundFacts& facts) {
  constexpr double kHardlyWaits = 0.05;
  const double share = facts.median_ms > 0 ? facts.stall_ms / facts.median_ms : 0;
  if (share < kHardlyWaits) return {"compute", fmt::format("computing bounds it: {:.0f} % of the time is waiting for reads", 100 * share)};
  const double most = std::max({facts.planned_disk_ms, facts.planned_budget_ms, facts.planned_addresses_ms});
  if (most <= 0 || facts.planned_disk_ms >= most) {
    return {"disk",
            fmt::format("the disk bounds it: {:.0f} % of the time is waiting for reads, in any budget that reads as much", 100 * share)};
  }
  if (facts.planned_budget_ms >= most) {
    return {"budget", fmt::format("the budget bounds it: {:.0f} % of the time is waiting for reads that a larger one would begin earlier",
                                  100 * share)};
  }
  return {"addresses",
          fmt::format("addresses bound it: {:.0f} % of the time is waiting for reads whose place is still in use", 100 * share)};
}

}  // namespace sluice::cli::bench_detail

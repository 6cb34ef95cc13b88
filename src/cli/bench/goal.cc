#include "src/cli/bench/goal.h"

#include <algorithm>

#include "src/cli/text.h"

namespace sluice::cli::bench_detail {
namespace {

Row measure_at(const BenchOptions& options, Point point, std::uint64_t budget) {
  point.budget = std::to_string(budget);
  return measure(options, point);
}

}  // namespace

Row smallest_budget_for(const BenchOptions& options, const Point& point, double goal_ms) {
  constexpr std::uint64_t kNearEnough = 256 * 1024;
  constexpr std::uint64_t kShare = 50;  // 2 %
  Point unlimited = point;
  unlimited.budget = "unlimited";
  const auto reaches = [&](const Row& row) { return row.refusal.empty() && row.median_ms <= goal_ms; };
  Row best = measure(options, unlimited);
  if (!reaches(best)) {
    if (best.refusal.empty())
      best.refusal =
          fmt::format("no budget reaches {:.1f} ms: with all the memory it wants a run takes {:.1f} ms", goal_ms, best.median_ms);
    return best;
  }
  std::uint64_t low = expect(options, unlimited).minimum_budget_bytes, high = best.budget_bytes;
  const Row least = measure_at(options, point, low);
  if (reaches(least)) return least;
  while (high > low && high - low > std::max(kNearEnough, low / kShare)) {
    const std::uint64_t middle = low + (high - low) / 2;
    Row row = measure_at(options, point, middle);
    if (reaches(row)) {
      high = middle;
      best = std::move(row);
    } else {
      low = middle;
    }
  }
  return best;
}

}  // namespace sluice::cli::bench_detail

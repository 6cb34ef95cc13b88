#include "src/scheduler/weight_shares.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/engine/budget.h"
#include "src/engine/planning.h"

namespace sluice::scheduler {
namespace {

using engine::kArenaPage;
// From plan to plan a unit may have so much more.
constexpr double kGrowth = 1.6;
// Reads that this run does not wait for keep the disk from others, some of the time.
constexpr double kShareOfReads = 0.25;

Bytes kept_bytes(const SharePlan& plan) noexcept { return Bytes(align_up(plan.parts.kept, kArenaPage)); }
Bytes passing_bytes(const SharePlan& plan) noexcept { return Bytes(align_up(plan.parts.passing, kArenaPage)); }

double bytes_per_ms(const ShareUnit& unit) {
  const profiler::DeviceProfile profile = engine::profile_for(unit.options);
  const double rate = profile.read_bytes_per_second / 1e3;
  return profile.read_limit > 0 ? std::min(profile.read_limit / 1e3, rate) : rate;
}

/// All of it passes: what it keeps from run to run is read again when another unit's turn is over.
void put_in_window(SharePlan& plan, double bytes_per_ms) {
  plan.parts = {0, plan.plan->arena_bytes.count()};
  plan.cost_ms += static_cast<double>(plan.plan->resident_bytes.count()) / bytes_per_ms;
}

Result<SharePlan> plan_in(const ShareUnit& unit, Bytes capacity) {
  const Bytes overhead = engine::overhead_of(*unit.graph, unit.options);
  SessionOptions options = unit.options;
  options.budget = capacity < kUnlimitedBytes ? overhead + Bytes(align_up(capacity.count(), kArenaPage)) : kUnlimitedBytes;
  SLUICE_ASSIGN_OR_RETURN(PlannedBudget planned, engine::plan_within(*unit.graph, options, overhead));
  SharePlan made;
  made.parts = engine::parts_of(planned.plan);
  made.tables = planned.overhead - overhead;
  made.plan = std::make_shared<const plan::Plan>(std::move(planned.plan));
  const double rate = bytes_per_ms(unit);
  made.cost_ms = made.plan->prediction.period_ms + kShareOfReads * static_cast<double>(made.plan->streamed_bytes.count()) / rate;
  if (made.parts.passing == 0 || made.parts.kept == 0) put_in_window(made, rate);
  return made;
}

Bytes weight_bytes(const ShareUnit& unit) {
  Bytes sum;
  for (const model::Weight& weight : unit.graph->graph().weights) sum += weight.bytes;
  return sum;
}

/// The plan that saves the most of a unit's time for its bytes, beyond what is chosen; and how much it saves for each.
struct Step {
  std::size_t unit = 0, plan = 0;
  double saves = 0;
};

void consider(std::span<ShareUnit> units, std::size_t parts, Bytes room, std::size_t i, Bytes before, Step& best) {
  ShareUnit& unit = units[i];
  const std::size_t chosen = unit.chosen;
  for (std::size_t p = chosen + 1; p < unit.plans.size(); ++p) {
    const double gain = unit.runs * (unit.plans[chosen].cost_ms - unit.plans[p].cost_ms);
    if (gain <= 0) continue;
    unit.chosen = p;
    const Bytes after = bytes_of(units, parts);
    const double more = after > before ? static_cast<double>((after - before).count()) : 1;
    if (after <= room && gain / more > best.saves) best = {i, p, gain / more};
  }
  unit.chosen = chosen;
}

}  // namespace

Status plan_least(ShareUnit& unit) {
  SLUICE_ASSIGN_OR_RETURN(const Bytes least, minimum_budget(*unit.graph, unit.options));
  SLUICE_ASSIGN_OR_RETURN(SharePlan plan, plan_in(unit, least - engine::overhead_of(*unit.graph, unit.options)));
  if (plan.parts.kept > 0) put_in_window(plan, bytes_per_ms(unit));
  unit.plans = {std::move(plan)};
  unit.chosen = 0;
  return {};
}

Status plan_all(ShareUnit& unit) {
  SLUICE_ASSIGN_OR_RETURN(SharePlan plan, plan_in(unit, kUnlimitedBytes));
  unit.plans.push_back(std::move(plan));
  unit.chosen = unit.plans.size() - 1;
  return {};
}

Status plan_more(ShareUnit& unit, Bytes room) {
  const Bytes least = unit.plans.front().plan->capacity;
  const Bytes most = std::min(room, least + weight_bytes(unit) + weight_bytes(unit));
  for (double capacity = static_cast<double>(least.count());; capacity *= kGrowth) {
    const bool last = capacity >= static_cast<double>(most.count());
    Result<SharePlan> plan = plan_in(unit, last ? room : Bytes(static_cast<std::uint64_t>(capacity)));
    if (!plan && plan.error().code == ErrorCode::kBudgetTooSmall) return {};  // there is only the room of the least plan
    if (!plan) return fail(plan.error());
    unit.plans.push_back(std::move(*plan));
    if (last || unit.plans.back().plan->streamed_bytes == Bytes()) return {};
  }
}

Bytes window_of(std::span<const ShareUnit> units, std::size_t part) {
  Bytes window;
  for (const ShareUnit& unit : units)
    if (std::find(unit.parts.begin(), unit.parts.end(), part) != unit.parts.end()) window = std::max(window, passing_bytes(unit.plan()));
  return window;
}

Bytes bytes_of(std::span<const ShareUnit> units, std::size_t parts) {
  Bytes sum;
  for (const ShareUnit& unit : units) sum += kept_bytes(unit.plan()) + unit.parts.size() * unit.plan().tables;
  for (std::size_t part = 0; part < parts; ++part) sum += window_of(units, part);
  return sum;
}

void share_out(std::span<ShareUnit> units, std::size_t parts, Bytes room) {
  for (;;) {
    const Bytes before = bytes_of(units, parts);
    Step best;
    for (std::size_t i = 0; i < units.size(); ++i) consider(units, parts, room, i, before, best);
    if (best.saves <= 0) return;
    units[best.unit].chosen = best.plan;
  }
}

Status use_rest(std::span<ShareUnit> units, std::size_t parts, Bytes room) {
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), 0);
  const auto weight = [&](std::size_t i) { return units[i].runs * static_cast<double>(units[i].plan().plan->streamed_bytes.count()); };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return weight(a) > weight(b); });
  for (const std::size_t i : order) {
    ShareUnit& unit = units[i];
    const Bytes taken = bytes_of(units, parts);
    if (unit.plan().plan->streamed_bytes == Bytes() || room - taken < Bytes(kArenaPage)) continue;
    Result<SharePlan> plan = plan_in(unit, Bytes(unit.plan().parts.bytes()) + (room - taken));
    if (!plan && plan.error().code == ErrorCode::kBudgetTooSmall) continue;  // there is no other plan than the one that it has
    if (!plan) return fail(plan.error());
    const std::size_t before = std::exchange(unit.chosen, unit.plans.size());
    unit.plans.push_back(std::move(*plan));
    if (bytes_of(units, parts) > room || unit.plan().cost_ms >= unit.plans[before].cost_ms) unit.chosen = before;
  }
  return {};
}

}  // namespace sluice::scheduler

#include "src/cli/plan_sweep.h"

#include <array>
#include <chrono>
#include <cmath>
#include <optional>

#include "src/cli/failure.h"
#include "src/cli/json.h"
#include "src/cli/session_options.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;
using planner::Policy;

constexpr int kPoints = 10;
constexpr double kComfortable = 1.05;  // of the fastest: more memory than that budget buys little

struct SweepPoint {
  Bytes budget;
  plan::Plan plan;
  double planning_ms = 0;
  std::optional<double> on_demand_ms;
  std::optional<double> flexnn_ms;  // nothing where the rule finds no plan
};

double predicted_ms(const plan::Plan& plan) { return plan.repeat ? plan.prediction.period_ms : plan.prediction.cold_ms; }

std::optional<double> predicted_by(const Model& model, SessionOptions options, Policy policy) {
  options.tuning.policy = policy;
  const auto planned = plan_session(model, options);
  if (!planned || planned->plan.policy != planner::name_of(policy)) return std::nullopt;
  return predicted_ms(planned->plan);
}

SweepPoint plan_point(const Model& model, SessionOptions options, Bytes budget) {
  options.budget = budget;
  const Clock::time_point start = Clock::now();
  PlannedBudget planned = unwrap(plan_session(model, options));
  const double planning_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return {budget, std::move(planned.plan), planning_ms, predicted_by(model, options, Policy::kOnDemand),
          predicted_by(model, options, Policy::kFlexnn)};
}

std::vector<SweepPoint> sweep(const Model& model, SessionOptions options) {
  const Bytes smallest = unwrap(minimum_budget(model, options));
  options.tuning.policy = Policy::kResident;
  const Bytes largest = std::max(smallest, unwrap(minimum_budget(model, options)));
  options.tuning.policy = Policy::kSluice;
  const double ratio = static_cast<double>(largest.count()) / static_cast<double>(smallest.count());
  std::vector<SweepPoint> points;
  for (int i = 0; i < kPoints; ++i) {
    const double scale = std::pow(ratio, static_cast<double>(i) / (kPoints - 1));
    const auto bytes = static_cast<std::uint64_t>(static_cast<double>(smallest.count()) * scale);
    const Bytes budget = i == 0 ? smallest : i + 1 == kPoints ? largest : align_up(Bytes(bytes), 4096);
    points.push_back(plan_point(model, options, budget));
  }
  return points;
}

/// The smallest budget of the curve that is nearly as fast as the largest.
Bytes comfortable_budget(const std::vector<SweepPoint>& points) {
  for (const SweepPoint& point : points)
    if (predicted_ms(point.plan) <= kComfortable * predicted_ms(points.back().plan)) return point.budget;
  return points.back().budget;
}

Json json_of(const std::optional<double>& ms) { return ms ? Json(*ms) : Json(); }

void print_as_json(const std::vector<SweepPoint>& points) {
  Json curve = Json::array();
  for (const SweepPoint& point : points) {
    const plan::Plan& plan = point.plan;
    curve.push_back({{"budget_bytes", point.budget.count()},
                     {"arena_bytes", plan.arena_bytes.count()},
                     {"resident_bytes", plan.resident_bytes.count()},
                     {"streamed_bytes", plan.streamed_bytes.count()},
                     {"predicted_ms", predicted_ms(plan)},
                     {"bound_ms", plan.prediction.bound_ms},
                     {"pipe_bound_ms", plan.prediction.pipe_bound_ms},
                     {"compute_ms", plan.prediction.compute_ms},
                     {"on_demand_ms", json_of(point.on_demand_ms)},
                     {"flexnn_ms", json_of(point.flexnn_ms)},
                     {"planning_ms", point.planning_ms},
                     {"steps", plan.steps.size()},
                     {"loads", plan.loads.size()}});
  }
  print_json("sluice plan --sweep", {{"minimum_budget_bytes", points.front().budget.count()},
                                     {"comfortable_budget_bytes", comfortable_budget(points).count()},
                                     {"points", curve}});
}

std::string text_of(const std::optional<double>& ms) { return ms ? fmt::format("{:.1f}", *ms) : "none"; }

void print_as_text(const std::vector<SweepPoint>& points) {
  fmt::print("{}\n\n", points.front().plan.repeat ? "repeated runs" : "one cold run; --repeat for a program that runs many times");
  fmt::print("{:>12}{:>12}{:>12}{:>12}{:>10}{:>10}{:>12}{:>10}{:>10}\n", "budget", "arena", "resident", "streamed", "ms", "bound",
             "on demand", "flexnn", "planning");
  for (const SweepPoint& point : points) {
    const plan::Plan& plan = point.plan;
    fmt::print("{:>12}{:>12}{:>12}{:>12}{:>10.1f}{:>10.1f}{:>12}{:>10}{:>10.1f}\n", rounded_up(point.budget.count()),
               format_bytes(plan.arena_bytes), format_bytes(plan.resident_bytes), format_bytes(plan.streamed_bytes), predicted_ms(plan),
               plan.prediction.bound_ms, text_of(point.on_demand_ms), text_of(point.flexnn_ms), point.planning_ms);
  }
  fmt::print("\nsmallest {} ({} bytes), comfortable {} (within 5 % of the fastest)\n", rounded_up(points.front().budget.count()),
             points.front().budget.count(), rounded_up(comfortable_budget(points).count()));
}

}  // namespace

void print_sweep(const Model& model, const SessionOptions& options, bool json) {
  const std::vector<SweepPoint> points = sweep(model, options);
  if (json)
    print_as_json(points);
  else
    print_as_text(points);
}

}  // namespace sluice::cli

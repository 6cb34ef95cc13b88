#include <algorithm>
#include <cstdlib>

#include "sluice/engine/engine.h"
#include "sluice/plan/passing.h"
#include "sluice/plan/peak.h"
#include "sluice/plan/picture.h"
#include "sluice/plan/plan_file.h"
#include "src/cli/commands.h"
#include "src/cli/dims.h"
#include "src/cli/duration.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/json.h"
#include "src/cli/open_model.h"
#include "src/cli/plan_explain.h"
#include "src/cli/plan_sweep.h"
#include "src/cli/process.h"
#include "src/cli/profile_file.h"
#include "src/cli/session_options.h"
#include "src/cli/text.h"
#include "src/cli/visible.h"

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Planned {
  SessionOptions options;
  PlannedBudget budget;
  planner::PartitionReport partition;
  double planning_ms = 0;
  std::string profile;  // its file; empty: assumed rates
};

/// What a run waits for: the disk (whatever the budget), the budget (whatever the addresses), and addresses.
struct Stalls {
  double disk, budget, addresses;
};

Stalls stalls_of(const plan::Plan& plan) {
  const plan::Prediction& p = plan.prediction;
  const double all = plan.repeat ? p.period_ms : p.cold_ms;
  const double addresses = std::max(0.0, all - std::max(p.bound_ms, p.unbounded_ms));
  const double disk = std::max(0.0, std::min(all, p.unbounded_ms) - p.compute_ms);
  return {disk, std::max(0.0, all - p.compute_ms - disk - addresses), addresses};
}

Json json_of_stalls(const plan::Plan& plan) {
  const Stalls stalls = stalls_of(plan);
  return {{"disk", stalls.disk}, {"budget", stalls.budget}, {"addresses", stalls.addresses}};
}

void print_as_json(const Planned& planned, const Model& model) {
  const plan::Plan& plan = planned.budget.plan;
  const plan::Passed passed = plan::passed_bytes(plan, model.graph());
  Json json = {{"policy", plan.policy},
               {"dims", json_of_dims(model)},
               {"scope", scope_name(planned.options.scope)},
               {"minimum_budget_bytes", planned.budget.minimum_budget.count()},
               {"overhead_bytes", planned.budget.overhead.count()},
               {"arena_bytes", plan.arena_bytes.count()},
               {"activation_peak_bytes", plan::activation_peak(plan).bytes.count()},
               {"lower_bound_bytes", planned.partition.lower_bound.count()},
               {"partition", planner::name_of(planned.options.tuning.partition)},
               {"partition_overhead", planned.partition.overhead},
               {"resident_bytes", plan.resident_bytes.count()},
               {"streamed_bytes", plan.streamed_bytes.count()},
               {"scratch_bytes", plan::scratch_bytes(plan, model.graph()).count()},
               {"scratch_written_bytes", passed.written.count()},
               {"scratch_read_bytes", passed.read.count()},
               {"handed_over_bytes", passed.handed_over.count()},
               {"repeat", plan.repeat},
               {"predicted_ms", plan.repeat ? plan.prediction.period_ms : plan.prediction.cold_ms},
               {"bound_ms", plan.prediction.bound_ms},
               {"pipe_bound_ms", plan.prediction.pipe_bound_ms},
               {"compute_ms", plan.prediction.compute_ms},
               {"stalls_ms", json_of_stalls(plan)},
               {"planning_ms", planned.planning_ms},
               {"threads", plan.threads},
               {"profile", planned.profile.empty() ? "assumed" : planned.profile},
               {"steps", plan.steps.size()},
               {"loads", plan.loads.size()}};
  add_budget(json, planned.options.budget, planned.budget.overhead + plan.arena_bytes);
  print_json("sluice plan", json);
}

void print_plan_row(const char* name, const std::string& value, const std::string& remark = {}) {
  fmt::print("  {:<12}{:>12}   {}\n", name, value, remark);
}

void print_as_text(const Planned& planned, const Model& model) {
  const plan::Plan& plan = planned.budget.plan;
  const auto milliseconds = [](double ms) { return fmt::format("{:.1f} ms", ms); };
  fmt::print("{}{}  policy {}, {} thread{}, {}\n\n", model.file().path(), dims_text(model), plan.policy, plan.threads,
             plan.threads == 1 ? "" : "s", plan.repeat ? "repeated runs" : "one cold run");
  print_plan_row("budget", format_bytes(planned.options.budget), scope_name(planned.options.scope));
  print_plan_row("minimum", rounded_up(planned.budget.minimum_budget.count()),
                 fmt::format("{} bytes", planned.budget.minimum_budget.count()));
  print_plan_row("overhead", format_bytes(planned.budget.overhead), "what is not arena");
  print_plan_row("arena", format_bytes(plan.arena_bytes));
  print_plan_row("activations", format_bytes(plan::activation_peak(plan).bytes),
                 fmt::format("at their peak, workspaces among them; no cut into rows goes below {}; bands {} {:.1f} %",
                             format_bytes(planned.partition.lower_bound), planned.partition.overhead < 0 ? "save" : "cost",
                             100 * std::abs(planned.partition.overhead)));
  print_plan_row("resident", format_bytes(plan.resident_bytes), "weights kept");
  print_plan_row("streamed", format_bytes(plan.streamed_bytes), "weights loaded in each run");
  const plan::Passed passed = plan::passed_bytes(plan, model.graph());
  if (passed.written > Bytes())
    print_plan_row("spilled", format_bytes(passed.written),
                   fmt::format("of activations written in each run, {} read back", format_bytes(passed.read)));
  if (passed.handed_over > Bytes()) print_plan_row("handed over", format_bytes(passed.handed_over), "of outputs, as they are made");
  print_plan_row("predicted", milliseconds(plan.repeat ? plan.prediction.period_ms : plan.prediction.cold_ms));
  print_plan_row("bound", milliseconds(plan.prediction.bound_ms), "no plan considered for this budget is faster");
  print_plan_row("pipe bound", milliseconds(plan.prediction.pipe_bound_ms), "no plan at all is faster");
  const Stalls stalls = stalls_of(plan);
  print_plan_row("stalls", milliseconds(stalls.disk + stalls.budget + stalls.addresses),
                 fmt::format("disk {:.1f}, budget {:.1f}, addresses {:.1f}", stalls.disk, stalls.budget, stalls.addresses));
  if (planned.profile.empty()) print_plan_row("profile", "assumed", "`sluice profile` measures this device");
  print_plan_row("steps", std::to_string(plan.steps.size()),
                 fmt::format("{} loads, planned in {:.1f} ms", plan.loads.size(), planned.planning_ms));
}

void print_steps(const plan::Plan& plan, const model::Graph& graph) {
  fmt::print("\n  {:>5}  {:<12}{:<32}{:>14}{:>14}{:>12}\n", "step", "operator", "node", "rows", "channels", "loads");
  std::size_t next_load = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    const model::Node& node = graph.node(step.node);
    Bytes needed;
    for (; next_load < step.loads_needed; ++next_load) needed += plan.loads[next_load].file.size;
    fmt::print("  {:>5}  {:<12}{:<32}{:>14}{:>14}{:>12}\n", i, name_of(node.op), visible(node.name.substr(0, 31)),
               fmt::format("{}-{}", step.rows.begin, step.rows.end), fmt::format("{}-{}", step.channels.begin, step.channels.end),
               needed == Bytes() ? "" : format_bytes(needed));
  }
}

}  // namespace

void plan(const PlanOptions& options) {
  Planned planned;
  planned.options = session_options(options.budget);
  planned.options.repeat = options.repeat;
  planned.options.tuning.search_ms = parse_milliseconds(options.search, "--search");
  const FoundProfile profile = find_profile(options.budget.profile, planned.options.threads);
  planned.options.profile = profile.get();
  planned.profile = profile.path;
  refuse_replacing(options.save, options.budget.model, "the plan would replace the model that it is made from");
  refuse_replacing(options.svg, options.budget.model, "the picture would replace the model that it is made from");
  const auto model = open_model(options.budget.model, options.budget.dims, options.budget.key);
  if (options.sweep) {
    print_sweep(*model, planned.options, options.json);
    return;
  }
  const Clock::time_point start = Clock::now();
  auto budget = plan_session(*model, planned.options);
  if (!budget && budget.error().code == ErrorCode::kBudgetTooSmall && options.explain)
    explain_minimum(*model, planned.options, Bytes(budget.error().needed));
  planned.budget = unwrap(std::move(budget));
  planned.planning_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  planned.partition = unwrap(report_partition(*model, planned.options, planned.budget.plan));
  if (!options.save.empty()) unwrap(plan::save_plan(planned.budget.plan, options.save));
  if (!options.svg.empty()) {
    const std::string picture = plan::picture_of(planned.budget.plan, model->graph());
    write_atomically(options.svg, std::as_bytes(std::span(picture)));
  }
  if (options.json) {
    print_as_json(planned, *model);
    return;
  }
  print_as_text(planned, *model);
  if (options.table) print_steps(planned.budget.plan, model->graph());
  if (options.explain) explain_minimum(*model, planned.options, planned.budget.minimum_budget);
}

}  // namespace sluice::cli

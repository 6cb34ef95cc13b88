#include "src/engine/plan_costs.h"

#include <algorithm>

#include "sluice/kernels/left_out.h"
#include "sluice/kernels/registry.h"
#include "sluice/model/body.h"
#include "sluice/profiler/latency.h"

namespace sluice::engine {

planner::Schedule schedule_of(const plan::Plan& plan) {
  planner::Schedule schedule;
  for (const plan::Step& step : plan.steps) {
    planner::StepSpec spec;
    spec.channels = step.channels;
    spec.rows = step.rows;
    spec.loads_needed = step.loads_needed;
    spec.prepare = step.prepare;
    if (step.derived.buffer.valid()) spec.derived = 0;
    schedule.steps.push_back(spec);
  }
  for (const plan::Load& load : plan.loads) {
    planner::LoadSpec spec;
    spec.uses = load.uses;
    spec.resident = load.resident;
    spec.prologue_only = load.prologue_only;
    schedule.loads.push_back(spec);
  }
  return schedule;
}

namespace {

/// The plan's kernels, and for nodes without steps (views) those that a planner would take.
Result<planner::KernelChoice> kernels_of(const model::Graph& graph, const plan::Plan& plan) {
  std::vector<const kernels::KernelDescriptor*> chosen(graph.nodes.size(), nullptr);
  for (const plan::Step& step : plan.steps) {
    const kernels::KernelDescriptor*& kernel = chosen[step.node.index()];
    if (kernel != nullptr && kernel->id == step.kernel) continue;
    kernel = kernels::find_kernel(step.kernel);
    if (kernel == nullptr || kernel->resolve == nullptr)
      return fail(ErrorCode::kInvalidPlan, graph.node(step.node).name, "the plan names a kernel that this build does not have");
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] != nullptr) continue;
    const std::vector<const kernels::KernelDescriptor*> candidates = kernels::kernels_for(graph, graph.nodes[i]);
    if (candidates.empty()) return fail(kernels::no_kernel_for(graph, graph.nodes[i]));
    chosen[i] = candidates.front();
  }
  return planner::KernelChoice(graph, std::move(chosen));
}

/// Computing of all turns of the subgraphs that a step runs; of branches the longer.
Result<double> body_seconds(const model::Graph& graph, const plan::Plan& plan, const plan::Step& step, profiler::WorkPrices& prices) {
  const model::Node& node = graph.node(step.node);
  const kernels::KernelDescriptor& kernel = *kernels::find_kernel(step.kernel);
  const std::int64_t turns = kernel.weight_turns == nullptr ? 1 : std::max<std::int64_t>(kernel.weight_turns(graph, node), 1);
  double seconds = 0;
  for (std::uint32_t s = node.first_subgraph; s < node.first_subgraph + node.subgraph_count; ++s) {
    const model::Body body = model::body_of(graph, node, s);
    const plan::Plan& subplan = plan.subplans[s];
    SLUICE_ASSIGN_OR_RETURN(const planner::Costs costs, costs_of(body.graph, subplan, schedule_of(subplan), prices));
    seconds = std::max(seconds, static_cast<double>(turns) * costs.compute);
  }
  return seconds;
}

}  // namespace

Result<planner::Costs> costs_of(const model::Graph& graph, const plan::Plan& plan, const planner::Schedule& schedule,
                                profiler::WorkPrices& prices) {
  const profiler::DeviceProfile& profile = prices.profile();
  planner::Costs costs;
  costs.load_start = profile.load_start_seconds;
  costs.wake = profile.wake_seconds;
  costs.beside_reads = profile.step_time_beside_reads;
  SLUICE_ASSIGN_OR_RETURN(const planner::KernelChoice kernels, kernels_of(graph, plan));
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    costs.step.push_back(planner::price_step(
        graph, kernels, step.node, schedule.steps[i], profile, static_cast<int>(plan.threads),
        [&](const profiler::UsedKernel& kernel, const model::Node& node, const auto& work) { return prices.seconds(kernel, node, work); }));
    if (graph.node(step.node).subgraph_count > 0) {
      SLUICE_ASSIGN_OR_RETURN(const double seconds, body_seconds(graph, plan, step, prices));
      costs.step.back() += seconds;
    }
    if (!step.prepare) costs.compute += costs.step.back();
  }
  for (const plan::Load& load : plan.loads) {
    costs.load.push_back(profiler::load_seconds(profile, load.file.size));
    costs.decode.push_back(planner::decode_seconds(profile, load.file.size.count()));
  }
  planner::set_reads(profile, plan.loads.size(), [&](std::size_t k) { return plan.loads[k].file.size.count(); }, costs);
  return costs;
}

Result<std::vector<planner::NodeCopy>> copies_of(const model::Graph& graph, const plan::Plan& plan,
                                                 const profiler::DeviceProfile& profile) {
  if (!profile.copies_views) return std::vector<planner::NodeCopy>();
  SLUICE_ASSIGN_OR_RETURN(const planner::KernelChoice kernels, kernels_of(graph, plan));
  std::vector<bool> has_steps(graph.nodes.size(), false);
  for (const plan::Step& step : plan.steps) has_steps[step.node.index()] = true;
  return planner::copies_of(graph, kernels, has_steps, profile);
}

}  // namespace sluice::engine

#include "src/engine/plan_costs.h"

#include <algorithm>

#include "sluice/kernels/left_out.h"
#include "sluice/kernels/registry.h"
#include "sluice/model/body.h"
#include "sluice/profiler/latency.h"

namespace sluice::engine {

namespace {

/// Computing of all turns of the subgraphs that a step runs; of branches the longer.
Result<double> body_seconds(const model::Graph& graph, const plan::Plan& plan, const plan::Step& step, profiler::WorkPrices& prices) {
  const model::Node& node = graph.node(step.node);
  if (node.subgraph_count == 0) return 0.0;
  const kernels::KernelDescriptor& kernel = *kernels::find_kernel(step.kernel);
  const std::int64_t turns = kernel.weight_turns == nullptr ? 1 : std::max<std::int64_t>(kernel.weight_turns(graph, node), 1);
  double seconds = 0;
  for (std::uint32_t s = node.first_subgraph; s < node.first_subgraph + node.subgraph_count; ++s) {
    const model::Body body = model::body_of(graph, node, s);
    const plan::Plan& subplan = plan.subplans[s];
    KnownCosts known;
    SLUICE_ASSIGN_OR_RETURN(const planner::Costs costs, costs_of(body.graph, subplan, prices, known));
    seconds = std::max(seconds, static_cast<double>(turns) * costs.compute);
  }
  return seconds;
}

Result<const kernels::KernelDescriptor*> kernel_of(const model::Graph& graph, const plan::Step& step) {
  const kernels::KernelDescriptor* const kernel = kernels::find_kernel(step.kernel);
  if (kernel == nullptr || kernel->resolve == nullptr)
    return fail(ErrorCode::kInvalidPlan, graph.node(step.node).name, "the plan names a kernel that this build does not have");
  return kernel;
}

/// The plan's kernels, and for nodes without steps (views) those that a planner would take.
Result<planner::KernelChoice> kernels_of(const model::Graph& graph, const plan::Plan& plan) {
  std::vector<const kernels::KernelDescriptor*> chosen(graph.nodes.size(), nullptr);
  for (const plan::Step& step : plan.steps) {
    SLUICE_ASSIGN_OR_RETURN(chosen[step.node.index()], kernel_of(graph, step));
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] != nullptr) continue;
    const std::vector<const kernels::KernelDescriptor*> candidates = kernels::kernels_for(graph, graph.nodes[i]);
    if (candidates.empty()) return fail(kernels::no_kernel_for(graph, graph.nodes[i]));
    chosen[i] = candidates.front();
  }
  return planner::KernelChoice(graph, std::move(chosen));
}

/// Makes `spec` the step as prices read it: what they do not ask for is left out.
void describe(const plan::Step& step, planner::StepSpec& spec) noexcept {
  spec.channels = step.channels;
  spec.rows = step.rows;
  spec.loads_needed = step.loads_needed;
  spec.prepare = step.prepare;
  spec.derived = step.derived.buffer.valid() ? 0 : planner::kNotDerived;
}

/// Prices the steps of a plan that `known` does not have in the same place.
Status price_steps(const model::Graph& graph, const plan::Plan& plan, profiler::WorkPrices& prices, KnownCosts& known) {
  const auto step_seconds = [&](const profiler::UsedKernel& kernel, const model::Node& node, const profiler::StepWork& work) {
    return prices.seconds(kernel, node, work);
  };
  known.steps.resize(plan.steps.size());
  known.seconds.resize(plan.steps.size());
  std::vector<const kernels::KernelDescriptor*> kernels;  // nets have few
  planner::StepSpec spec;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    const KnownCosts::Step asked{step.node,
                                 step.kernel,
                                 step.rows,
                                 step.channels,
                                 static_cast<std::uint32_t>(plan.threads),
                                 step.prepare,
                                 step.derived.buffer.valid()};
    if (asked == known.steps[i] && asked.kernel != KernelId::kNone) continue;
    if (!known.run) known.run = profiler::run_work_of(graph);
    auto kernel = std::find_if(kernels.begin(), kernels.end(), [&](const auto* each) { return each->id == step.kernel; });
    if (kernel == kernels.end()) {
      SLUICE_ASSIGN_OR_RETURN(const kernels::KernelDescriptor* const found, kernel_of(graph, step));
      kernel = kernels.insert(kernels.end(), found);
    }
    describe(step, spec);
    known.seconds[i] = planner::price_computing(graph, **kernel, *known.run, step.node, spec, prices.profile(),
                                                static_cast<int>(plan.threads), step_seconds);
    known.steps[i] = asked;
  }
  return {};
}

}  // namespace

Result<planner::Costs> costs_of(const model::Graph& graph, const plan::Plan& plan, profiler::WorkPrices& prices, KnownCosts& known) {
  const profiler::DeviceProfile& profile = prices.profile();
  planner::Costs costs;
  costs.load_start = profile.load_start_seconds;
  costs.wake = profile.wake_seconds;
  costs.beside_reads = profile.step_time_beside_reads;
  SLUICE_RETURN_IF_ERROR(price_steps(graph, plan, prices, known));
  costs.step = known.seconds;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (!plan.subplans.empty()) {
      SLUICE_ASSIGN_OR_RETURN(const double seconds, body_seconds(graph, plan, plan.steps[i], prices));
      costs.step[i] += seconds;
    }
    if (!plan.steps[i].prepare) costs.compute += costs.step[i];
  }
  costs.load.reserve(plan.loads.size());
  costs.decode.reserve(plan.loads.size());
  for (const plan::Load& load : plan.loads) {
    costs.load.push_back(profiler::load_seconds(profile, load.file.size));
    costs.decode.push_back(planner::decode_seconds(profile, load.file.size.count()));
  }
  planner::set_reads(
      profile, plan.loads.size(), [&](std::size_t k) { return plan.loads[k].file.size.count(); }, costs);
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

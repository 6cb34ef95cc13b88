#include "sluice/plan/verify.h"

#include "src/core/out_of_memory.h"
#include "src/plan/built_needs.h"
#include "src/plan/verify_parts.h"

namespace sluice::plan {
namespace {

// Far above any real plan, and low enough that sums of counts stay inside 32 bits.
constexpr std::size_t kMaxItems = std::size_t{1} << 24;

bool in_range(const StepRange& range, std::int64_t steps) noexcept {
  return range.begin >= -steps && range.begin <= range.end && range.end <= steps;
}

Status check_header(const Plan& plan, const model::Graph& graph, const VerifyContext& context) {
  constexpr std::uint32_t kMaxBlock = 1u << 20;
  constexpr std::uint32_t kMaxThreads = 1u << 12;
  const auto refuse = [](const char* reason) { return fail(ErrorCode::kInvalidPlan, "plan", reason); };
  if (plan.model_hash != context.model_hash) return refuse("I0: the plan was made for another model");
  if (plan.block < 512 || plan.block > kMaxBlock || (plan.block & (plan.block - 1)) != 0)
    return refuse("I0: the block is no power of two between 512 and 1 MiB");
  if (plan.threads < 1 || plan.threads > kMaxThreads) return refuse("I0: the number of threads is out of range");
  for (std::size_t count : {plan.buffers.size(), plan.steps.size(), plan.operands.size(), plan.loads.size(), plan.blocks.size()})
    if (count > kMaxItems) return refuse("I0: more items than any plan has");
  if (plan.tensors.size() != graph.tensors.size()) return refuse("I0: the plan does not place each tensor of the graph once");
  if (plan.steps.empty()) return refuse("I0: a plan without steps");
  if ((needs_of(plan) & ~kBuiltNeeds) != 0)
    return fail(ErrorCode::kUnsupported, "plan", "this build was trimmed to plans that do without what this one needs: trim it to it, too");
  if (plan.subplans.size() != graph.subgraphs.size()) return refuse("I0: the plan has not one sub-plan for each subgraph");
  return {};
}

Status check_steps(const Plan& plan, const model::Graph& graph) {
  std::uint64_t next_operand = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (!step.node.valid() || step.node.index() >= graph.nodes.size()) return broken("step", i, "I0: its node does not exist");
    const RowExtents extents = row_extents(graph.tensor(graph.node(step.node).outputs[0]).shape);
    if (step.rows.empty() || step.rows.begin < 0 || step.rows.end > extents.rows || step.channels.empty() || step.channels.begin < 0 ||
        step.channels.end > model::step_channels(graph, graph.node(step.node)))
      return broken("step", i, "I6: it writes nothing, or outside its node's output");
    if (step.kernel == KernelId::kNone) return broken("step", i, "I0: it names no kernel");
    if (step.workspace.valid() && step.workspace.index() >= plan.buffers.size())
      return broken("step", i, "I0: its workspace does not exist");
    if (step.sums.valid() && step.sums.index() >= plan.buffers.size())
      return broken("step", i, "I0: the buffer of its unfinished sums does not exist");
    if (step.first_operand != next_operand) return broken("step", i, "I0: its operands do not follow those of the step before");
    next_operand += step.operand_count;
    if (next_operand > plan.operands.size()) return broken("step", i, "I0: its operands do not exist");
    if (step.loads_needed > plan.loads.size()) return broken("step", i, "I0: it needs loads that do not exist");
    if (step.derived.buffer.valid() && step.derived.buffer.index() >= plan.buffers.size())
      return broken("step", i, "I0: its derived weights do not exist");
    if (step.prepare && !step.derived.buffer.valid()) return broken("step", i, "I0: a prepare step that writes nothing");
    if (step.derived.buffer.valid() && graph.node(step.node).weights.empty())
      return broken("step", i, "I0: derived weights of a node without weights");
  }
  if (next_operand != plan.operands.size()) return fail(ErrorCode::kInvalidPlan, "plan", "I0: operands that belong to no step");
  return {};
}

Status check_passing_form(const Plan& plan, const model::Graph& graph) {
  for (const PassingTensor& passing : plan.passing)
    if (!passing.tensor.valid() || passing.tensor.index() >= graph.tensors.size())
      return fail(ErrorCode::kInvalidPlan, "plan", "I0: a tensor that passes does not exist");
  for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
    const PassingBlock& block = plan.blocks[b];
    if (block.step >= plan.steps.size() || !block.tensor.valid() || block.tensor.index() >= graph.tensors.size())
      return broken("block", b, "I0: its step or its tensor does not exist");
    if (b > 0 && block.step < plan.blocks[b - 1].step) return broken("block", b, "I0: blocks are not in the order of steps");
  }
  return {};
}

}  // namespace

Status check_form(const Plan& plan, const model::Graph& graph, const VerifyContext& context) {
  SLUICE_RETURN_IF_ERROR(check_header(plan, graph, context));
  SLUICE_RETURN_IF_ERROR(check_steps(plan, graph));
  if constexpr (is_built(Need::kPassing)) SLUICE_RETURN_IF_ERROR(check_passing_form(plan, graph));
  const auto steps = static_cast<std::int64_t>(plan.steps.size());
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (!in_range(plan.buffers[b].lifetime, steps)) return broken("buffer", b, "I0: its lifetime leaves the period and the one before");
  for (std::size_t t = 0; t < plan.tensors.size(); ++t)
    if (plan.tensors[t].buffer.valid() && plan.tensors[t].buffer.index() >= plan.buffers.size())
      return broken("tensor", t, "I0: its buffer does not exist");
  for (std::size_t o = 0; o < plan.operands.size(); ++o) {
    const WeightOperand& operand = plan.operands[o];
    if (!operand.weight.valid() || operand.weight.index() >= graph.weights.size())
      return broken("operand", o, "I0: its weight does not exist");
    if (operand.load.valid() && operand.load.index() >= plan.loads.size()) return broken("operand", o, "I0: its load does not exist");
  }
  for (std::size_t k = 0; k < plan.loads.size(); ++k) {
    const Load& load = plan.loads[k];
    if (!load.target.valid() || load.target.index() >= plan.buffers.size()) return broken("load", k, "I0: its target does not exist");
    if (load.stretch_count == 0 || load.first_stretch > graph.stretches.size() ||
        load.stretch_count > graph.stretches.size() - load.first_stretch)
      return broken("load", k, "I0: its stretches do not exist");
    if (!in_range(load.uses, steps) || load.uses.begin < 0) return broken("load", k, "I0: its uses are no steps of the period");
    if (load.gate < -steps || load.gate > steps) return broken("load", k, "I8: its gate lies more than one period away");
    if (load.resident && load.prologue_only) return broken("load", k, "I0: it is both resident and given up after the prologue");
  }
  return {};
}

Status verify(const Plan& plan, const model::Graph& graph, const VerifyContext& context) {
  return or_out_of_memory(graph.name, [&]() -> Status {
    SLUICE_RETURN_IF_ERROR(check_form(plan, graph, context));
    std::vector<InnerBuffer> inner;
    SLUICE_RETURN_IF_ERROR(check_memory(plan, graph, context, inner));
    if constexpr (is_built(Need::kSums)) SLUICE_RETURN_IF_ERROR(check_sums(plan, graph));
    SLUICE_RETURN_IF_ERROR(check_loads(plan, graph, context));
    if constexpr (is_built(Need::kDerived)) SLUICE_RETURN_IF_ERROR(check_derived(plan, graph));
    if constexpr (is_built(Need::kPassing)) SLUICE_RETURN_IF_ERROR(check_passing(plan, graph, context));
    SLUICE_RETURN_IF_ERROR(check_content(plan, graph, context, inner));
    return check_subplans(plan, graph, context);
  });
}

}  // namespace sluice::plan

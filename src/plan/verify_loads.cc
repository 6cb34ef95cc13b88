// (I1) (I5) (I8): every weight that a step reads is in memory when it starts, and no wait can be endless.
#include <algorithm>
#include <vector>

#include "src/plan/verify_parts.h"

namespace sluice::plan {
namespace {

Status check_lifetime(const Plan& plan, std::size_t k) {
  const Load& load = plan.loads[k];
  const Buffer& target = plan.buffer(load.target);
  const auto steps = static_cast<std::int64_t>(plan.steps.size());
  // A load that no step waits for could write at any time.
  if (load.uses.empty()) return broken("load", k, "I5: no step uses it");
  if (load.gate > load.uses.begin) return broken("load", k, "I5: its gate lies behind its first use");
  if (load.gate < 0 && !load.streamed()) return broken("load", k, "I8: it is wrapped, but runs in the prologue only");
  if (load.gate < 0 && !plan.repeat) return broken("load", k, "I8: it is wrapped, but no run follows");
  if (load.resident) {
    if (!target.whole_period || target.lifetime != StepRange{0, steps})
      return broken("load", k, "I1: it is resident, but its target does not live for the whole period");
    return {};
  }
  if (target.whole_period) return broken("load", k, "I1: it is not resident, but its target lives for ever");
  if (target.lifetime.begin > load.gate) return broken("load", k, "I1: it may write before its target's lifetime begins");
  if (target.lifetime.end < load.uses.end) return broken("load", k, "I1: its target's lifetime ends before its last use");
  return {};
}

Status check_payload(const Plan& plan, const model::Graph& graph, std::size_t k) {
  const Load& load = plan.loads[k];
  // Stretches are in rising order in the file (G5), so the first and the last bound all of them.
  const model::Stretch& first = graph.stretches[load.first_stretch];
  const model::Stretch& last = graph.stretches[load.first_stretch + load.stretch_count - 1];
  const auto end = checked_add(last.offset.count(), last.stored_size.count());
  if (first.offset < load.file.offset || !end || *end > load.file.end().count())
    return broken("load", k, "I5: its stretches lie outside the range that it reads");
  unsigned forms = 0;
  for (const model::Stretch& stretch : std::span(graph.stretches).subspan(load.first_stretch, load.stretch_count))
    forms |= static_cast<unsigned>(stretch.form);
  if (forms != static_cast<unsigned>(load.form)) return broken("load", k, "I5: its stretches are stored in another form than it reads");
  return {};
}

Status check_gates(const Plan& plan) {
  std::vector<std::int64_t> latest_gate(plan.loads.size());  // of the loads up to this one
  std::int64_t in_prologue = 0;
  std::int64_t in_period = -static_cast<std::int64_t>(plan.steps.size());
  for (std::size_t k = 0; k < plan.loads.size(); ++k) {
    const Load& load = plan.loads[k];
    // In the prologue a load waits for whatever comes before it, so what only the prologue runs needs no order of gates.
    if (load.streamed() && load.gate < in_period) return broken("load", k, "I5: its gate lies before that of the load before it");
    in_prologue = std::max(in_prologue, load.gate);
    if (load.streamed()) in_period = load.gate;
    latest_gate[k] = in_prologue;
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const std::uint32_t needed = plan.steps[i].loads_needed;
    if (needed > 0 && latest_gate[needed - 1] > static_cast<std::int64_t>(i))
      return broken("step", i, "I5: it waits for a load whose gate waits for it");
  }
  return {};
}

/// The panels that a step must have of the `position`-th weight its node reads. Only the first weight of a convolution, dense layer,
/// embedding or recurrent node is cut.
Status check_panels(const model::Graph& graph, const Step& step, std::size_t i, std::size_t position, WeightId id, PanelRange panels) {
  const model::Node& node = graph.node(step.node);
  const model::Weight& weight = graph.weight(id);
  PanelRange expected{0, weight.panels};
  const bool panelled = node.op == model::OpKind::kConv || node.op == model::OpKind::kConvTranspose || node.op == model::OpKind::kDense ||
                        node.op == model::OpKind::kEmbedding || node.op == model::OpKind::kRecurrent;
  if (position == 0 && panelled && weight.panel_layout.layout != model::WeightLayout::kPlain) {
    const std::int64_t each = model::outputs_per_group(node);
    const std::int64_t outputs = model::step_channels(graph, node);
    expected = model::panels_of_channels(step.channels, each);
    if (model::channels_of_panels(expected, each, outputs) != step.channels)
      return broken("step", i, "I5: its channels are not whole panels");
  }
  if (panels != expected || expected.begin < 0 || expected.begin >= expected.end || expected.end > weight.panels)
    return broken("step", i, "I5: its panels are not those of its channels");
  return {};
}

/// The stretches of a coded weight that hold bytes of the panels: they follow each other raw as its panels do.
Interval<std::uint32_t> stretches_with(const model::Graph& graph, const model::Weight& weight, PanelRange panels) {
  const model::FileRange bytes = model::panel_range(weight, panels);
  Interval<std::uint32_t> found{weight.first_stretch, weight.first_stretch};
  Bytes at = weight.offset;
  for (const model::Stretch& stretch : graph.stretches_of(weight)) {
    if (at >= bytes.end()) break;
    at += stretch.raw_size;
    if (at <= bytes.offset) ++found.begin;
    ++found.end;
  }
  return found;
}

Status check_within(const Load& load, std::size_t i, Interval<std::uint32_t> stretches) {
  if (stretches.begin < load.first_stretch || stretches.end > load.first_stretch + load.stretch_count)
    return broken("step", i, "I5: a load does not bring the panels it is said to bring");
  return {};
}

/// The load's payload holds every stretch with bytes of the panels.
Status check_brought(const Plan& plan, const model::Graph& graph, std::size_t i, const WeightOperand& operand) {
  const model::Weight& weight = graph.weight(operand.weight);
  const Load& load = plan.loads[operand.load.index()];
  if (weight.code != model::kNoCode) return check_within(load, i, stretches_with(graph, weight, operand.panels));
  const model::FileRange bytes = model::panel_range(weight, operand.panels);
  const auto stretches = graph.stretches_of(weight);
  const auto before = [](const model::Stretch& stretch, Bytes offset) { return stretch.offset < offset; };
  const auto end = std::lower_bound(stretches.begin(), stretches.end(), bytes.end(), before);
  auto begin = std::lower_bound(stretches.begin(), stretches.end(), bytes.offset, before);
  if (begin == stretches.end() || begin->offset != bytes.offset) {
    if (begin == stretches.begin()) return broken("step", i, "I5: its panels lie in no stretch");
    --begin;
  }
  const auto first = weight.first_stretch + static_cast<std::uint32_t>(begin - stretches.begin());
  const auto last = weight.first_stretch + static_cast<std::uint32_t>(end - stretches.begin());
  return check_within(load, i, {first, last});
}

/// A prepare step runs once, the others in every period: what they read must be there as often.
Status check_times(const Plan& plan, const Step& step, std::size_t i, const WeightOperand& operand) {
  const Load& load = plan.loads[operand.load.index()];
  if (operand.load.index() >= step.loads_needed) return broken("step", i, "I5: it does not wait for a load that it needs");
  if (!load.uses.contains(static_cast<std::int64_t>(i))) return broken("step", i, "I5: it reads a load outside the load's uses");
  if (!step.prepare && load.prologue_only) return broken("step", i, "I8: it reads a load that only the prologue brings");
  if (step.prepare && load.streamed()) return broken("step", i, "I8: it runs in the prologue, but its load runs in every period");
  return {};
}

/// A weight without a load: one that the step around holds; one that the plans of the step's subgraphs bring, where this is no subgraph
/// itself (check_subplans); or the table in panels of a lookup in no subgraph, of which the step's workspace holds the least piece.
Status check_read_in_step(const Plan& plan, const model::Graph& graph, std::size_t i, std::size_t position, WeightId id,
                          const VerifyContext& context) {
  const Step& step = plan.steps[i];
  const model::Node& node = graph.node(step.node);
  if (context.outside != nullptr && context.outside->weights[id.index()] && !step.prepare) return {};
  if (context.outside == nullptr && node.subgraph_count > 0 && position < model::count_own_weights(graph, node)) return {};
  const bool lookup = node.op == model::OpKind::kEmbedding && graph.weight(id).panel_layout.layout != model::WeightLayout::kPlain;
  if (step.prepare || !lookup || context.outside != nullptr || position >= node.weights.size())
    return broken("step", i, "I5: no load brings a weight that it reads");
  if (!step.workspace.valid() || plan.buffer(step.workspace).size < model::least_piece(graph, graph.weight(id)))
    return broken("step", i, "I3: its workspace holds no piece of a weight that it reads by itself");
  return {};
}

Status check_operands_of(const Plan& plan, const model::Graph& graph, std::size_t i, const std::vector<WeightId>& reads,
                         const VerifyContext& context) {
  const Step& step = plan.steps[i];
  std::uint32_t operand = 0;
  for (std::size_t position = 0; position < reads.size(); ++position) {
    const bool from_derived = position == 0 && step.derived.buffer.valid();
    if (from_derived) SLUICE_RETURN_IF_ERROR(check_panels(graph, step, i, position, reads[position], step.derived.panels));
    if (step.prepare ? position > 0 : from_derived) continue;
    if (operand == step.operand_count) return broken("step", i, "I5: its operands are not the weights that its node reads");
    const WeightOperand& given = plan.operands[step.first_operand + operand++];
    if (given.weight != reads[position]) return broken("step", i, "I5: its operands are not the weights that its node reads");
    SLUICE_RETURN_IF_ERROR(check_panels(graph, step, i, position, given.weight, given.panels));
    if (!given.load.valid()) {
      SLUICE_RETURN_IF_ERROR(check_read_in_step(plan, graph, i, position, given.weight, context));
      continue;
    }
    SLUICE_RETURN_IF_ERROR(check_brought(plan, graph, i, given));
    SLUICE_RETURN_IF_ERROR(check_times(plan, step, i, given));
  }
  if (operand != step.operand_count) return broken("step", i, "I5: its operands are not the weights that its node reads");
  return {};
}

Status check_operands(const Plan& plan, const model::Graph& graph, const VerifyContext& context) {
  std::vector<WeightId> reads;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    reads.clear();
    model::weights_read_by(graph, graph.node(plan.steps[i].node), reads);
    SLUICE_RETURN_IF_ERROR(check_operands_of(plan, graph, i, reads, context));
  }
  return {};
}

}  // namespace

Status check_loads(const Plan& plan, const model::Graph& graph, const VerifyContext& context) {
  for (std::size_t k = 0; k < plan.loads.size(); ++k) {
    SLUICE_RETURN_IF_ERROR(check_payload(plan, graph, k));
    SLUICE_RETURN_IF_ERROR(check_lifetime(plan, k));
  }
  SLUICE_RETURN_IF_ERROR(check_gates(plan));
  return check_operands(plan, graph, context);
}

}  // namespace sluice::plan

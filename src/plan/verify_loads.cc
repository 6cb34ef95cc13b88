// (I1) (I5): every weight that a step reads is in memory when it starts, and no wait can last for ever.
#include <algorithm>
#include <vector>

#include "src/plan/verify_parts.h"

namespace sluice::plan {
namespace {

Status check_lifetime(const Plan& plan, std::size_t k) {
  const Load& load = plan.loads[k];
  const Buffer& target = plan.buffer(load.target);
  const auto steps = static_cast<std::int64_t>(plan.steps.size());
  // A load that no step waits for would write whenever it liked.
  if (load.uses.empty()) return broken("load", k, "I5: no step uses it");
  if (load.gate > load.uses.begin) return broken("load", k, "I5: its gate lies behind its first use");
  if (load.resident) {
    if (!target.whole_period || target.lifetime != StepRange{0, steps})
      return broken("load", k, "I1: it is resident, but its target does not live for the whole period");
    return {};
  }
  if (target.whole_period) return broken("load", k, "I1: it is streamed, but its target lives for ever");
  if (target.lifetime.begin > load.gate) return broken("load", k, "I1: it may write before its target's lifetime begins");
  if (target.lifetime.end < load.uses.end) return broken("load", k, "I1: its target's lifetime ends before its last use");
  return {};
}

Status check_payload(const Plan& plan, const model::Graph& graph, std::size_t k) {
  const Load& load = plan.loads[k];
  // Stretches lie in rising order in the file (G5), so the first and the last say where all of them lie.
  const model::Stretch& first = graph.stretches[load.first_stretch];
  const model::Stretch& last = graph.stretches[load.first_stretch + load.stretch_count - 1];
  const auto end = checked_add(last.offset.count(), last.stored_size.count());
  if (first.offset < load.file.offset || !end || *end > load.file.end().count())
    return broken("load", k, "I5: its stretches lie outside the range that it reads");
  return {};
}

Status check_gates(const Plan& plan) {
  for (std::size_t k = 0; k < plan.loads.size(); ++k) {
    if (k > 0 && plan.loads[k].gate < plan.loads[k - 1].gate)
      return broken("load", k, "I5: its gate lies before that of the load before it");
    if (plan.loads[k].resident && plan.loads[k].gate < 0) return broken("load", k, "I8: a resident load is never wrapped");
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const std::uint32_t needed = plan.steps[i].loads_needed;
    if (needed > 0 && plan.loads[needed - 1].gate > static_cast<std::int64_t>(i))
      return broken("step", i, "I5: it waits for a load whose gate waits for it");
  }
  return {};
}

/// The panels that a step must have of the `position`-th weight its node reads. Only the first weight of a convolution, dense layer or
/// embedding is cut.
Status check_panels(const model::Graph& graph, const Step& step, std::size_t i, std::size_t position, const WeightOperand& operand) {
  const model::Node& node = graph.node(step.node);
  const model::Weight& weight = graph.weight(operand.weight);
  PanelRange expected{0, weight.panels};
  const bool panelled = node.op == model::OpKind::kConv || node.op == model::OpKind::kConvTranspose || node.op == model::OpKind::kDense ||
                        node.op == model::OpKind::kEmbedding;
  if (position == 0 && panelled && weight.panel_layout.layout != model::WeightLayout::kPlain) {
    const std::int64_t each = model::outputs_per_group(node);
    const std::int64_t outputs = model::step_channels(graph, node);
    expected = model::panels_of_channels(step.channels, each);
    if (model::channels_of_panels(expected, each, outputs) != step.channels)
      return broken("step", i, "I5: its channels are not whole panels");
  }
  if (operand.panels != expected || expected.begin < 0 || expected.begin >= expected.end || expected.end > weight.panels)
    return broken("step", i, "I5: its panels are not those of its channels");
  return {};
}

/// The load's payload holds every stretch with bytes of the panels.
Status check_brought(const Plan& plan, const model::Graph& graph, std::size_t i, const WeightOperand& operand) {
  const model::Weight& weight = graph.weight(operand.weight);
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
  const Load& load = plan.loads[operand.load.index()];
  if (first < load.first_stretch || last > load.first_stretch + load.stretch_count)
    return broken("step", i, "I5: a load does not bring the panels it is said to bring");
  return {};
}

Status check_operands(const Plan& plan, const model::Graph& graph) {
  std::vector<WeightId> reads;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    reads.clear();
    model::weights_read_by(graph, graph.node(step.node), reads);
    if (step.operand_count != reads.size()) return broken("step", i, "I5: its operands are not the weights that its node reads");
    for (std::size_t position = 0; position < reads.size(); ++position) {
      const WeightOperand& operand = plan.operands[step.first_operand + position];
      if (operand.weight != reads[position]) return broken("step", i, "I5: its operands are not the weights that its node reads");
      SLUICE_RETURN_IF_ERROR(check_panels(graph, step, i, position, operand));
      SLUICE_RETURN_IF_ERROR(check_brought(plan, graph, i, operand));
      if (operand.load.index() >= step.loads_needed) return broken("step", i, "I5: it does not wait for a load that it needs");
      if (!plan.loads[operand.load.index()].uses.contains(static_cast<std::int64_t>(i)))
        return broken("step", i, "I5: it reads a load outside the load's uses");
    }
  }
  return {};
}

}  // namespace

Status check_loads(const Plan& plan, const model::Graph& graph) {
  for (std::size_t k = 0; k < plan.loads.size(); ++k) {
    SLUICE_RETURN_IF_ERROR(check_payload(plan, graph, k));
    SLUICE_RETURN_IF_ERROR(check_lifetime(plan, k));
  }
  SLUICE_RETURN_IF_ERROR(check_gates(plan));
  return check_operands(plan, graph);
}

}  // namespace sluice::plan

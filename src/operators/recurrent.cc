// RNN, GRU and LSTM behind their input matrix (RecurrentAttributes).
#include <cmath>

#include "src/operators/families.h"
#include "src/operators/node_check.h"

namespace sluice::operators {
namespace {

Status validate_recurrent(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<RecurrentAttributes>();
  if (a == nullptr) return check.invalid("G2: a recurrent node has its attributes");
  const bool lstm = a->cell == Cell::kLstm;
  if ((a->first_cell || a->peepholes || a->input_forget) && !lstm) return check.invalid("G2: only an LSTM has cells");
  SLUICE_RETURN_IF_ERROR(check.operands(1u + (a->first_hidden ? 1 : 0) + (a->first_cell ? 1 : 0),
                                        1u + (node.epilogue.has_bias ? 1 : 0) + (a->peepholes ? 1 : 0)));
  SLUICE_RETURN_IF_ERROR(check.f32());
  const Shape& out = check.output().shape;
  constexpr const char* kShapes = "G2: a recurrent node is of [time, batch, gates * hidden] and gives the same";
  if (!within(a->hidden, 1, kMaxExtent) || out.rank() != 3 || out.back() != a->gates() * a->hidden) return check.invalid(kShapes);
  SLUICE_RETURN_IF_ERROR(check.inferred(kShapes));
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const Shape& state = check.input(i).shape;
    if (state.rank() < 2 || state.back() != a->hidden || state.element_count() != out[1] * a->hidden)
      return check.invalid("G2: a first state is [batch, hidden]");
  }
  for (const Activation& f : a->functions)
    if (std::isnan(f.a) || std::isnan(f.b)) return check.invalid("G2: an activation's numbers are not numbers");
  if (a->peepholes) SLUICE_RETURN_IF_ERROR(check.plain_f32(node.weights.back(), 3 * a->hidden));
  return check.panels(WeightLayout::kPanels, out.back(), out.back(), 1, a->hidden);
}

/// A value takes its own sum of the input; the first states, [.., batch, hidden], are read at the first time step only.
AxisRelations relate_recurrent(const Graph& graph, const Node& node, std::size_t input) noexcept {
  AxisRelations axes = relate_same(graph, node, input);
  if (input == 0) return axes;
  const int batch = axes.rank() - 2;
  for (int axis = 0; axis < axes.rank(); ++axis) axes[axis] = any();
  if (shape_of_input(graph, node, input)[batch] == shape_of_output(graph, node)[1]) axes[batch] = same(1);
  return axes;
}

/// Peepholes stand for three gates each.
AxisRelations relate_recurrent_weight(const Graph& graph, const Node& node, std::size_t weight) noexcept {
  AxisRelations axes = relate_panels(graph, node, weight);
  if (node.as<RecurrentAttributes>().peepholes && weight + 1 == node.weights.size()) axes[0] = any();
  return axes;
}

Recurrence recurrence(const Node& node) noexcept { return {.axis = 0, .falling = node.as<RecurrentAttributes>().reverse}; }

}  // namespace

constexpr OperatorDefinition kRecurrent = {
    .kind = OpKind::kRecurrent,
    .attributes = kAlternative<RecurrentAttributes>,
    .epilogue = {.bias = true},
    .in_place = InPlace::kFirst,
    .quantised_panels = true,
    .validate = validate_recurrent,
    .infer = infer_same,
    .relate_input = relate_recurrent,
    .relate_weight = relate_recurrent_weight,
    .recurrence = recurrence,
};

}  // namespace sluice::operators

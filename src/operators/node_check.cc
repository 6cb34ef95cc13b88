#include "src/operators/node_check.h"

#include <algorithm>
#include <cmath>

namespace sluice::operators {

Status NodeCheck::epilogue() const {
  const EpilogueParts& takes = definition_of(node_.op).epilogue;
  const Epilogue& epilogue = node_.epilogue;
  if ((epilogue.has_bias && !takes.bias) || (epilogue.has_residual && !takes.residual))
    return invalid("G2: this operator takes neither bias nor residual");
  if (epilogue.activation.function != Function::kNone && !takes.activation) return invalid("G2: this operator takes no activation");
  if (std::isnan(epilogue.activation.a) || std::isnan(epilogue.activation.b)) return invalid("G2: an activation's numbers are not numbers");
  if (node_.numeric == NumericClass::kWinograd4 && node_.op != OpKind::kConv) return invalid("G2: only convolutions are winograd4");
  const Integers integers = definition_of(node_.op).integers;
  if (integer() ? integers == Integers::kNever : integers == Integers::kAll) return invalid("G2: the class is not one of this operator's");
  const bool rounded_twice = integer() && epilogue.has_residual;
  if ((epilogue.residual_first && !rounded_twice) || (epilogue.of_i8 && !rounded_twice && !(integer() && node_.op == OpKind::kBinary)))
    return invalid("G2: only integers are added in an order or as i8");
  if (rounded_twice != (node_.quantisation != kNoQuantisation))
    return invalid("G2: a scale for the sums belongs to integers with a residual");
  return integer() ? integer_activation() : Status{};
}

/// For u8, an activation that the output's range can express; for i32 sums, none.
Status NodeCheck::integer_activation() const {
  const Function f = node_.epilogue.activation.function;
  const bool range = f == Function::kRelu || f == Function::kClip;
  if (f == Function::kNone || output().dtype == DType::kF32 || (range && output().dtype == DType::kU8)) return {};
  return invalid("G2: an activation of integers is relu or clip");
}

Status NodeCheck::operands(std::size_t inputs, std::size_t weights) const {
  const std::size_t residual = node_.epilogue.has_residual ? 1 : 0;
  if (node_.inputs.size() != inputs + residual)
    return invalid("G2: the number of inputs is not the operator's", inputs + residual, node_.inputs.size());
  if (node_.weights.size() != weights) return invalid("G4: the number of weights is not the operator's", weights, node_.weights.size());
  return {};
}

Status NodeCheck::f32() const {
  const auto is_f32 = [&](TensorId id) { return graph_.tensor(id).dtype == DType::kF32; };
  if (is_f32(node_.outputs[0]) && std::all_of(node_.inputs.begin(), node_.inputs.end(), is_f32)) return {};
  return invalid("G2: an input or the output of an operator that computes is not f32");
}

bool NodeCheck::is_integer(const Tensor& tensor) const noexcept {
  if (tensor.dtype != DType::kU8 || tensor.quantisation == kNoQuantisation) return false;
  const Quantisation& q = graph_.quantisations[tensor.quantisation];
  return q.axis < 0 && !q.scale_weight.valid() && !q.zero_weight.valid();
}

Status NodeCheck::integers(bool output_too) const {
  const auto taken = [&](TensorId id) { return is_integer(graph_.tensor(id)); };
  if ((!output_too || taken(node_.outputs[0])) && std::all_of(node_.inputs.begin(), node_.inputs.end(), taken)) return {};
  return invalid("G2: an input or the output of integer arithmetic is not u8 of one scale");
}

Status NodeCheck::one_dtype() const {
  // Scales may differ: bytes are moved whatever they mean, and the scale of some may be unknown.
  const auto agrees = [&](TensorId id) { return graph_.tensor(id).dtype == output().dtype; };
  if (std::all_of(node_.inputs.begin(), node_.inputs.end(), agrees)) return {};
  return invalid("G2: inputs and output of an operator that moves values differ in type");
}

Status NodeCheck::products() const {
  if (!integer()) {
    SLUICE_RETURN_IF_ERROR(operands(1, node_.epilogue.has_bias ? 2 : 1));
    return f32();
  }
  if (!node_.epilogue.has_residual && node_.inputs.size() > 1) return run_time_products();
  const bool sums = output().dtype == DType::kI32;
  SLUICE_RETURN_IF_ERROR(operands(1, sums ? 2 : 3));
  if (!node_.epilogue.has_bias || (node_.epilogue.has_residual && output().dtype != DType::kU8))
    return invalid("G4: products of integers have a bias, and a residual only where they are rounded to u8");
  return integers(!sums && output().dtype != DType::kF32);
}

Status NodeCheck::run_time_products() const {
  const bool scaled = node_.inputs.size() == 3;
  SLUICE_RETURN_IF_ERROR(operands(scaled ? 3 : 2, scaled ? 3 : 2));
  if (!node_.epilogue.has_bias) return invalid("G4: products of integers have a bias");
  const bool typed = input(0).dtype == DType::kU8 && input(1).dtype == DType::kU8 && input(1).shape.element_count() == 1;
  if (!typed || output().dtype != (scaled ? DType::kF32 : DType::kI32))
    return invalid("G2: integers whose zero point comes at run time are u8, and so is it; they give i32, or f32 with a scale");
  const std::int64_t scales = scaled ? input(2).shape.element_count() : 1;
  if (!scaled || (input(2).dtype == DType::kF32 && (scales == 1 || scales == output().shape.back()))) return {};
  return invalid("G2: a scale of the run time is one f32, or one for each channel");
}

Status NodeCheck::residual() const {
  if (!node_.epilogue.has_residual || graph_.tensor(node_.inputs.back()).shape == output().shape) return {};
  return invalid("G4: the residual's shape is not the output's");
}

Status NodeCheck::inferred(const char* otherwise) const {
  if (infer_shape(graph_, node_) == output().shape) return {};
  return invalid(otherwise);
}

Status NodeCheck::panels(WeightLayout layout, std::int64_t outputs, std::int64_t per_group, std::int64_t taps, std::int64_t depth) const {
  const Weight& weight = graph_.weight(node_.weights[0]);
  if (weight.panel_layout.layout != layout) return invalid("G4: the weight's layout is not the operator's");
  const std::int64_t panels = panel_count(outputs, per_group);
  if (weight.panels != panels) return invalid("G4: the weight has not one lane for each output", panels, weight.panels);
  const std::int64_t interleave = weight.panel_layout.k_interleave;
  const auto padded = static_cast<std::uint64_t>((depth + interleave - 1) / interleave * interleave);
  const auto values = checked_mul(static_cast<std::uint64_t>(taps), padded);
  const bool integers = weight.panel_layout.dtype == DType::kI8 && weight.panel_layout.scale == PanelScale::kNone;
  const bool sparse = layout == WeightLayout::kSparse;
  if (sparse && integers) return fail(ErrorCode::kUnsupported, node_.name, "its sparse panels hold integers, which no kernel reads");
  if (integers != integer()) return invalid("G4: bare i8 panels belong to the class int8, and the class to them");
  if (is_narrow(weight.panel_layout) && !definition_of(node_.op).quantised_panels)
    return invalid("G4: this operator takes no quantised panels");
  const auto bytes = values ? panel_bytes_of(weight.panel_layout, *values) : std::nullopt;
  if (!bytes || weight.panel_bytes != *bytes ||
      ((integers || sparse || is_narrow(weight.panel_layout)) && values_of_lane(weight) != *values)) {
    return invalid("G4: the weight's panels are not as large as taps and channels say", bytes.value_or(Bytes()).count(),
                   weight.panel_bytes.count());
  }
  if (!node_.epilogue.has_bias) return {};
  SLUICE_RETURN_IF_ERROR(plain_values(node_.weights[1], integers ? DType::kI32 : DType::kF32, panels * kPanelLanes));
  return integers && node_.weights.size() > 2 ? plain_f32(node_.weights[2], panels * kPanelLanes) : Status{};
}

Status NodeCheck::plain_values(WeightId id, DType dtype, std::int64_t count) const {
  const Weight& weight = graph_.weight(id);
  if (weight.panel_layout.layout != WeightLayout::kPlain || weight.panel_layout.dtype != dtype) {
    return invalid("G4: a bias, scale, shift, multiplier or table is not stored as plain values of its type");
  }
  const auto needed = align_up(static_cast<std::uint64_t>(count) * size_of(dtype), kWeightAlignment);
  const std::uint64_t found = align_up(weight.panel_bytes.count(), kWeightAlignment);
  if (found != needed) return invalid("G4: a bias, scale, shift, multiplier or table has not one value for each lane", needed, found);
  return {};
}

Status NodeCheck::moved() const {
  SLUICE_RETURN_IF_ERROR(operands(1, 0));
  SLUICE_RETURN_IF_ERROR(one_dtype());
  if (input(0).shape.rank() != output().shape.rank()) return invalid("G2: input and output differ in rank");
  return {};
}

std::optional<Shape> infer_same(const Graph& graph, const Node& node) noexcept { return shape_of_input(graph, node); }
std::optional<Shape> infer_nothing(const Graph&, const Node&) noexcept { return std::nullopt; }

AxisRelations relate_same(const Graph& graph, const Node& node, std::size_t input) noexcept {
  return AxisRelations::all_same(shape_of_input(graph, node, input).rank());
}

AxisRelations relate_along_last(const Graph& graph, const Node& node, std::size_t input) noexcept {
  AxisRelations axes = relate_same(graph, node, input);
  if (axes.rank() > 0) axes[axes.rank() - 1] = reduced();
  return axes;
}

AxisRelations relate_panels(const Graph& graph, const Node& node, std::size_t weight) noexcept {
  if (weight > 0) return relate_channels(graph, node, weight);
  AxisRelations axes(kPanelAxes);
  axes[kLanes] = same(shape_of_output(graph, node).rank() - 1);
  axes[kTaps] = axes[kDepth] = reduced();
  return axes;
}

AxisRelations relate_looked_up(const Graph&, const Node&, std::size_t) noexcept {
  AxisRelations axes(1);
  axes[0] = any();
  return axes;
}

AxisRelations relate_channels(const Graph& graph, const Node& node, std::size_t) noexcept {
  AxisRelations axes(1);
  axes[0] = same(shape_of_output(graph, node).rank() - 1);
  return axes;
}

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b, int from_last) noexcept {
  Shape out = a.rank() >= b.rank() ? a : b;
  for (int axis = from_last; axis < out.rank(); ++axis) {
    const std::int64_t x = extent_from_last(a, axis), y = extent_from_last(b, axis);
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[out.rank() - 1 - axis] = x == 1 ? y : x;
  }
  return out;
}

Status check_broadcast(const NodeCheck& check, int from_last) {
  const Shape &a = check.input(0).shape, &b = check.input(1).shape, &out = check.output().shape;
  if (out.rank() != std::max(a.rank(), b.rank())) return check.invalid("G2: the output's rank is not that of the inputs, broadcast");
  const std::optional<Shape> made = broadcast_shape(a, b, from_last);
  for (int axis = 0; axis + from_last < out.rank(); ++axis)
    if (!made || (*made)[axis] != out[axis]) return check.invalid("G2: the inputs do not broadcast to the output");
  return {};
}

AxisRelation relate_broadcast(const Shape& in, const Shape& out, int axis) noexcept {
  const int output_axis = axis + out.rank() - in.rank();
  return in[axis] == out[output_axis] ? same(output_axis) : broadcast(output_axis);
}

}  // namespace sluice::operators

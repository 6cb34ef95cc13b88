// Resize: an output element is made of up to four neighbours of a source coordinate, on each axis.
#include <cmath>

#include "src/operators/families.h"
#include "src/operators/node_check.h"

namespace sluice::operators {
namespace {

/// Integers are blended in images, along rows and columns alone.
Status validate_blend(const NodeCheck& check, const ResizeAttributes& a) {
  const Shape &in = check.input(0).shape, &out = check.output().shape;
  const bool images = in.rank() == 4 && in[0] == out[0] && in[3] == out[3] && a.scale[0] == 1.0f && a.scale[3] == 1.0f;
  if (images && a.mode == ResizeMode::kLinear) return {};
  return check.invalid("G2: integers are resized to the nearest, or linearly along rows and columns of images");
}

/// The extent that a scale gives may have been rounded either way.
Status validate_resize(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<ResizeAttributes>();
  if (a == nullptr) return check.invalid("G2: a resize has its attributes");
  SLUICE_RETURN_IF_ERROR(check.moved());
  SLUICE_RETURN_IF_ERROR(check.f32_or_integers());
  if (check.integer() && a->mode != ResizeMode::kNearest) SLUICE_RETURN_IF_ERROR(validate_blend(check, *a));
  if (!std::isfinite(a->cubic_a)) return check.invalid("G2: a number is not finite");
  for (int axis = 0; axis < check.input(0).shape.rank(); ++axis) {
    const float scale = a->scale[static_cast<std::size_t>(axis)];
    if (!std::isfinite(scale) || !(scale > 0.0f)) return check.invalid("G2: a scale is not positive and finite");
    const auto out = static_cast<double>(check.output().shape[axis]);
    const double expected = static_cast<double>(check.input(0).shape[axis]) * static_cast<double>(scale);
    if (std::abs(out - expected) > 1.0 + 1e-5 * out) return check.invalid("G2: the output's extent does not follow from the scale");
  }
  return {};
}

/// The source of output o is near o * in / out. Added to that: half a position for the centre of pixels, up to in / out and in / 10^5 for a
/// scale that does not quite give the output's extent, in * 2^-22 for single precision, and two for the neighbours.
AxisRelation relate_axis(int axis, std::int64_t in, std::int64_t out) noexcept {
  if (in >= kMaxExtent / 64 || out >= kMaxExtent / 64) return any();
  const std::int64_t reach = 3 + 2 * ((in + out - 1) / out) + in / 20000;
  return {.kind = AxisKind::kWindow,
          .output_axis = static_cast<std::int8_t>(axis),
          .kernel = 2 * reach * out + 1,
          .stride = in,
          .pad_before = reach * out,
          .divisor = out};
}

AxisRelations relate_resize(const Graph& graph, const Node& node, std::size_t input) noexcept {
  const Shape &in = shape_of_input(graph, node), &out = shape_of_output(graph, node);
  AxisRelations axes = relate_same(graph, node, input);
  for (int axis = 0; axis < in.rank(); ++axis)
    if (in[axis] != out[axis] || node.as<ResizeAttributes>().scale[static_cast<std::size_t>(axis)] != 1.0f)
      axes[axis] = relate_axis(axis, in[axis], out[axis]);
  return axes;
}

std::uint64_t flops_of_resize(const Graph&, const Node& node) noexcept {
  return node.as<ResizeAttributes>().mode == ResizeMode::kNearest ? 0 : 8;
}

}  // namespace

constexpr OperatorDefinition kResize = {
    .kind = OpKind::kResize,
    .attributes = kAlternative<ResizeAttributes>,
    .integers = Integers::kSome,
    .validate = validate_resize,
    .infer = infer_nothing,  // the output says how the product with the scale was rounded
    .relate_input = relate_resize,
    .flops_per_output = flops_of_resize,
};

}  // namespace sluice::operators

// Operators that weigh the elements of one row, or of neighbouring channels, against each other.
#include <cmath>

#include "src/operators/families.h"
#include "src/operators/node_check.h"

namespace sluice::operators {
namespace {

constexpr std::int64_t kMaxLrnSize = 1 << 16;

/// Of integers, with a table of exponentials (parameters/integer.h).
Status validate_softmax(const Graph& graph, const Node& node) {
  constexpr std::int64_t kExponentials = 256;
  const NodeCheck check(graph, node);
  if (!check.integer()) return check.same_shape<SoftmaxAttributes>(0);
  const auto* a = check.attributes<SoftmaxAttributes>();
  if (a == nullptr || a->log) return check.invalid("G2: a softmax of integers has its attributes, and gives no logarithms");
  SLUICE_RETURN_IF_ERROR(check.operands(1, 1));
  SLUICE_RETURN_IF_ERROR(check.integers());
  SLUICE_RETURN_IF_ERROR(check.plain_f32(node.weights[0], kExponentials));
  return check.inferred("G2: input and output differ in shape");
}

std::uint64_t softmax_flops(const Graph&, const Node&) noexcept { return 20; }

Status validate_layer_norm(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  SLUICE_RETURN_IF_ERROR(check.same_shape<LayerNormAttributes>(2));
  const float epsilon = check.attributes<LayerNormAttributes>()->epsilon;
  if (!std::isfinite(epsilon) || epsilon < 0.0f) return check.invalid("G2: the epsilon of a norm is negative or not finite");
  if (check.output().shape.rank() == 0) return check.invalid("G2: a norm is over the last axis");
  SLUICE_RETURN_IF_ERROR(check.plain_f32(node.weights[0], check.output().shape.back()));
  return check.plain_f32(node.weights[1], check.output().shape.back());
}

std::uint64_t layer_norm_flops(const Graph&, const Node&) noexcept { return 8; }

Status validate_lrn(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  SLUICE_RETURN_IF_ERROR(check.same_shape<LrnAttributes>(0));
  const auto* a = check.attributes<LrnAttributes>();
  if (!within(a->size, 1, kMaxLrnSize)) return check.invalid("G2: the size of a local response normalisation is out of range");
  if (!std::isfinite(a->alpha) || !std::isfinite(a->beta) || !std::isfinite(a->bias)) return check.invalid("G2: a number is not finite");
  return {};
}

/// A window of channels; of an even size it reaches further up than down.
AxisRelations relate_lrn(const Graph& graph, const Node& node, std::size_t input) noexcept {
  AxisRelations axes = relate_same(graph, node, input);
  const int last = axes.rank() - 1;
  const std::int64_t size = node.as<LrnAttributes>().size;
  if (last >= 0)
    axes[last] = {.kind = AxisKind::kWindow, .output_axis = static_cast<std::int8_t>(last), .kernel = size, .pad_before = (size - 1) / 2};
  return axes;
}

std::uint64_t lrn_flops(const Graph&, const Node&) noexcept { return 120; }  // a power

}  // namespace

constexpr OperatorDefinition kSoftmax = {
    .kind = OpKind::kSoftmax,
    .attributes = kAlternative<SoftmaxAttributes>,
    .in_place = InPlace::kFirst,
    .integers = Integers::kSome,
    .in_bands = true,
    .validate = validate_softmax,
    .infer = infer_same,
    .relate_input = relate_along_last,
    .relate_weight = relate_looked_up,
    .flops_per_output = softmax_flops,
};

constexpr OperatorDefinition kLayerNorm = {
    .kind = OpKind::kLayerNorm,
    .attributes = kAlternative<LayerNormAttributes>,
    .in_place = InPlace::kFirst,
    .in_bands = true,
    .validate = validate_layer_norm,
    .infer = infer_same,
    .relate_input = relate_along_last,
    .relate_weight = relate_channels,
    .flops_per_output = layer_norm_flops,
};

constexpr OperatorDefinition kLrn = {
    .kind = OpKind::kLrn,
    .attributes = kAlternative<LrnAttributes>,
    .validate = validate_lrn,
    .infer = infer_same,
    .relate_input = relate_lrn,
    .flops_per_output = lrn_flops,
};

}  // namespace sluice::operators

#include "src/kernels/integer/parameters.h"

#include <cmath>

#include "src/kernels/integer/rounding.h"
#include "src/kernels/resolve.h"

namespace sluice::kernels::integer {
namespace {

using model::Graph;
using model::Node;

struct Scale {
  float scale = 1.0f;
  std::uint8_t zero = 0;
};

Scale scale_of(const Graph& graph, std::uint32_t quantisation) noexcept {
  if (quantisation == model::kNoQuantisation) return {};
  const model::Quantisation& q = graph.quantisations[quantisation];
  return {q.scales.empty() ? 1.0f : q.scales[0], q.zero_points.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(q.zero_points[0])};
}
Scale scale_of(const Graph& graph, TensorId id) noexcept { return scale_of(graph, graph.tensor(id).quantisation); }

/// A bound of the output's reals, as its integers say it.
std::uint8_t bound(float value, const Scale& out) noexcept { return to_u8(value / out.scale, {.zero = out.zero}); }

IntegerRange range_of(const Graph& graph, const Node& node) noexcept {
  const Activation& activation = node.epilogue.activation;
  const Scale out = scale_of(graph, node.outputs[0]);
  IntegerRange range{.zero = out.zero};
  if (activation.function == Function::kRelu) range.low = out.zero;
  if (activation.function == Function::kClip) {
    range.high = bound(activation.b, out);
    range.low = std::min(bound(activation.a, out), range.high);
  }
  return range;
}

/// The zero points are those of the ONNX file; the inner sum of their products is fused, as ONNX Runtime's compiler left it.
operators::IntegerSum addition(const Scale& a, const Scale& b, const Scale& out, const Node& node) noexcept {
  const int offset = node.epilogue.of_i8 ? 128 : 0;
  const auto zero = [&](const Scale& scale) { return static_cast<float>(scale.zero - offset); };
  const float ratio_a = a.scale / out.scale, ratio_b = b.scale / out.scale;
  return {ratio_a, ratio_b, zero(out) - std::fma(ratio_a, zero(a), ratio_b * zero(b)), static_cast<std::uint8_t>(offset)};
}

operators::IntegerWeightedParameters weighted_parameters(const Graph& graph, const Node& node) noexcept {
  const model::Weight& weight = graph.weight(node.weights[0]);
  operators::IntegerWeightedParameters weighted;
  weighted.panels = {.layout = weight.panel_layout,
                     .values = static_cast<std::int64_t>(model::values_of_lane(weight)),
                     .outputs_per_group = model::outputs_per_group(node),
                     .panel_bytes = weight.panel_bytes};
  operators::IntegerEpilogue& epilogue = weighted.epilogue;
  epilogue.zero_in = scale_of(graph, node.inputs[0]).zero;
  epilogue.activation = node.epilogue.activation;
  if (!node.epilogue.has_residual) epilogue.run_time = static_cast<std::uint8_t>(node.inputs.size() - 1);
  if (graph.tensor(node.outputs[0]).dtype != DType::kU8) return weighted;
  epilogue.range = range_of(graph, node);
  if (!node.epilogue.has_residual) return weighted;
  const Scale sum = scale_of(graph, node.quantisation), residual = scale_of(graph, node.inputs.back());
  const Scale out = scale_of(graph, node.outputs[0]);
  epilogue.has_residual = true;
  epilogue.residual_first = node.epilogue.residual_first;
  epilogue.sum_zero = sum.zero;
  epilogue.addition = epilogue.residual_first ? addition(residual, sum, out, node) : addition(sum, residual, out, node);
  return weighted;
}

operators::IntegerBorderParameters border(const Scale& scale) noexcept { return {scale.scale, scale.zero}; }

}  // namespace

operators::IntegerConvolutionParameters convolution_parameters(const Graph& graph, const Node& node) noexcept {
  const auto& a = node.as<model::ConvAttributes>();
  return {weighted_parameters(graph, node), a.window, a.groups, a.in_channels, a.out_channels};
}

operators::IntegerDenseParameters dense_parameters(const Graph& graph, const Node& node) noexcept {
  const auto& a = node.as<model::DenseAttributes>();
  return {weighted_parameters(graph, node), a.in_features, a.out_features};
}

operators::IntegerMatMulParameters matmul_parameters(const Graph& graph, const Node& node) noexcept {
  const Shape &a = graph.tensor(node.inputs[0]).shape, &out = graph.tensor(node.outputs[0]).shape;
  operators::IntegerMatMulParameters p{.depth = a.back(), .columns = out.back()};
  p.run_time = static_cast<std::uint8_t>(node.inputs.size() - 2);
  if (p.run_time != 0) return p;
  const Scale left = scale_of(graph, node.inputs[0]), right = scale_of(graph, node.inputs[1]);
  p.zero_a = left.zero;
  p.zero_b = right.zero;
  p.multiplier = left.scale * right.scale;
  if (graph.tensor(node.outputs[0]).dtype != DType::kU8) return p;
  p.range = range_of(graph, node);
  p.multiplier /= scale_of(graph, node.outputs[0]).scale;
  return p;
}

operators::IntegerPoolParameters pool_parameters(const Graph& graph, const Node& node) noexcept {
  const Scale in = scale_of(graph, node.inputs[0]), out = scale_of(graph, node.outputs[0]);
  const auto offset = static_cast<std::uint8_t>(node.as<model::PoolAttributes>().of_i8 ? 128 : 0);
  return {kernels::pool_parameters(graph, node), range_of(graph, node), in.zero, offset, in.scale, out.scale};
}

operators::IntegerSoftmaxParameters softmax_parameters(const Graph& graph, const Node& node) noexcept {
  return {range_of(graph, node), std::floor(1.0f / scale_of(graph, node.outputs[0]).scale)};
}

operators::IntegerResizeParameters resize_parameters(const Graph& graph, const Node& node) noexcept {
  const Scale in = scale_of(graph, node.inputs[0]);
  return {kernels::resize_parameters(graph, node), range_of(graph, node), in.zero, in.scale, scale_of(graph, node.outputs[0]).scale};
}

operators::IntegerTableParameters table_parameters(const Graph&, const Node&) noexcept { return {}; }

operators::IntegerBinaryParameters binary_parameters(const Graph& graph, const Node& node) noexcept {
  const Scale a = scale_of(graph, node.inputs[0]), b = scale_of(graph, node.inputs[1]), out = scale_of(graph, node.outputs[0]);
  return {.function = node.as<model::BinaryAttributes>().function,
          .range = range_of(graph, node),
          .zero_a = a.zero,
          .zero_b = b.zero,
          .scale_a = a.scale,
          .scale_b = b.scale,
          .scale = out.scale,
          .addition = addition(a, b, out, node)};
}

operators::IntegerBorderParameters quantize_parameters(const Graph& graph, const Node& node) noexcept {
  return border(scale_of(graph, node.outputs[0]));
}
operators::IntegerBorderParameters dequantize_parameters(const Graph& graph, const Node& node) noexcept {
  return border(scale_of(graph, node.inputs[0]));
}

}  // namespace sluice::kernels::integer

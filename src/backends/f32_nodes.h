// Which nodes a backend of f32 kernels can take at all, and the figures of a node that each such backend asks for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/model/graph.h"
#include "src/backends/host_graph.h"

namespace sluice::backends {

/// Rows of pixels or vectors before the last axis, and the length of that.
inline std::size_t channels_of(const Shape& shape) { return shape.rank() == 0 ? 1 : size(shape[shape.rank() - 1]); }
inline std::size_t rows_of(const Shape& shape) { return size(shape.element_count()) / std::max<std::size_t>(channels_of(shape), 1); }

/// How much padding below makes the output as large as it is (ceil_mode); none where it needs none.
inline std::int64_t pad_after(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t dilation, std::int64_t stride,
                              std::int64_t before) {
  return std::max<std::int64_t>((out - 1) * stride + (kernel - 1) * dilation + 1 - in - before, 0);
}

inline bool is_f32(const model::Graph& graph, const model::Node& node) {
  const auto sound = [&](TensorId id) {
    const model::Tensor& tensor = graph.tensor(id);
    return tensor.dtype == DType::kF32 && !tensor.weight.valid() && tensor.bounded == 0 && tensor.shape.element_count() > 0;
  };
  return std::all_of(node.inputs.begin(), node.inputs.end(), sound) && std::all_of(node.outputs.begin(), node.outputs.end(), sound);
}

/// f32 panels, stored as they are: neither coded nor encrypted.
inline bool reads_weight(const model::Graph& graph, WeightId id) {
  const model::Weight& weight = graph.weight(id);
  const auto stretches = graph.stretches_of(weight);
  return graph.tags.empty() && weight.panel_layout.dtype == DType::kF32 && weight.panel_layout.side == PanelSide::kOutputs &&
         weight.panel_layout.layout != WeightLayout::kSparse && weight.panel_layout.k_block == 1 &&
         std::all_of(stretches.begin(), stretches.end(), [](const model::Stretch& s) { return s.form == model::StretchForm::kRaw; });
}

/// Whether the tensors and weights of a node are such; which operators it runs, each backend says itself.
inline bool has_f32_operands(const model::Graph& graph, const model::Node& node) {
  return is_f32(graph, node) && node.numeric != model::NumericClass::kInt8 &&
         std::all_of(node.weights.begin(), node.weights.end(), [&](WeightId id) { return reads_weight(graph, id); });
}

}  // namespace sluice::backends

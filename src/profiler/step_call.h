// A step with its operands, as StepTimer runs it: what step_timer.cc and turn_timer.cc share.
#pragma once

#include <vector>

#include "src/profiler/step_timer.h"

namespace sluice::profiler {

inline std::uint64_t room_for(Bytes bytes) { return align_up(bytes.count() + kernels::kReadTail.count(), 64); }

/// Values in [-1, 1): no kernel meets a slow denormal.
void fill_with_values(std::byte* data, std::uint64_t bytes);

/// A step with its operands.
struct StepTimer::Call {
  Request request;
  kernels::StepExtent extent;
  std::vector<kernels::Operand> inputs;
  std::vector<kernels::Operand> outputs;
  std::vector<kernels::WeightOperand> weights;
  kernels::DerivedOperand derived;
  std::byte* workspace = nullptr;
  kernels::ResolvedCall resolved;

  /// The memory that it needs besides weights, each part on a cache line of its own.
  struct Rooms {
    std::uint64_t inputs = 0, outputs = 0, workspace = 0, derived = 0;
  };
  Rooms rooms() const;
  /// The addresses at which these rooms begin.
  struct Places {
    std::byte* inputs;
    std::byte* outputs;
    std::byte* workspace;
    std::byte* derived;
  };
  void lie_at(const Places& places);

  const model::Tensor& tensor(TensorId id) const { return request.graph.tensor(id); }
  const model::Weight& weight(std::size_t i) const { return request.graph.weight(request.node.weights[i]); }

  PanelRange panels_of(std::size_t i) const {
    const model::Weight& w = weight(i);
    if (i > 0 || !request.kernel.slices_channels) return {0, w.panels};
    if (w.panel_layout.layout == model::WeightLayout::kDepthwise) return {0, ceil_div(extent.channels.end, model::kPanelLanes)};
    return model::panels_of_channels(extent.channels, model::outputs_per_group(request.node));
  }
  Bytes bytes_of_weight(std::size_t i) const { return weight(i).panel_bytes * static_cast<std::uint64_t>(panels_of(i).size()); }
  Bytes derived_bytes() const {
    if (request.use == KernelUse::kRun) return Bytes();
    return kernels::derived_panel_bytes(request.kernel, request.graph, request.node) * static_cast<std::uint64_t>(panels_of(0).size());
  }
  /// A constant, or the model's own input, which no step has just written: convolutions of so few channels begin a net. (With their inputs
  /// just written, they were measured an eighth too fast.)
  bool comes_from_ring(TensorId id) const {
    constexpr std::int64_t kFewChannels = 4;
    if (tensor(id).weight.valid()) return true;
    if (request.node.op == model::OpKind::kQuantize) return tensor(id).shape.rank() == 4 && tensor(id).shape.back() <= kFewChannels;
    const auto* conv = std::get_if<model::ConvAttributes>(&request.node.attributes);
    if (request.node.numeric == model::NumericClass::kInt8) return false;  // which was quantised before
    return conv != nullptr && request.node.op == model::OpKind::kConv && conv->in_channels <= kFewChannels;
  }
  /// Bytes that one run reads from the ring: weights, raw or derived, and such inputs.
  std::uint64_t ring_bytes() const {
    std::uint64_t bytes = request.use == KernelUse::kRunDerived ? room_for(derived_bytes()) : 0;
    for (std::size_t i = 0; i < request.node.weights.size(); ++i) bytes += room_for(bytes_of_weight(i));
    for (TensorId id : request.node.inputs)
      if (comes_from_ring(id)) bytes += room_for(tensor(id).bytes());
    return bytes;
  }
};

}  // namespace sluice::profiler

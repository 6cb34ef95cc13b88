#include "src/profiler/step_timer.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace sluice::profiler {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kRingBytes = std::uint64_t{96} << 20;
constexpr std::uint64_t kCacheLine = 64;
constexpr double kLongEnough = 0.04;  // seconds of runs that make a sample
constexpr double kTooLong = 0.3;
constexpr std::size_t kLeastRuns = 5;

std::uint64_t room_for(Bytes bytes) { return align_up(bytes.count() + kernels::kReadTail.count(), kCacheLine); }

/// Values in [-1, 1): no kernel meets a slow denormal.
void fill(std::byte* data, std::uint64_t bytes) {
  auto* const floats = reinterpret_cast<float*>(data);
  std::uint32_t state = 1;
  for (std::uint64_t i = 0; i < bytes / sizeof(float); ++i) {
    state = state * 1664525u + 1013904223u;
    floats[i] = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

/// A step with its operands.
struct StepTimer::Call {
  const model::Graph& graph;
  const model::Node& node;
  const kernels::KernelDescriptor& kernel;
  kernels::StepExtent extent;
  std::vector<kernels::Operand> inputs;
  std::vector<kernels::Operand> outputs;
  std::vector<kernels::WeightOperand> weights;
  std::byte* workspace = nullptr;

  PanelRange panels_of(std::size_t weight) const {
    const model::Weight& w = graph.weight(node.weights[weight]);
    if (weight > 0 || !kernel.slices_channels) return {0, w.panels};
    if (w.panel_layout.layout == model::WeightLayout::kDepthwise) return {0, ceil_div(extent.channels.end, model::kPanelLanes)};
    return model::panels_of_channels(extent.channels, model::outputs_per_group(node));
  }
  /// Bytes of one run's weights, constant inputs too.
  std::uint64_t weight_bytes() const {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < node.weights.size(); ++i)
      bytes += room_for(Bytes(graph.weight(node.weights[i]).panel_bytes.count() * static_cast<std::uint64_t>(panels_of(i).size())));
    for (TensorId id : node.inputs)
      if (graph.tensor(id).weight.valid()) bytes += room_for(graph.tensor(id).bytes());
    return bytes;
  }
};

Result<StepTimer> StepTimer::create(int threads) {
  StepTimer timer;
  SLUICE_ASSIGN_OR_RETURN(timer.pool_, make_thread_pool(threads));
  timer.ring_ = model::AlignedBuffer::allocate(Bytes(kRingBytes));
  if (timer.ring_.data() == nullptr) return fail(ErrorCode::kOutOfMemory, "profile", "there is no memory for the weights");
  fill(timer.ring_.data(), kRingBytes);
  return timer;
}

kernels::StepExtent StepTimer::extent_of(const model::Graph& graph, const model::Node& node, const kernels::KernelDescriptor& kernel,
                                         double share) const {
  kernels::StepExtent extent{
      {0, row_extents(graph.tensor(node.outputs[0]).shape).rows}, {0, model::step_channels(graph, node)}, pool_->thread_count(), false};
  if (!kernel.slices_channels || node.weights.empty()) return extent;
  const model::Weight& weight = graph.weight(node.weights[0]);
  const double fits = static_cast<double>(kRingBytes) / 2 / static_cast<double>(weight.bytes.count() + 1);
  const double taken = std::min(share, fits);
  if (taken >= 1) return extent;
  const std::int64_t panels = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(weight.panels) * taken));
  extent.channels = model::channels_of_panels({0, panels}, model::outputs_per_group(node), extent.channels.end);
  return extent;
}

/// Lays out inputs, output and workspace.
Status StepTimer::place(Call& call) {
  std::uint64_t bytes = 0;
  const auto take = [&](Bytes size) {
    const std::uint64_t at = bytes;
    bytes += room_for(size);
    return at;
  };
  std::vector<std::uint64_t> offsets;
  for (const auto& ids : {call.node.inputs, call.node.outputs})
    for (TensorId id : ids) offsets.push_back(take(call.graph.tensor(id).bytes()));
  const Bytes workspace = call.kernel.workspace == nullptr ? Bytes() : call.kernel.workspace(call.graph, call.node, call.extent);
  const std::uint64_t workspace_at = take(workspace);
  if (bytes > arena_bytes_) {
    arena_ = model::AlignedBuffer::allocate(Bytes(bytes));
    arena_bytes_ = arena_.data() == nullptr ? 0 : bytes;
    if (arena_.data() == nullptr) return fail(ErrorCode::kOutOfMemory, call.node.name, "there is no memory for the tensors");
  }
  fill(arena_.data(), bytes);
  std::size_t next = 0;
  const auto operand_of = [&](TensorId id) {
    const model::Tensor& tensor = call.graph.tensor(id);
    return kernels::Operand{dense_view(arena_.data() + offsets[next++], tensor.shape, tensor.dtype), tensor.shape};
  };
  for (TensorId id : call.node.inputs) call.inputs.push_back(operand_of(id));
  for (TensorId id : call.node.outputs) call.outputs.push_back(operand_of(id));
  for (std::size_t i = 0; i < call.node.weights.size(); ++i)
    call.weights.push_back({nullptr, call.panels_of(i), &call.graph.weight(call.node.weights[i])});
  call.workspace = arena_.data() + workspace_at;
  return {};
}

/// The next run's weights: a part of the ring that was not read for long.
void StepTimer::place_weights(Call& call) {
  if (ring_at_ + call.weight_bytes() > kRingBytes) ring_at_ = 0;
  const auto take = [&](Bytes size) {
    const std::byte* const data = ring_.data() + ring_at_;
    ring_at_ += room_for(size);
    return data;
  };
  for (kernels::WeightOperand& weight : call.weights)
    weight.data = take(Bytes(weight.weight->panel_bytes.count() * static_cast<std::uint64_t>(weight.panels.size())));
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const model::Tensor& tensor = call.graph.tensor(call.node.inputs[i]);
    if (tensor.weight.valid()) call.inputs[i].view.data = const_cast<std::byte*>(take(tensor.bytes()));
  }
}

double StepTimer::run_once(Call& call) {
  place_weights(call);
  const kernels::KernelCall step{.graph = &call.graph,
                                 .node = &call.node,
                                 .inputs = call.inputs,
                                 .outputs = call.outputs,
                                 .weights = call.weights,
                                 .rows = call.extent.rows,
                                 .channels = call.extent.channels,
                                 .workspace = call.workspace,
                                 .pool = pool_.get()};
  const Clock::time_point start = Clock::now();
  call.kernel.run(step);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<std::optional<TimedStep>> StepTimer::time(const model::Graph& graph, const model::Node& node,
                                                 const kernels::KernelDescriptor& kernel, double share) {
  Call call{graph, node, kernel, extent_of(graph, node, kernel, share), {}, {}, {}};
  if (call.weight_bytes() > kRingBytes) return std::optional<TimedStep>();
  SLUICE_RETURN_IF_ERROR(place(call));
  double spent = run_once(call);  // touches pages, wakes threads
  std::vector<double> seconds;
  if (spent > kTooLong) seconds.push_back(spent);
  while (spent < kTooLong && (spent < kLongEnough || seconds.size() < kLeastRuns)) {
    seconds.push_back(run_once(call));
    spent += seconds.back();
  }
  return std::optional<TimedStep>({call.extent, std::max(median(seconds), 1e-9)});
}

}  // namespace sluice::profiler

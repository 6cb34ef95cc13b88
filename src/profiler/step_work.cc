#include "sluice/profiler/step_work.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sluice/kernels/kernel_ids.h"
#include "sluice/operators/definition.h"
#include "sluice/operators/parameters/elementwise.h"
#include "sluice/operators/parameters/integer.h"
#include "sluice/operators/parameters/movement.h"
#include "sluice/operators/parameters/transformer.h"
#include "sluice/operators/parameters/weighted.h"
#include "sluice/profiler/terms.h"

namespace sluice::profiler {
namespace {

using model::OpKind;

std::uint32_t narrow(std::int64_t extent) noexcept {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(extent, 1, std::numeric_limits<std::uint32_t>::max()));
}

/// Several kernels may run one operator from parameters of their own: theirs are known by the descriptor's size of them.
template <class T>
const T* parameters_of(const kernels::KernelDescriptor& kernel, const operators::Parameters& parameters) noexcept {
  return kernel.parameter_bytes == sizeof(T) && parameters.size() == sizeof(T) ? &parameters.as<T>() : nullptr;
}

void add_window(const Window& window, StepShape& shape) noexcept {
  shape.taps = narrow(window.taps());
  shape.stride = narrow(std::max(window.stride_h, window.stride_w));
}

void add_convolution(const model::ConvAttributes& conv, StepShape& shape) noexcept {
  shape.depth = narrow(conv.in_channels / conv.groups);
  add_window(conv.window, shape);
}

/// StepShape::epilogue.
std::uint32_t epilogue_of(Function function) noexcept {
  switch (function) {
    case Function::kNone:
    case Function::kRelu:
    case Function::kClip:
    case Function::kLeakyRelu:
    case Function::kNeg:
    case Function::kAbs:
      return 1;
    case Function::kHardSigmoid:
    case Function::kHardSwish:
    case Function::kReciprocal:
    case Function::kFloor:
    case Function::kCeil:
      return 2;
    default:
      return 3;
  }
}

/// A binary function's number, and whether both inputs are as large as the output.
std::uint16_t variant_of(BinaryFunction function, const model::Graph& graph, const model::Node& node) noexcept {
  const auto elements = [&](TensorId id) { return graph.tensor(id).shape.element_count(); };
  const bool broadcast = node.inputs.size() < 2 || elements(node.inputs[0]) != elements(node.inputs[1]);
  return static_cast<std::uint16_t>(2 * static_cast<int>(function) + (broadcast ? 1 : 0));
}

bool moves_innermost(const operators::TransposeParameters& transpose, int rank) noexcept {
  return rank > 0 && transpose.perm[static_cast<std::size_t>(rank - 1)] != rank - 1;
}

struct Asked {
  const kernels::KernelDescriptor& kernel;
  const operators::Parameters& parameters;
  const model::Graph& graph;
  const model::Node& node;

  template <class T>
  const T* as() const noexcept {
    return parameters_of<T>(kernel, parameters);
  }
};

/// Layers of one row mostly wait for their weights, those of no more rows than a tile holds read each weight once: other work than that of
/// many rows, whose rates say nothing of it. The tile is that of AVX-512, the largest.
std::uint16_t variant_of_rows(KernelId kernel, const StepShape& shape) noexcept {
  constexpr std::uint64_t kTileRows = 14;
  const std::uint64_t rows = std::uint64_t{shape.rows} * shape.columns;
  if (detail::is_pointwise(kernel)) return rows == 1 ? 1 : 0;
  if (!detail::is_dense(kernel)) return 0;
  return rows == 1 ? 1 : rows <= kTileRows ? 2 : 0;
}

/// Convolutions and dense layers, most steps of most nets: their attributes say all, so that no node has to be resolved. False: it is another
/// kernel, or one with parameters of its own.
bool add_layer(const kernels::KernelDescriptor& kernel, const model::Node& node, StepWork& work) noexcept {
  const auto takes = [&](std::size_t floats, std::size_t integers) {
    return kernel.parameter_bytes == floats || kernel.parameter_bytes == integers;
  };
  if (node.op == OpKind::kConv && takes(sizeof(operators::ConvolutionParameters), sizeof(operators::IntegerConvolutionParameters)))
    add_convolution(node.as<model::ConvAttributes>(), work.shape);
  else if (node.op == OpKind::kDense && takes(sizeof(operators::DenseParameters), sizeof(operators::IntegerDenseParameters)))
    work.shape.depth = narrow(node.as<model::DenseAttributes>().in_features);
  else
    return false;
  work.variant = variant_of_rows(kernel.id, work.shape);
  return true;
}

/// Other kernels that multiply by panels, and attention.
void add_products(const Asked& asked, StepWork& work) noexcept {
  work.variant = variant_of_rows(asked.kernel.id, work.shape);
  if (asked.node.op == OpKind::kConvTranspose) {
    if (const auto* conv = asked.as<operators::ConvolutionParameters>()) {
      add_convolution(asked.node.as<model::ConvAttributes>(), work.shape);
      work.variant = conv->by_taps() ? 1 : 0;
    }
  } else if (asked.node.op == OpKind::kRecurrent) {
    if (const auto* layer = asked.as<operators::RecurrentParameters>()) {
      work.shape.depth = narrow(layer->hidden);
      work.shape.taps = narrow(layer->batches);
      work.shape.stride = layer->first_hidden ? 2 : 1;
      work.variant = static_cast<std::uint16_t>(layer->cell);
    }
  } else if (asked.node.op == OpKind::kMatMul) {
    work.shape.depth = narrow(asked.graph.tensor(asked.node.inputs[0]).shape.back());
  } else if (const auto* attention = asked.as<operators::AttentionParameters>()) {
    work.shape.depth = narrow(attention->depth);
    work.shape.taps = narrow(attention->keys);
    work.variant = attention->causal ? kCausal : 0;
  }
}

/// In how many pieces that lie together a slice or a concatenation is copied: a slice of the first axis is one, of the last one as many as there are
/// pixels. Of pieces of few values some are copied at once. The axes are those of memory. 0: it is neither.
std::int64_t pieces_moved(const Asked& asked) noexcept {
  const Shape& out = asked.graph.tensor(asked.node.outputs[0]).shape;
  std::int64_t piece = 1, joined = 1;
  const auto* concat = asked.node.op == OpKind::kConcat ? asked.as<operators::ConcatParameters>() : nullptr;
  const auto* slice = asked.node.op == OpKind::kSlice ? asked.as<operators::SliceParameters>() : nullptr;
  if (concat != nullptr) {
    joined = static_cast<std::int64_t>(asked.node.inputs.size());
    for (int axis = concat->axis; axis < out.rank(); ++axis) piece *= out[axis];
  } else if (slice != nullptr) {
    const Shape& in = asked.graph.tensor(asked.node.inputs[0]).shape;
    for (int axis = out.rank(); axis-- > 0;) {
      const bool whole = slice->step[static_cast<std::size_t>(axis)] == 1;
      if (whole) piece *= out[axis];
      if (!whole || in[axis] != out[axis]) break;
    }
  } else {
    return 0;
  }
  const std::int64_t values = out.element_count();
  return std::clamp<std::int64_t>(joined * (values / std::max<std::int64_t>(piece, 1)), 1,
                                  ceil_div(std::max<std::int64_t>(values, 1), kValuesMovedAtOnce));
}

/// Kernels that work value by value or move values.
void add_elements(const Asked& asked, StepWork& work) noexcept {
  const int rank = asked.graph.tensor(asked.node.outputs[0]).shape.rank();
  if (asked.node.op == OpKind::kUnary) {
    if (const auto* unary = asked.as<operators::UnaryParameters>()) work.variant = static_cast<std::uint16_t>(unary->function.function);
  } else if (asked.node.op == OpKind::kBinary) {
    if (const auto* binary = asked.as<operators::BinaryParameters>()) work.variant = variant_of(binary->function, asked.graph, asked.node);
    if (const auto* binary = asked.as<operators::IntegerBinaryParameters>())
      work.variant = variant_of(binary->function, asked.graph, asked.node);
  } else if (asked.node.op == OpKind::kPool) {
    const auto* integers = asked.as<operators::IntegerPoolParameters>();
    const auto* pool = integers != nullptr ? &integers->pool : asked.as<operators::PoolParameters>();
    if (pool == nullptr) return;
    add_window(pool->window, work.shape);
    const bool whole_mean = integers != nullptr && integers->whole() && pool->kind == PoolingKind::kAverage;
    work.variant = whole_mean ? kWholeMean : static_cast<std::uint16_t>(pool->kind);
  } else if (asked.node.op == OpKind::kResize) {
    if (const auto* resize = asked.as<operators::ResizeParameters>()) work.variant = static_cast<std::uint16_t>(resize->mode);
    if (const auto* bytes = asked.as<operators::IntegerResizeParameters>()) work.variant = static_cast<std::uint16_t>(bytes->resize.mode);
  } else if (const std::int64_t pieces = pieces_moved(asked); pieces > 0) {
    // A band makes a share of them.
    const Shape& out = asked.graph.tensor(asked.node.outputs[0]).shape;
    const double values = static_cast<double>(work.shape.rows) * work.shape.columns * work.shape.channels;
    const double share = std::min(values / static_cast<double>(std::max<std::int64_t>(out.element_count(), 1)), 1.0);
    work.shape.rows = narrow(static_cast<std::int64_t>(share * static_cast<double>(pieces) + 0.5));
    work.shape.columns = 1;
    work.shape.channels = narrow(static_cast<std::int64_t>(values / work.shape.rows + 0.5));
  } else if (asked.node.op == OpKind::kTranspose) {
    if (const auto* transpose = asked.as<operators::TransposeParameters>()) work.variant = moves_innermost(*transpose, rank) ? 1 : 0;
  } else if (asked.node.op == OpKind::kPlain) {
    if (const auto* plain = asked.as<operators::PlainParameters>()) work.variant = plain->op;
  }
}

/// All weights, but of a table that is nothing but looked up in the rows that are read.
std::uint64_t weight_bytes_of_run(const model::Graph& graph) {
  std::vector<std::uint64_t> looked_up(graph.weights.size(), 0);
  std::vector<bool> whole(graph.weights.size(), false);
  for (const model::Tensor& tensor : graph.tensors)
    if (tensor.weight.valid()) whole[tensor.weight.index()] = true;
  for (const model::Node& node : graph.nodes)
    for (const WeightId id : node.weights)
      if (node.op == OpKind::kEmbedding)
        looked_up[id.index()] += graph.tensor(node.outputs[0]).bytes().count();
      else
        whole[id.index()] = true;
  std::uint64_t bytes = 0;
  for (std::size_t w = 0; w < graph.weights.size(); ++w) {
    const std::uint64_t all = graph.weights[w].bytes.count();
    bytes += !whole[w] && looked_up[w] > 0 ? std::min(all, looked_up[w]) : all;
  }
  return bytes;
}

}  // namespace

StepWork work_of(const kernels::KernelDescriptor& kernel, KernelUse use, const model::Graph& graph, const model::Node& node,
                 const kernels::StepExtent& extent) noexcept {
  const auto cost = use == KernelUse::kPrepare && kernel.prepare_cost != nullptr ? kernel.prepare_cost : kernel.cost;
  StepWork work(cost(graph, node, extent));
  work.shape.rows = narrow(extent.rows.size());
  work.shape.columns = narrow(row_extents(graph.tensor(node.outputs[0]).shape).pixels);
  work.shape.channels = narrow(extent.channels.size());
  if (!node.weights.empty() && use != KernelUse::kPrepare) work.shape.epilogue = epilogue_of(node.epilogue.activation.function);
  if (add_layer(kernel, node, work)) return work;
  const operators::Parameters parameters = kernel.resolve(graph, node, active_isa()).parameters;
  const Asked asked{kernel, parameters, graph, node};
  add_products(asked, work);
  add_elements(asked, work);
  return work;
}

std::uint64_t run_bytes_of(const model::Graph& graph) {
  const std::uint64_t weights = weight_bytes_of_run(graph);
  constexpr std::size_t kNever = ~std::size_t{0};
  std::vector<std::size_t> last(graph.tensors.size(), kNever);  // node that reads or writes a tensor
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const auto* ids : {&graph.nodes[n].inputs, &graph.nodes[n].outputs})
      for (const TensorId id : *ids) last[id.index()] = n;
  std::uint64_t live = 0, most = 0;
  std::vector<std::uint64_t> lives(graph.tensors.size(), 0);  // its bytes, while it does
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto each = [&](const auto& body) {
      for (const auto* ids : {&graph.nodes[n].inputs, &graph.nodes[n].outputs})
        for (const TensorId id : *ids) body(id);
    };
    each([&](TensorId id) {
      if (lives[id.index()] == 0 && !graph.tensor(id).weight.valid()) live += lives[id.index()] = graph.tensor(id).bytes().count();
    });
    most = std::max(most, live);
    each([&](TensorId id) {
      if (last[id.index()] == n) live -= std::exchange(lives[id.index()], 0);
    });
  }
  return weights + most;
}

RunWork run_work_of(const model::Graph& graph) {
  constexpr double kOfBytes = 1.0 / 3;
  RunWork run{run_bytes_of(graph), 0, static_cast<double>(weight_bytes_of_run(graph))};
  for (const model::Node& node : graph.nodes) {
    const double flops = 2 * static_cast<double>(operators::macs_of(graph, node));
    run.flops += node.numeric == model::NumericClass::kInt8 ? flops * kOfBytes : flops;
    for (const TensorId id : node.outputs) run.passing += static_cast<double>(graph.tensor(id).bytes().count());
  }
  return run;
}

}  // namespace sluice::profiler

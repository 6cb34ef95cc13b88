#include "src/backends/xnnpack.h"

#include <xnnpack.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "src/backends/f32_nodes.h"
#include "src/backends/host_graph.h"

namespace sluice::backends {
namespace {

using model::OpKind;

// Measured: loading the library, preparing and running with it added 1.6 to 1.8 MiB to the peak of a process of `sluice serve`.
constexpr Bytes kLibraryBytes{2 << 20};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
static_assert(kTail >= XNN_EXTRA_BYTES);

struct Range {
  float least = -kInfinity, most = kInfinity;
};

/// An activation that is a clamp; whether it is one that XNNPACK takes: its range has more than one value.
bool range_of(const Activation& activation, Range& range) noexcept {
  if (activation.function == Function::kRelu) range.least = 0;
  if (activation.function == Function::kClip) range = {activation.a, activation.b};
  const bool clamps =
      activation.function == Function::kNone || activation.function == Function::kRelu || activation.function == Function::kClip;
  return clamps && range.least < range.most;
}

std::uint32_t u32(std::int64_t value) { return static_cast<std::uint32_t>(value); }

bool supports_pool(const model::Graph& graph, const model::Node& node) {
  const auto& pool = node.as<model::PoolAttributes>();
  const Window& w = pool.window;
  const bool padded = w.pad_top + w.pad_left + w.pad_bottom + w.pad_right > 0;
  const bool average = pool.kind == PoolingKind::kAverage;
  return w.taps() > 1 && graph.tensor(node.inputs[0]).shape.rank() == 4 && !(average && padded && pool.count_include_pad) &&
         !(average && (w.dilation_h > 1 || w.dilation_w > 1));
}

bool supports_node(const model::Graph& graph, const model::Node& node) {
  Range range;
  const bool clamped = range_of(node.epilogue.activation, range);
  if (!has_f32_operands(graph, node)) return false;
  if (node.op == OpKind::kConv) {
    const auto& conv = node.as<model::ConvAttributes>();
    return clamped && (conv.groups == 1 || conv.depthwise()) && graph.tensor(node.inputs[0]).shape.rank() == 4;
  }
  if (node.op == OpKind::kDense) return clamped;
  if (node.op == OpKind::kPool) return clamped && supports_pool(graph, node);
  if (node.op == OpKind::kUnary) {
    const Function function = node.epilogue.activation.function;
    return clamped || function == Function::kSigmoid || function == Function::kHardSwish;
  }
  if (node.op == OpKind::kBinary) {
    const BinaryFunction function = node.as<model::BinaryAttributes>().function;
    const bool arithmetic = function <= BinaryFunction::kDiv;
    const bool extreme =
        (function == BinaryFunction::kMax || function == BinaryFunction::kMin) && node.epilogue.activation.function == Function::kNone;
    return clamped && (arithmetic || extreme) && graph.tensor(node.outputs[0]).shape.rank() <= XNN_MAX_TENSOR_DIMS;
  }
  if (node.op == OpKind::kSoftmax) return !node.as<model::SoftmaxAttributes>().log;
  return node.op == OpKind::kConcat || node.op == OpKind::kReshape;
}

/// An operator, or a copy of rows (concatenation).
struct XnnStep {
  xnn_operator_t op = nullptr;
  const float* from = nullptr;
  float* to = nullptr;
  std::size_t rows = 0, bytes = 0, to_pitch = 0;  // of a copy; pitch in floats
};

class XnnProgram final : public Program {
 public:
  XnnProgram() = default;
  XnnProgram(const XnnProgram&) = delete;
  XnnProgram& operator=(const XnnProgram&) = delete;
  ~XnnProgram() override {
    for (const XnnStep& step : steps)
      if (step.op != nullptr) xnn_delete_operator(step.op);
  }

  Status set_input(std::size_t port, std::span<const std::byte> data) noexcept override {
    if (data.size() != inputs[port].second.bytes()) return fail(ErrorCode::kInvalidArgument, "input", "the data does not have its size");
    inputs[port].second.in(data.data(), inputs[port].first);
    return {};
  }
  Status get_output(std::size_t port, std::span<std::byte> data) noexcept override {
    if (data.size() != outputs[port].second.bytes()) return fail(ErrorCode::kInvalidArgument, "output", "the room does not have its size");
    outputs[port].second.out(outputs[port].first, data.data());
    return {};
  }
  Status run() noexcept override {
    for (const XnnStep& step : steps) {
      if (cancelled_.exchange(false)) return fail(ErrorCode::kCancelled, "run", "the caller asked to stop");
      if (step.op != nullptr && xnn_run_operator(step.op, nullptr) != xnn_status_success)
        return fail(ErrorCode::kInternal, "xnnpack", "an operator that was set up does not run");
      for (std::size_t row = 0; row < step.rows; ++row)
        std::memcpy(step.to + row * step.to_pitch, step.from + row * (step.bytes / sizeof(float)), step.bytes);
    }
    return {};
  }
  void cancel() noexcept override { cancelled_ = true; }
  Bytes bytes() const noexcept override { return held; }

  std::vector<XnnStep> steps;
  std::vector<std::pair<float*, PortOrder>> inputs, outputs;
  std::vector<Floats> memory;
  Bytes held;

 private:
  std::atomic<bool> cancelled_{false};
};

/// Makes a program, node after node.
class Maker {
 public:
  Maker(const model::Graph& graph, model::WeightSource& source) : graph_(graph), source_(source), place_(graph.tensors.size(), nullptr) {}

  Result<std::unique_ptr<Program>> make() {
    for (const model::Port& port : graph_.inputs) program_->inputs.emplace_back(place(port.tensor), PortOrder(port, shape(port.tensor)));
    for (const model::Node& node : graph_.nodes) {
      if (!supports_node(graph_, node)) return fail(ErrorCode::kUnsupported, node.name, "XNNPACK does not run this node");
      SLUICE_RETURN_IF_ERROR(add(node));
    }
    for (const model::Port& port : graph_.outputs) program_->outputs.emplace_back(place(port.tensor), PortOrder(port, shape(port.tensor)));
    return std::unique_ptr<Program>(std::move(program_));
  }

 private:
  const Shape& shape(TensorId id) const { return graph_.tensor(id).shape; }

  float* hold(std::size_t bytes) {
    program_->memory.push_back(make_floats(bytes));
    program_->held += Bytes(bytes + kAlignment);
    return program_->memory.back().get();
  }
  float* place(TensorId id) {
    float*& at = place_[id.index()];
    if (at == nullptr) at = hold(size(static_cast<std::int64_t>(graph_.tensor(id).bytes().count())));
    return at;
  }

  Status add_operator(const model::Node& node, xnn_operator_t op, xnn_status created, xnn_status set_up) {
    if (op != nullptr) program_->steps.push_back({.op = op});
    if (created == xnn_status_success && set_up == xnn_status_success) return {};
    const bool memory = created == xnn_status_out_of_memory || set_up == xnn_status_out_of_memory;
    return fail(memory ? ErrorCode::kOutOfMemory : ErrorCode::kUnsupported, node.name, "XNNPACK makes no operator of this node");
  }

  /// Bias of a node, or zeros; as many as outputs.
  Result<std::vector<float>> bias_of(const model::Node& node, std::size_t outputs) {
    std::vector<float> bias(outputs, 0.0f);
    if (!node.epilogue.has_bias) return bias;
    SLUICE_ASSIGN_OR_RETURN(const Panels panels, Panels::read(graph_, source_, node.weights[1]));
    std::memcpy(bias.data(), panels.data(), outputs * sizeof(float));
    return bias;
  }
  /// [outputs][values], as XNNPACK takes it.
  Result<std::vector<float>> kernel_of(const model::Node& node, std::size_t outputs, std::size_t values) {
    SLUICE_ASSIGN_OR_RETURN(const Panels panels, Panels::read(graph_, source_, node.weights[0]));
    std::vector<float> kernel(outputs * values);
    for (std::size_t n = 0; n < outputs; ++n)
      for (std::size_t i = 0; i < values; ++i) kernel[n * values + i] = panels.at(n, i, values);
    program_->held += Bytes(kernel.size() * sizeof(float) + outputs * sizeof(float));  // its own packed copy
    return kernel;
  }

  Status add(const model::Node& node) {
    if (node.op == OpKind::kConv) return add_conv(node);
    if (node.op == OpKind::kDense) return add_dense(node);
    if (node.op == OpKind::kPool) return add_pool(node);
    if (node.op == OpKind::kUnary) return add_unary(node);
    if (node.op == OpKind::kBinary) return add_binary(node, node.as<model::BinaryAttributes>().function, node.inputs[0], node.inputs[1]);
    if (node.op == OpKind::kSoftmax) return add_softmax(node);
    if (node.op == OpKind::kConcat) return add_concat(node);
    return add_copy(place(node.inputs[0]), place(node.outputs[0]), 1,
                    size(static_cast<std::int64_t>(graph_.tensor(node.outputs[0]).bytes().count())), 0);
  }

  /// A residual is added, and clamped, by an operator of its own.
  Status add_residual(const model::Node& node) {
    return node.epilogue.has_residual ? add_binary(node, BinaryFunction::kAdd, node.outputs[0], node.inputs.back()) : Status();
  }
  Range own_range(const model::Node& node) const {
    Range range;
    if (!node.epilogue.has_residual) range_of(node.epilogue.activation, range);
    return range;
  }

  Status add_conv(const model::Node& node) {
    const auto& conv = node.as<model::ConvAttributes>();
    const Window& w = conv.window;
    const std::size_t depth = size(conv.in_channels / conv.groups), outputs = size(conv.out_channels);
    SLUICE_ASSIGN_OR_RETURN(const std::vector<float> kernel, kernel_of(node, outputs, size(w.taps()) * depth));
    SLUICE_ASSIGN_OR_RETURN(const std::vector<float> bias, bias_of(node, outputs));
    const Range range = own_range(node);
    xnn_operator_t op = nullptr;
    const xnn_status created = xnn_create_convolution2d_nhwc_f32(
        u32(w.pad_top), u32(pad_after(w.in_w, w.out_w, w.kernel_w, w.dilation_w, w.stride_w, w.pad_left)),
        u32(pad_after(w.in_h, w.out_h, w.kernel_h, w.dilation_h, w.stride_h, w.pad_top)), u32(w.pad_left), u32(w.kernel_h), u32(w.kernel_w),
        u32(w.stride_h), u32(w.stride_w), u32(w.dilation_h), u32(w.dilation_w), u32(conv.groups), depth, outputs / size(conv.groups),
        size(conv.in_channels), outputs, kernel.data(), bias.data(), range.least, range.most, 0, &op);
    const xnn_status set_up = created != xnn_status_success
                                  ? created
                                  : xnn_setup_convolution2d_nhwc_f32(op, size(shape(node.inputs[0])[0]), size(w.in_h), size(w.in_w),
                                                                     place(node.inputs[0]), place(node.outputs[0]), nullptr);
    SLUICE_RETURN_IF_ERROR(add_operator(node, op, created, set_up));
    return add_residual(node);
  }

  Status add_dense(const model::Node& node) {
    const auto& dense = node.as<model::DenseAttributes>();
    const std::size_t in = size(dense.in_features), out = size(dense.out_features);
    SLUICE_ASSIGN_OR_RETURN(const std::vector<float> kernel, kernel_of(node, out, in));
    SLUICE_ASSIGN_OR_RETURN(const std::vector<float> bias, bias_of(node, out));
    const Range range = own_range(node);
    xnn_operator_t op = nullptr;
    const xnn_status created =
        xnn_create_fully_connected_nc_f32(in, out, in, out, kernel.data(), bias.data(), range.least, range.most, 0, &op);
    const xnn_status set_up = created != xnn_status_success
                                  ? created
                                  : xnn_setup_fully_connected_nc_f32(op, size(shape(node.inputs[0]).element_count()) / in,
                                                                     place(node.inputs[0]), place(node.outputs[0]), nullptr);
    SLUICE_RETURN_IF_ERROR(add_operator(node, op, created, set_up));
    return add_residual(node);
  }

  Status add_pool(const model::Node& node) {
    const auto& pool = node.as<model::PoolAttributes>();
    const Window& w = pool.window;
    const std::size_t channels = channels_of(shape(node.inputs[0])), images = size(shape(node.inputs[0])[0]);
    const float* const in = place(node.inputs[0]);
    float* const out = place(node.outputs[0]);
    const Range range = own_range(node);
    const std::uint32_t right = u32(pad_after(w.in_w, w.out_w, w.kernel_w, w.dilation_w, w.stride_w, w.pad_left));
    const std::uint32_t bottom = u32(pad_after(w.in_h, w.out_h, w.kernel_h, w.dilation_h, w.stride_h, w.pad_top));
    xnn_operator_t op = nullptr;
    xnn_status created = xnn_status_success, set_up = xnn_status_success;
    if (pool.kind == PoolingKind::kMax) {
      created = xnn_create_max_pooling2d_nhwc_f32(u32(w.pad_top), right, bottom, u32(w.pad_left), u32(w.kernel_h), u32(w.kernel_w),
                                                  u32(w.stride_h), u32(w.stride_w), u32(w.dilation_h), u32(w.dilation_w), channels,
                                                  channels, channels, range.least, range.most, 0, &op);
      if (created == xnn_status_success)
        set_up = xnn_setup_max_pooling2d_nhwc_f32(op, images, size(w.in_h), size(w.in_w), in, out, nullptr);
    } else if (w.out_h == 1 && w.out_w == 1 && w.kernel_h == w.in_h && w.kernel_w == w.in_w) {
      created = xnn_create_global_average_pooling_nwc_f32(channels, channels, channels, range.least, range.most, 0, &op);
      if (created == xnn_status_success)
        set_up = xnn_setup_global_average_pooling_nwc_f32(op, images, size(w.in_h * w.in_w), in, out, nullptr);
    } else {
      created = xnn_create_average_pooling2d_nhwc_f32(u32(w.pad_top), right, bottom, u32(w.pad_left), u32(w.kernel_h), u32(w.kernel_w),
                                                      u32(w.stride_h), u32(w.stride_w), channels, channels, channels, range.least,
                                                      range.most, 0, &op);
      if (created == xnn_status_success)
        set_up = xnn_setup_average_pooling2d_nhwc_f32(op, images, size(w.in_h), size(w.in_w), in, out, nullptr);
    }
    return add_operator(node, op, created, set_up);
  }

  Status add_unary(const model::Node& node) {
    const Shape& in = shape(node.inputs[0]);
    const std::size_t channels = channels_of(in), rows = rows_of(in);
    const float* const from = place(node.inputs[0]);
    float* const to = place(node.outputs[0]);
    const Function function = node.epilogue.activation.function;
    xnn_operator_t op = nullptr;
    xnn_status created = xnn_status_success, set_up = xnn_status_success;
    if (function == Function::kSigmoid) {
      created = xnn_create_sigmoid_nc_f32(channels, channels, channels, 0, &op);
      if (created == xnn_status_success) set_up = xnn_setup_sigmoid_nc_f32(op, rows, from, to, nullptr);
    } else if (function == Function::kHardSwish) {
      created = xnn_create_hardswish_nc_f32(channels, channels, channels, 0, &op);
      if (created == xnn_status_success) set_up = xnn_setup_hardswish_nc_f32(op, rows, from, to, nullptr);
    } else {
      const Range range = own_range(node);
      created = xnn_create_clamp_nc_f32(channels, channels, channels, range.least, range.most, 0, &op);
      if (created == xnn_status_success) set_up = xnn_setup_clamp_nc_f32(op, rows, from, to, nullptr);
    }
    return add_operator(node, op, created, set_up);
  }

  Status add_binary(const model::Node& node, BinaryFunction function, TensorId left, TensorId right) {
    using Create = xnn_status (*)(float, float, std::uint32_t, xnn_operator_t*);
    using SetUp = xnn_status (*)(xnn_operator_t, std::size_t, const std::size_t*, std::size_t, const std::size_t*, const float*,
                                 const float*, float*, pthreadpool_t);
    constexpr std::array<Create, 4> kCreate = {xnn_create_add_nd_f32, xnn_create_subtract_nd_f32, xnn_create_multiply_nd_f32,
                                               xnn_create_divide_nd_f32};
    constexpr std::array<SetUp, 4> kSetUp = {xnn_setup_add_nd_f32, xnn_setup_subtract_nd_f32, xnn_setup_multiply_nd_f32,
                                             xnn_setup_divide_nd_f32};
    std::array<std::size_t, XNN_MAX_TENSOR_DIMS> a{}, b{};
    for (int i = 0; i < shape(left).rank(); ++i) a[size(i)] = size(shape(left)[i]);
    for (int i = 0; i < shape(right).rank(); ++i) b[size(i)] = size(shape(right)[i]);
    Range range;
    range_of(node.epilogue.activation, range);
    const auto number = static_cast<std::size_t>(function);
    xnn_operator_t op = nullptr;
    xnn_status created = xnn_status_success;
    SetUp set = nullptr;
    if (number < kCreate.size()) {
      created = kCreate[number](range.least, range.most, 0, &op);
      set = kSetUp[number];
    } else {
      const bool most = function == BinaryFunction::kMax;
      created = most ? xnn_create_maximum_nd_f32(0, &op) : xnn_create_minimum_nd_f32(0, &op);
      set = most ? xnn_setup_maximum_nd_f32 : xnn_setup_minimum_nd_f32;
    }
    const xnn_status set_up = created != xnn_status_success ? created
                                                            : set(op, size(shape(left).rank()), a.data(), size(shape(right).rank()),
                                                                  b.data(), place(left), place(right), place(node.outputs[0]), nullptr);
    return add_operator(node, op, created, set_up);
  }

  Status add_softmax(const model::Node& node) {
    const std::size_t channels = channels_of(shape(node.inputs[0]));
    xnn_operator_t op = nullptr;
    const xnn_status created = xnn_create_softmax_nc_f32(channels, channels, channels, 0, &op);
    const xnn_status set_up =
        created != xnn_status_success
            ? created
            : xnn_setup_softmax_nc_f32(op, rows_of(shape(node.inputs[0])), place(node.inputs[0]), place(node.outputs[0]), nullptr);
    return add_operator(node, op, created, set_up);
  }

  Status add_concat(const model::Node& node) {
    const int axis = node.as<model::AxisAttributes>().axis;
    const Shape& out = shape(node.outputs[0]);
    std::size_t rows = 1, inner = 1, done = 0;
    for (int i = 0; i < axis; ++i) rows *= size(out[i]);
    for (int i = axis + 1; i < out.rank(); ++i) inner *= size(out[i]);
    const std::size_t pitch = inner * size(out[axis]);
    for (const TensorId input : node.inputs) {
      const std::size_t length = inner * size(shape(input)[axis]);
      SLUICE_RETURN_IF_ERROR(add_copy(place(input), place(node.outputs[0]) + done, rows, length * sizeof(float), pitch));
      done += length;
    }
    return {};
  }

  Status add_copy(const float* from, float* to, std::size_t rows, std::size_t bytes, std::size_t pitch) {
    program_->steps.push_back({.from = from, .to = to, .rows = rows, .bytes = bytes, .to_pitch = pitch});
    return {};
  }

  const model::Graph& graph_;
  model::WeightSource& source_;
  std::vector<float*> place_;  // by tensor
  std::unique_ptr<XnnProgram> program_ = std::make_unique<XnnProgram>();
};

class XnnpackBackend final : public Backend {
 public:
  std::string_view kind() const noexcept override { return "xnnpack"; }
  bool same_bits() const noexcept override { return false; }
  Bytes process_bytes() const noexcept override { return kLibraryBytes; }
  bool supports(const model::Graph& graph, const model::Node& node) const noexcept override { return supports_node(graph, node); }
  Result<std::unique_ptr<Program>> prepare(const model::Graph& graph, model::WeightSource& source) override {
    return Maker(graph, source).make();
  }
};

}  // namespace

std::unique_ptr<Backend> make_xnnpack_backend() {
  if (xnn_initialize(nullptr) != xnn_status_success) return nullptr;
  return std::make_unique<XnnpackBackend>();
}

}  // namespace sluice::backends

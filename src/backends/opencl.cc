#include "src/backends/opencl.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "src/backends/f32_nodes.h"
#include "src/backends/opencl_device.h"

namespace sluice::backends {
namespace {

using model::OpKind;

constexpr std::size_t kAxes = 8;
static_assert(Shape::kMaxRank <= static_cast<int>(kAxes));
/// Steps that are given to the queue before the host waits.
constexpr std::size_t kStepsBetweenWaits = 8;
constexpr std::int64_t kMostElements = std::numeric_limits<std::int32_t>::max();

bool counts_fit(const model::Graph& graph, const model::Node& node) {
  const auto fits = [&](TensorId id) { return graph.tensor(id).shape.element_count() <= kMostElements; };
  return std::all_of(node.inputs.begin(), node.inputs.end(), fits) && std::all_of(node.outputs.begin(), node.outputs.end(), fits);
}

bool supports_node(const model::Graph& graph, const model::Node& node) {
  if (!has_f32_operands(graph, node) || !counts_fit(graph, node)) return false;
  const bool image = graph.tensor(node.inputs[0]).shape.rank() == 4;
  if (node.op == OpKind::kConv)
    return image && (node.as<model::ConvAttributes>().groups == 1 || node.as<model::ConvAttributes>().depthwise());
  if (node.op == OpKind::kPool) return image;
  return node.op == OpKind::kDense || node.op == OpKind::kUnary || node.op == OpKind::kBinary || node.op == OpKind::kSoftmax ||
         node.op == OpKind::kConcat || node.op == OpKind::kReshape;
}

/// A kernel over a range, or a copy of rows.
struct ClStep {
  ClKernel kernel;
  std::array<std::size_t, 3> items{1, 1, 1};
  cl_mem from = nullptr, to = nullptr;
  std::size_t rows = 0, bytes = 0, to_offset = 0, to_pitch = 0;  // of a copy
};

struct ClPort {
  cl_mem buffer = nullptr;
  PortOrder order;
};

class ClProgramOfSteps final : public Program {
 public:
  explicit ClProgramOfSteps(std::shared_ptr<const ClDevice> device) : device_(std::move(device)) {}

  Status set_input(std::size_t port, std::span<const std::byte> data) noexcept override {
    const ClPort& to = inputs[port];
    if (data.size() != to.order.bytes()) return fail(ErrorCode::kInvalidArgument, "input", "the data does not have its size");
    to.order.in(data.data(), staging.get());
    return told("clEnqueueWriteBuffer",
                clEnqueueWriteBuffer(device_->queue(), to.buffer, CL_TRUE, 0, data.size(), staging.get(), 0, nullptr, nullptr));
  }
  Status get_output(std::size_t port, std::span<std::byte> data) noexcept override {
    const ClPort& from = outputs[port];
    if (data.size() != from.order.bytes()) return fail(ErrorCode::kInvalidArgument, "output", "the room does not have its size");
    SLUICE_RETURN_IF_ERROR(told("clEnqueueReadBuffer", clEnqueueReadBuffer(device_->queue(), from.buffer, CL_TRUE, 0, data.size(),
                                                                           staging.get(), 0, nullptr, nullptr)));
    from.order.out(staging.get(), data.data());
    return {};
  }
  Status run() noexcept override {
    std::size_t waiting = 0;
    for (const ClStep& step : steps) {
      if (cancelled_.exchange(false)) {
        clFinish(device_->queue());
        return fail(ErrorCode::kCancelled, "run", "the caller asked to stop");
      }
      SLUICE_RETURN_IF_ERROR(enqueue(step));
      if (++waiting % kStepsBetweenWaits == 0) SLUICE_RETURN_IF_ERROR(told("clFinish", clFinish(device_->queue())));
    }
    return told("clFinish", clFinish(device_->queue()));
  }
  void cancel() noexcept override { cancelled_ = true; }
  bool lost() const noexcept override { return lost_; }
  Bytes bytes() const noexcept override { return held; }

  std::vector<ClStep> steps;
  std::vector<ClPort> inputs, outputs;
  std::vector<ClBuffer> memory;
  Floats staging;  // a port's values on their way
  Bytes held;

 private:
  Status told(const char* call, cl_int code) noexcept {
    if (code == CL_SUCCESS) return {};
    lost_ = means_lost(code);
    return fail(cl_error(call, code));
  }
  Status enqueue(const ClStep& step) noexcept {
    if (step.kernel)
      return told("clEnqueueNDRangeKernel",
                  clEnqueueNDRangeKernel(device_->queue(), step.kernel.get(), 3, nullptr, step.items.data(), nullptr, 0, nullptr, nullptr));
    const std::array<std::size_t, 3> from{0, 0, 0}, to{step.to_offset, 0, 0}, region{step.bytes, step.rows, 1};
    return told("clEnqueueCopyBufferRect", clEnqueueCopyBufferRect(device_->queue(), step.from, step.to, from.data(), to.data(),
                                                                   region.data(), step.bytes, 0, step.to_pitch, 0, 0, nullptr, nullptr));
  }

  std::shared_ptr<const ClDevice> device_;
  std::atomic<bool> cancelled_{false};
  bool lost_ = false;
};

cl_int narrow(std::int64_t value) { return static_cast<cl_int>(value); }

/// The arguments that describe a window, as opencl_source.h has them.
struct WindowArguments {
  cl_int8 extents{}, steps{};
  WindowArguments(const Window& w, std::int64_t in_channels, std::int64_t out_channels) {
    const std::array<std::int64_t, 8> e = {w.in_h, w.in_w, in_channels, w.out_h, w.out_w, out_channels, w.kernel_h, w.kernel_w};
    const std::array<std::int64_t, 8> s = {w.stride_h, w.stride_w, w.dilation_h, w.dilation_w,
                                           w.pad_top,  w.pad_left, w.pad_bottom, w.pad_right};
    for (std::size_t i = 0; i < e.size(); ++i) {
      extents.s[i] = narrow(e[i]);
      steps.s[i] = narrow(s[i]);
    }
  }
};

/// Makes a program, node after node.
class Maker {
 public:
  Maker(std::shared_ptr<const ClDevice> device, const model::Graph& graph, model::WeightSource& source)
      : device_(device),
        graph_(graph),
        source_(source),
        place_(graph.tensors.size(), nullptr),
        program_(std::make_unique<ClProgramOfSteps>(std::move(device))) {}

  Result<std::unique_ptr<Program>> make() {
    SLUICE_RETURN_IF_ERROR(add_ports(graph_.inputs, program_->inputs));
    for (const model::Node& node : graph_.nodes) {
      if (!supports_node(graph_, node)) return fail(ErrorCode::kUnsupported, node.name, "OpenCL does not run this node");
      SLUICE_RETURN_IF_ERROR(add(node));
    }
    SLUICE_RETURN_IF_ERROR(add_ports(graph_.outputs, program_->outputs));
    std::size_t largest = 0;
    for (const auto* ports : {&program_->inputs, &program_->outputs})
      for (const ClPort& port : *ports) largest = std::max(largest, port.order.bytes());
    program_->staging = make_floats(largest);
    program_->held += Bytes(largest);
    return std::unique_ptr<Program>(std::move(program_));
  }

 private:
  const Shape& shape(TensorId id) const { return graph_.tensor(id).shape; }

  Status add_ports(const std::vector<model::Port>& ports, std::vector<ClPort>& to) {
    for (const model::Port& port : ports) {
      SLUICE_ASSIGN_OR_RETURN(const cl_mem buffer, place(port.tensor));
      to.push_back({buffer, PortOrder(port, shape(port.tensor))});
    }
    return {};
  }

  Result<cl_mem> hold(std::size_t bytes) {
    cl_int code = CL_SUCCESS;
    ClBuffer buffer(clCreateBuffer(device_->context(), CL_MEM_READ_WRITE, std::max<std::size_t>(bytes, kAlignment), nullptr, &code));
    if (code != CL_SUCCESS) return fail(cl_error("clCreateBuffer", code));
    program_->memory.push_back(std::move(buffer));
    program_->held += Bytes(bytes);
    return program_->memory.back().get();
  }
  Result<cl_mem> place(TensorId id) {
    cl_mem& at = place_[id.index()];
    if (at != nullptr) return at;
    SLUICE_ASSIGN_OR_RETURN(at, hold(graph_.tensor(id).bytes().count()));
    return at;
  }
  /// The weight as it is stored in the file.
  Result<cl_mem> weight(WeightId id) {
    SLUICE_ASSIGN_OR_RETURN(const cl_mem buffer, hold(graph_.weight(id).bytes.count()));
    SLUICE_RETURN_IF_ERROR(read_stretches(graph_, source_, id, [&](std::size_t offset, std::span<const std::byte> bytes) -> Status {
      const cl_int code = clEnqueueWriteBuffer(device_->queue(), buffer, CL_TRUE, offset, bytes.size(), bytes.data(), 0, nullptr, nullptr);
      if (code != CL_SUCCESS) return fail(cl_error("clEnqueueWriteBuffer", code));
      return {};
    }));
    return buffer;
  }

  template <class... Arguments>
  Status add_kernel(const char* name, std::array<std::size_t, 3> items, const Arguments&... arguments) {
    SLUICE_ASSIGN_OR_RETURN(ClKernel kernel, device_->kernel(name));
    cl_uint number = 0;
    cl_int code = CL_SUCCESS;
    ((code = code == CL_SUCCESS ? clSetKernelArg(kernel.get(), number++, sizeof arguments, &arguments) : code), ...);
    if (code != CL_SUCCESS) return fail(cl_error("clSetKernelArg", code));
    ClStep step;
    step.kernel = std::move(kernel);
    step.items = items;
    program_->steps.push_back(std::move(step));
    return {};
  }

  static cl_int4 epilogue_of(const model::Node& node, int detail = 0) {
    const Epilogue& epilogue = node.epilogue;
    return {{epilogue.has_bias, epilogue.has_residual, static_cast<cl_int>(epilogue.activation.function), detail}};
  }
  static cl_float2 bounds_of(const model::Node& node) { return {{node.epilogue.activation.a, node.epilogue.activation.b}}; }

  Status add(const model::Node& node) {
    if (node.op == OpKind::kConv) return add_conv(node);
    if (node.op == OpKind::kDense) return add_dense(node);
    if (node.op == OpKind::kPool) return add_pool(node);
    if (node.op == OpKind::kBinary) return add_binary(node);
    if (node.op == OpKind::kConcat) return add_concat(node);
    SLUICE_ASSIGN_OR_RETURN(const cl_mem from, place(node.inputs[0]));
    SLUICE_ASSIGN_OR_RETURN(const cl_mem to, place(node.outputs[0]));
    const Shape& in = shape(node.inputs[0]);
    if (node.op == OpKind::kUnary)
      return add_kernel("unary", {size(in.element_count()), 1, 1}, from, to, epilogue_of(node), bounds_of(node));
    if (node.op == OpKind::kSoftmax) {
      const cl_int length = narrow(static_cast<std::int64_t>(channels_of(in)));
      return add_kernel("softmax", {rows_of(in), 1, 1}, from, to, length, epilogue_of(node, node.as<model::SoftmaxAttributes>().log));
    }
    const std::size_t bytes = graph_.tensor(node.outputs[0]).bytes().count();
    return add_copy(from, to, 1, bytes, 0, bytes);
  }

  Status add_conv(const model::Node& node) {
    const auto& conv = node.as<model::ConvAttributes>();
    const std::size_t channels = size(conv.out_channels);
    return add_product(conv.depthwise() ? "depthwise" : "convolution", node,
                       WindowArguments(conv.window, conv.in_channels, conv.out_channels),
                       {conv.depthwise() ? channels : (channels + kPanelLanes - 1) / kPanelLanes, size(conv.window.out_w),
                        size(shape(node.inputs[0])[0] * conv.window.out_h)});
  }

  /// A convolution of one tap over a row of as many pixels as there are vectors.
  Status add_dense(const model::Node& node) {
    const auto& dense = node.as<model::DenseAttributes>();
    Window window;
    window.in_w = window.out_w = shape(node.inputs[0]).element_count() / dense.in_features;
    return add_product("convolution", node, WindowArguments(window, dense.in_features, dense.out_features),
                       {size((dense.out_features + kPanelLanes - 1) / kPanelLanes), size(window.out_w), 1});
  }

  Status add_product(const char* kernel, const model::Node& node, const WindowArguments& window, std::array<std::size_t, 3> items) {
    SLUICE_ASSIGN_OR_RETURN(const cl_mem in, place(node.inputs[0]));
    SLUICE_ASSIGN_OR_RETURN(const cl_mem out, place(node.outputs[0]));
    SLUICE_ASSIGN_OR_RETURN(const cl_mem panels, weight(node.weights[0]));
    cl_mem bias = panels, residual = in;  // not read where the node has none
    if (node.epilogue.has_bias) {
      SLUICE_ASSIGN_OR_RETURN(bias, weight(node.weights[1]));
    }
    if (node.epilogue.has_residual) {
      SLUICE_ASSIGN_OR_RETURN(residual, place(node.inputs.back()));
    }
    return add_kernel(kernel, items, in, panels, bias, residual, out, window.extents, window.steps, epilogue_of(node), bounds_of(node));
  }

  Status add_pool(const model::Node& node) {
    const auto& pool = node.as<model::PoolAttributes>();
    SLUICE_ASSIGN_OR_RETURN(const cl_mem in, place(node.inputs[0]));
    SLUICE_ASSIGN_OR_RETURN(const cl_mem out, place(node.outputs[0]));
    const std::size_t channels = channels_of(shape(node.inputs[0]));
    const int kind = pool.kind == PoolingKind::kMax ? 0 : pool.count_include_pad ? 2 : 1;
    const WindowArguments window(pool.window, static_cast<std::int64_t>(channels), static_cast<std::int64_t>(channels));
    return add_kernel("pool", {channels, size(pool.window.out_w), size(shape(node.inputs[0])[0] * pool.window.out_h)}, in, out,
                      window.extents, window.steps, epilogue_of(node, kind), bounds_of(node));
  }

  /// An operand's strides along the output's axes, both aligned at the last; 0 where it is repeated.
  static cl_int8 strides_of(const Shape& operand, const Shape& out) {
    cl_int8 strides{};
    std::int64_t stride = 1;
    for (int i = 1; i <= operand.rank(); ++i) {
      const std::int64_t extent = operand[operand.rank() - i];
      if (extent > 1 && i <= out.rank()) strides.s[kAxes - size(i)] = narrow(stride);
      stride *= extent;
    }
    return strides;
  }

  Status add_binary(const model::Node& node) {
    SLUICE_ASSIGN_OR_RETURN(const cl_mem left, place(node.inputs[0]));
    SLUICE_ASSIGN_OR_RETURN(const cl_mem right, place(node.inputs[1]));
    SLUICE_ASSIGN_OR_RETURN(const cl_mem to, place(node.outputs[0]));
    const Shape& out = shape(node.outputs[0]);
    cl_int8 extents{{1, 1, 1, 1, 1, 1, 1, 1}};
    for (int i = 1; i <= out.rank(); ++i) extents.s[kAxes - size(i)] = narrow(out[out.rank() - i]);
    return add_kernel("binary", {size(out.element_count()), 1, 1}, left, right, to, extents, strides_of(shape(node.inputs[0]), out),
                      strides_of(shape(node.inputs[1]), out),
                      epilogue_of(node, static_cast<int>(node.as<model::BinaryAttributes>().function)), bounds_of(node));
  }

  Status add_concat(const model::Node& node) {
    const int axis = node.as<model::AxisAttributes>().axis;
    const Shape& out = shape(node.outputs[0]);
    std::size_t rows = 1, inner = sizeof(float), done = 0;
    for (int i = 0; i < axis; ++i) rows *= size(out[i]);
    for (int i = axis + 1; i < out.rank(); ++i) inner *= size(out[i]);
    SLUICE_ASSIGN_OR_RETURN(const cl_mem to, place(node.outputs[0]));
    for (const TensorId input : node.inputs) {
      SLUICE_ASSIGN_OR_RETURN(const cl_mem from, place(input));
      const std::size_t length = inner * size(shape(input)[axis]);
      SLUICE_RETURN_IF_ERROR(add_copy(from, to, rows, length, done, inner * size(out[axis])));
      done += length;
    }
    return {};
  }

  Status add_copy(cl_mem from, cl_mem to, std::size_t rows, std::size_t bytes, std::size_t to_offset, std::size_t to_pitch) {
    ClStep step;
    step.from = from;
    step.to = to;
    step.rows = rows;
    step.bytes = bytes;
    step.to_offset = to_offset;
    step.to_pitch = to_pitch;
    program_->steps.push_back(std::move(step));
    return {};
  }

  std::shared_ptr<const ClDevice> device_;
  const model::Graph& graph_;
  model::WeightSource& source_;
  std::vector<cl_mem> place_;  // by tensor
  std::unique_ptr<ClProgramOfSteps> program_;
};

class OpenClBackend final : public Backend {
 public:
  explicit OpenClBackend(std::shared_ptr<const ClDevice> device) : device_(std::move(device)) {}
  std::string_view kind() const noexcept override { return "opencl"; }
  std::string_view device() const noexcept override { return device_->name(); }
  bool same_bits() const noexcept override { return false; }
  bool supports(const model::Graph& graph, const model::Node& node) const noexcept override { return supports_node(graph, node); }
  Result<std::unique_ptr<Program>> prepare(const model::Graph& graph, model::WeightSource& source) override {
    return Maker(device_, graph, source).make();
  }

 private:
  std::shared_ptr<const ClDevice> device_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_opencl_backend(const std::string& cache) {
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<const ClDevice> device, ClDevice::open(cache));
  return std::unique_ptr<Backend>(std::make_unique<OpenClBackend>(std::move(device)));
}

}  // namespace sluice::backends

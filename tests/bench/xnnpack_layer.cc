#include "tests/bench/xnnpack_layer.h"

#include <xnnpack.h>

#include <limits>
#include <vector>

namespace sluice::bench {
namespace {

std::uint32_t u32(std::int64_t value) { return static_cast<std::uint32_t>(value); }
std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

class Layer final : public XnnpackLayer {
 public:
  explicit Layer(xnn_operator_t op) noexcept : op_(op) {}
  ~Layer() override { xnn_delete_operator(op_); }
  void run() noexcept override { xnn_run_operator(op_, nullptr); }

 private:
  xnn_operator_t op_;
};

xnn_operator_t create(const kernels::test::Problem& p, const float* in, float* out) {
  const auto& conv = p.conv;
  const model::Window& w = conv.window;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::size_t depth = size(conv.in_channels / conv.groups), n = size(conv.out_channels);
  const std::vector<float> weights(size(w.taps()) * depth * n, 0.01f), bias(n, 0.5f);
  xnn_operator_t op = nullptr;
  if (p.op == model::OpKind::kDense) {
    if (xnn_create_fully_connected_nc_f32(depth, n, depth, n, weights.data(), bias.data(), 0.0f, kInfinity, 0, &op) != xnn_status_success)
      return nullptr;
    return xnn_setup_fully_connected_nc_f32(op, size(w.in_h), in, out, nullptr) == xnn_status_success ? op : nullptr;
  }
  // The weights of a depthwise layer may lie channel by channel here too: they are all the same.
  if (xnn_create_convolution2d_nhwc_f32(u32(w.pad_top), u32(w.pad_right), u32(w.pad_bottom), u32(w.pad_left), u32(w.kernel_h),
                                        u32(w.kernel_w), u32(w.stride_h), u32(w.stride_w), 1, 1, u32(conv.groups), depth,
                                        n / size(conv.groups), size(conv.in_channels), n, weights.data(), bias.data(), 0.0f, kInfinity, 0,
                                        &op) != xnn_status_success)
    return nullptr;
  return xnn_setup_convolution2d_nhwc_f32(op, 1, size(w.in_h), size(w.in_w), in, out, nullptr) == xnn_status_success ? op : nullptr;
}

}  // namespace

std::unique_ptr<XnnpackLayer> make_xnnpack_layer(const kernels::test::Problem& problem, const float* in, float* out) {
  if (xnn_initialize(nullptr) != xnn_status_success) return nullptr;
  const xnn_operator_t op = create(problem, in, out);
  return op == nullptr ? nullptr : std::make_unique<Layer>(op);
}

}  // namespace sluice::bench

// One value in, one value out: unary functions, binary functions with broadcasting, scale and shift.
#include "sluice/operators/parameters/elementwise.h"

#include <cmath>

#include "src/kernels/generic/arithmetic.h"
#include "src/kernels/reference/functions.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {

void unary(const KernelCall& call) noexcept {
  const RowView& out = call.outputs[0].view;
  const Activation& function = call.parameters<operators::UnaryParameters>().function;
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const float* in = same_pixel<float>(call.inputs[0].view, out, row, pixel);
    for (std::int64_t c = 0; c < out.channels; ++c) out.at<float>(row, pixel)[c] = apply(function, in[c]);
  });
}

void affine(const KernelCall& call) noexcept {
  const RowView& out = call.outputs[0].view;
  const auto* scale = reinterpret_cast<const float*>(call.weights[0].data);
  const auto* shift = reinterpret_cast<const float*>(call.weights[1].data);
  const Activation& activation = call.parameters<operators::AffineParameters>().activation;
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const float* in = same_pixel<float>(call.inputs[0].view, out, row, pixel);
    for (std::int64_t c = 0; c < out.channels; ++c) out.at<float>(row, pixel)[c] = apply(activation, std::fma(in[c], scale[c], shift[c]));
  });
}

namespace {

/// Calls body(out pointer, a pointer, a step, b pointer, b step) for each pixel: an operand of one channel is repeated (step 0).
template <class T, class Body>
void for_operand_pixels(const KernelCall& call, const Body& body) noexcept {
  const Operand& a = call.inputs[0];
  const Operand& b = call.inputs[1];
  const Operand& out = call.outputs[0];
  const int rank = out.shape.rank();
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const Index index = index_at(out.shape, row, pixel);
    const auto* pa = reinterpret_cast<const T*>(address(a, broadcast_index(a.shape, index, rank)));
    const auto* pb = reinterpret_cast<const T*>(address(b, broadcast_index(b.shape, index, rank)));
    body(out.view.at<T>(row, pixel), pa, a.shape.back() == 1 ? 0 : 1, pb, b.shape.back() == 1 ? 0 : 1);
  });
}

template <class Int>
void binary_integers(const KernelCall& call) noexcept {
  const BinaryFunction f = call.parameters<operators::BinaryParameters>().function;
  const std::int64_t channels = call.outputs[0].view.channels;
  for_operand_pixels<Int>(call, [&](Int* out, const Int* a, int a_step, const Int* b, int b_step) {
    for (std::int64_t c = 0; c < channels; ++c) out[c] = generic::apply(f, a[c * a_step], b[c * b_step]);
  });
}

void binary_floats(const KernelCall& call) noexcept {
  const BinaryFunction f = call.parameters<operators::BinaryParameters>().function;
  const Activation& activation = call.parameters<operators::BinaryParameters>().activation;
  const std::int64_t channels = call.outputs[0].view.channels;
  for_operand_pixels<float>(call, [&](float* out, const float* a, int a_step, const float* b, int b_step) {
    for (std::int64_t c = 0; c < channels; ++c) out[c] = apply(activation, generic::apply(f, a[c * a_step], b[c * b_step]));
  });
}

}  // namespace

void binary(const KernelCall& call) noexcept {
  switch (call.outputs[0].view.dtype) {
    case DType::kI32:
      return binary_integers<std::int32_t>(call);
    case DType::kI64:
      return binary_integers<std::int64_t>(call);
    default:
      return binary_floats(call);
  }
}

}  // namespace sluice::kernels::reference

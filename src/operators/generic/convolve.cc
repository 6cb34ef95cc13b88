// Convolutions over any number of axes with weights of the run time or integers: the forms that kConv does not take.
#include "sluice/operators/generic/convolve.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace convolve;
namespace {

PlainRefusal infer_conv(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  for (const PlainTensor& t : node.inputs())
    if (!is_f32(t.dtype)) return kWrongType;
  Windows w;
  if (!convolution_of(node, 1, w) || (node.has(2) && node.in(2).count() != node.in(1).shape[0])) return kWrongShape;
  out.dtype = DType::kF32;
  return window_shape(w, node.in(0).shape[0], node.in(1).shape[0], out.shape) ? nullptr : kWrongShape;
}

// ---- ConvInteger: x, w, their zero points

PlainRefusal infer_conv_integer(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  if (!is_byte(node.in(0).dtype) || !is_byte(node.in(1).dtype)) return kWrongType;
  Windows w;
  if (!convolution_of(node, 1, w)) return kWrongShape;
  const std::int64_t channels = node.in(1).shape[0];
  if (node.has(2) && (node.in(2).dtype != node.in(0).dtype || node.in(2).count() != 1)) return kWrongType;
  if (node.has(3) && (node.in(3).dtype != node.in(1).dtype || (node.in(3).count() != 1 && node.in(3).count() != channels)))
    return kWrongType;
  out.dtype = DType::kI32;
  return window_shape(w, node.in(0).shape[0], channels, out.shape) ? nullptr : kWrongShape;
}

// ---- QLinearConv: x, its scale and zero point, w the same, y's scale and zero point, bias

PlainRefusal infer_qlinear_conv(const PlainNode& node, PlainTensor& out) noexcept {
  for (int i = 0; i < 8; ++i)
    if (!node.has(i)) return kMissingInput;
  if (!is_byte(node.in(0).dtype) || !is_byte(node.in(3).dtype) || !is_byte(node.in(7).dtype)) return kWrongType;
  if (node.in(2).dtype != node.in(0).dtype || node.in(5).dtype != node.in(3).dtype) return kWrongType;
  Windows w;
  if (!convolution_of(node, 3, w)) return kWrongShape;
  const std::int64_t channels = node.in(3).shape[0];
  for (const int i : {1, 4, 6})
    if (!is_f32(node.in(i).dtype)) return kWrongType;
  for (const int i : {1, 2, 6, 7})
    if (node.in(i).count() != 1) return kWrongShape;
  for (const int i : {4, 5})
    if (node.in(i).count() != 1 && node.in(i).count() != channels) return kWrongShape;
  if (node.has(8) && (node.in(8).dtype != DType::kI32 || node.in(8).count() != channels)) return kWrongShape;
  out.dtype = node.in(7).dtype;
  return window_shape(w, node.in(0).shape[0], channels, out.shape) ? nullptr : kWrongShape;
}

PlainRefusal infer_transposed(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  for (const PlainTensor& t : node.inputs())
    if (!is_f32(t.dtype)) return kWrongType;
  Windows w;
  if (!transposed_of(node, w)) return kWrongShape;
  const std::int64_t channels = node.in(1).shape[1] * node.integer(6);
  if (node.has(2) && node.in(2).count() != channels) return kWrongShape;
  out.dtype = DType::kF32;
  return window_shape(w, node.in(0).shape[0], channels, out.shape) ? nullptr : kWrongShape;
}

PlainRefusal infer_columns(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_f32(node.in(0).dtype)) return kWrongType;
  Windows w;
  if (!columns_of(node, w)) return kWrongShape;
  out.dtype = DType::kF32;
  Windows image = w;
  image.out = w.in;
  return window_shape(image, node.in(0).shape[0], node.in(0).shape[1] / w.taps(), out.shape) ? nullptr : kWrongShape;
}

// ---- DeformConv, two axes: x, w, offsets [N, groups * taps * 2, oh, ow], bias, mask [N, groups * taps, oh, ow]; argument 7: offset_group

PlainRefusal infer_deform(const PlainNode& node, PlainTensor& out) noexcept {
  for (const int i : {0, 1, 2})
    if (!node.has(i)) return kMissingInput;
  for (const PlainTensor& t : node.inputs())
    if (!is_f32(t.dtype)) return kWrongType;
  const Shape& x = node.in(0).shape;
  Windows w;
  if (x.rank() != 4) return "supported is [N, C, H, W]";
  if (!convolution_of(node, 1, w)) return kWrongShape;
  const std::int64_t groups = node.integer(7);
  if (groups < 1 || x[1] % groups != 0) return kWrongArgument;
  const std::int64_t offsets = groups * w.taps();
  if (!(node.in(2).shape == Shape{x[0], 2 * offsets, w.out[0], w.out[1]})) return kWrongShape;
  if (node.has(3) && node.in(3).count() != node.in(1).shape[0]) return kWrongShape;
  if (node.has(4) && !(node.in(4).shape == Shape{x[0], offsets, w.out[0], w.out[1]})) return kWrongShape;
  out.dtype = DType::kF32;
  return window_shape(w, x[0], node.in(1).shape[0], out.shape) ? nullptr : kWrongShape;
}

constexpr PlainOperator kConvolveOperators[] = {
    {380, "Conv", SLUICE_WINDOW_ARGUMENTS "group:i=1", infer_conv},
    {381, "ConvInteger", SLUICE_WINDOW_ARGUMENTS "group:i=1", infer_conv_integer},
    {382, "QLinearConv", SLUICE_WINDOW_ARGUMENTS "group:i=1", infer_qlinear_conv},
    {383, "ConvTranspose", SLUICE_WINDOW_ARGUMENTS "group:i=1 output_padding:I output_shape:I", infer_transposed},
    {384, "Col2Im", SLUICE_WINDOW_ARGUMENTS "image_shape:I@1 block_shape:I@2", infer_columns, nullptr, 1, bound_stated},
    {385, "DeformConv", SLUICE_WINDOW_ARGUMENTS "group:i=1 offset_group:i=1", infer_deform},
};

}  // namespace

std::span<const PlainOperator> convolve_operators() noexcept { return kConvolveOperators; }

}  // namespace sluice::operators::generic

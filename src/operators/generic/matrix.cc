// Matrices: integer and quantised products, determinants, Einstein sums.
#include "sluice/operators/generic/matrix.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace matrix;
namespace {

bool product_shape(const Product& p, Shape& out) noexcept {
  Dims dims;
  dims.add(p.batch, 0, p.batch.rank());
  if (!p.row) dims.add(p.m);
  if (!p.column) dims.add(p.n);
  return make_shape(dims.span(), out);
}

bool per_channel(const PlainNode& node, int input, std::int64_t channels) noexcept {
  return !node.has(input) || node.in(input).count() == 1 || node.in(input).count() == channels;
}

// ---- MatMulInteger: A, B, their zero points

PlainRefusal infer_matmul_integer(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  if (!is_byte(node.in(0).dtype) || !is_byte(node.in(1).dtype)) return kWrongType;
  Product p;
  if (!product_of(node.in(0).shape, node.in(1).shape, p) || !per_channel(node, 2, p.m) || !per_channel(node, 3, p.n)) return kWrongShape;
  for (const int i : {2, 3})
    if (node.has(i) && node.in(i).dtype != node.in(i - 2).dtype) return kWrongType;
  out.dtype = DType::kI32;
  return product_shape(p, out.shape) ? nullptr : kWrongShape;
}

// ---- QLinearMatMul: a, its scale and zero point, b the same, the result's scale and zero point

PlainRefusal infer_qlinear_matmul(const PlainNode& node, PlainTensor& out) noexcept {
  for (int i = 0; i < 8; ++i)
    if (!node.has(i)) return kMissingInput;
  if (!is_byte(node.in(0).dtype) || !is_byte(node.in(3).dtype) || !is_byte(node.in(7).dtype)) return kWrongType;
  if (node.in(2).dtype != node.in(0).dtype || node.in(5).dtype != node.in(3).dtype) return kWrongType;
  Product p;
  if (!product_of(node.in(0).shape, node.in(3).shape, p)) return kWrongShape;
  for (const int i : {1, 4, 6})
    if (!is_f32(node.in(i).dtype)) return kWrongType;
  const bool fits = per_channel(node, 1, p.m) && per_channel(node, 2, p.m) && per_channel(node, 4, p.n) && per_channel(node, 5, p.n) &&
                    node.in(6).count() == 1 && node.in(7).count() == 1;
  if (!fits) return kWrongShape;
  out.dtype = node.in(7).dtype;
  return product_shape(p, out.shape) ? nullptr : kWrongShape;
}

// ---- MatMul: integers; reals as one chain of fused multiply-adds each, like the fast kernels

PlainRefusal infer_matmul(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  if (node.in(0).dtype != node.in(1).dtype || !is_number(node.in(0).dtype)) return kWrongType;
  Product p;
  out.dtype = node.in(0).dtype;
  return product_of(node.in(0).shape, node.in(1).shape, p) && product_shape(p, out.shape) ? nullptr : kWrongShape;
}

// ---- Det

PlainRefusal infer_det(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  if (!is_f32(node.in(0).dtype)) return kWrongType;
  if (in.rank() < 2 || in.back() != in[in.rank() - 2]) return kWrongRank;
  out.dtype = DType::kF32;
  return make_shape(in.dims().first(static_cast<std::size_t>(in.rank() - 2)), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal infer_einsum(const PlainNode& node, PlainTensor& out) noexcept {
  if (node.inputs().empty() || node.inputs().size() > 4) return "supported are one to four inputs";
  for (const PlainTensor& x : node.inputs())
    if (!is_number(x.dtype) || x.dtype != node.inputs()[0].dtype) return kWrongType;
  Sum sum;
  if (!sum_of(node, sum)) return kWrongShape;
  out.dtype = node.inputs()[0].dtype;
  return make_shape(sum.extents.dims().first(static_cast<std::size_t>(sum.kept)), out.shape) ? nullptr : kWrongShape;
}

constexpr PlainOperator kMatrixOperators[] = {
    {480, "MatMulInteger", "", infer_matmul_integer},
    {481, "QLinearMatMul", "", infer_qlinear_matmul},
    {482, "MatMul", "", infer_matmul},
    {483, "Det", "", infer_det},
    {484, "EinsumOfLetters", "letters:I kept:i", infer_einsum},
};

}  // namespace

std::span<const PlainOperator> matrix_operators() noexcept { return kMatrixOperators; }

}  // namespace sluice::operators::generic

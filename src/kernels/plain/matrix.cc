// Matrices: integer and quantised products, determinants, Einstein sums.
#include "sluice/operators/generic/matrix.h"

#include "src/kernels/generic/chains.h"
#include "src/kernels/plain/quantized.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::matrix;
namespace {

/// body(first element of a row of a, first of the matrix b, row of the result)
template <class Body>
void each_row(const Product& p, Glances& glances, const Body& body) noexcept {
  Shape batch_a, batch_b;
  make_shape(p.a.dims().first(static_cast<std::size_t>(p.a.rank() - 2)), batch_a);
  make_shape(p.b.dims().first(static_cast<std::size_t>(p.b.rank() - 2)), batch_b);
  walk(p.batch, std::array<Extents, 2>{broadcast_strides(batch_a, p.batch), broadcast_strides(batch_b, p.batch)},
       [&](std::int64_t i, const auto& at) {
         for (std::int64_t r = 0; r < p.m && !glances.over(1); ++r) body((at[0] * p.m + r) * p.k, at[1] * p.k * p.n, i * p.m + r);
       });
}

/// body(element of the result, its row, its column, sum over k of a * b given two functions of an element's index).
template <class Sum, class Body>
void multiply(const Product& p, const Sum& sum, const Body& body) noexcept {
  Glances glances;
  each_row(p, glances, [&](std::int64_t a, std::int64_t b, std::int64_t row) {
    const std::int64_t r = row % p.m;
    for (std::int64_t c = 0; c < p.n && !glances.over(p.k); ++c) body(row * p.n + c, r, c, sum(a, b + c, r, c));
  });
}

/// A's zero point may be one a row, B's one a column.
std::int64_t integer_sum(const PlainNode& node, const Product& p, int b_input, int zero_a, int zero_b, std::int64_t a, std::int64_t b,
                         std::int64_t r, std::int64_t c) noexcept {
  const std::int64_t za = zero_point(node, zero_a, r), zb = zero_point(node, zero_b, c);
  std::int64_t sum = 0;
  for (std::int64_t k = 0; k < p.k; ++k) sum += (integer_at(node.in(0), a + k) - za) * (integer_at(node.in(b_input), b + k * p.n) - zb);
  return sum;
}

PlainRefusal run_matmul_integer(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Product p;
  product_of(node.in(0).shape, node.in(1).shape, p);
  multiply(
      p, [&](std::int64_t a, std::int64_t b, std::int64_t r, std::int64_t c) { return integer_sum(node, p, 1, 2, 3, a, b, r, c); },
      [&](std::int64_t i, std::int64_t, std::int64_t, std::int64_t sum) { out.as<std::int32_t>()[i] = static_cast<std::int32_t>(sum); });
  return nullptr;
}

PlainRefusal run_qlinear_matmul(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Product p;
  product_of(node.in(0).shape, node.in(3).shape, p);
  multiply(
      p, [&](std::int64_t a, std::int64_t b, std::int64_t r, std::int64_t c) { return integer_sum(node, p, 3, 2, 5, a, b, r, c); },
      [&](std::int64_t i, std::int64_t r, std::int64_t c, std::int64_t sum) {
        const float scale = scale_of(node, 1, r) * scale_of(node, 4, c) / scale_of(node, 6, 0);
        store_quantized(out, i, static_cast<float>(sum) * scale, integer_at(node.in(7), 0));
      });
  return nullptr;
}

PlainRefusal run_matmul(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Product p;
  product_of(node.in(0).shape, node.in(1).shape, p);
  if (is_f32(out.dtype)) {
    const auto *left = node.in(0).as<const float>(), *right = node.in(1).as<const float>();
    std::fill_n(out.as<float>(), out.count(), 0.0f);
    // Columns of a call: a vector of products is one operation.
    constexpr std::int64_t kVector = 8;
    const std::int64_t together = std::max(kVector, kVector * Glances::kWork / std::max<std::int64_t>(1, p.k) / kVector * kVector);
    Glances glances;
    each_row(p, glances, [&](std::int64_t a, std::int64_t b, std::int64_t row) {
      for (std::int64_t c = 0; c < p.n; c += together) {
        const std::int64_t count = std::min(together, p.n - c);
        if (glances.over(p.k * count / kVector)) return;
        generic::run({.x = {left + a, 1},
                      .w = {right + b + c, p.n},
                      .depth = p.k,
                      .count = count,
                      .row_step = 1,
                      .sums = out.as<float>() + row * p.n + c});
      }
    });
    return nullptr;
  }
  multiply(
      p,
      [&](std::int64_t a, std::int64_t b, std::int64_t, std::int64_t) {
        std::uint64_t sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k)
          sum +=
              static_cast<std::uint64_t>(integer_at(node.in(0), a + k)) * static_cast<std::uint64_t>(integer_at(node.in(1), b + k * p.n));
        return static_cast<std::int64_t>(sum);
      },
      [&](std::int64_t i, std::int64_t, std::int64_t, std::int64_t sum) { set_integer(out, i, sum); });
  return nullptr;
}

std::uint64_t det_scratch(const PlainNode& node) noexcept {
  const auto n = static_cast<std::uint64_t>(node.in(0).shape.back());
  return n * n * sizeof(double);
}

/// Elimination with the largest pivot of each column; `m` is destroyed.
double determinant(double* m, std::int64_t n, Glances& glances) noexcept {
  double det = 1;
  for (std::int64_t c = 0; c < n; ++c) {
    std::int64_t pivot = c;
    for (std::int64_t r = c + 1; r < n; ++r)
      if (std::fabs(m[r * n + c]) > std::fabs(m[pivot * n + c])) pivot = r;
    if (m[pivot * n + c] == 0) return 0;
    if (pivot != c) {
      std::swap_ranges(m + pivot * n, m + (pivot + 1) * n, m + c * n);
      det = -det;
    }
    det *= m[c * n + c];
    for (std::int64_t r = c + 1; r < n; ++r) {
      if (glances.over(n - c)) return 0;
      const double factor = m[r * n + c] / m[c * n + c];
      for (std::int64_t k = c; k < n; ++k) m[r * n + k] -= factor * m[c * n + k];
    }
  }
  return det;
}

PlainRefusal run_det(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  const std::int64_t n = node.in(0).shape.back(), count = out.count();
  auto* m = reinterpret_cast<double*>(scratch);
  Glances glances;
  for (std::int64_t i = 0; i < count && !glances.over(n * n); ++i) {
    std::copy_n(node.in(0).as<const float>() + i * n * n, n * n, m);
    out.as<float>()[i] = static_cast<float>(determinant(m, n, glances));
  }
  return nullptr;
}

PlainRefusal run_einsum(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Sum sum;
  sum_of(node, sum);
  std::array<Extents, 4> strides{};
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const Shape& shape = node.inputs()[i].shape;
    const Extents own = strides_of(shape);
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (shape[axis] > 1)
        strides[i][static_cast<std::size_t>(letters_of(node, i)[static_cast<std::size_t>(axis)])] += own[static_cast<std::size_t>(axis)];
  }
  const std::int64_t terms = sum.extents.count(sum.kept, sum.extents.rank());
  with_type(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_same_v<T, float>, double, std::uint64_t>;
    Wide total = 0;
    walk(sum.extents, strides, [&](std::int64_t i, const auto& at) {
      Wide term = 1;
      for (std::size_t n = 0; n < node.inputs().size(); ++n) term *= static_cast<Wide>(node.inputs()[n].template as<const T>()[at[n]]);
      total = (i % terms == 0 ? Wide{0} : total) + term;
      if (i % terms == terms - 1) out.as<T>()[i / terms] = static_cast<T>(total);
    });
  });
  return nullptr;
}

constexpr GenericKernel kMatrixKernels[] = {
    {"MatMulInteger", run_matmul_integer}, {"QLinearMatMul", run_qlinear_matmul}, {"MatMul", run_matmul},
    {"Det", run_det, det_scratch},         {"EinsumOfLetters", run_einsum},
};

}  // namespace

std::span<const GenericKernel> matrix_kernels() noexcept { return kMatrixKernels; }

}  // namespace sluice::kernels::plain

// Matrices: integer and quantised products, determinants, Einstein sums.
#include "src/kernels/plain/quantized.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
namespace {

/// [batch..., M, K] times [batch..., K, N]; a vector is a row on the left and a column on the right.
struct Product {
  Shape a, b, batch;
  std::int64_t m = 1, k = 1, n = 1;
  bool row = false, column = false;
};

bool product_of(const Shape& a, const Shape& b, Product& p) noexcept {
  if (a.rank() < 1 || b.rank() < 1) return false;
  p.row = a.rank() == 1;
  p.column = b.rank() == 1;
  p.a = p.row ? Shape{1, a[0]} : a;
  p.b = p.column ? Shape{b[0], 1} : b;
  p.m = p.a[p.a.rank() - 2];
  p.k = p.a.back();
  p.n = p.b.back();
  if (p.b[p.b.rank() - 2] != p.k) return false;
  Shape batch_a, batch_b;
  return make_shape(p.a.dims().first(static_cast<std::size_t>(p.a.rank() - 2)), batch_a) &&
         make_shape(p.b.dims().first(static_cast<std::size_t>(p.b.rank() - 2)), batch_b) && broadcast_to(batch_a, batch_b, p.batch);
}

bool product_shape(const Product& p, Shape& out) noexcept {
  Dims dims;
  dims.add(p.batch, 0, p.batch.rank());
  if (!p.row) dims.add(p.m);
  if (!p.column) dims.add(p.n);
  return make_shape(dims.span(), out);
}

/// body(element of the result, sum over k of a * b given two functions of an element's index).
template <class Sum, class Body>
void multiply(const Product& p, const Sum& sum, const Body& body) noexcept {
  Shape batch_a, batch_b;
  make_shape(p.a.dims().first(static_cast<std::size_t>(p.a.rank() - 2)), batch_a);
  make_shape(p.b.dims().first(static_cast<std::size_t>(p.b.rank() - 2)), batch_b);
  walk(p.batch, std::array<Extents, 2>{broadcast_strides(batch_a, p.batch), broadcast_strides(batch_b, p.batch)},
       [&](std::int64_t i, const auto& at) {
         for (std::int64_t r = 0; r < p.m; ++r)
           for (std::int64_t c = 0; c < p.n; ++c)
             body((i * p.m + r) * p.n + c, r, c, sum((at[0] * p.m + r) * p.k, at[1] * p.k * p.n + c, r, c));
       });
}

bool is_byte(DType dtype) noexcept { return dtype == DType::kI8 || dtype == DType::kU8; }

/// A's zero point may be one a row, B's one a column.
std::int64_t integer_sum(const PlainNode& node, const Product& p, int b_input, int zero_a, int zero_b, std::int64_t a, std::int64_t b,
                         std::int64_t r, std::int64_t c) noexcept {
  const std::int64_t za = zero_point(node, zero_a, r), zb = zero_point(node, zero_b, c);
  std::int64_t sum = 0;
  for (std::int64_t k = 0; k < p.k; ++k) sum += (integer_at(node.in(0), a + k) - za) * (integer_at(node.in(b_input), b + k * p.n) - zb);
  return sum;
}

bool per_channel(const PlainNode& node, int input, std::int64_t channels) noexcept {
  return !node.has(input) || node.in(input).count() == 1 || node.in(input).count() == channels;
}

// ---- MatMulInteger: A, B, their zero points

PlainRefusal infer_integer(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  if (!is_byte(node.in(0).dtype) || !is_byte(node.in(1).dtype)) return kWrongType;
  Product p;
  if (!product_of(node.in(0).shape, node.in(1).shape, p) || !per_channel(node, 2, p.m) || !per_channel(node, 3, p.n)) return kWrongShape;
  for (const int i : {2, 3})
    if (node.has(i) && node.in(i).dtype != node.in(i - 2).dtype) return kWrongType;
  out.dtype = DType::kI32;
  return product_shape(p, out.shape) ? nullptr : kWrongShape;
}

PlainRefusal run_integer(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Product p;
  product_of(node.in(0).shape, node.in(1).shape, p);
  multiply(
      p, [&](std::int64_t a, std::int64_t b, std::int64_t r, std::int64_t c) { return integer_sum(node, p, 1, 2, 3, a, b, r, c); },
      [&](std::int64_t i, std::int64_t, std::int64_t, std::int64_t sum) { out.as<std::int32_t>()[i] = static_cast<std::int32_t>(sum); });
  return nullptr;
}

// ---- QLinearMatMul: a, its scale and zero point, b the same, the result's scale and zero point

PlainRefusal infer_qlinear(const PlainNode& node, PlainTensor& out) noexcept {
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

PlainRefusal run_qlinear(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
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

// ---- MatMul: integers; reals as one chain of fused multiply-adds each, like the fast kernels

PlainRefusal infer_matmul(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  if (node.in(0).dtype != node.in(1).dtype || !is_number(node.in(0).dtype)) return kWrongType;
  Product p;
  out.dtype = node.in(0).dtype;
  return product_of(node.in(0).shape, node.in(1).shape, p) && product_shape(p, out.shape) ? nullptr : kWrongShape;
}

PlainRefusal run_matmul(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Product p;
  product_of(node.in(0).shape, node.in(1).shape, p);
  if (is_f32(out.dtype)) {
    const auto *left = node.in(0).as<const float>(), *right = node.in(1).as<const float>();
    multiply(
        p,
        [&](std::int64_t a, std::int64_t b, std::int64_t, std::int64_t) {
          float sum = 0;
          for (std::int64_t k = 0; k < p.k; ++k) sum = std::fma(left[a + k], right[b + k * p.n], sum);
          return sum;
        },
        [&](std::int64_t i, std::int64_t, std::int64_t, float sum) { out.as<float>()[i] = sum; });
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

// ---- Det

PlainRefusal infer_det(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  if (!is_f32(node.in(0).dtype)) return kWrongType;
  if (in.rank() < 2 || in.back() != in[in.rank() - 2]) return kWrongRank;
  out.dtype = DType::kF32;
  return make_shape(in.dims().first(static_cast<std::size_t>(in.rank() - 2)), out.shape) ? nullptr : kWrongShape;
}

std::uint64_t det_scratch(const PlainNode& node) noexcept {
  const auto n = static_cast<std::uint64_t>(node.in(0).shape.back());
  return n * n * sizeof(double);
}

/// Elimination with the largest pivot of each column; `m` is destroyed.
double determinant(double* m, std::int64_t n) noexcept {
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
      const double factor = m[r * n + c] / m[c * n + c];
      for (std::int64_t k = c; k < n; ++k) m[r * n + k] -= factor * m[c * n + k];
    }
  }
  return det;
}

PlainRefusal run_det(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  const std::int64_t n = node.in(0).shape.back(), count = out.count();
  auto* m = reinterpret_cast<double*>(scratch);
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(node.in(0).as<const float>() + i * n * n, n * n, m);
    out.as<float>()[i] = static_cast<float>(determinant(m, n));
  }
  return nullptr;
}

// ---- Einsum. Arguments: for each axis of each input, one after the other, the number of its letter; then the letters of the output.
// Letters are numbered by first appearance; repeated letters are summed over unless the output has them.

constexpr std::size_t kMaxLetters = 16;

struct Sum {
  Shape extents;  // of all letters: those of the output, then those that are summed
  int kept = 0;
};

/// The axes of input i among the listed.
std::span<const std::int64_t> letters_of(const PlainNode& node, std::size_t input) noexcept {
  std::size_t first = 0;
  for (std::size_t i = 0; i < input; ++i) first += static_cast<std::size_t>(node.inputs()[i].shape.rank());
  const auto all = node.list(0);
  const auto rank = static_cast<std::size_t>(node.inputs()[input].shape.rank());
  return first + rank <= all.size() ? all.subspan(first, rank) : std::span<const std::int64_t>();
}

bool sum_of(const PlainNode& node, Sum& sum) noexcept {
  std::array<std::int64_t, kMaxLetters> extent{};
  std::size_t axes = 0;
  std::int64_t letters = 0;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const Shape& shape = node.inputs()[i].shape;
    const auto own = letters_of(node, i);
    axes += static_cast<std::size_t>(shape.rank());
    if (static_cast<int>(own.size()) != shape.rank()) return false;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const std::int64_t letter = own[static_cast<std::size_t>(axis)];
      if (letter < 0 || letter >= Shape::kMaxRank) return false;
      std::int64_t& known = extent[static_cast<std::size_t>(letter)];
      if (known > 1 && shape[axis] > 1 && known != shape[axis]) return false;
      known = std::max(known, shape[axis]);
      letters = std::max(letters, letter + 1);
    }
  }
  if (axes != node.list(0).size()) return false;
  sum.kept = static_cast<int>(node.integer(1));
  if (node.integer(1) < 0 || node.integer(1) > letters) return false;
  if (std::find(extent.begin(), extent.begin() + letters, 0) != extent.begin() + letters) return false;  // a letter that no input has
  return make_shape(std::span(extent).first(static_cast<std::size_t>(letters)), sum.extents);
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

constexpr PlainOperator kOperators[] = {
    {480, "MatMulInteger", "", infer_integer},
    {481, "QLinearMatMul", "", infer_qlinear},
    {482, "MatMul", "", infer_matmul},
    {483, "Det", "", infer_det},
    {484, "EinsumOfLetters", "letters:I kept:i", infer_einsum},
};

constexpr GenericKernel kKernels[] = {
    {"MatMulInteger", run_integer}, {"QLinearMatMul", run_qlinear},  {"MatMul", run_matmul},
    {"Det", run_det, det_scratch},  {"EinsumOfLetters", run_einsum},
};

}  // namespace

std::span<const PlainOperator> matrix_operators() noexcept { return kOperators; }
std::span<const GenericKernel> matrix_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain

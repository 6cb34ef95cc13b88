// Products of matrices with any axes before them, and sums over letters: their extents, from the shapes of the operands.
//
// Read by the definitions (src/operators/generic/matrix.cc), which refuse what does not fit, and by the generic kernels
// (src/kernels/plain/matrix.cc).
//
// Invariant: after true, the extents over which a sum runs are the same in both operands.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::matrix {

/// [batch..., M, K] times [batch..., K, N]; a vector is a row on the left and a column on the right.
struct Product {
  Shape a, b, batch;
  std::int64_t m = 1, k = 1, n = 1;
  bool row = false, column = false;
};

inline bool product_of(const Shape& a, const Shape& b, Product& p) noexcept {
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

// ---- Einsum. Arguments: for each axis of each input, one after the other, the number of its letter; then the letters of the output.
// Letters are numbered by first appearance; repeated letters are summed over unless the output has them.

inline constexpr std::size_t kMaxLetters = 16;

struct Sum {
  Shape extents;  // of all letters: those of the output, then those that are summed
  int kept = 0;
};

/// The axes of input i among the listed.
inline std::span<const std::int64_t> letters_of(const PlainNode& node, std::size_t input) noexcept {
  std::size_t first = 0;
  for (std::size_t i = 0; i < input; ++i) first += static_cast<std::size_t>(node.inputs()[i].shape.rank());
  const auto all = node.list(0);
  const auto rank = static_cast<std::size_t>(node.inputs()[input].shape.rank());
  return first + rank <= all.size() ? all.subspan(first, rank) : std::span<const std::int64_t>();
}

inline bool sum_of(const PlainNode& node, Sum& sum) noexcept {
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

}  // namespace sluice::operators::generic::matrix

// Gemm of plain operators, for bodies that run apart and tensors whose extents come at run.
#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

ValueId transposed(NodeContext& c, ValueId x) {
  if (c.constant(x) != nullptr) return c.add_transpose(x, Perm{1, 0, 2, 3, 4, 5, 6, 7});
  return add_plain(c, "Transpose", {x}, {{1, 0}});
}

ValueId times_factor(NodeContext& c, ValueId x, float factor) {
  if (factor == 1.0f) return x;
  return add_plain(c, "Mul", {x, c.add_constant(make_constant(Shape{}, std::span(&factor, 1)))});
}

}  // namespace

void lower_gemm_plain(NodeContext& c) {
  ValueId a = c.input(0), b = c.input(1);
  if (c.shape(a).rank() != 2 || c.shape(b).rank() != 2) c.malformed("both factors must have two axes");
  if (c.integer("transA", 0) != 0) a = transposed(c, a);
  if (c.integer("transB", 0) != 0) b = transposed(c, b);
  ValueId y = times_factor(c, add_plain(c, "MatMul", {a, b}), c.real("alpha", 1.0f));
  const float beta = c.real("beta", 1.0f);
  if (c.has_input(2) && beta != 0.0f) y = add_plain(c, "Add", {y, times_factor(c, c.input(2), beta)});
  c.set_output(0, y);
}

}  // namespace sluice::importer

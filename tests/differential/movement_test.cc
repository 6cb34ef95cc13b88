// The movement kernels against the reference: every element size, pitches, rings and bands.
#include "differential/kernel_harness.h"
#include "sluice/kernels/registry.h"

using namespace sluice;
using namespace sluice::kernels;
using namespace sluice::kernels::test;
using model::OpKind;
using model::PadMode;

namespace {

constexpr DType kTypes[] = {DType::kI8, DType::kF16, DType::kF32, DType::kI64};
constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 33, 65};

void check_kernel(const Problem& p, KernelId id) {
  const KernelDescriptor& kernel = *find_kernel(id);
  CHECK(kernels_for(p.graph, p.node()).front() == &kernel);
  const std::vector<std::byte> want = run_reference(p);
  for (Cut cut : usual_cuts()) {
    if (!kernel.slices_rows) cut.rows = 0;
    check_bits(p, kernel, cut, want);
  }
}

void check_transpose(const Shape& in, std::array<std::int32_t, Shape::kMaxRank> perm, DType dtype) {
  Shape out = in;
  for (int axis = 0; axis < in.rank(); ++axis) out[axis] = in[perm[static_cast<std::size_t>(axis)]];
  model::TransposeAttributes a;
  for (std::size_t i = 0; i < perm.size(); ++i) a.perm[i] = static_cast<std::remove_reference_t<decltype(a.perm[0])>>(perm[i]);
  check_kernel(plain_problem(OpKind::kTranspose, a, {in}, out, {}, dtype), kernel_id::kTranspose);
}

}  // namespace

TEST_CASE("transposes") {
  for (const DType dtype : kTypes) {
    for (const std::int64_t size : kSizes) {
      check_transpose(Shape{size, 21}, {1, 0}, dtype);
      check_transpose(Shape{2, 3, 5, size}, {0, 3, 1, 2}, dtype);
      check_transpose(Shape{2, size, 3, 4}, {0, 2, 3, 1}, dtype);
      for (const std::int64_t far : {2048, 4096}) check_transpose(Shape{far, size + 8}, {1, 0}, dtype);  // rows of few sets of a cache
      check_transpose(Shape{3, 2, size}, {0, 2, 1}, dtype);                                              // a channel shuffle of two groups
      check_transpose(Shape{3, size, 3}, {0, 2, 1}, dtype);
      check_transpose(Shape{2, 7, 3, size}, {0, 2, 1, 3}, dtype);
      check_transpose(Shape{2, 3, size, 2, 3}, {3, 1, 4, 0, 2}, dtype);
    }
    check_transpose(Shape{5}, {0}, dtype);
    check_transpose(Shape{}, {}, dtype);
  }
}

TEST_CASE("slices of every step") {
  for (const DType dtype : kTypes)
    for (const std::int64_t size : kSizes)
      for (const std::int64_t step : {1, 2, 3, 4, 5, -1, -2}) {
        const std::int64_t last = (size - 1) * std::abs(step);
        const model::SliceAttributes a{{1, 2, step < 0 ? last + 1 : 1}, {1, 2, step}};
        check_kernel(plain_problem(OpKind::kSlice, a, {Shape{3, 6, last + 3}}, Shape{2, 2, size}, {}, dtype), kernel_id::kSlice);
        const model::SliceAttributes pixels{{0, 0, step < 0 ? last : 0, 1}, {1, 1, step, 1}};
        check_kernel(plain_problem(OpKind::kSlice, pixels, {Shape{1, 2, last + 1, 5}}, Shape{1, 2, size, 3}, {}, dtype), kernel_id::kSlice);
      }
}

TEST_CASE("concatenations along each axis") {
  for (const DType dtype : kTypes)
    for (const std::int64_t size : kSizes)
      for (int axis = 0; axis < 4; ++axis) {
        Shape a{2, 3, 4, 5}, b = a, out = a;
        b[axis] = size;
        out[axis] = 2 * a[axis] + size;
        const model::AxisAttributes attributes{axis};
        check_kernel(plain_problem(OpKind::kConcat, attributes, {a, b, a}, out, {}, dtype), kernel_id::kConcat);
      }
  const std::vector<Shape> many(21, Shape{4, 1});
  check_kernel(plain_problem(OpKind::kConcat, model::AxisAttributes{1}, many, Shape{4, 21}), kernel_id::kConcat);
  check_kernel(plain_problem(OpKind::kConcat, model::AxisAttributes{0}, {Shape{3}, Shape{5}}, Shape{8}), kernel_id::kConcat);
}

TEST_CASE("padding in each mode, also by less than nothing") {
  for (const DType dtype : kTypes)
    for (const PadMode mode : {PadMode::kConstant, PadMode::kReflect, PadMode::kEdge})
      for (const std::int64_t size : kSizes) {
        const model::PadAttributes all{.mode = mode, .value = 3, .before = {0, 1, 2, 1}, .after = {0, 2, 0, 3}};
        check_kernel(plain_problem(OpKind::kPad, all, {Shape{1, 4, 5, size}}, Shape{1, 7, 7, size + 4}, {}, dtype), kernel_id::kPad);
        const model::PadAttributes crop{.mode = mode, .value = -2, .before = {0, -1, 2, 0}, .after = {1, 0, -3, 0}};
        check_kernel(plain_problem(OpKind::kPad, crop, {Shape{1, 4, 5, size}}, Shape{2, 3, 4, size}, {}, dtype), kernel_id::kPad);
      }
  // Much more padding than there is to pad, on both sides.
  for (const PadMode mode : {PadMode::kConstant, PadMode::kEdge})
    for (std::int64_t size = 1; size <= 10; ++size)
      for (const std::int64_t around : {7, 16, 75, 131}) {
        const model::PadAttributes most{.mode = mode, .value = 1, .before = {0, around, 0}, .after = {0, around - 3, 0}};
        check_kernel(plain_problem(OpKind::kPad, most, {Shape{2, size, 5}}, Shape{2, 2 * around - 3 + size, 5}), kernel_id::kPad);
        const model::PadAttributes last{.mode = mode, .value = 1, .before = {around}, .after = {around}};
        check_kernel(plain_problem(OpKind::kPad, last, {Shape{size}}, Shape{2 * around + size}), kernel_id::kPad);
      }
  // A mirror that is folded more often than there are pieces.
  check_kernel(
      plain_problem(OpKind::kPad, model::PadAttributes{.mode = PadMode::kReflect, .before = {40}, .after = {9}}, {Shape{2}}, Shape{51}),
      kernel_id::kPad);
}

TEST_CASE("reshapes that are copies") {
  for (const DType dtype : kTypes)
    for (const std::int64_t size : kSizes) {
      check_kernel(plain_problem(OpKind::kReshape, {}, {Shape{2, 3, 4, size}}, Shape{6, 4 * size}, {}, dtype), kernel_id::kReshape);
      check_kernel(plain_problem(OpKind::kReshape, {}, {Shape{size, 12}}, Shape{1, 3, size, 4}, {}, dtype), kernel_id::kReshape);
    }
}

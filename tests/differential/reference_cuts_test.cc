// The reference against itself: cut, spread and ringed in every way, it gives the bits of the uncut run.
#include "differential/kernel_harness.h"

using namespace sluice;
using namespace sluice::kernels;
using namespace sluice::kernels::test;
using model::OpKind;

namespace {

void check_cuts(const Problem& p) {
  const KernelDescriptor& kernel = reference_kernel(p.node().op, p.node().numeric);
  const std::vector<std::byte> want = run_reference(p);
  for (Cut cut : usual_cuts()) {
    if (!kernel.slices_rows) cut.rows = 0;
    check_bits(p, kernel, cut, want);
    cut.panels = kernel.slices_channels ? 1 : 0;
    check_bits(p, kernel, cut, want);
  }
}

model::Window square(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t pad, std::int64_t dilation = 1) {
  return {.in_h = in,
          .in_w = in + 1,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .dilation_h = dilation,
          .dilation_w = dilation,
          .pad_top = pad,
          .pad_left = pad,
          .pad_bottom = pad,
          .pad_right = pad};
}

}  // namespace

TEST_CASE("convolutions give the same bits for every cut") {
  const model::Epilogue epilogue{.has_bias = true, .has_residual = true, .activation = {model::Function::kRelu}};
  check_cuts(conv_problem({with_output(square(7, 3, 1, 1)), 1, 5, 40}, 2, epilogue));
  check_cuts(conv_problem({with_output(square(9, 3, 2, 1, 2)), 2, 6, 36}, 1, epilogue));
  check_cuts(conv_problem({with_output(square(8, 3, 2, 1)), 20, 20, 20}, 1, epilogue));
  check_cuts(conv_problem({with_output(square(6, 3, 1, 0)), 4, 8, 24}, 1));
  check_cuts(conv_problem({with_transposed_output(square(4, 3, 2, 1)), 2, 4, 34}, 2, epilogue, model::OpKind::kConvTranspose));
  check_cuts(dense_problem(Shape{5, 17}, 33, epilogue));
}

TEST_CASE("operators without weights give the same bits for every cut") {
  const Shape map{2, 4, 3, 6};
  check_cuts(plain_problem(OpKind::kPool, model::PoolAttributes{.window = with_output(square(5, 3, 2, 1))}, {Shape{2, 5, 6, 7}},
                           Shape{2, 3, 3, 7}));
  check_cuts(plain_problem(OpKind::kUnary, {}, {map}, map, {model::Function::kTanh}));
  check_cuts(plain_problem(OpKind::kBinary, model::BinaryAttributes{model::BinaryFunction::kPow}, {map, Shape{}}, map));
  check_cuts(plain_problem(OpKind::kSoftmax, model::SoftmaxAttributes{}, {map}, map));
  check_cuts(plain_problem(OpKind::kLrn, model::LrnAttributes{}, {map}, map));
  check_cuts(plain_problem(OpKind::kConcat, model::AxisAttributes{3}, {map, Shape{2, 4, 3, 5}}, Shape{2, 4, 3, 11}));
  check_cuts(plain_problem(OpKind::kConcat, model::AxisAttributes{1}, {map, Shape{2, 1, 3, 6}}, Shape{2, 5, 3, 6}));
  check_cuts(plain_problem(OpKind::kSlice, model::SliceAttributes{{1, 3, 0, 5}, {1, -2, 1, -1}}, {map}, Shape{1, 2, 3, 6}));
  check_cuts(plain_problem(OpKind::kPad,
                           model::PadAttributes{.mode = model::PadMode::kReflect, .before = {0, 1, 2, -1}, .after = {0, 2, 0, 3}}, {map},
                           Shape{2, 7, 5, 8}));
  check_cuts(plain_problem(OpKind::kResize, model::ResizeAttributes{.mode = model::ResizeMode::kCubic, .scale = {1, 2, 1, 0.5f}}, {map},
                           Shape{2, 8, 3, 3}));
  check_cuts(plain_problem(OpKind::kTranspose, model::TransposeAttributes{{0, 3, 1, 2}}, {map}, Shape{2, 6, 4, 3}));
  check_cuts(plain_problem(OpKind::kReshape, {}, {map}, Shape{8, 9, 2}));
  check_cuts(plain_problem(OpKind::kMatMul, {}, {Shape{2, 3, 4, 5}, Shape{1, 3, 5, 6}}, Shape{2, 3, 4, 6}));
}

TEST_CASE("operators that move elements take every type") {
  for (DType dtype : {DType::kI8, DType::kF16, DType::kI32, DType::kI64}) {
    check_cuts(plain_problem(OpKind::kConcat, model::AxisAttributes{0}, {Shape{2, 5}, Shape{1, 5}}, Shape{3, 5}, {}, dtype));
    check_cuts(plain_problem(OpKind::kTranspose, model::TransposeAttributes{{1, 0}}, {Shape{3, 5}}, Shape{5, 3}, {}, dtype));
    check_cuts(plain_problem(OpKind::kReshape, {}, {Shape{3, 5}}, Shape{15}, {}, dtype));
    check_cuts(plain_problem(OpKind::kSlice, model::SliceAttributes{{2}, {-1}}, {Shape{3}}, Shape{3}, {}, dtype));
    check_cuts(plain_problem(OpKind::kPad, model::PadAttributes{.value = 3, .before = {1}, .after = {2}}, {Shape{3}}, Shape{6}, {}, dtype));
  }
}

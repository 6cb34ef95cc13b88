// The reference against itself: cut, spread and ringed in every way, it gives the bits of the uncut run.
#include "differential/kernel_harness.h"

using namespace sluice;
using namespace sluice::kernels;
using namespace sluice::kernels::test;

namespace {

void check_cuts(const Problem& p) {
  const KernelDescriptor& kernel = reference_kernel(p.node().op);
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

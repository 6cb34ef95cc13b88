// The weighted kernels, as the registry has them, against the reference. Finer sweeps with a plain loop: tests/kernels/weighted_*_test.cc.
#include "sluice/core/transposed_sums.h"
#include "sluice/kernels/registry.h"
#include "src/kernels/families.h"
#include "tests/differential/kernel_harness.h"
#include "tests/differential/transformer_problems.h"

namespace sluice::kernels::test {
namespace {

void check_all_cuts(const Problem& p, KernelId id) {
  const KernelDescriptor* kernel = find_kernel(id);
  REQUIRE(kernel != nullptr);
  CHECK(kernels_for(p.graph, p.node()).front()->id == id);
  const auto want = run_reference(p);
  for (Cut cut : usual_cuts()) {
    check_bits(p, *kernel, cut, want);
    cut.panels = 1;
    check_bits(p, *kernel, cut, want);
    if (!p.node().epilogue.has_residual) continue;
    cut.in_place = 1;
    check_bits(p, *kernel, cut, want);
  }
}

model::ConvAttributes conv_of(std::int64_t size, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                              std::int64_t pad, std::int64_t groups = 1) {
  const model::Window w{.in_h = size,
                        .in_w = size + 1,
                        .kernel_h = kernel,
                        .kernel_w = kernel,
                        .stride_h = stride,
                        .stride_w = stride,
                        .pad_top = pad,
                        .pad_left = pad,
                        .pad_bottom = pad,
                        .pad_right = pad};
  return {with_output(w), groups, in, out};
}

const model::Epilogue kFull{.has_bias = true, .has_residual = true, .activation = {model::Function::kSilu}};

TEST_CASE("each kind of convolution and dense layer takes its own kernel and gives the reference's bits") {
  check_all_cuts(conv_problem(conv_of(9, 6, 40, 3, 1, 1), 2, kFull), kernel_id::kConvDirect);
  check_all_cuts(conv_problem(conv_of(9, 6, 40, 1, 2, 0), 2, kFull), kernel_id::kConvPointwise);
  check_all_cuts(conv_problem(conv_of(9, 40, 40, 3, 2, 1, 40), 2, kFull), kernel_id::kConvDepthwise);
  check_all_cuts(conv_problem(conv_of(9, 10, 40, 3, 1, 1, 5), 2, kFull), kernel_id::kConvGroupedLanes);
  check_all_cuts(dense_problem(Shape{2, 5, 12}, 40, kFull), kernel_id::kDense);
}

TEST_CASE("transposed convolutions of all phases") {
  for (std::int64_t kernel : {1, 2, 3, 4, 5})
    for (std::int64_t stride : {1, 2, 3})
      for (std::int64_t dilation : {1, 2})
        for (std::int64_t pad : {0, 1}) {
          const model::Window w{.in_h = 4,
                                .in_w = 5,
                                .kernel_h = kernel,
                                .kernel_w = kernel,
                                .stride_h = stride,
                                .stride_w = stride,
                                .dilation_h = dilation,
                                .dilation_w = dilation,
                                .pad_top = pad,
                                .pad_left = pad,
                                .pad_bottom = pad,
                                .pad_right = 0};
          check_all_cuts(conv_problem({with_transposed_output(w), 1, 3, 17}, 1, {}, model::OpKind::kConvTranspose),
                         kernel_id::kConvTransposed);
        }
}

TEST_CASE("transposed convolutions of few outputs, whose pixels of a phase are lanes") {
  for (std::int64_t outputs = 1; outputs <= 11; ++outputs)
    for (std::int64_t kernel : {2, 3, 5})
      for (std::int64_t stride : {1, 2, 3}) {
        const model::Window w{.in_h = 3,
                              .in_w = 13 + outputs,
                              .kernel_h = kernel,
                              .kernel_w = kernel + outputs % 2,
                              .stride_h = stride,
                              .stride_w = stride,
                              .dilation_h = 1,
                              .dilation_w = 1 + outputs % 2,
                              .pad_top = kernel / 2,
                              .pad_left = kernel / 2,
                              .pad_bottom = 0,
                              .pad_right = kernel / 2};
        check_all_cuts(conv_problem({with_transposed_output(w), 1, 2 * outputs - 1, outputs}, 2,
                                    outputs % 3 == 0 ? kFull : model::Epilogue{}, model::OpKind::kConvTranspose),
                       kernel_id::kConvTransposed);
      }
  const model::Window large{
      .in_h = 3, .in_w = 150, .kernel_h = 4, .kernel_w = 4, .stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_left = 1};
  check_all_cuts(conv_problem({with_transposed_output(large), 1, 130, 2}, 1, kFull, model::OpKind::kConvTranspose),
                 kernel_id::kConvTransposed);
}

TEST_CASE("transposed convolutions of whole panels and a few outputs more") {
  for (const std::int64_t more : {1, 2, 3, 4, 5, 6})
    for (const std::int64_t panels : {1, 2})
      for (const std::int64_t stride : {1, 2}) {
        const model::Window w{
            .in_h = 5, .in_w = 19, .kernel_h = 4, .kernel_w = 3, .stride_h = stride, .stride_w = stride, .pad_top = 1, .pad_left = 1};
        check_all_cuts(conv_problem({with_transposed_output(w), 1, 21, 16 * panels + more}, 2, more % 2 == 0 ? kFull : model::Epilogue{},
                                    model::OpKind::kConvTranspose),
                       kernel_id::kConvTransposed);
      }
}

TEST_CASE("transposed convolutions of few outputs whose taps do not meet") {
  const auto apart = [](std::int64_t h, std::int64_t w, std::int64_t stride_h, std::int64_t stride_w) {
    return with_transposed_output(
        {.in_h = h, .in_w = w, .kernel_h = stride_h, .kernel_w = stride_w, .stride_h = stride_h, .stride_w = stride_w});
  };
  const auto check = [](const model::Window& w, std::int64_t in, std::int64_t out, std::int64_t images, const model::Epilogue& epilogue) {
    check_all_cuts(conv_problem({w, 1, in, out}, images, epilogue, model::OpKind::kConvTranspose), kernel_id::kConvTransposed);
  };
  const model::Epilogue activated{.has_bias = true, .activation = {model::Function::kSilu}};
  for (std::int64_t size = 1; size <= 10; ++size)
    for (const std::int64_t outputs : {1, 2, 3, 5, 8}) check(apart(size, 11 - size, 2, 2), 2 * size - 1, outputs, 2, activated);
  for (const std::int64_t outputs : {1, 4, 7}) {
    check(apart(3, 5, 4, 4), 6, outputs, 1, {});
    check(apart(4, 27, 1, 3), 5, outputs, 2, activated);
    check(apart(5, 2, 3, 1), 5, outputs, 2, activated);
    check(apart(4, 30, 2, 2), 9, outputs, 1, kFull);  // a residual: the usual way
  }
}

Problem summed_by_taps(const model::Window& w, std::int64_t in, std::int64_t out, std::int64_t images, const model::Epilogue& epilogue) {
  CAPTURE(w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, in, out);
  CHECK(sums_by_taps(w, 1, in, out));
  return conv_problem({with_transposed_output(w), 1, in, out}, images, epilogue, model::OpKind::kConvTranspose);
}

TEST_CASE("transposed convolutions that sum by taps") {
  const auto check = [](const model::Window& w, std::int64_t in, std::int64_t out, std::int64_t images, const model::Epilogue& epilogue) {
    check_all_cuts(summed_by_taps(w, in, out, images, epilogue), kernel_id::kConvTransposed);
  };
  for (std::int64_t size = 1; size <= 10; ++size)
    for (const std::int64_t stride : {1, 2, 3}) {
      const std::int64_t kernel = stride + 1 + size % 2;
      check({.in_h = size,
             .in_w = 144 / size + 11 - size,
             .kernel_h = kernel,
             .kernel_w = kernel + size % 3,
             .stride_h = stride,
             .stride_w = stride,
             .pad_top = size % 2,
             .pad_left = size % 3,
             .pad_right = size % 2},
            31 + size, 1 + size % 3, 2, size % 3 == 0 ? kFull : model::Epilogue{});
    }
  const model::Epilogue activated{.has_bias = true, .activation = {model::Function::kSilu}};
  const model::Window taps{.in_h = 5, .in_w = 29, .kernel_h = 3, .kernel_w = 4, .stride_h = 1, .stride_w = 2, .pad_left = 1};
  for (const std::int64_t outputs : {4, 7, 10}) check(taps, 10 * outputs + 1, outputs, 1, activated);
  for (const std::int64_t outputs : {11, 12, 17, 21}) check(taps, 129, outputs, 1, outputs % 2 == 0 ? kFull : activated);
  check({.in_h = 13, .in_w = 12, .kernel_h = 9, .kernel_w = 7, .stride_h = 4, .pad_top = 2, .pad_left = 3}, 97, 20, 1, kFull);  // in passes
  check({.in_h = 9, .in_w = 17, .kernel_h = 9, .kernel_w = 8, .pad_top = 4, .pad_left = 4}, 64, 7, 2, activated);
  check({.in_h = 4, .in_w = 37, .kernel_h = 3, .kernel_w = 2, .stride_w = 3, .dilation_h = 2, .dilation_w = 4, .pad_top = 3}, 33, 3, 1, {});
  check({.in_h = 24, .in_w = 6, .kernel_h = 5, .stride_h = 2, .stride_w = 3, .pad_top = 9}, 40, 2, 2, activated);  // rows that no tap meets
  check({.in_h = 1, .in_w = 400, .kernel_w = 9, .stride_w = 4, .pad_left = 3, .pad_right = 2}, 32, 2, 2, kFull);   // a line
  check({.in_h = 3, .in_w = 330, .kernel_h = 9, .kernel_w = 9, .pad_top = 4, .pad_left = 4, .pad_right = 4}, 32, 1, 1,
        activated);  // in columns
}

TEST_CASE("bands of sums by taps multiply rows of the input that neighbouring bands multiply too") {
  const model::Window w{.in_h = 12, .in_w = 12, .kernel_h = 5, .kernel_w = 5, .pad_top = 2, .pad_left = 2, .pad_bottom = 2, .pad_right = 2};
  const Problem p = summed_by_taps(w, 64, 2, 1, {});
  const KernelDescriptor& kernel = *find_kernel(kernel_id::kConvTransposed);
  const auto flops = [&](RowRange rows) { return kernel.cost(p.graph, p.node(), {rows, {0, 2}, 1}).flops; };
  const std::uint64_t row = 2 * 12 * 25 * 64 * 2;  // of the input: each tap of both outputs
  CHECK(flops({0, 12}) == 12 * row);
  CHECK(flops({0, 3}) == 5 * row);  // outputs 0 to 2 meet inputs 0 to 4
  CHECK(flops({3, 6}) == 7 * row);
  CHECK(flops({11, 12}) == 3 * row);
}

TEST_CASE("transposed convolutions whose groups share panels, depthwise ones among them") {
  for (const std::int64_t stride : {1, 2, 3})
    for (const std::int64_t kernel : {1, 2, 4}) {
      const model::Window w{.in_h = 5,
                            .in_w = 4,
                            .kernel_h = kernel,
                            .kernel_w = 3,
                            .stride_h = stride,
                            .stride_w = 2,
                            .dilation_w = 1 + stride % 2,
                            .pad_left = 1,
                            .pad_bottom = kernel / 2};
      const auto check = [&](std::int64_t groups, std::int64_t in, std::int64_t out, std::int64_t images, const model::Epilogue& epilogue) {
        check_all_cuts(conv_problem({with_transposed_output(w), groups, in, out}, images, epilogue, model::OpKind::kConvTranspose),
                       kernel_id::kConvTransposed);
      };
      check(17, 17, 17, 1, {});
      check(32, 32, 32, 2, kFull);
      check(4, 12, 20, 1, {});
      check(3, 3, 6, 1, kFull);
      check(5, 10, 40, 1, {});
    }
}

TEST_CASE("transposed convolutions in wide groups, several images, with an epilogue, in several strips") {
  const model::Window w{.in_h = 5, .in_w = 4, .kernel_h = 4, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_left = 1};
  check_all_cuts(conv_problem({with_transposed_output(w), 2, 6, 36}, 3, kFull, model::OpKind::kConvTranspose), kernel_id::kConvTransposed);
  const model::Window large{.in_h = 4, .in_w = 60, .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  check_all_cuts(conv_problem({with_transposed_output(large), 1, 300, 16}, 1, {}, model::OpKind::kConvTranspose),
                 kernel_id::kConvTransposed);
}

/// Every kernel that takes the quantised panels, the reference among them, gives the bits of the reference over the floats.
void check_quantised(const Problem& floats, int bits, std::int64_t block = 0) {
  const auto [quantised, as_floats] = with_quantised_weight(floats, bits, block);
  const auto want = run_reference(as_floats);
  const auto kernels = kernels_for(quantised.graph, quantised.node());
  REQUIRE_FALSE(kernels.empty());
  for (const KernelDescriptor* kernel : kernels)
    for (Cut cut : usual_cuts()) {
      check_bits(quantised, *kernel, cut, want);
      cut.panels = 1;
      check_bits(quantised, *kernel, cut, want);
    }
}

TEST_CASE("quantised panels give the bits of the floats that they stand for") {
  for (const int bits : {8, 4}) {
    check_quantised(conv_problem(conv_of(7, 5, 40, 3, 1, 1), 2, kFull), bits);
    check_quantised(conv_problem(conv_of(7, 6, 40, 1, 2, 0), 2, kFull), bits);
    check_quantised(conv_problem(conv_of(6, 64, 32, 3, 1, 1, 2), 1, kFull), bits, 16);
    for (const std::int64_t stride : {1, 2, 3}) {
      const model::Window w = with_transposed_output(
          {.in_h = 4, .in_w = 5, .kernel_h = 3, .kernel_w = 4, .stride_h = stride, .stride_w = stride, .pad_top = 1, .pad_left = 1});
      check_quantised(conv_problem({w, 1, 7, 35}, 2, kFull, model::OpKind::kConvTranspose), bits);
      check_quantised(conv_problem({w, 1, 32, 20}, 1, {}, model::OpKind::kConvTranspose), bits, 16);
      const model::Window apart =
          with_transposed_output({.in_h = 3, .in_w = 15, .kernel_h = 2, .kernel_w = stride, .stride_h = 2, .stride_w = stride});
      check_quantised(conv_problem({apart, 1, 32, 3}, 2, {true, false, {}}, model::OpKind::kConvTranspose), bits, 16);
    }
  }
  for (const int bits : {8, 4, 2}) {
    check_quantised(dense_problem(Shape{2, 5, 96}, 40, kFull), bits, 32);
    check_quantised(embedding_problem(Shape{4, 3}, 37, 50), bits);
    check_quantised(embedding_problem(Shape{5}, 40, 64), bits, 16);
  }
}

TEST_CASE("transposed convolutions that sum by taps, over quantised panels") {
  const model::Window w{.in_h = 8, .in_w = 19, .kernel_h = 4, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_left = 1};
  for (const int bits : {8, 4}) {
    check_quantised(summed_by_taps(w, 32, 3, 2, kFull), bits, 16);
    check_quantised(summed_by_taps(w, 144, 17, 1, {}), bits);
  }
}

}  // namespace
}  // namespace sluice::kernels::test

// Every kernel that multiplies by panels against the reference: the same bits for every shape, cut, pitch, ring and thread count.
#include "differential/kernel_harness.h"
#include "sluice/kernels/registry.h"

using namespace sluice;
using namespace sluice::kernels;
using namespace sluice::kernels::test;
using model::OpKind;

namespace {

const model::Epilogue kFull{.has_bias = true, .has_residual = true, .activation = {model::Function::kRelu}};

/// All kernels but the reference, whole and in every cut. At least one must take the node.
void check_weighted(const Problem& p) {
  const std::vector<std::byte> want = run_reference(p);
  int taken = 0;
  for (const KernelDescriptor* kernel : kernels_for(p.graph, p.node())) {
    if (kernel->id >= kernel_id::kReferenceBase) continue;
    ++taken;
    for (Cut cut : usual_cuts()) {
      check_bits(p, *kernel, cut, want);
      cut.panels = 1;
      check_bits(p, *kernel, cut, want);
      const std::uint32_t in_place = kernel->in_place_inputs(p.graph, p.node());
      for (int input = 0; input < static_cast<int>(p.inputs.size()); ++input) {
        cut.in_place = input;
        if ((in_place >> input & 1u) != 0) check_bits(p, *kernel, cut, want);
      }
    }
  }
  INFO("no kernel of our own takes " << p.shape(0).to_string() << " -> " << p.output().shape.to_string());
  CHECK(taken > 0);
}

model::Window square(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t pad, std::int64_t dilation = 1) {
  return with_output({.in_h = in,
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
                      .pad_right = pad});
}

}  // namespace

TEST_CASE("convolution") {
  for (std::int64_t n : {1, 4, 15, 16, 17, 31, 32, 33, 65}) check_weighted(conv_problem({square(6, 3, 1, 1), 1, 3, n}, 1, kFull));
  for (std::int64_t k : {1, 2, 7, 8, 9, 16, 33}) check_weighted(conv_problem({square(5, 3, 2, 1), 1, k, 20}, 2, kFull));
  check_weighted(conv_problem({square(9, 3, 1, 2, 2), 1, 5, 24}, 1));
  check_weighted(conv_problem({square(11, 7, 2, 3), 1, 3, 40}, 1, kFull));
  check_weighted(conv_problem({square(6, 2, 1, 0), 2, 6, 48}, 2, kFull));
}

TEST_CASE("pointwise convolution") {
  for (std::int64_t n : {1, 16, 17, 48, 65}) check_weighted(conv_problem({square(5, 1, 1, 0), 1, 10, n}, 1, kFull));
  check_weighted(conv_problem({square(7, 1, 2, 0), 1, 33, 40}, 2, kFull));
}

TEST_CASE("depthwise and narrow groups") {
  for (std::int64_t c : {2, 8, 15, 16, 17, 33}) {
    check_weighted(conv_problem({square(7, 3, 1, 1), c, c, c}, 1, kFull));
    check_weighted(conv_problem({square(7, 5, 2, 2), c, c, c}, 2, kFull));
    check_weighted(conv_problem({square(5, 3, 1, 1), c, c * 2, c * 3}, 1, kFull));
  }
}

TEST_CASE("dense") {
  for (std::int64_t rows : {1, 2, 5, 15, 16, 17})
    for (std::int64_t n : {1, 16, 33, 100}) check_weighted(dense_problem(Shape{rows, 37}, n, kFull));
  check_weighted(dense_problem(Shape{2, 3, 5}, 18, kFull));
}

TEST_CASE("epilogues") {
  for (int f = 0; f < model::kFunctionCount; ++f) {
    model::Epilogue epilogue = kFull;
    epilogue.activation = {static_cast<model::Function>(f), 0.3f, 0.6f};
    const Problem p = conv_problem({square(4, 1, 1, 0), 1, 6, 20}, 1, epilogue);
    if (kernels_for(p.graph, p.node()).front()->id < kernel_id::kReferenceBase) check_weighted(p);
  }
}

// Parts of sums: however a chain is cut, every instruction set, band, slice, form of view and thread count gives the bits of a plain loop,
// and nothing is written before the last part but the sums.
#include <catch2/catch.hpp>

#include "src/kernels/reference/kernels.h"
#include "src/kernels/weighted/pointwise.h"
#include "tests/kernels/weighted_sweep.h"

namespace sluice::kernels::test {
namespace {

/// Each run of a part, and so each chain, goes through the whole sweep.
void sweep_parts(const Problem& p, const std::vector<std::int64_t>& cuts) {
  const bool dense = p.op == model::OpKind::kDense;
  sweep(p, dense ? weighted::run_dense : weighted::run_pointwise, nullptr, weighted::tile_table, cuts);
  const auto reference = [](const KernelCall& call, const weighted::TileTable&) noexcept { reference::conv(call); };
  const auto reference_dense = [](const KernelCall& call, const weighted::TileTable&) noexcept { reference::dense(call); };
  sweep(p, dense ? Run(reference_dense) : Run(reference), nullptr, weighted::tile_table, cuts);
}

Problem with_epilogue(Problem p) {
  p.bias = true;
  p.residual = true;
  p.activation = {model::Function::kRelu};
  return p;
}

TEST_CASE("dense layers in parts: few rows and many, whole panels and odd ones") {
  for (std::int64_t rows : {1, 2, 7, 13, 29, 40})
    for (std::int64_t outputs : {1, 8, 16, 17, 40, 64, 100}) {
      sweep_parts(dense(rows, 37, outputs), {1, 16, 36});
      sweep_parts(with_epilogue(dense(rows, 37, outputs)), {20});
    }
}

TEST_CASE("1x1 convolutions in parts: strides, images, maps") {
  for (std::int64_t outputs : {3, 16, 24, 72}) {
    sweep_parts(convolution(5, 7, 33, outputs, 1, 1, 0), {5, 6, 31});
    sweep_parts(convolution(9, 8, 20, outputs, 1, 2, 0), {16});
    Problem p = with_epilogue(convolution(4, 5, 24, outputs, 1, 1, 0));
    p.images = 2;
    p.activation = {model::Function::kSilu};
    sweep_parts(p, {8, 16});
  }
}

TEST_CASE("parts so long that a kernel cuts their depth itself, and pixels that crowd each other out of the cache") {
  sweep_parts(with_epilogue(dense(70, 3100, 40)), {1030, 1031});
  sweep_parts(dense(64, 2048, 80), {2047});
  sweep_parts(with_epilogue(convolution(12, 12, 1024, 80, 1, 1, 0)), {100, 512});
}

}  // namespace
}  // namespace sluice::kernels::test

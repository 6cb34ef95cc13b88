// Kernels over quantised panels: every instruction set, cut, form of view and thread count gives the bits of a plain loop over the floats
// that the quantised values stand for; so does the reference.
#include <catch2/catch.hpp>

#include "sluice/kernels/registry.h"
#include "src/kernels/reference/quantised.h"
#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/lanes.h"
#include "src/kernels/weighted/narrow.h"
#include "src/kernels/weighted/pointwise.h"
#include "tests/kernels/weighted_harness.h"
#include "tests/kernels/weighted_sweep.h"

namespace sluice::kernels::test {
namespace {

using weighted::NarrowForm;

const weighted::TileTable& eight_bits(Isa isa) noexcept { return weighted::narrow_tile_table(isa, NarrowForm::kEightBits); }
const weighted::TileTable& four_bits(Isa isa) noexcept { return weighted::narrow_tile_table(isa, NarrowForm::kFourBits); }
const weighted::TileTable& two_bits(Isa isa) noexcept { return weighted::narrow_tile_table(isa, NarrowForm::kTwoBits); }

template <KernelEntry kRun>
void run_reference(const KernelCall& call, const weighted::TileTable&) noexcept {
  kRun(call);
}
template <KernelId kId>
Bytes reference_workspace(const operators::Parameters& parameters, const StepExtent& extent) noexcept {
  return find_kernel(kId)->workspace(parameters, extent);
}

constexpr Workspace kPointwiseWorkspace = workspace_of<weighted::pointwise_workspace<operators::ConvolutionParameters>>;

Problem with_bits(Problem p, int bits, std::int64_t group = 0) {
  p.bits = bits;
  p.group = group;
  p.bias = p.residual = p.conv.out_channels % 2 == 0;
  p.activation = {model::Function::kRelu, 0, 0};
  return p;
}

void sweep_dense(const Problem& p) {
  sweep(p, weighted::run_dense, workspace_of<weighted::pointwise_workspace<operators::DenseParameters>>,
        p.bits == 8   ? eight_bits
        : p.bits == 4 ? four_bits
                      : two_bits);
  constexpr KernelId kId = kernel_id::kReferenceDenseQuantised;
  sweep(p, run_reference<reference::quantised_dense>, reference_workspace<kId>);
}

TEST_CASE("dense layers of 8 bits") {
  for (const std::int64_t rows : {1, 3, 17})
    for (const std::int64_t k : {1, 63, 64, 130})
      for (const std::int64_t n : {16, 33, 100}) sweep_dense(with_bits(dense(rows, k, n), 8));
}

TEST_CASE("dense layers of 4 bits") {
  for (const std::int64_t group : {2, 16, 32, 128})
    for (const std::int64_t k : {1, 32, 65, 200})
      for (const std::int64_t n : {7, 32, 70}) sweep_dense(with_bits(dense(n == 7 ? 1 : 6, k, n), 4, group));
}

TEST_CASE("dense layers of 8 bits in groups") {
  for (const std::int64_t group : {3, 32, 128})
    for (const std::int64_t k : {1, 32, 65, 200}) sweep_dense(with_bits(dense(k == 1 ? 1 : 6, k, 37), 8, group));
}

TEST_CASE("dense layers of 2 bits") {
  for (const std::int64_t group : {4, 16, 128})
    for (const std::int64_t k : {1, 34, 200}) sweep_dense(with_bits(dense(k == 1 ? 1 : 6, k, 37), 2, group));
}

TEST_CASE("layers with one scale an output, of 4 and 2 bits") {
  sweep_dense(with_bits(dense(5, 77, 40), 4));
  sweep_dense(with_bits(dense(5, 77, 40), 2));
}

TEST_CASE("dense layers whose sums are long") {
  // Long enough, with tiles enough and panels few enough, that panels of floats are done a part of the depth at a time.
  sweep_dense(with_bits(dense(70, 1100, 32), 8));
  sweep_dense(with_bits(dense(70, 1100, 32), 4, 32));
}

TEST_CASE("convolutions of 4 bits") {
  constexpr KernelId kId = kernel_id::kReferenceConvQuantised;
  for (const Problem& plain : {convolution(7, 6, 5, 20, 3, 1, 1), convolution(9, 8, 3, 33, 3, 2, 1), convolution(5, 5, 12, 34, 3, 1, 1, 2),
                               convolution(13, 9, 3, 16, 5, 1, 2, 1, 2)}) {
    const Problem p = with_bits(plain, 4);
    sweep(p, weighted::run_direct, workspace_of<weighted::direct_workspace>, four_bits);
    sweep(p, run_reference<reference::quantised_conv>, reference_workspace<kId>);
  }
  sweep(with_bits(convolution(9, 7, 40, 50, 1, 2, 0), 4, 8), weighted::run_pointwise, kPointwiseWorkspace, four_bits);
}

TEST_CASE("convolutions of 8 bits") {
  constexpr KernelId kId = kernel_id::kReferenceConvQuantised;
  for (const Problem& plain : {convolution(7, 6, 5, 20, 3, 1, 1), convolution(9, 8, 70, 33, 3, 2, 1), convolution(5, 5, 12, 34, 3, 1, 1, 2),
                               convolution(13, 9, 3, 16, 5, 1, 2, 1, 2)}) {
    const Problem p = with_bits(plain, 8);
    sweep(p, weighted::run_direct, workspace_of<weighted::direct_workspace>, eight_bits);
    sweep(p, run_reference<reference::quantised_conv>, reference_workspace<kId>);
  }
  sweep(with_bits(convolution(9, 7, 40, 50, 1, 2, 0), 8), weighted::run_pointwise, kPointwiseWorkspace, eight_bits);
}

const weighted::TileTable& bf16(Isa isa) noexcept { return weighted::narrow_tile_table(isa, NarrowForm::kBf16); }
const weighted::TileTable& f16(Isa isa) noexcept { return weighted::narrow_tile_table(isa, NarrowForm::kF16); }

using Tiles = const weighted::TileTable& (*)(Isa) noexcept;

template <class Body>
void for_each_half(const Body& body) {
  body(DType::kBF16, Tiles{bf16});
  body(DType::kF16, Tiles{f16});
}

Problem with_half(Problem p, DType half) {
  p.half = half;
  p.bias = p.residual = p.conv.out_channels % 2 == 0;
  p.activation = {model::Function::kRelu, 0, 0};
  return p;
}

TEST_CASE("dense layers of 16-bit floats") {
  for_each_half([](DType half, Tiles tiles) {
    // Few rows and many, more tiles than wait for a widened part, sums of one part and of several.
    for (const Problem& plain :
         {dense(1, 1, 7), dense(1, 700, 150), dense(3, 63, 33), dense(17, 130, 100), dense(300, 40, 40), dense(260, 1100, 70)}) {
      const Problem p = with_half(plain, half);
      sweep(p, weighted::run_dense, workspace_of<weighted::pointwise_workspace<operators::DenseParameters>>, tiles);
      if (plain.conv.in_channels < 1000)
        sweep(p, run_reference<reference::quantised_dense>, reference_workspace<kernel_id::kReferenceDenseQuantised>);
    }
  });
}

TEST_CASE("convolutions of 16-bit floats") {
  for_each_half([](DType half, Tiles tiles) {
    for (const Problem& plain :
         {convolution(7, 6, 5, 20, 3, 1, 1), convolution(9, 8, 70, 33, 3, 2, 1), convolution(5, 5, 12, 34, 3, 1, 1, 2),
          convolution(13, 9, 3, 16, 5, 1, 2, 1, 2), convolution(12, 12, 300, 18, 3, 1, 1)}) {
      const Problem p = with_half(plain, half);
      sweep(p, weighted::run_direct, workspace_of<weighted::direct_workspace>, tiles);
      if (plain.conv.in_channels < 100)
        sweep(p, run_reference<reference::quantised_conv>, reference_workspace<kernel_id::kReferenceConvQuantised>);
    }
    sweep(with_half(convolution(9, 7, 40, 50, 1, 2, 0), half), weighted::run_pointwise, kPointwiseWorkspace, tiles);
    sweep(with_half(convolution(20, 17, 300, 50, 1, 1, 0), half), weighted::run_pointwise, kPointwiseWorkspace, tiles);
  });
}

template <auto kRun>
void run_over(const KernelCall& call, const weighted::TileTable& tiles) noexcept {
  weighted::run_over_floats(call, tiles, kRun);
}
template <auto kWorkspace>
Bytes room_over(const operators::Parameters& parameters, const StepExtent& extent) noexcept {
  const auto& conv = parameters.as<operators::ConvolutionParameters>();
  return weighted::float_panels(conv, extent.channels) + kWorkspace(weighted::as_floats(conv), extent);
}

TEST_CASE("depthwise convolutions and groups of few outputs, of 16, 8 and 4 bits") {
  const auto all = [](const Problem& p, Tiles tiles) {
    if (p.conv.depthwise())
      sweep(p, run_over<weighted::run_depthwise>, room_over<weighted::depthwise_workspace>, tiles);
    else
      sweep(p, run_over<weighted::run_grouped_lanes>, room_over<weighted::grouped_lanes_workspace>, tiles);
    sweep(p, run_reference<reference::quantised_conv>, reference_workspace<kernel_id::kReferenceConvQuantised>);
  };
  for (const Problem& plain : {convolution(7, 9, 37, 37, 3, 1, 1, 37), convolution(6, 9, 600, 600, 7, 2, 3, 600),
                               convolution(6, 7, 24, 15, 3, 1, 1, 3), convolution(9, 12, 12, 24, 1, 2, 0, 4)}) {
    for_each_half([&](DType half, Tiles tiles) { all(with_half(plain, half), tiles); });
    all(with_bits(plain, 8), eight_bits);
    all(with_bits(plain, 4), four_bits);
  }
}

TEST_CASE("groups of more panels than are widened at once") {
  for_each_half([](DType half, Tiles tiles) {
    sweep(with_half(convolution(6, 5, 8, 160, 3, 1, 1, 2), half), weighted::run_direct, workspace_of<weighted::direct_workspace>, tiles);
    sweep(with_half(convolution(9, 7, 20, 192, 1, 1, 0, 2), half), weighted::run_pointwise, kPointwiseWorkspace, tiles);
    sweep(with_half(convolution(12, 12, 300, 290, 3, 1, 1, 2), half), weighted::run_direct, workspace_of<weighted::direct_workspace>,
          tiles);
  });
  sweep(with_bits(convolution(6, 5, 8, 160, 3, 1, 1, 2), 8), weighted::run_direct, workspace_of<weighted::direct_workspace>, eight_bits);
  sweep(with_bits(convolution(9, 7, 64, 192, 1, 1, 0, 2), 4, 8), weighted::run_pointwise, kPointwiseWorkspace, four_bits);
}

}  // namespace
}  // namespace sluice::kernels::test

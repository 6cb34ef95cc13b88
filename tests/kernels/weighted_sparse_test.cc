// Kernels over sparse panels: every instruction set, cut, form of view and thread count gives the bits of a plain loop over all products,
// those with zeros among them; so does the reference. What skipping a zero does to NaN, and what a bitmap that lies cannot do.
#include <catch2/catch.hpp>

#include "sluice/kernels/registry.h"
#include "src/kernels/reference/sparse.h"
#include "src/kernels/weighted/sparse.h"
#include "src/kernels/weighted/sparse_panels.h"
#include "tests/kernels/weighted_harness.h"
#include "tests/kernels/weighted_sweep.h"

namespace sluice::kernels::test {
namespace {

using weighted::SparseForm;
using SparseRun = void (*)(const KernelCall&, const weighted::SparseTiles&) noexcept;

/// The harness hands out tiles of dense panels, whose instruction set decides those of sparse ones.
template <SparseRun kRun, SparseForm kForm>
void run_with(const KernelCall& call, const weighted::TileTable& tiles) noexcept {
  kRun(call, weighted::sparse_tiles(tiles.isa, kForm));
}
template <SparseRun kRun>
Run run_of(DType dtype) {
  if (dtype == DType::kBF16) return run_with<kRun, SparseForm::kBf16>;
  return dtype == DType::kF16 ? run_with<kRun, SparseForm::kF16> : run_with<kRun, SparseForm::kF32>;
}
template <KernelEntry kRun>
void run_reference(const KernelCall& call, const weighted::TileTable&) noexcept {
  kRun(call);
}

Problem with_zeros(Problem p, double zeros, DType dtype = DType::kF32) {
  p.zeros = zeros;
  p.half = dtype;
  p.bias = p.residual = p.conv.out_channels % 2 == 0;
  p.activation = {model::Function::kRelu, 0, 0};
  return p;
}

void sweep_dense(const Problem& p, const std::vector<std::int64_t>& cuts = {}) {
  sweep(p, run_of<weighted::run_sparse_dense>(p.half), workspace_of<weighted::sparse_dense_workspace>, weighted::tile_table, cuts);
  sweep(p, run_reference<reference::sparse_dense>, nullptr, weighted::tile_table, cuts);
}
void sweep_pointwise(const Problem& p, const std::vector<std::int64_t>& cuts = {}) {
  sweep(p, run_of<weighted::run_sparse_pointwise>(p.half), workspace_of<weighted::sparse_pointwise_workspace>, weighted::tile_table, cuts);
  sweep(p, run_reference<reference::sparse_conv>, nullptr, weighted::tile_table, cuts);
}
void sweep_direct(const Problem& p) {
  sweep(p, run_of<weighted::run_sparse_direct>(p.half), workspace_of<weighted::sparse_direct_workspace>);
  sweep(p, run_reference<reference::sparse_conv>, nullptr);
}

constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16};

TEST_CASE("sparse dense layers: rows for each tile, panels whole and odd, few blocks and many") {
  for (const std::int64_t rows : {1, 2, 3, 4, 6, 7, 8, 11, 12, 30})
    for (const std::int64_t outputs : {5, 16, 33, 64, 100}) sweep_dense(with_zeros(dense(rows, 67, outputs), outputs == 33 ? 0.1 : 0.7));
  for (const DType type : kTypes)
    for (const std::int64_t k : {1, 63, 64, 65, 130}) sweep_dense(with_zeros(dense(k == 64 ? 1 : 13, k, 40), 0.5, type));
  sweep_dense(with_zeros(dense(5, 90, 40), 1.0));      // no block at all
  sweep_dense(with_zeros(dense(3, 40000, 32), 0.95));  // places of one panel at a time
}

TEST_CASE("sparse 1x1 convolutions: strides, images, maps") {
  for (const std::int64_t outputs : {3, 16, 24, 72}) {
    sweep_pointwise(with_zeros(convolution(5, 7, 33, outputs, 1, 1, 0), 0.5));
    sweep_pointwise(with_zeros(convolution(9, 8, 20, outputs, 1, 2, 0), 0.8));
    Problem p = with_zeros(convolution(4, 5, 24, outputs, 1, 1, 0), 0.3);
    p.images = 2;
    p.activation = {model::Function::kSilu};
    sweep_pointwise(p);
  }
  sweep_pointwise(with_zeros(convolution(40, 37, 70, 40, 1, 1, 0), 0.7, DType::kBF16));  // several runs of tiles
}

TEST_CASE("sparse layers of many pixels and panels: vectors of pixels, some filled up, and rows for the rest") {
  for (const std::int64_t width : {4, 7, 8, 9, 10, 14, 19})  // of 7 rows: 28 pixels, 49, 56, 63, 70, 98, 133
    sweep_pointwise(with_zeros(convolution(7, width, 73, width == 7 ? 64 : 71, 1, 1, 0), 0.6));
  for (const DType type : kTypes) {
    sweep_pointwise(with_zeros(convolution(6, 10, 66, 100, 1, 1, 0), 0.7, type));
    sweep_pointwise(with_zeros(convolution(7, 7, 72, 201, 1, 1, 0), 0.3, type));  // beside three vectors a pixel of its own
  }
  sweep_pointwise(with_zeros(convolution(7, 14, 650, 70, 1, 1, 0), 0.6));
  sweep_pointwise(with_zeros(convolution(15, 13, 64, 80, 1, 2, 0), 0.4));
  Problem p = with_zeros(convolution(6, 5, 68, 70, 1, 1, 0), 0.3);
  p.images = 2;
  p.activation = {model::Function::kSilu};
  sweep_pointwise(p);
  sweep_dense(with_zeros(dense(60, 67, 100), 0.5));
  sweep_dense(with_zeros(dense(40, 2100, 64), 0.7));  // a strip of two vectors
}

TEST_CASE("pixels that lie evenly: tiles of each size, pairs of panels and one that is left, lists as long as each other and not") {
  for (const std::int64_t rows : {8, 9, 10, 11, 12, 13, 14, 15, 23, 29, 43})
    for (const std::int64_t outputs : {7, 32, 40, 80}) sweep_dense(with_zeros(dense(rows, rows % 2 == 0 ? 35 : 68, outputs), 0.7));
  for (const std::int64_t k : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) sweep_dense(with_zeros(dense(14 + k, k, 48), 0.5));
  for (const DType type : kTypes) {
    sweep_pointwise(with_zeros(convolution(7, 7, 90, 48, 1, 1, 0), 0.7, type));
    sweep_direct(with_zeros(convolution(14, 14, 16, 48, 3, 1, 1), 0.6, type));
  }
  sweep_pointwise(with_zeros(convolution(9, 28, 30, 40, 1, 2, 0), 0.5));
  sweep_pointwise(with_zeros(convolution(64, 64, 72, 50, 1, 1, 0), 0.8));  // inputs of the next tile are fetched
  sweep_dense(with_zeros(dense(28, 60, 48), 0.5), {1, 30, 31});
}

TEST_CASE("sparse layers of many panels: strips of packed pixels, whole and filled up") {
  for (const std::int64_t width : {2, 3, 4, 5, 7, 9})  // of 7 rows: 14 pixels, 21, 28, 35, 49, 63
    sweep_pointwise(with_zeros(convolution(7, width, 37, width == 7 ? 128 : 131, 1, 1, 0), 0.5));
  for (const DType type : kTypes) sweep_pointwise(with_zeros(convolution(5, 6, 48, 144, 1, 1, 0), 0.6, type));
  for (const std::int64_t k : {3, 8, 15, 16, 17, 65, 130, 365, 366}) sweep_dense(with_zeros(dense(31, k, 130), 0.4));
  sweep_pointwise(with_zeros(convolution(11, 9, 20, 136, 1, 2, 0), 0.3));
  Problem p = with_zeros(convolution(6, 5, 24, 132, 1, 1, 0), 0.3);
  p.images = 2;
  p.activation = {model::Function::kSilu};
  sweep_pointwise(p);
  sweep_dense(with_zeros(dense(29, 20, 1100), 0.5));  // lists of 64 panels, then of those that are left
}

TEST_CASE("sparse layers whose inputs fill the first cache: sums in parts of the depth") {
  for (const DType type : kTypes) sweep_dense(with_zeros(dense(50, 3300, type == DType::kF32 ? 73 : 40), 0.6, type));
  sweep_pointwise(with_zeros(convolution(7, 8, 1300, 40, 1, 1, 0), 0.3));
  sweep_dense(with_zeros(dense(27, 9000, 64), 0.4));  // lists of three panels at a time
}

TEST_CASE("lists of every length: the blocks of whole turns of a loop and those behind them") {
  for (const std::int64_t k : {64, 65, 66, 67, 68, 71}) {
    sweep_pointwise(with_zeros(convolution(7, 9, k, 64, 1, 1, 0), 0.0625));
    for (const std::int64_t rows : {1, 3, 6, 11}) sweep_dense(with_zeros(dense(rows, k - 62, 64), 0.1));
  }
}

TEST_CASE("sparse KxK convolutions: padding, strides, dilation") {
  for (const DType type : kTypes)
    for (const Problem& plain :
         {convolution(7, 6, 5, 20, 3, 1, 1), convolution(9, 8, 3, 33, 3, 2, 1), convolution(13, 9, 3, 16, 5, 1, 2, 1, 2),
          convolution(12, 12, 70, 50, 3, 1, 1), convolution(9, 13, 32, 40, 3, 1, 1), convolution(11, 9, 16, 20, 3, 1, 2, 1, 2)})
      sweep_direct(with_zeros(plain, 0.6, type));
  sweep_direct(with_zeros(convolution(4, 4, 8, 18, 1, 1, 1), 0.5));  // 1x1 with padding
}

TEST_CASE("sums over sparse panels in parts") {
  for (const std::int64_t rows : {1, 7, 13}) sweep_dense(with_zeros(dense(rows, 137, 40), 0.6), {1, 64, 100});
  sweep_pointwise(with_zeros(convolution(5, 7, 90, 40, 1, 1, 0), 0.6), {5, 6, 70});
}

TEST_CASE("a block that is not there is not multiplied: NaN and infinity do not pass it") {
  const float values[] = {1, 2, 3};  // of each output; k 1 is zero
  std::vector<float> weights;
  for (int n = 0; n < 16; ++n)
    for (const float value : values) weights.push_back(value == 2 ? 0.0f : value);
  PackSource source{.data = reinterpret_cast<const std::byte*>(weights.data()),
                    .outputs = 16,
                    .depth = 3,
                    .outputs_per_group = 16,
                    .output_stride = 3,
                    .k_outer_stride = 1};
  model::Weight weight;
  describe_panels(source, std::array<std::int64_t, 2>{16, 3}, weight);
  describe_sparse(source, weight);
  REQUIRE(weight.bytes == Bytes(64 + 2 * 64));
  std::vector<float> packed(weight.bytes.count() / 4);
  pack_sparse(source, {0, 1}, std::as_writable_bytes(std::span(packed)));
  const weighted::SparsePanel panel(reinterpret_cast<const std::byte*>(packed.data()), 192, 3, DType::kF32);
  std::vector<std::int64_t> found;
  CHECK(panel.for_each({0, 3}, 0, [&](std::int64_t i) { found.push_back(i); }) == 2);
  CHECK(found == std::vector<std::int64_t>{0, 2});

  alignas(64) float a[16] = {1, std::nanf(""), 1}, out[16] = {};
  const std::uint32_t places[] = {0, 2};
  for (const Isa isa : instruction_sets()) {
    weighted::TileRows rows{.count = 1};
    rows.a[0] = a;
    rows.out[0] = out;
    const weighted::TileJob job{.panel_count = 1};
    const weighted::BlockList list{places, panel.block(0), 2};
    weighted::sparse_tiles(isa, SparseForm::kF32).run(rows, job, &list, {});
    CHECK(out[0] == 4.0f);
    CHECK(out[15] == 4.0f);
  }
}

TEST_CASE("a bitmap that promises more blocks than the panel has gets those that there are") {
  alignas(64) std::byte bytes[64 + 3 * 64];
  std::memset(bytes, 0xff, sizeof bytes);
  const weighted::SparsePanel panel(bytes, sizeof bytes, 100, DType::kF32);
  std::vector<std::int64_t> found;
  const auto visit = [&](std::int64_t i) { found.push_back(i); };
  CHECK(panel.for_each({0, 100}, 0, visit) == 3);
  CHECK(found == std::vector<std::int64_t>{0, 1, 2});
  CHECK(panel.count_before(50) == 3);
  CHECK(panel.for_each({50, 100}, 3, visit) == 0);
  const weighted::SparsePanel half(bytes, sizeof bytes, 5, DType::kBF16);  // bits behind the last value mean nothing
  CHECK(half.count_before(5) == 5);
  found.clear();
  CHECK(half.for_each({2, 5}, 2, visit) == 3);
  CHECK(found == std::vector<std::int64_t>{2, 3, 4});
  const weighted::SparsePanel cut(bytes, 32, 5, DType::kF32);  // shorter than its bitmap
  CHECK(cut.count_before(5) == 0);
  CHECK(cut.for_each({0, 5}, 0, visit) == 0);
}

TEST_CASE("no more blocks are pruned than were asked for: those that are alike go together or stay") {
  const auto pruned = [](const std::vector<float>& inputs, double share) {
    std::vector<float> weights;  // each input's value for all outputs
    for (int n = 0; n < 16; ++n) weights.insert(weights.end(), inputs.begin(), inputs.end());
    const auto depth = static_cast<std::int64_t>(inputs.size());
    return prune({.data = reinterpret_cast<const std::byte*>(weights.data()),
                  .outputs = 16,
                  .depth = depth,
                  .outputs_per_group = 16,
                  .output_stride = depth,
                  .k_outer_stride = 1},
                 share);
  };
  CHECK(pruned({4, 1, 3, 2}, 0.5).share == 0.5);
  CHECK(pruned({4, 1, 3, 2}, 0.5).largest == 16 * 2 * 2);
  CHECK(pruned({1, 1, 1, 1}, 0.5).share == 0);
  CHECK(pruned({1, 2, 2, 3}, 0.5).share == 0.25);
  CHECK(pruned({0, 0, 0, 3}, 0.5).share == 0.75);
  CHECK(pruned({0, 0, 0, 3}, 0.5).error == 0);
  CHECK(pruned({1, 2, 3, 4}, 1).share == 1);
  CHECK(pruned({1, 2, std::nanf(""), 4}, 0.5).share == 0);
}

TEST_CASE("the share of zero blocks, all and sampled") {
  std::mt19937 random(1);
  std::vector<float> weights(64 * 1000);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = i / 1000 / 16 % 2 == 0 && i % 4 != 0 ? -0.0f : 1.0f;
  const PackSource source{.data = reinterpret_cast<const std::byte*>(weights.data()),
                          .outputs = 64,
                          .depth = 1000,
                          .outputs_per_group = 64,
                          .output_stride = 1000,
                          .k_outer_stride = 1};
  CHECK(share_of_zero_blocks(source, false) == 0.375);
  CHECK(share_of_zero_blocks(source, true) == Approx(0.375).margin(0.05));

  // One input of four is there, and the depth a power of two: a sample at every fourth would see those alone, or none.
  for (const std::int64_t depth : {64, 128, 256, 1024}) {
    std::vector<float> pattern(static_cast<std::size_t>(16 * depth), 0.0f);
    for (std::size_t i = 0; i < pattern.size(); i += 4) pattern[i] = 1.0f;
    const PackSource repeated{.data = reinterpret_cast<const std::byte*>(pattern.data()),
                              .outputs = 16,
                              .depth = depth,
                              .outputs_per_group = 16,
                              .output_stride = depth,
                              .k_outer_stride = 1};
    CHECK(share_of_zero_blocks(repeated, true) == Approx(0.75).margin(0.05));
  }
}

}  // namespace
}  // namespace sluice::kernels::test

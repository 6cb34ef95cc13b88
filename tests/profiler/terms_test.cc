#include "sluice/profiler/terms.h"

#include <catch2/catch.hpp>

#include "sluice/kernels/kernel_ids.h"

namespace sluice::profiler {
namespace {

constexpr std::size_t kReadAgain = 16, kWalkedAgain = detail::kFromOthers;  // which threads that share areas do not have

/// Of 28 x 28 outputs, 64 inputs and 9 taps.
StepWork convolution(std::uint32_t channels, std::uint64_t input_bytes) {
  StepWork work(kernels::CostFeatures{1'000'000'000, input_bytes, 28 * 28 * 4ull * channels, 9 * 64 * 4ull * channels});
  work.shape.rows = work.shape.columns = 28;
  work.shape.channels = channels;
  work.shape.depth = 64;
  work.shape.taps = 9;
  work.shape.stride = 1;
  work.run_bytes = 8 << 20;
  return work;
}

Terms direct_terms(const StepWork& work, int threads = 1) {
  return detail::terms_of(kernels::kernel_id::kConvDirect, work, detail::tile_of("avx512", threads));
}

TEST_CASE("panels of each further tile walk over a direct convolution's input again") {
  constexpr int kInput = 28 * 28 * 64 * 4, kNearest = 32 << 10;
  const auto walked_of = [](const StepWork& work) { return direct_terms(work)[kWalkedAgain]; };
  CHECK(walked_of(convolution(32, kInput)) == 0);
  CHECK(walked_of(convolution(33, kInput)) == kInput - kNearest);  // but for what the nearest cache holds
  CHECK(walked_of(convolution(96, kInput)) == 2 * (kInput - kNearest));
  CHECK(walked_of(convolution(96, 32 << 10)) == 0);
  // A residual is input that is read once, and so is the input of other groups.
  constexpr int kWindows = 30 * 30 * 64 * 4;
  CHECK(walked_of(convolution(96, 10 * kInput)) == 2 * (kWindows - kNearest));
}

TEST_CASE("each thread walks over its part of a direct convolution's input") {
  const StepWork work = convolution(96, 28 * 28 * 64 * 4);
  const double shared = direct_terms(work, 2)[kWalkedAgain], alone = direct_terms(work)[kWalkedAgain];
  CHECK(shared >= alone);  // all parts, as long as the longest
  CHECK(shared <= 1.3 * alone);
}

TEST_CASE("weights of a pair of panels are read again where the nearest caches do not hold them") {
  const auto again = [](std::uint32_t depth) {
    StepWork work = convolution(32, 28 * 28 * 64 * 4);
    work.shape.depth = depth;  // with nine taps 1152 bytes of a pair for each
    return direct_terms(work)[kReadAgain];
  };
  const double tiles = detail::ceil_of(28 * 28 / 14.0);
  const auto weights = static_cast<double>(convolution(32, 0).cost.weight_bytes);
  CHECK(again(113) == 0);
  CHECK(again(322) == Approx(0.5 * weights * (tiles - 1)).epsilon(0.01));
  CHECK(again(2000) == weights * (tiles - 1));
  CHECK(again(4'000'000'000) == weights * (tiles - 1));
}

TEST_CASE("large outputs of dense layers cost more where caches that cores share have lost their lines, those of convolutions everywhere") {
  const auto large = [](KernelId kernel, std::uint64_t run_bytes) {
    StepWork work(kernels::CostFeatures{100'000'000, 16'000, 3 << 20, 3 << 20});
    work.run_bytes = run_bytes;
    return detail::large_output(kernel, work);
  };
  using namespace kernels::kernel_id;
  constexpr double kBeyond = (3 << 20) - (256 << 10);
  for (const KernelId kernel : {kDense, kDenseEightBits, kIntegerDense, kPool}) {
    CHECK(large(kernel, 6 << 20) == 0);
    CHECK(large(kernel, 28 << 20) == Approx(0.5 * kBeyond).epsilon(0.02));
    CHECK(large(kernel, 64 << 20) == kBeyond);
  }
  CHECK(large(kConvPointwise, 6 << 20) == kBeyond);
  CHECK(large(kConvDirect, 6 << 20) == kBeyond);
}

TEST_CASE("layers of a few outputs, whose lanes are pixels, have no empty panels, those of stored types have") {
  constexpr std::size_t kFlops = 1, kHalfTiles = 5;
  StepWork few = convolution(1, 28 * 28 * 64 * 4);
  const auto lanes = [&](KernelId kernel) {  // for each output
    const Terms terms = detail::terms_of(kernel, few, detail::tile_of("avx512"));
    return terms[kFlops] / static_cast<double>(few.cost.flops);
  };
  using namespace kernels::kernel_id;
  CHECK((lanes(kConvDirect) > 4 && lanes(kConvDirect) < 6));  // as four outputs, and some
  CHECK(lanes(kConvDirectF16) == Approx(16));                 // as a panel
  CHECK(direct_terms(few)[kHalfTiles] < 0.1 * 4 * static_cast<double>(few.cost.flops));
  few.shape.columns = 7;  // too few pixels in a row
  CHECK(lanes(kConvDirect) == Approx(16));
  few.shape.columns = 28;
  few.shape.stride = 2;  // copied too slowly
  CHECK(lanes(kConvDirect) == Approx(16));
  few.shape.stride = 1;
  few.shape.channels = 11;
  CHECK(lanes(kConvDirect) == Approx(16.0 / 11));
}

TEST_CASE("a direct convolution's lanes that are no outputs cost what others do, whatever a profile's samples are") {
  StepWork some = convolution(22, 1 << 20), all = convolution(32, 1 << 20);
  some.cost.flops = all.cost.flops / 32 * 22;
  constexpr std::size_t kFlops = 1, kHalfTiles = 5, kIdle = 6;  // of direct ones the taps of all pixels
  CHECK(direct_terms(some)[kIdle] == 28 * 28 * 9);
  for (const std::size_t term : {kFlops, kHalfTiles, kIdle}) CHECK(direct_terms(some)[term] == Approx(direct_terms(all)[term]));
  const auto of = [](KernelId kernel, const StepWork& work) { return detail::terms_of(kernel, work, detail::tile_of("avx512")); };
  using namespace kernels::kernel_id;
  CHECK(of(kConvPointwise, some)[kFlops] < of(kConvPointwise, all)[kFlops]);
  CHECK(of(kConvPointwise, some)[kIdle] > of(kConvPointwise, all)[kIdle]);
  // Of three panels in tiles of two the last tile is half full.
  const StepWork odd = convolution(48, 1 << 20);
  CHECK(direct_terms(odd)[kHalfTiles] > 0.3 * static_cast<double>(odd.cost.flops));
}

TEST_CASE("integer layers multiply four inputs of a tap at once, however few there are") {
  constexpr std::size_t kFlops = 1;
  using namespace kernels::kernel_id;
  const auto lanes = [](KernelId kernel, std::uint32_t depth) {
    StepWork work = convolution(32, 1 << 20);
    work.shape.depth = depth;
    return detail::terms_of(kernel, work, detail::tile_of("avx512"))[kFlops] / static_cast<double>(work.cost.flops);
  };
  CHECK(lanes(kIntegerDirect, 1) == Approx(4));
  CHECK(lanes(kIntegerDirect, 3) == Approx(4.0 / 3));
  CHECK(lanes(kIntegerDirect, 64) == Approx(1));
  CHECK(lanes(kIntegerPointwise, 6) == Approx(8.0 / 6));
  CHECK(lanes(kConvDirect, 1) == Approx(1));
}

TEST_CASE("blends take the time of their vectors and of finding each pixel's sources, cubic ones four times that") {
  constexpr std::size_t kVectors = 7;
  const auto vectors = [](std::uint32_t channels, ResizeMode mode) {
    StepWork work(kernels::CostFeatures{1000, 1 << 20, 1 << 22, 0});
    work.shape.rows = work.shape.columns = 10;
    work.shape.channels = channels;
    work.variant = static_cast<std::uint16_t>(mode);
    return detail::terms_of(kernels::kernel_id::kResize, work, detail::tile_of("avx2"))[kVectors];
  };
  CHECK(vectors(1, ResizeMode::kLinear) == 100 * 3);
  CHECK(vectors(17, ResizeMode::kLinear) == 100 * 4);
  CHECK(vectors(64, ResizeMode::kLinear) == 100 * 6);
  CHECK(vectors(64, ResizeMode::kCubic) == 4 * 100 * 6);
}

TEST_CASE("pools of bytes take the time of the rows of their windows, in vectors, and of each window that is found") {
  constexpr std::size_t kVectors = 7;
  constexpr std::uint16_t kMax = static_cast<std::uint16_t>(PoolingKind::kMax), kMean = static_cast<std::uint16_t>(PoolingKind::kAverage);
  const auto vectors = [](std::uint16_t variant, std::uint32_t columns, std::uint32_t channels, std::uint32_t taps, std::uint32_t stride) {
    StepWork work(kernels::CostFeatures{1000, 100, 100, 0});
    work.variant = variant;
    work.shape = {.rows = 10, .columns = columns, .channels = channels, .taps = taps, .stride = stride};
    return detail::terms_of(kernels::kernel_id::kIntegerPool, work, detail::tile_of("avx2"))[kVectors];
  };
  CHECK(vectors(kMax, 10, 1, 9, 2) == 100 * 4.5);
  CHECK(vectors(kMax, 10, 32, 9, 2) == vectors(kMax, 10, 1, 9, 2));
  CHECK(vectors(kMax, 10, 33, 9, 2) == 100 * 7.5);
  CHECK(vectors(kMax, 10, 33, 4, 2) == 100 * 5.5);
  CHECK(vectors(kMean, 10, 33, 4, 2) == 100 * (5 * 2 / 4.0 + 1.5));
  // Two windows of each row reach over its ends; the others are one run of 8 * 4 bytes, or of numbers four times as wide.
  CHECK(vectors(kMax, 10, 4, 9, 1) == 10 * (3 * 3 + 3 * 1.5));
  CHECK(vectors(kMean, 10, 4, 9, 1) == 10 * (6 * 3 / 4.0 + 3 * 1.5));
  CHECK(vectors(kMax, 1, 4, 9, 1) == 10 * 4.5);
  CHECK(vectors(kWholeMean, 1, 64, 196, 1) == 10 * (2 * 14 * 4 + 1.5));
}

TEST_CASE("sums of two maps are one run; where one of the two is broadcast, rows count, and of bytes each pixel") {
  constexpr std::size_t kRows = 8;
  const auto rows = [](KernelId kernel, std::uint16_t variant) {
    StepWork work(kernels::CostFeatures{1000, 100, 100, 0});
    work.shape.rows = 4;
    work.shape.columns = 6;
    work.variant = variant;
    return detail::terms_of(kernel, work, detail::tile_of("avx2"))[kRows];
  };
  using namespace kernels::kernel_id;
  for (const KernelId kernel : {kIntegerBinary, kBinary}) {
    CHECK(rows(kernel, 0) == 0);
    CHECK(rows(kernel, 4) == 0);
  }
  CHECK(rows(kIntegerBinary, 5) == 24);
  CHECK(rows(kBinary, 5) == 4);
  CHECK(rows(kUnary, 0) == 0);
  CHECK(rows(kPool, 0) == 4);
}

TEST_CASE("a softmax begins with each pixel, bytes that pass with nothing") {
  constexpr std::size_t kRows = 8;
  const auto rows = [](KernelId kernel) {
    StepWork work(kernels::CostFeatures{1000, 1 << 20, 1 << 20, 0});
    work.shape.rows = work.shape.columns = 65;
    work.shape.channels = 21;
    return detail::terms_of(kernel, work, detail::tile_of("avx2"))[kRows];
  };
  CHECK(rows(kernels::kernel_id::kSoftmax) == 65 * 65);
  CHECK(rows(kernels::kernel_id::kPool) == 65);
  CHECK(rows(kernels::kernel_id::kIntegerTable) == 0);
}

}  // namespace
}  // namespace sluice::profiler

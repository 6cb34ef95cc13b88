// Which transposed convolutions sum by taps.
#include "sluice/core/transposed_sums.h"

#include <catch2/catch.hpp>

using namespace sluice;

namespace {

Window window(std::int64_t kernel, std::int64_t stride) {
  return {.in_h = 12, .in_w = 12, .kernel_h = kernel, .kernel_w = kernel, .stride_h = stride, .stride_w = stride};
}

}  // namespace

TEST_CASE("thin transposed convolutions sum by taps") {
  CHECK(sums_by_taps(window(3, 1), 1, 64, 1));
  CHECK(sums_by_taps(window(4, 2), 1, 256, 17));
  CHECK(sums_by_taps(window(3, 2), 1, 128, 8));
  CHECK_FALSE(sums_by_taps(window(3, 1), 2, 64, 2));    // groups
  CHECK_FALSE(sums_by_taps(window(3, 1), 1, 31, 1));    // few inputs
  CHECK_FALSE(sums_by_taps(window(3, 1), 1, 63, 8));    // not enough for eight outputs
  CHECK_FALSE(sums_by_taps(window(3, 2), 1, 512, 16));  // whole panels
  CHECK(sums_by_taps(window(7, 2), 1, 256, 21));
  CHECK_FALSE(sums_by_taps(window(64, 32), 1, 64, 1));  // too many taps
  for (std::int64_t stride = 1; stride <= 5; ++stride)
    CHECK(sums_by_taps(window(3, stride), 1, 64, 1) == (stride < 3));  // else no two taps meet
}

TEST_CASE("few pixels do not sum by taps, and huge windows overflow nothing") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 31;
  const auto of_pixels = [](std::int64_t rows, std::int64_t columns) {
    Window w = window(3, 2);
    w.in_h = rows;
    w.in_w = columns;
    return sums_by_taps(w, 1, 64, 2);
  };
  CHECK(of_pixels(1, 144));
  CHECK(of_pixels(48, 3));
  CHECK_FALSE(of_pixels(1, 143));
  CHECK_FALSE(of_pixels(11, 13));
  Window w = window(3, 2);
  w.in_h = w.in_w = w.out_h = w.out_w = kHuge;
  CHECK(sums_by_taps(w, 1, 64, 2));
  CHECK_FALSE(sums_by_taps({.in_h = 12, .in_w = 12, .kernel_h = kHuge, .kernel_w = kHuge}, 1, kHuge, 1));
  CHECK_FALSE(sums_by_taps({.in_h = 12, .in_w = 12, .kernel_h = 3, .kernel_w = 3, .dilation_h = kHuge, .dilation_w = kHuge}, 1, 64, 1));
  CHECK_FALSE(sums_by_taps({.in_h = 12, .in_w = 12, .kernel_h = 3, .kernel_w = 3, .pad_top = kHuge}, 1, 64, 1));
}

// The portable kernels' arithmetic against the engine's generic one, value by value. Whole kernels run in emit_test.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "sluice/portable/functions.h"
#include "sluice/portable/rows_f32.h"
#include "sluice/portable/values_u8.h"
#include "src/kernels/integer/rounding.h"
#include "src/kernels/reference/functions.h"

using namespace sluice;

namespace {

/// Floats of all exponents, and the edges.
std::vector<float> samples(std::size_t count) {
  std::mt19937 random(11);
  std::vector<float> values = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 3.5f, 1e-40f, -1e-40f, 1e38f, -1e38f, INFINITY, -INFINITY, 87.5f, -103.5f};
  while (values.size() < count) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isnan(value)) values.push_back(values.size() % 2 == 0 ? value : static_cast<float>(random() % 20001) * 1e-3f - 10.0f);
  }
  return values;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace

TEST_CASE("a fused multiply-add is rounded once, with and without the CPU's own") {
  const std::vector<float> values = samples(600);
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = 0; j < 60; ++j) {
      const float a = values[i], b = values[(i * 7 + j) % values.size()], c = values[(i * 13 + j * 5) % values.size()];
      INFO(a << " * " << b << " + " << c);
      REQUIRE(same(sluice_fma(a, b, c), std::fma(a, b, c)));
      // What nearly cancels is where a second rounding would show.
      REQUIRE(same(sluice_fma(a, b, -a * b), std::fma(a, b, -a * b)));
    }
}

TEST_CASE("functions and square roots are the engine's") {
  for (int f = 0; f < kFunctionCount; ++f) {
    const auto function = static_cast<Function>(f);
    const sluice_function portable{static_cast<std::uint8_t>(f), 0.3f, 0.7f};
    for (const float x : samples(4000)) {
      INFO(name_of(function) << " of " << x);
      REQUIRE(same(sluice_apply(&portable, x), kernels::reference::apply({function, 0.3f, 0.7f}, x)));
    }
  }
  for (const float x : samples(20'000)) {
    INFO(x);
    REQUIRE(same(sluice_sqrt(x), std::sqrt(x)));
  }
}

TEST_CASE("bytes are rounded by the engine's rule") {
  for (const float x : samples(20'000)) {
    const kernels::integer::IntegerRange range{.zero = 120, .low = 17, .high = 230};
    const sluice_range portable{120, 17, 230};
    REQUIRE(sluice_to_u8(x, &portable) == kernels::integer::to_u8(x, range));
  }
}

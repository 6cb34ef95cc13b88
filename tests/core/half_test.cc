#include "sluice/core/half.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace sluice;

namespace {
constexpr float kInfinity = std::numeric_limits<float>::infinity();
}

TEST_CASE("every 16-bit float is an f32 and comes back") {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (std::isnan(float_of_f16(half)))
      CHECK(std::isnan(float_of_f16(f16_of_float(float_of_f16(half)))));
    else if (f16_of_float(float_of_f16(half)) != half)
      FAIL("f16 " << bits);
    if (std::isnan(float_of_bf16(half)))
      CHECK(std::isnan(float_of_bf16(bf16_of_float(float_of_bf16(half)))));
    else if (bf16_of_float(float_of_bf16(half)) != half)
      FAIL("bf16 " << bits);
  }
}

TEST_CASE("floats round to the nearest 16-bit one, ties to even") {
  // Between each two neighbours: just below, at and just above the middle.
  for (unsigned bits = 0; bits < 0x7bffu; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits), high = static_cast<std::uint16_t>(bits + 1);
    const float middle = (float_of_f16(low) + float_of_f16(high)) / 2;
    const bool below = f16_of_float(std::nextafter(middle, -kInfinity)) == low,
               above = f16_of_float(std::nextafter(middle, kInfinity)) == high;
    if (!below || !above || f16_of_float(middle) != (bits % 2 == 0 ? low : high)) FAIL("after " << bits);
  }
  CHECK(bf16_of_float(1.0f + 0x1p-8f) == 0x3f80);
  CHECK(bf16_of_float(1.0f + 0x1.8p-7f) == 0x3f82);
  CHECK(bf16_of_float(1.0f + 0x1.1p-8f) == 0x3f81);
}

TEST_CASE("what is too large for an f16 is infinite") {
  CHECK(f16_of_float(65504.0f) == 0x7bff);
  CHECK(f16_of_float(std::nextafter(65520.0f, 0.0f)) == 0x7bff);
  CHECK(f16_of_float(65520.0f) == 0x7c00);
  CHECK(f16_of_float(-kInfinity) == 0xfc00);
  CHECK(f16_of_float(-0.0f) == 0x8000);
  CHECK(bf16_of_float(std::numeric_limits<float>::max()) == 0x7f80);
}

TEST_CASE("halves are widened exactly") {
  CHECK(float_of_f16(0x3c00) == 1.0f);
  CHECK(float_of_f16(0xc000) == -2.0f);
  CHECK(float_of_f16(0x7bff) == 65504.0f);
  CHECK(float_of_f16(0x0001) == 5.9604644775390625e-8f);
  CHECK(float_of_f16(0x03ff) == 6.097555160522461e-05f);
  CHECK(float_of_f16(0x7c00) == std::numeric_limits<float>::infinity());
  CHECK(std::signbit(float_of_f16(0x8000)));
  CHECK(float_of_f16(0x7e00) != float_of_f16(0x7e00));
}

TEST_CASE("ties, the largest and the smallest halves") {
  CHECK(f16_of_float(1.0f) == 0x3c00);
  CHECK(f16_of_float(1.0f + 1.0f / 2048) == 0x3c00);  // tie, even below
  CHECK(f16_of_float(1.0f + 3.0f / 2048) == 0x3c02);  // tie, even above
  CHECK(f16_of_float(65519.0f) == 0x7bff);
  CHECK(f16_of_float(65520.0f) == 0x7c00);
  CHECK(f16_of_float(std::ldexp(1.0f, -25)) == 0);  // tie with the smallest subnormal
  CHECK(f16_of_float(std::ldexp(1.5f, -25)) == 1);
  CHECK(std::isnan(float_of_f16(f16_of_float(std::nanf("")))));
}

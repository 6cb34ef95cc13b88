// The functions of plain/curves.h beside the standard library's in double: near them, the same bits on every instruction set, in runs of
// any length, in place.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "src/kernels/plain/curves.h"

using namespace sluice;
using namespace sluice::kernels::plain;

namespace {

constexpr Isa kIsas[] = {Isa::kScalar, Isa::kNeon, Isa::kAvx2, Isa::kAvx512};

struct Form {
  CurveCall call;
  double (*reference)(double x, double a, double b);
  float range;       // magnitudes that are looked at
  double tolerance;  // relative, or absolute below 1
};

const Form kForms[] = {
    {{Curve::kSin}, [](double x, double, double) { return std::sin(x); }, 8100.0f, 0x1p-23},
    {{Curve::kCos}, [](double x, double, double) { return std::cos(x); }, 8100.0f, 0x1p-23},
    {{Curve::kTan}, [](double x, double, double) { return std::tan(x); }, 1.5f, 0x1p-21},
    {{Curve::kAsin}, [](double x, double, double) { return std::asin(x); }, 1.1f, 0x1p-22},
    {{Curve::kAcos}, [](double x, double, double) { return std::acos(x); }, 1.1f, 0x1p-22},
    {{Curve::kAtan}, [](double x, double, double) { return std::atan(x); }, 30.0f, 0x1p-22},
    {{Curve::kSinh}, [](double x, double, double) { return std::sinh(x); }, 95.0f, 0x1p-20},
    {{Curve::kCosh}, [](double x, double, double) { return std::cosh(x); }, 95.0f, 0x1p-20},
    {{Curve::kAsinh}, [](double x, double, double) { return std::asinh(x); }, 9000.0f, 0x1p-22},
    {{Curve::kAcosh}, [](double x, double, double) { return std::acosh(x); }, 9000.0f, 0x1p-22},
    {{Curve::kAtanh}, [](double x, double, double) { return std::atanh(x); }, 1.1f, 0x1p-21},
    {{Curve::kSelu, 1.6732632f, 1.050701f},
     [](double x, double a, double b) { return x > 0 ? b * x : b * (a * std::expm1(x)); },
     12.0f,
     0x1p-22},
    {{Curve::kCelu, 0.7f}, [](double x, double a, double) { return x < 0 ? a * std::expm1(x / a) : x; }, 12.0f, 0x1p-22},
    {{Curve::kMish}, [](double x, double, double) { return x * std::tanh(std::log1p(std::exp(x))); }, 40.0f, 0x1p-21},
    {{Curve::kSwish, 1.3f}, [](double x, double a, double) { return x / (1 + std::exp(-a * x)); }, 40.0f, 0x1p-21},
    {{Curve::kSoftsign}, [](double x, double, double) { return x / (1 + std::fabs(x)); }, 40.0f, 0x1p-22},
};

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (a != a && b != b); }

/// Calls body(run) for each instruction set at hand.
template <class Body>
void for_isas(const Body& body) {
  for (const Isa isa : kIsas) {
    const bool same_family = isa == Isa::kScalar || (isa == Isa::kNeon) == (best_isa() == Isa::kNeon);
    if (!same_family || isa > best_isa()) continue;
    INFO(name_of(isa));
    body(curve_run(isa));
  }
}

std::vector<float> places_of(const Form& form) {
  std::vector<float> x = {0.0f,     -0.0f,     0.5f,   -0.5f, 1.0f,  -1.0f,  0.785398f, 1.5707964f, 4095.9f,   4096.0f, 8191.9f,
                          -8192.5f, 88.72284f, -89.0f, 1e9f,  3e38f, 1e-30f, -1e-40f,   INFINITY,   -INFINITY, NAN};
  std::mt19937 random(3);
  for (int i = 0; i < 6000; ++i) {
    const float unit = static_cast<float>(random() % 2000001) * 1e-6f - 1.0f;
    x.push_back(unit * (i % 3 == 0 ? form.range : i % 3 == 1 ? 1.0f : 1e-3f));
  }
  return x;
}

/// What an f32 of that value is, infinite ones too.
bool is_near(float y, double want, double tolerance) {
  const auto rounded = static_cast<float>(want);
  if (want != want) return y != y;
  if (std::isinf(rounded) || std::isinf(y)) return y == rounded || std::fabs(want) > 3.3e38;
  return std::fabs(static_cast<double>(y) - want) <= tolerance * std::max(1.0, std::fabs(want));
}

}  // namespace

TEST_CASE("functions of one value: near those of the standard library, the same on every instruction set, wherever in a run") {
  for (const Form& form : kForms) {
    const std::vector<float> x = places_of(form);
    std::vector<float> first;
    for_isas([&](CurveRun run) {
      INFO("function " << static_cast<int>(form.call.curve));
      std::vector<float> y(x.size());
      run(form.call, x.data(), y.data(), static_cast<std::int64_t>(x.size()));
      if (first.empty()) first = y;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double want = form.reference(static_cast<double>(x[i]), static_cast<double>(form.call.a), static_cast<double>(form.call.b));
        if (!is_near(y[i], want, form.tolerance) || !same_bits(y[i], first[i])) {
          INFO("of " << x[i] << ": " << y[i] << ", the first instruction set " << first[i] << ", the library " << want);
          FAIL_CHECK();
        }
      }
      for (const std::int64_t size : {1, 2, 3, 5, 7, 8, 15, 16, 17, 33}) {
        std::vector<float> part(x.begin() + 6, x.begin() + 7 + size);
        run(form.call, part.data(), part.data(), size);
        CHECK(std::equal(part.begin(), part.end() - 1, first.begin() + 6, same_bits));
        CHECK(same_bits(part.back(), x[static_cast<std::size_t>(6 + size)]));
      }
    });
  }
}

TEST_CASE("functions of one value keep small results: the relative error of odd functions near zero") {
  for (const Form& form : kForms) {
    if (form.call.curve == Curve::kCos || form.call.curve == Curve::kCosh || form.call.curve == Curve::kAcos ||
        form.call.curve == Curve::kAcosh)
      continue;
    for (const float x : {1e-3f, -2e-5f, 3e-9f, 1e-20f, -0.0f}) {
      float y = 0;
      curve_run(best_isa())(form.call, &x, &y, 1);
      const double want = form.reference(static_cast<double>(x), static_cast<double>(form.call.a), static_cast<double>(form.call.b));
      INFO("function " << static_cast<int>(form.call.curve) << " of " << x << ": " << y << ", the library " << want);
      CHECK(std::fabs(static_cast<double>(y) - want) <= 0x1p-21 * std::fabs(want));
      if (x == 0.0f && form.call.curve != Curve::kSelu) CHECK(std::signbit(y) == std::signbit(want));
    }
  }
}

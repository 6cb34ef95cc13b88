#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "differential/kernel_harness.h"
#include "sluice/kernels/reference.h"
#include "src/kernels/elementwise/runs.h"

using namespace sluice;
using model::Activation;
using model::Function;

namespace {

/// Numbers of every magnitude, the values round which the functions change their formula, and the special ones.
std::vector<float> samples() {
  std::vector<float> values = {0.0f, -0.0f, 1.0f, -1.0f, 0.625f, -0.625f, 4.0f, -4.0f, 88.0f, 89.0f, -87.0f, -104.0f, -150.0f};
  using Limits = std::numeric_limits<float>;
  for (float special : {Limits::infinity(), -Limits::infinity(), Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min()})
    values.push_back(special);
  std::mt19937 random(7);
  for (int i = 0; i < 4000; ++i) {
    const float any = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isnan(any)) values.push_back(any);
    values.push_back(std::uniform_real_distribution<float>(-12.0f, 12.0f)(random));
    values.push_back(std::uniform_real_distribution<float>(-1.0f, 1.0f)(random));
  }
  return values;
}

/// |got - exact| in units of the last place of the exact value; of the smallest normal number below it.
double error_ulp(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0.0 : 1e9;
  const auto rounded = static_cast<float>(exact);
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0.0 : 1e9;
  const double scale = std::max<double>(std::fabs(exact), std::numeric_limits<float>::min());
  const double ulp = std::ldexp(1.0, std::ilogb(scale) - 23);
  return std::fabs(static_cast<double>(got) - exact) / ulp;
}

double worst_error(const Activation& f, const std::function<double(double)>& exact, float low, float high) {
  double worst = 0.0;
  for (float x : samples()) {
    if (x < low || x > high) continue;
    const double error = error_ulp(kernels::reference_apply(f, x), exact(x));
    if (error > worst) worst = error;
  }
  return worst;
}

}  // namespace

TEST_CASE("activations are within a few units in the last place") {
  constexpr float kAll = std::numeric_limits<float>::infinity();
  CHECK(worst_error(
            {Function::kExp}, [](double x) { return std::exp(x); }, -kAll, kAll) < 2.0);
  CHECK(worst_error(
            {Function::kLog}, [](double x) { return std::log(x); }, 0.0f, kAll) < 2.0);
  CHECK(worst_error(
            {Function::kTanh}, [](double x) { return std::tanh(x); }, -kAll, kAll) < 3.0);
  CHECK(worst_error(
            {Function::kErf}, [](double x) { return std::erf(x); }, -kAll, kAll) < 3.0);
  // exp(-x) is infinite below -88.7, where the sigmoid is subnormal.
  CHECK(worst_error(
            {Function::kSigmoid}, [](double x) { return 1 / (1 + std::exp(-x)); }, -88.0f, kAll) < 3.0);
  CHECK(worst_error(
            {Function::kSilu}, [](double x) { return x / (1 + std::exp(-x)); }, -88.0f, 1e37f) < 3.0);
  CHECK(worst_error(
            {Function::kElu, 1.0f}, [](double x) { return x < 0 ? std::expm1(x) : x; }, -kAll, kAll) < 3.0);
  CHECK(worst_error(
            {Function::kSoftplus}, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }, -80.0f, kAll) < 3.0);
}

TEST_CASE("gelu is as exact as its argument is large") {
  for (float x : samples()) {
    if (!(std::fabs(x) < 1e30f)) continue;
    const double exact = 0.5 * static_cast<double>(x) * std::erfc(-static_cast<double>(x) / std::sqrt(2.0));
    const double error = std::fabs(kernels::reference_apply({Function::kGelu}, x) - exact);
    REQUIRE(error <= 3.0 * std::numeric_limits<float>::epsilon() * std::fabs(x) + std::numeric_limits<float>::denorm_min());
  }
}

TEST_CASE("gelu by a tangent is the exact gelu within what its definition allows") {
  for (float x : samples()) {
    if (!(std::fabs(x) < 1e12f)) continue;
    const auto v = static_cast<double>(x);
    const double exact = v / (1 + std::exp(-2 * std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
    const double error = std::fabs(kernels::reference_apply({Function::kGeluTanh}, x) - exact);
    REQUIRE(error <= 4.0 * std::numeric_limits<float>::epsilon() * std::fabs(x) + std::numeric_limits<float>::denorm_min());
  }
}

TEST_CASE("simple activations follow their definition") {
  const auto apply = [](Activation f, float x) { return kernels::reference_apply(f, x); };
  CHECK(apply({Function::kNone}, 3.0f) == 3.0f);
  CHECK(apply({Function::kRelu}, -3.0f) == 0.0f);
  CHECK(apply({Function::kClip, 0.0f, 6.0f}, 7.0f) == 6.0f);
  CHECK(apply({Function::kLeakyRelu, 0.25f}, -4.0f) == -1.0f);
  CHECK(apply({Function::kHardSigmoid, 0.25f, 0.5f}, 1.0f) == 0.75f);
  CHECK(apply({Function::kHardSigmoid, 0.25f, 0.5f}, -9.0f) == 0.0f);
  CHECK(apply({Function::kHardSwish}, 3.0f) == 3.0f);
  CHECK(apply({Function::kHardSwish}, -3.0f) == 0.0f);
  CHECK(apply({Function::kSqrt}, 9.0f) == 3.0f);
  CHECK(apply({Function::kNeg}, 9.0f) == -9.0f);
  CHECK(apply({Function::kAbs}, -9.0f) == 9.0f);
  CHECK(apply({Function::kReciprocal}, 4.0f) == 0.25f);
  CHECK(apply({Function::kFloor}, -1.5f) == -2.0f);
  CHECK(apply({Function::kCeil}, -1.5f) == -1.0f);
}

TEST_CASE("every instruction set computes the bits of the scalar activation") {
  std::vector<float> in = samples();
  in.push_back(std::numeric_limits<float>::quiet_NaN());
  std::vector<float> out(in.size());
  for (int f = 0; f < model::kFunctionCount; ++f) {
    const Activation activation{static_cast<Function>(f), 0.3f, 0.6f};
    for (Isa isa : {Isa::kScalar, Isa::kNeon, Isa::kAvx2, Isa::kAvx512}) {
      if (!kernels::test::available(isa)) continue;
      kernels::elementwise::run_table(isa).unary(activation, in.data(), out.data(), static_cast<std::int64_t>(in.size()));
      std::size_t wrong = 0;
      float first = 0.0f;
      for (std::size_t i = 0; i < in.size(); ++i) {
        const float want = kernels::reference_apply(activation, in[i]);
        const bool same = std::bit_cast<std::uint32_t>(want) == std::bit_cast<std::uint32_t>(out[i]);
        if (!same && !(std::isnan(want) && std::isnan(out[i])) && wrong++ == 0) first = in[i];
      }
      INFO(name_of(activation.function) << " on " << name_of(isa) << ", first at " << first);
      CHECK(wrong == 0);
    }
  }
}

// Activations, one value at a time.
#pragma once

#include <cmath>

#include "sluice/model/attributes.h"

namespace sluice::kernels::reference {

inline float exp(float x) noexcept { return std::exp(x); }
inline float log(float x) noexcept { return std::log(x); }

/// y = f(x).
inline float apply(const model::Activation& f, float x) noexcept {
  using model::Function;
  switch (f.function) {
    case Function::kNone:
      return x;
    case Function::kRelu:
      return x < 0.0f ? 0.0f : x;
    case Function::kClip: {
      const float low = x < f.a ? f.a : x;
      return low > f.b ? f.b : low;
    }
    case Function::kLeakyRelu:
      return x < 0.0f ? f.a * x : x;
    case Function::kSigmoid:
      return 1.0f / (1.0f + std::exp(-x));
    case Function::kHardSigmoid:
      return std::fmax(0.0f, std::fmin(1.0f, std::fma(f.a, x, f.b)));
    case Function::kHardSwish:
      return x * std::fmax(0.0f, std::fmin(1.0f, std::fma(x, 1.0f / 6.0f, 0.5f)));
    case Function::kSilu:
      return x / (1.0f + std::exp(-x));
    case Function::kTanh:
      return std::tanh(x);
    case Function::kExp:
      return std::exp(x);
    case Function::kSqrt:
      return std::sqrt(x);
    case Function::kErf:
      return std::erf(x);
    case Function::kGelu:
      return 0.5f * x * (1.0f + std::erf(x * 0.70710678f));
    case Function::kNeg:
      return -x;
    case Function::kAbs:
      return std::fabs(x);
    case Function::kLog:
      return std::log(x);
    case Function::kReciprocal:
      return 1.0f / x;
    case Function::kElu:
      return x < 0.0f ? f.a * std::expm1(x) : x;
    case Function::kSoftplus:
      return std::log1p(std::exp(x));
    case Function::kFloor:
      return std::floor(x);
    case Function::kCeil:
      return std::ceil(x);
  }
  return x;
}

}  // namespace sluice::kernels::reference

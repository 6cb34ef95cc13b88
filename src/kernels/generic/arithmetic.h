// Two values in, one out: every function that kBinary and the long tail share, for any element type. Integers wrap round, and a division by
// zero gives zero: a model must not be able to stop the process.
#pragma once

#include <cmath>
#include <type_traits>

#include "sluice/core/activation.h"
#include "src/kernels/generic/power.h"

namespace sluice::kernels::generic {

/// The unsigned type in which T's arithmetic wraps.
template <class T>
using Wrapping = std::make_unsigned_t<std::conditional_t<(sizeof(T) < sizeof(int)), int, T>>;

struct Add {
  template <class T>
  T operator()(T a, T b) const noexcept {
    if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct Sub {
  template <class T>
  T operator()(T a, T b) const noexcept {
    if constexpr (std::is_floating_point_v<T>)
      return a - b;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};

struct Mul {
  template <class T>
  T operator()(T a, T b) const noexcept {
    if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

struct Div {
  template <class T>
  T operator()(T a, T b) const noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      return a / b;
    } else {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return Sub()(T{0}, a);
      return static_cast<T>(a / b);
    }
  }
};

struct Prelu {
  template <class T>
  T operator()(T a, T b) const noexcept {
    return a < T{0} ? Mul()(a, b) : a;
  }
};

struct Max {
  template <class T>
  T operator()(T a, T b) const noexcept {
    return a < b ? b : a;
  }
};

struct Min {
  template <class T>
  T operator()(T a, T b) const noexcept {
    return b < a ? b : a;
  }
};

struct Pow {
  template <class T>
  T operator()(T a, T b) const noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      return power(a, b);
    } else {
      if constexpr (std::is_signed_v<T>)
        if (b < 0) return static_cast<T>(a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0);
      Wrapping<T> power = 1, base = static_cast<Wrapping<T>>(a);
      for (auto exponent = static_cast<Wrapping<T>>(b); exponent != 0; exponent >>= 1, base *= base)
        if (exponent & 1) power *= base;
      return static_cast<T>(power);
    }
  }
};

template <class T>
T apply(BinaryFunction function, T a, T b) noexcept {
  switch (function) {
    case BinaryFunction::kAdd:
      return Add()(a, b);
    case BinaryFunction::kSub:
      return Sub()(a, b);
    case BinaryFunction::kMul:
      return Mul()(a, b);
    case BinaryFunction::kDiv:
      return Div()(a, b);
    case BinaryFunction::kPrelu:
      return Prelu()(a, b);
    case BinaryFunction::kMax:
      return Max()(a, b);
    case BinaryFunction::kMin:
      return Min()(a, b);
    case BinaryFunction::kPow:
      return Pow()(a, b);
  }
  return a;
}

}  // namespace sluice::kernels::generic

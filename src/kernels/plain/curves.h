// Functions of one value that no fused activation names (core/activation.h), in vectors, one copy an instruction set.
//
// Way to here: unary.cc hands a tensor's values over. The standard library is their readable form; the test holds each to a few units in
// the last place of it.
//
// Invariants: the same bits on every instruction set, for a value is computed by the same correctly rounded operations wherever in a run it
// lies. `out` may be `x`. Nothing outside the values named is read or written.
#pragma once

#include <cstdint>

#include "sluice/core/cpu.h"

namespace sluice::kernels::plain {

enum class Curve : std::uint8_t {
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  kSelu,      // x > 0 ? b x : b a (exp(x) - 1)
  kCelu,      // x < 0 ? a (exp(x / a) - 1) : x, with a > 0
  kMish,      // x tanh(log(1 + exp(x)))
  kSwish,     // x / (1 + exp(-a x))
  kSoftsign,  // x / (1 + |x|)
};
inline constexpr int kCurveCount = 16;

struct CurveCall {
  Curve curve = Curve::kSin;
  float a = 0.0f;
  float b = 0.0f;
};

/// Angles up to here are brought to the first octant by three products; those beyond are left to the standard library.
inline constexpr float kMostAngle = 8192.0f;

/// out[i] = f(x[i]) for i < n.
using CurveRun = void (*)(const CurveCall& call, const float* x, float* out, std::int64_t n) noexcept;

/// The loops for an instruction set, or for the nearest lower one this build has. `isa` must be one that the CPU has.
CurveRun curve_run(Isa isa) noexcept;

}  // namespace sluice::kernels::plain

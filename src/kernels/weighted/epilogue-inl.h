// What happens to accumulators before they are stored: + bias, + residual, activation. Included once for each instruction set.
//
// Invariant: every instruction set gives the same bits, so each function is a fixed sequence of correctly rounded operations; a sum of a
// product is fused on purpose, never by the compiler's choice (these sources build with -ffp-contract=off).
#if defined(SLUICE_WEIGHTED_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_EPILOGUE_INL_H_
#undef SLUICE_WEIGHTED_EPILOGUE_INL_H_
#else
#define SLUICE_WEIGHTED_EPILOGUE_INL_H_
#endif

#include <cmath>

#include "hwy/highway.h"
#include "src/kernels/weighted/tile.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
inline constexpr int kVectorLanes = static_cast<int>(HWY_LANES(float) < 16 ? HWY_LANES(float) : 16);
inline constexpr int kPanelVectors = 16 / kVectorLanes;

// Highway's scalar MulAdd rounds twice.
HWY_INLINE V fused(V a, V b, V c) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(D(), std::fma(hn::GetLane(a), hn::GetLane(b), hn::GetLane(c)));
#else
  return hn::MulAdd(a, b, c);
#endif
}

// x < low ? low : x, which keeps NaN and the sign of zero. One instruction on x86, whose maximum returns its second operand on a tie.
HWY_INLINE V at_least(V x, V low) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::Max(low, x);
#else
  return hn::IfThenElse(hn::Lt(x, low), low, x);
#endif
}

HWY_INLINE V at_most(V x, V high) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::Min(high, x);
#else
  return hn::IfThenElse(hn::Lt(high, x), high, x);
#endif
}

HWY_INLINE V load_lanes(const float* from, int lanes) {
  const D d;
  if (lanes >= kVectorLanes) return hn::LoadU(d, from);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(lanes < 0 ? 0 : lanes)), d, from);
#else
  HWY_ALIGN float buffer[kVectorLanes] = {};
  for (int lane = 0; lane < lanes; ++lane) buffer[lane] = from[lane];
  return hn::Load(d, buffer);
#endif
}

HWY_INLINE void store_lanes(V v, float* to, int lanes) {
  const D d;
  if (lanes >= kVectorLanes) {
    hn::StoreU(v, d, to);
    return;
  }
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(lanes < 0 ? 0 : lanes)), d, to);
#else
  HWY_ALIGN float buffer[kVectorLanes];
  hn::Store(v, d, buffer);
  for (int lane = 0; lane < lanes; ++lane) to[lane] = buffer[lane];
#endif
}

HWY_NOINLINE V activate(V x, const model::Activation& activation) {
  const D d;
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0f);
  switch (activation.function) {
    case model::Function::kLeakyRelu:
      return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(hn::Set(d, activation.a), x), x);
    case model::Function::kHardSigmoid:
      return at_least(at_most(fused(hn::Set(d, activation.a), x, hn::Set(d, activation.b)), one), zero);
    case model::Function::kHardSwish:
      return hn::Mul(x, at_least(at_most(fused(x, hn::Set(d, 1.0f / 6.0f), hn::Set(d, 0.5f)), one), zero));
    default:
      return x;
  }
}

/// Applies the epilogue to `kRows` x `kPanels` accumulators and stores them. `p` is the first of the panels within the job.
template <int kRows, int kPanels>
HWY_INLINE void finish(V (&acc)[kRows][kPanels * kPanelVectors], const TileRows& rows, const TileJob& job, int p) {
  constexpr int kVectors = kPanels * kPanelVectors;
  const D d;
  const std::int64_t first = std::int64_t{p} * 16;
  const bool partial = job.last_lanes < 16 && p + kPanels == job.panel_count;
  const int lanes = partial ? (kPanels - 1) * 16 + job.last_lanes : kPanels * 16;
  if (job.bias != nullptr) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      const V bias = load_lanes(job.bias + first + v * kVectorLanes, lanes - v * kVectorLanes);
      HWY_UNROLL(16)
      for (int m = 0; m < kRows; ++m) acc[m][v] = hn::Add(acc[m][v], bias);
    }
  }
  if (job.has_residual) {
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) {
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v)
        acc[m][v] = hn::Add(acc[m][v], load_lanes(rows.residual[m] + first + v * kVectorLanes, lanes - v * kVectorLanes));
    }
  }
  const model::Function function = job.activation.function;
  if (function == model::Function::kRelu || function == model::Function::kClip) {
    const bool relu = function == model::Function::kRelu;
    const V low = hn::Set(d, relu ? 0.0f : job.activation.a);
    const V high = hn::Set(d, relu ? HUGE_VALF : job.activation.b);
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) {
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) acc[m][v] = at_most(at_least(acc[m][v], low), high);
    }
  } else if (function != model::Function::kNone) {
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) {
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) acc[m][v] = activate(acc[m][v], job.activation);
    }
  }
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    float* out = rows.out[m] + first;
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) store_lanes(acc[m][v], out + v * kVectorLanes, lanes - v * kVectorLanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_EPILOGUE_INL_H_

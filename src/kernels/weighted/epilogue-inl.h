// What happens to accumulators before they are stored: + bias, + residual, activation. Included once for each instruction set.
//
// The functions are those of the elementwise kernels, so a fused activation gives the bits of a node of its own.
#if defined(SLUICE_WEIGHTED_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_EPILOGUE_INL_H_
#undef SLUICE_WEIGHTED_EPILOGUE_INL_H_
#else
#define SLUICE_WEIGHTED_EPILOGUE_INL_H_
#endif

#include <cmath>

#include "hwy/highway.h"
#include "src/kernels/elementwise/functions-inl.h"
#include "src/kernels/elementwise/lanes-inl.h"
#include "src/kernels/weighted/tile.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
inline constexpr int kVectorLanes = static_cast<int>(HWY_LANES(float) < 16 ? HWY_LANES(float) : 16);
inline constexpr int kPanelVectors = 16 / kVectorLanes;

namespace functions = sluice::kernels::HWY_NAMESPACE::functions;
namespace lanes = sluice::kernels::HWY_NAMESPACE::lanes;

HWY_INLINE V load_lanes(const float* from, int count) {
  const D d;
  return count >= kVectorLanes ? hn::LoadU(d, from) : lanes::load_first(d, from, static_cast<std::size_t>(count < 0 ? 0 : count));
}

HWY_INLINE void store_lanes(V v, float* to, int count) {
  const D d;
  if (count >= kVectorLanes) {
    hn::StoreU(v, d, to);
  } else {
    lanes::store_first(v, d, to, static_cast<std::size_t>(count < 0 ? 0 : count));
  }
}

template <model::Function kFunction>
HWY_INLINE void activate_as(V* values, int count, const model::Activation& activation) {
  for (int i = 0; i < count; ++i) values[i] = functions::apply(D(), {kFunction, activation.a, activation.b}, values[i]);
}

// Out of line and on memory, so that tiles stay small; the common functions have loops of their own, without the switch.
HWY_NOINLINE void activate(V* values, int count, const model::Activation& activation) {
  using model::Function;
  switch (activation.function) {
    case Function::kSigmoid:
      return activate_as<Function::kSigmoid>(values, count, activation);
    case Function::kSilu:
      return activate_as<Function::kSilu>(values, count, activation);
    case Function::kHardSwish:
      return activate_as<Function::kHardSwish>(values, count, activation);
    case Function::kTanh:
      return activate_as<Function::kTanh>(values, count, activation);
    case Function::kGelu:
      return activate_as<Function::kGelu>(values, count, activation);
    case Function::kGeluTanh:
      return activate_as<Function::kGeluTanh>(values, count, activation);
    default:
      for (int i = 0; i < count; ++i) values[i] = functions::apply(D(), activation, values[i]);
  }
}

/// Applies the epilogue to accumulators and stores them. Accumulator v of a row holds channels first + v * kVectorLanes and on of the
/// block.
template <int kRows, int kVectors>
HWY_INLINE void finish(V (&acc)[kRows][kVectors], const TileRows& rows, const TileJob& job, std::int64_t first) {
  const D d;
  const std::int64_t left = job.panel_count * std::int64_t{16} - 16 + job.last_lanes - first;
  const int live = left < kVectors * kVectorLanes ? static_cast<int>(left) : kVectors * kVectorLanes;
  if (job.bias != nullptr) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      const V bias = load_lanes(job.bias + first + v * kVectorLanes, live - v * kVectorLanes);
      HWY_UNROLL(16)
      for (int m = 0; m < kRows; ++m) acc[m][v] = hn::Add(acc[m][v], bias);
    }
  }
  if (job.has_residual) {
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) {
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v)
        acc[m][v] = hn::Add(acc[m][v], load_lanes(rows.residual[m] + first + v * kVectorLanes, live - v * kVectorLanes));
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
      for (int v = 0; v < kVectors; ++v) acc[m][v] = functions::at_most(functions::at_least(acc[m][v], low), high);
    }
  } else if (function != model::Function::kNone) {
    V values[kRows * kVectors];
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) {
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) values[m * kVectors + v] = acc[m][v];
    }
    activate(values, kRows * kVectors, job.activation);
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) {
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) acc[m][v] = values[m * kVectors + v];
    }
  }
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    float* out = rows.out[m] + first;
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) store_lanes(acc[m][v], out + v * kVectorLanes, live - v * kVectorLanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_EPILOGUE_INL_H_

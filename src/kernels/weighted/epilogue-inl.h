// What happens to accumulators before they are stored: + bias, + residual, activation. Included once for each instruction set.
//
// The functions are those of the elementwise kernels, so a fused activation gives the bits of a node of its own.
#if defined(SLUICE_WEIGHTED_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_EPILOGUE_INL_H_
#undef SLUICE_WEIGHTED_EPILOGUE_INL_H_
#else
#define SLUICE_WEIGHTED_EPILOGUE_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "hwy/highway.h"
#include "src/core/build_list.h"
#include "src/kernels/elementwise/functions-inl.h"
#include "src/kernels/elementwise/lanes-inl.h"
#include "src/kernels/weighted/tile.h"
#include "src/kernels/weighted/tile_shape-inl.h"

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

template <Function kFunction>
HWY_INLINE void activate_as(V* values, int count, const Activation& activation) {
  if constexpr (!has_function(static_cast<int>(kFunction))) return;
  for (int i = 0; i < count; ++i) values[i] = functions::apply(D(), {kFunction, activation.a, activation.b}, values[i]);
}

// Out of line and on memory, so that tiles stay small; the common functions have loops of their own, without the switch.
inline HWY_NOINLINE void activate(V* values, int count, const Activation& activation) {
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

/// The epilogue in memory, for what is rare: lanes that are no outputs (`live` is how many of a row are), functions of many operations.
inline HWY_NOINLINE SLUICE_ONE_COPY void finish_values(V* values, int vectors, int live, const TileRows& rows, const TileJob& job,
                                                       std::int64_t first) {
  for (int m = 0; m < rows.count; ++m) {
    for (int v = 0; v < vectors; ++v) {
      V& value = values[m * vectors + v];
      const std::int64_t lane = first + v * kVectorLanes;
      if (job.bias != nullptr) value = hn::Add(value, load_lanes(job.bias + lane, live - v * kVectorLanes));
      if (job.has_residual) value = hn::Add(value, load_lanes(rows.residual[m] + lane, live - v * kVectorLanes));
    }
  }
  activate(values, rows.count * vectors, job.activation);
  for (int m = 0; m < rows.count; ++m)
    for (int v = 0; v < vectors; ++v) store_lanes(values[m * vectors + v], rows.out[m] + first + v * kVectorLanes, live - v * kVectorLanes);
}

// Masks cost AVX-512 nothing; elsewhere registers are for whole vectors only.
#if HWY_TARGET == HWY_AVX3
inline constexpr bool kMasksAreFree = true;
#else
inline constexpr bool kMasksAreFree = false;
#endif

HWY_INLINE V load_live(const float* from, [[maybe_unused]] int count) {
#if HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(D(), static_cast<std::size_t>(count)), D(), from);
#else
  return hn::LoadU(D(), from);
#endif
}

HWY_INLINE void store_live(V v, float* to, [[maybe_unused]] int count) {
#if HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(D(), static_cast<std::size_t>(count)), D(), to);
#else
  hn::StoreU(v, D(), to);
#endif
}

/// Functions that registers do: each is two bounds, of which those that change no value stand for none.
inline bool is_bounds(Function function) {
  return function == Function::kNone || function == Function::kRelu || function == Function::kClip;
}
HWY_INLINE float low_bound(const Activation& activation) {
  const Function function = activation.function;
  return function == Function::kClip ? activation.a : function == Function::kRelu ? 0.0f : -std::numeric_limits<float>::infinity();
}
HWY_INLINE float high_bound(const Activation& activation) {
  return activation.function == Function::kClip ? activation.b : std::numeric_limits<float>::infinity();
}

/// The epilogue in registers: no function, ReLU or clip; all lanes are outputs, unless masks are free. A value is stored as soon as it is
/// computed: then it needs no port of the register file, for which on some CPUs stores compete with the next tile's FMAs.
template <int kRows, int kVectors>
HWY_INLINE void finish_registers(V (&acc)[kRows][kVectors], const TileRows& rows, const TileJob& job, std::int64_t first,
                                 std::int64_t left) {
  const D d;
  // A bias that changes no value stands for none, like such bounds: a branch less, and their operations fit beside FMAs.
  const V low = hn::Set(d, low_bound(job.activation)), high = hn::Set(d, high_bound(job.activation));
  V bias[kVectors];
  int live[kVectors];
  HWY_UNROLL(8)
  for (int v = 0; v < kVectors; ++v) {
    live[v] = static_cast<int>(std::clamp<std::int64_t>(left - v * kVectorLanes, 0, kVectorLanes));
    bias[v] = job.bias == nullptr ? hn::Set(d, -0.0f) : load_live(job.bias + first + v * kVectorLanes, live[v]);
  }
  const bool residual = job.has_residual;
  const auto finish_one = [&](int m, int v) HWY_ATTR {
    V value = hn::Add(acc[m][v], bias[v]);
    if (residual) value = hn::Add(value, load_live(rows.residual[m] + first + v * kVectorLanes, live[v]));
    store_live(functions::at_most(functions::at_least(value, low), high), rows.out[m] + first + v * kVectorLanes, live[v]);
  };
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) finish_one(m, v);
  }
}

/// Outputs of the block from channel `first` on.
inline std::int64_t outputs_from(const TileJob& job, std::int64_t first) {
  return job.panel_count * std::int64_t{16} - 16 + job.last_lanes - first;
}

/// Applies the epilogue to accumulators and stores them. Accumulator v of a row holds channels first + v * kVectorLanes and on of the
/// block.
template <int kRows, int kVectors>
HWY_INLINE void finish(V (&acc)[kRows][kVectors], const TileRows& rows, const TileJob& job, std::int64_t first) {
  const std::int64_t left = outputs_from(job, first);
  if (is_bounds(job.activation.function) && (kMasksAreFree || left >= kVectors * kVectorLanes))
    return finish_registers(acc, rows, job, first, left);
  V values[kRows * kVectors];
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) values[m * kVectors + v] = acc[m][v];
  }
  finish_values(values, kVectors, static_cast<int>(std::min<std::int64_t>(left, kVectors * kVectorLanes)), rows, job, first);
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_EPILOGUE_INL_H_

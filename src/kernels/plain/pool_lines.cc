// The inner loops. Compiled once for each target of targets.h by including itself; start reading at `fold_vector`.
#include "src/kernels/plain/pool_lines.h"

#include <algorithm>
#include <cmath>

#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/plain/pool_lines.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "src/kernels/elementwise/functions-inl.h"
#include "src/kernels/elementwise/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::plain {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace fn = kernels::HWY_NAMESPACE::functions;
namespace lanes = kernels::HWY_NAMESPACE::lanes;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
inline constexpr std::int64_t kLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;

/// What becomes of the taps of a row, and of what the rows gave.
struct Greatest {
  static HWY_INLINE V begin(V) { return hn::Set(D(), -HUGE_VALF); }
  static HWY_INLINE V add(V row, V value) { return fn::at_least(row, value); }
  static HWY_INLINE V end(V all, V row) { return fn::at_least(all, row); }
  static float begin(float) { return -HUGE_VALF; }
  static float add(float row, float value) { return row < value ? value : row; }
  static float end(float all, float row) { return add(all, row); }
};
struct Sum {
  static HWY_INLINE V begin(V) { return hn::Zero(D()); }
  static HWY_INLINE V add(V row, V value) { return hn::Add(row, value); }
  static HWY_INLINE V end(V all, V row) { return hn::Add(all, row); }
  static float begin(float) { return 0.0f; }
  static float add(float row, float value) { return row + value; }
  static float end(float all, float row) { return all + row; }
};

/// `count` values at `from`, as many as a vector has at most; what lies behind them is not read.
template <bool kWhole>
HWY_INLINE V load(const float* from, std::int64_t count) {
  if constexpr (kWhole) return hn::LoadU(D(), from);
  if (count >= kLanes) return hn::LoadU(D(), from);
  return lanes::load_first(D(), from, static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
}

/// The taps of one row for a vector of outputs, or its first `count`.
template <class Fold, int kStep, bool kWhole>
HWY_INLINE V fold_taps(const PoolRows& rows, const float* from, std::int64_t count) {
  V row = Fold::begin(V());
  std::int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kStep == 2) {
    // Two taps beside each other are the even and the odd values of two vectors.
    for (; rows.dilation == 1 && k + 2 <= rows.taps; k += 2) {
      const V low = load<kWhole>(from + k, 2 * count), high = load<kWhole>(from + k + kLanes, 2 * count - kLanes);
      row = Fold::add(Fold::add(row, hn::ConcatEven(D(), high, low)), hn::ConcatOdd(D(), high, low));
    }
    for (; k < rows.taps; ++k) {
      // The last value of the pair that the last output begins lies behind its tap.
      const float* const at = from + k * rows.dilation;
      const V low = load<false>(at, 2 * count - 1), high = load<false>(at + kLanes, 2 * count - 1 - kLanes);
      row = Fold::add(row, hn::ConcatEven(D(), high, low));
    }
    return row;
  }
#endif
  for (; k < rows.taps; ++k) row = Fold::add(row, load<kWhole>(from + k * rows.dilation, count));
  return row;
}

/// Outputs [i, i + count), at most a vector of them.
template <class Fold, int kStep, bool kWhole>
HWY_INLINE void fold_vector(const PoolRows& rows, float* to, std::int64_t i, std::int64_t count) {
  V all = rows.begins ? Fold::begin(V()) : load<kWhole>(to + i, count);
  for (std::int64_t r = 0; r < rows.count; ++r)
    all = Fold::end(all, fold_taps<Fold, kStep, kWhole>(rows, rows.rows[r] + rows.first + i * kStep, count));
  if constexpr (kWhole)
    hn::StoreU(all, D(), to + i);
  else
    lanes::store_first(all, D(), to + i, static_cast<std::size_t>(count));
}

template <class Fold, int kStep>
void fold_vectors(const PoolRows& rows, float* to, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) fold_vector<Fold, kStep, true>(rows, to, i, kLanes);
  if (i < n) fold_vector<Fold, kStep, false>(rows, to, i, n - i);
}

/// Steps that no vector takes, and outputs so few that loads of parts of vectors take longer.
inline constexpr std::int64_t kFewOutputs = 2;
template <class Fold>
void fold_values(const PoolRows& rows, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    float all = rows.begins ? Fold::begin(0.0f) : to[i];
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const float* const from = rows.rows[r] + rows.first + i * rows.step;
      float row = Fold::begin(0.0f);
      for (std::int64_t k = 0; k < rows.taps; ++k) row = Fold::add(row, from[k * rows.dilation]);
      all = Fold::end(all, row);
    }
    to[i] = all;
  }
}

template <class Fold>
void fold(const PoolRows& rows, float* to, std::int64_t n) noexcept {
  if (n <= kFewOutputs) return fold_values<Fold>(rows, to, n);
  if (rows.step == 1) return fold_vectors<Fold, 1>(rows, to, n);
#if HWY_TARGET != HWY_SCALAR
  if (rows.step == 2) return fold_vectors<Fold, 2>(rows, to, n);
#endif
  fold_values<Fold>(rows, to, n);
}

constexpr PoolTable kTable = {fold<Greatest>, fold<Sum>};

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::plain
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::plain {

const PoolTable& pool_table(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, kTable) }

}  // namespace sluice::kernels::plain
#endif  // HWY_ONCE

// The inner loops. Compiled once for each target of targets.h by including itself.
#include "src/kernels/plain/vectors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/plain/vectors.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "src/kernels/elementwise/doubles-inl.h"
#include "src/kernels/elementwise/lanes-inl.h"
#include "src/kernels/plain/folds-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::plain {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace lanes = kernels::HWY_NAMESPACE::lanes;
namespace doubles = kernels::HWY_NAMESPACE::doubles;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;
inline constexpr std::int64_t kLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;

using doubles::D64;
using doubles::kWideLanes;
using doubles::Narrow;
using doubles::narrowed;
using doubles::V64;
using doubles::widened;

/// Calls `use(vector_term, scalar_term)`.
template <class Use>
HWY_INLINE auto with_term(Term term, const Use& use) {
  switch (term) {
    case Term::kMagnitude:
      return use([](V64 v) HWY_ATTR { return hn::Abs(v); }, [](double v) { return std::fabs(v); });
    case Term::kSquare:
      return use([](V64 v) HWY_ATTR { return hn::Mul(v, v); }, [](double v) { return v * v; });
    default:
      return use([](V64 v) HWY_ATTR { return v; }, [](double v) { return v; });
  }
}

double sum(Term term, const float* x, std::int64_t n) noexcept {
  return with_term(term, [=](const auto& vector_term, const auto& scalar_term) HWY_ATTR { return sum_of(x, n, vector_term, scalar_term); });
}

void sum_rows(Term term, const float* x, std::int64_t rows, std::int64_t n, double* sums) noexcept {
  with_term(term, [=](const auto& vector_term, const auto& scalar_term) HWY_ATTR {
    for (std::int64_t r = 0; r < rows; ++r) sums[r] += sum_of(x + r * n, n, vector_term, scalar_term);
  });
}

double product(const float* x, std::int64_t n) noexcept {
  return fold_of<Multiplied>(
      x, n, [](V64 v) HWY_ATTR { return v; }, [](double v) { return v; });
}

double squares(double centre, const float* x, std::int64_t n) noexcept {
  const V64 centres = hn::Set(D64(), centre);
  return sum_of(
      x, n,
      [centres](V64 v) HWY_ATTR {
        const V64 d = hn::Sub(v, centres);
        return hn::Mul(d, d);
      },
      [centre](double v) { return (v - centre) * (v - centre); });
}

/// sums[i] += term(x[i])
template <class VectorTerm, class ScalarTerm>
HWY_INLINE void add_terms(const float* x, double* sums, std::int64_t n, const VectorTerm& term, const ScalarTerm& scalar_term) {
  std::int64_t i = 0;
  for (; i + kWideLanes <= n; i += kWideLanes) hn::StoreU(hn::Add(hn::LoadU(D64(), sums + i), term(widened(x + i))), D64(), sums + i);
  for (; i < n; ++i) sums[i] += scalar_term(static_cast<double>(x[i]));
}

void add(Term term, const float* x, double* sums, std::int64_t n) noexcept {
  with_term(term, [=](const auto& vector_term, const auto& scalar_term) HWY_ATTR { add_terms(x, sums, n, vector_term, scalar_term); });
}

void add_multiple(double factor, const float* x, double* sums, std::int64_t n) noexcept {
  const V64 factors = hn::Set(D64(), factor);
  add_terms(
      x, sums, n, [factors](V64 v) HWY_ATTR { return hn::Mul(factors, v); }, [factor](double v) { return factor * v; });
}

void rescale(const Rescale& by, const float* x, float* out, std::int64_t n) noexcept {
  const V64 mean = hn::Set(D64(), by.mean), scale = hn::Set(D64(), by.scale), factor = hn::Set(D64(), by.factor),
            shift = hn::Set(D64(), by.shift);
  std::int64_t i = 0;
  for (; i + kWideLanes <= n; i += kWideLanes) {
    const V64 y = hn::Add(hn::Mul(hn::Mul(hn::Sub(widened(x + i), mean), scale), factor), shift);
    hn::StoreU(narrowed(y), Narrow(), out + i);
  }
  for (; i < n; ++i) out[i] = static_cast<float>((static_cast<double>(x[i]) - by.mean) * by.scale * by.factor + by.shift);
}

// ---- Extremes

template <bool kLargest>
HWY_INLINE auto better(V value, V than) {
  if constexpr (kLargest) return hn::Gt(value, than);
  return hn::Lt(value, than);
}

/// The extreme of what is no NaN, from `start` on; the sign of a zero is any. `unordered` becomes true where there is a NaN.
template <bool kLargest>
HWY_INLINE float extreme_value(const float* x, std::int64_t n, float start, bool& unordered) {
  constexpr std::int64_t kTogether = 4;  // a comparison waits for the one before it
  const D d;
  V kept[kTogether];
  for (V& champion : kept) champion = hn::Set(d, start);
  auto nan = hn::IsNaN(kept[0]);
  const auto take = [&](V v, V& champion) HWY_ATTR {
    nan = hn::Or(nan, hn::IsNaN(v));
    champion = hn::IfThenElse(better<kLargest>(v, champion), v, champion);
  };
  std::int64_t i = 0;
  for (; i + kTogether * kLanes <= n; i += kTogether * kLanes) {
    HWY_UNROLL(4)
    for (std::int64_t v = 0; v < kTogether; ++v) take(hn::LoadU(d, x + i + v * kLanes), kept[v]);
  }
  for (; i + kLanes <= n; i += kLanes) take(hn::LoadU(d, x + i), kept[0]);
  V& best = kept[0];
  if (i < n && n >= kLanes) {
    take(hn::LoadU(d, x + n - kLanes), best);  // those before it once more: an extreme does not mind
  } else if (i < n) {
    const auto rest = static_cast<std::size_t>(n - i);
    take(hn::IfThenElse(hn::FirstN(d, rest), lanes::load_first(d, x + i, rest), best), best);
  }
  for (std::int64_t v = 1; v < kTogether; ++v) take(kept[v], best);
  unordered = !hn::AllFalse(d, nan);
  return hn::GetLane(kLargest ? hn::MaxOfLanes(d, best) : hn::MinOfLanes(d, best));
}

template <bool kLargest>
HWY_INLINE float extreme_as(const float* x, std::int64_t n) {
  bool unordered = false;
  float best = extreme_value<kLargest>(x, n, kLargest ? -HUGE_VALF : HUGE_VALF, unordered);
  if (unordered) {
    for (std::int64_t i = 0; i < n; ++i)
      if (x[i] != x[i]) best = x[i];
  } else if (best == 0.0f) {
    best = *std::find(x, x + n, 0.0f);  // the zero that comes first
  }
  return best;
}

void extremes(bool largest, const float* x, std::int64_t rows, std::int64_t n, float* best) noexcept {
  for (std::int64_t r = 0; r < rows; ++r) best[r] = largest ? extreme_as<true>(x + r * n, n) : extreme_as<false>(x + r * n, n);
}

/// The champion stays where the value is NaN or an equal: what minps and maxps do, which take one cycle where a comparison and a choice take two.
template <bool kLargest>
HWY_INLINE V better_number(V value, V champion) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  if constexpr (kLargest) return hn::Max(value, champion);
  return hn::Min(value, champion);
#else
  return hn::IfThenElse(better<kLargest>(value, champion), value, champion);
#endif
}

void range_with_zero(const float* x, std::int64_t n, float& low, float& high) noexcept {
  constexpr std::int64_t kTogether = 4;
  const D d;
  V least[kTogether], largest[kTogether];
  for (std::int64_t v = 0; v < kTogether; ++v) least[v] = largest[v] = hn::Zero(d);
  const auto take = [&](V value, std::int64_t v) HWY_ATTR {
    least[v] = better_number<false>(value, least[v]);
    largest[v] = better_number<true>(value, largest[v]);
  };
  std::int64_t i = 0;
  for (; i + kTogether * kLanes <= n; i += kTogether * kLanes) {
    HWY_UNROLL(4)
    for (std::int64_t v = 0; v < kTogether; ++v) take(hn::LoadU(d, x + i + v * kLanes), v);
  }
  for (; i + kLanes <= n; i += kLanes) take(hn::LoadU(d, x + i), 0);
  if (i < n) take(lanes::load_first(d, x + i, static_cast<std::size_t>(n - i)), 0);  // and zeros
  for (std::int64_t v = 1; v < kTogether; ++v) {
    least[0] = better_number<false>(least[v], least[0]);
    largest[0] = better_number<true>(largest[v], largest[0]);
  }
  low = hn::GetLane(hn::MinOfLanes(d, least[0]));
  high = hn::GetLane(hn::MaxOfLanes(d, largest[0]));
}

template <bool kLargest>
HWY_INLINE void keep_extremes_as(const float* x, float* best, std::int64_t n) {
  const D d;
  const auto kept = [](V v, V champion) HWY_ATTR {
    const auto nan_first = hn::AndNot(hn::IsNaN(champion), hn::IsNaN(v));
    return hn::IfThenElse(hn::Or(better<kLargest>(v, champion), nan_first), v, champion);
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(kept(hn::LoadU(d, x + i), hn::LoadU(d, best + i)), d, best + i);
  if (i == n) return;
  const auto rest = static_cast<std::size_t>(n - i);
  lanes::store_first(kept(lanes::load_first(d, x + i, rest), lanes::load_first(d, best + i, rest)), d, best + i, rest);
}

void keep_extremes(bool largest, const float* x, float* best, std::int64_t n) noexcept {
  largest ? keep_extremes_as<true>(x, best, n) : keep_extremes_as<false>(x, best, n);
}

/// The first place in [0, n) with that value, or the last. There must be one.
HWY_INLINE std::int64_t place_with(const float* x, std::int64_t n, float value, bool last) {
  const D d;
  const V wanted = hn::Set(d, value);
  if (last) {
    for (std::int64_t i = n - 1; i > 0; --i)
      if (x[i] == value) return i;
    return 0;
  }
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const std::intptr_t found = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, x + i), wanted));
    if (found >= 0) return i + found;
  }
  while (i + 1 < n && x[i] != value) ++i;
  return i;
}

std::int64_t extreme_place(Extreme which, const float* x, std::int64_t n) noexcept {
  if (x[0] != x[0]) return 0;  // nothing is better than a NaN that comes first
  bool unordered = false;
  const float best = which.largest ? extreme_value<true>(x, n, x[0], unordered) : extreme_value<false>(x, n, x[0], unordered);
  return place_with(x, n, best, which.last);
}

/// kVectors vectors of neighbouring columns.
template <bool kLargest, bool kLast, std::int64_t kVectors>
HWY_INLINE void extreme_columns(const Columns& x, std::int64_t first, std::int64_t* best) {
  const D d;
  const DI di;
  V champion[kVectors];
  VI place[kVectors];
  for (std::int64_t v = 0; v < kVectors; ++v) {
    champion[v] = hn::LoadU(d, x.values + first + v * kLanes);
    place[v] = hn::Zero(di);
  }
  for (std::int64_t k = 1; k < x.extent; ++k) {
    const float* const row = x.values + k * x.step + first;
    const VI here = hn::Set(di, static_cast<std::int32_t>(k));
    HWY_UNROLL(4)
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const V value = hn::LoadU(d, row + v * kLanes);
      auto takes = better<kLargest>(value, champion[v]);
      if constexpr (kLast) takes = hn::Or(takes, hn::Eq(value, champion[v]));
      champion[v] = hn::IfThenElse(takes, value, champion[v]);
      place[v] = hn::IfThenElse(hn::RebindMask(di, takes), here, place[v]);
    }
  }
  HWY_ALIGN std::int32_t places[kVectors * kLanes];
  for (std::int64_t v = 0; v < kVectors; ++v) hn::Store(place[v], di, places + v * kLanes);
  for (std::int64_t i = 0; i < kVectors * kLanes; ++i) best[first + i] = places[i];
}

template <bool kLargest, bool kLast>
HWY_INLINE void extreme_places_as(const Columns& x, std::int64_t places, std::int64_t* best) {
  constexpr std::int64_t kMany = 4;
  std::int64_t i = 0;
  for (; i + kMany * kLanes <= places; i += kMany * kLanes) extreme_columns<kLargest, kLast, kMany>(x, i, best);
  for (; i + kLanes <= places; i += kLanes) extreme_columns<kLargest, kLast, 1>(x, i, best);
  for (; i < places; ++i) {
    float champion = x.values[i];
    best[i] = 0;
    for (std::int64_t k = 1; k < x.extent; ++k) {
      const float value = x.values[k * x.step + i];
      if (!((kLargest ? value > champion : value < champion) || (kLast && value == champion))) continue;
      champion = value;
      best[i] = k;
    }
  }
}

void extreme_places(Extreme which, const Columns& x, std::int64_t places, std::int64_t* best) noexcept {
  if (which.largest) return which.last ? extreme_places_as<true, true>(x, places, best) : extreme_places_as<true, false>(x, places, best);
  return which.last ? extreme_places_as<false, true>(x, places, best) : extreme_places_as<false, false>(x, places, best);
}

// ---- The best of many

/// The bits of a float rise with it where it is positive and fall where it is negative.
HWY_INLINE VI keys_of(bool largest, V x) {
  const D d;
  const DI di;
  const V signed_x = largest ? x : hn::Neg(x);
  const VI bits = hn::BitCast(di, hn::Add(signed_x, hn::Zero(d)));  // both zeros are the positive one
  const VI turned = hn::Xor(bits, hn::And(hn::ShiftRight<31>(bits), hn::Set(di, 0x7fff'ffff)));
  return hn::IfThenElse(hn::RebindMask(di, hn::IsNaN(x)), hn::Set(di, kNoKey + 1), turned);
}

/// Puts the keys of the lanes that the mask names behind those found.
template <class Mask>
HWY_INLINE void keep(Scan& scan, VI keys, Mask mask) {
  const DI di;
  HWY_ALIGN std::int32_t values[kLanes];
  hn::Store(keys, di, values);
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(di, mask, bytes);
  unsigned left = bytes[0] | static_cast<unsigned>(bytes[1]) << 8;
  for (; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    scan.found[scan.count++] = packed_key(values[lane], scan.next + lane);
  }
}

void scan(Scan& scan) noexcept {
  const D d;
  const DI di;
  const VI above = hn::Set(di, scan.above);
  for (; scan.next + kLanes <= scan.end && scan.room - scan.count >= kLanes; scan.next += kLanes) {
    const VI keys = keys_of(scan.largest, hn::LoadU(d, scan.values + scan.next));
    const auto takes = hn::Gt(keys, above);
    if (!hn::AllFalse(di, takes)) keep(scan, keys, takes);
  }
  const std::int64_t left = scan.end - scan.next;
  if (left == 0 || left >= kLanes || scan.room - scan.count < left) return;
  const auto rest = static_cast<std::size_t>(left);
  const VI keys = keys_of(scan.largest, lanes::load_first(d, scan.values + scan.next, rest));
  keep(scan, keys, hn::And(hn::Gt(keys, above), hn::FirstN(di, rest)));
  scan.next = scan.end;
}

void best_places(bool largest, const float* x, std::int64_t n, std::int64_t k, std::int32_t* keys, std::int64_t* places) noexcept {
  const D d;
  const DI di;
  std::int64_t end = 0;
  for (; end + kLanes <= n; end += kLanes) hn::StoreU(keys_of(largest, hn::LoadU(d, x + end)), di, keys + end);
  if (end < n) {
    const auto rest = static_cast<std::size_t>(n - end);
    const VI last = keys_of(largest, lanes::load_first(d, x + end, rest));
    hn::StoreU(hn::IfThenElse(hn::FirstN(di, rest), last, hn::Set(di, kNoKey)), di, keys + end);
    end += kLanes;
  }
  for (std::int64_t p = 0; p < k; ++p) {
    VI best = hn::LoadU(di, keys);
    for (std::int64_t i = kLanes; i < end; i += kLanes) best = hn::Max(best, hn::LoadU(di, keys + i));
    best = hn::MaxOfLanes(di, best);
    std::intptr_t found = -1;
    std::int64_t i = 0;
    for (; found < 0; i += kLanes) found = hn::FindFirstTrue(di, hn::Eq(hn::LoadU(di, keys + i), best));
    places[p] = i - kLanes + found;
    keys[places[p]] = kNoKey;
  }
}

// ---- Samples of a plane

void sample(const SampleTaps& taps, const float* plane, float* out, std::int64_t n) noexcept {
  const D d;
  const DI di;
  HWY_ALIGN float results[kSampleLanes];
  for (std::int64_t first = 0; first < n; first += kLanes) {
    constexpr std::int64_t kParts = kLanes < kWideLanes ? 1 : kLanes / kWideLanes;
    V64 sums[kParts];
    for (V64& part : sums) part = hn::Zero(D64());
    for (int t = 0; t < taps.taps; ++t) {
      const VI place = hn::LoadU(di, taps.places + t * kSampleLanes + first);
      const auto outside = hn::RebindMask(d, hn::Lt(place, hn::Zero(di)));
      HWY_ALIGN float values[kLanes];
      hn::Store(hn::IfThenZeroElse(outside, hn::GatherIndex(d, plane, hn::Max(place, hn::Zero(di)))), d, values);
      const double* const weights = taps.weights + t * kSampleLanes + first;
      HWY_UNROLL(4)
      for (std::int64_t v = 0; v < kParts; ++v)
        sums[v] = hn::Add(sums[v], hn::Mul(hn::LoadU(D64(), weights + v * kWideLanes), widened(values + v * kWideLanes)));
    }
    for (std::int64_t v = 0; v < kParts; ++v) hn::StoreU(narrowed(sums[v]), Narrow(), results + first + v * kWideLanes);
  }
  std::copy_n(results, n, out);
}

void sample_pixels(const SampleTaps& taps, const float* pixels, float* out, std::int64_t n) noexcept {
  constexpr std::int64_t kParts = kSampleChannels / kWideLanes;
  for (std::int64_t i = 0; i < n; ++i, out += kSampleChannels) {
    V64 sums[kParts];
    for (V64& part : sums) part = hn::Zero(D64());
    for (int t = 0; t < taps.taps; ++t) {
      const std::int64_t place = taps.places[t * kSampleLanes + i];
      if (place < 0) continue;
      const V64 weight = hn::Set(D64(), taps.weights[t * kSampleLanes + i]);
      HWY_UNROLL(16)
      for (std::int64_t v = 0; v < kParts; ++v)
        sums[v] = hn::Add(sums[v], hn::Mul(weight, widened(pixels + place * kSampleChannels + v * kWideLanes)));
    }
    HWY_UNROLL(16)
    for (std::int64_t v = 0; v < kParts; ++v) hn::StoreU(narrowed(sums[v]), Narrow(), out + v * kWideLanes);
  }
}

/// Reals cut to whole numbers of a byte: what lies beyond its ends becomes them, and what is no number zero.
template <class Byte>
HWY_INLINE void cut(const float* x, Byte* out, std::int64_t n) {
  constexpr float kLeast = std::numeric_limits<Byte>::min(), kMost = std::numeric_limits<Byte>::max();
  const D d;
  const DI whole;
  const hn::Rebind<Byte, D> bytes;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V v = hn::LoadU(d, x + i);
    const V number = hn::IfThenElseZero(hn::Eq(v, v), v);
    const V inside = hn::Min(hn::Max(number, hn::Set(d, kLeast)), hn::Set(d, kMost));
    hn::StoreU(hn::DemoteTo(bytes, hn::ConvertTo(whole, inside)), bytes, out + i);
  }
  for (; i < n; ++i) out[i] = x[i] != x[i] ? Byte{0} : static_cast<Byte>(std::min(std::max(x[i], kLeast), kMost));
}

void cut_to_bytes(bool with_sign, const float* x, std::byte* out, std::int64_t n) noexcept {
  if (with_sign) return cut(x, reinterpret_cast<std::int8_t*>(out), n);
  cut(x, reinterpret_cast<std::uint8_t*>(out), n);
}

using Whole = hn::Rebind<std::int32_t, D64>;

/// The two taps of an axis of `extent` places: where they lie, and their weights.
struct AxisTaps {
  hn::Vec<Whole> place[2];
  V64 weight[2];
};
HWY_INLINE AxisTaps axis_taps(const float* x, std::int64_t extent, const GridSquares& grid) {
  const D64 d;
  const Whole whole;
  const V64 one = hn::Set(d, 1.0), half = hn::Set(d, 0.5), last = hn::Set(d, static_cast<double>(extent - 1)), zero = hn::Zero(d);
  const V64 from_end = hn::Add(widened(x), one);
  V64 at = grid.align ? hn::Mul(hn::Mul(from_end, half), last)
                      : hn::Mul(hn::Sub(hn::Mul(from_end, hn::Set(d, static_cast<double>(extent))), one), half);
  const V64 far = hn::Set(d, 1e9);  // as good as outside; and so is what is no number
  const auto near = hn::And(hn::Gt(at, hn::Neg(far)), hn::Lt(at, far));
  at = hn::IfThenElse(near, at, hn::IfThenElse(hn::Gt(at, zero), far, hn::Neg(far)));
  if (grid.border) at = hn::IfThenElse(hn::Lt(at, zero), zero, hn::IfThenElse(hn::Gt(at, last), last, at));
  const V64 floor = hn::Floor(at), t = hn::Sub(at, floor);
  const auto first = hn::DemoteTo(whole, floor), end = hn::Set(whole, static_cast<std::int32_t>(extent - 1));
  AxisTaps taps{{first, hn::Add(first, hn::Set(whole, 1))}, {hn::Sub(one, hn::Abs(t)), hn::Sub(one, hn::Abs(hn::Sub(t, one)))}};
  for (auto& place : taps.place) {
    const auto inside = hn::Min(hn::Max(place, hn::Zero(whole)), end);
    place = grid.border ? inside : hn::IfThenElse(hn::Eq(place, inside), place, hn::Set(whole, -1));
  }
  return taps;
}

void grid_squares(const GridSquares& grid, const float* x, const float* y, std::int32_t* places, double* weights) noexcept {
  const Whole whole;
  const auto none = hn::Set(whole, -1), columns = hn::Set(whole, static_cast<std::int32_t>(grid.columns));
  for (std::int64_t i = 0; i < kSampleLanes; i += kWideLanes) {
    const AxisTaps down = axis_taps(y + i, grid.rows, grid), across = axis_taps(x + i, grid.columns, grid);
    for (int k = 0; k < 4; ++k) {
      const auto row = down.place[k & 1], column = across.place[k >> 1];
      const auto outside = hn::Lt(hn::Or(row, column), hn::Zero(whole));
      const std::int64_t to = k * kSampleLanes + i;
      hn::StoreU(hn::IfThenElse(outside, none, hn::Add(hn::Mul(row, columns), column)), whole, places + to);
      hn::StoreU(hn::Mul(down.weight[k & 1], across.weight[k >> 1]), D64(), weights + to);
    }
  }
}

constexpr VectorTable kTable = {sum,      sum_rows,      product,       squares,        add,          rescale,
                                extremes, keep_extremes, extreme_place, extreme_places, scan,         best_places,
                                sample,   sample_pixels, grid_squares,  add_multiple,   cut_to_bytes, range_with_zero};

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::plain
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::plain {

const VectorTable& vector_table(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, kTable) }

}  // namespace sluice::kernels::plain
#endif  // HWY_ONCE

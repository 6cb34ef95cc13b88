// Compiled once for each target of targets.h by including itself; start reading at `layer_norm`.
#include "src/kernels/transformer/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/transformer/rows.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "src/kernels/elementwise/functions-inl.h"
#include "src/kernels/elementwise/lane_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::transformer {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace fn = kernels::HWY_NAMESPACE::functions;
namespace lanes = kernels::HWY_NAMESPACE::lanes;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
inline constexpr std::int64_t kLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;

struct AddValues {
  const float* in;
  template <class Part>
  HWY_INLINE V operator()(V sum, const Part& part, std::int64_t i) const {
    return hn::Add(sum, part.load(D(), in + i));
  }
};

struct AddSquares {
  const float* in;
  float mean;
  template <class Part>
  HWY_INLINE V operator()(V sum, const Part& part, std::int64_t i) const {
    const V difference = hn::Sub(part.load(D(), in + i), hn::Set(D(), mean));
    return fn::fused(difference, difference, sum);
  }
};

struct Normalise {
  const float *in, *scale, *shift;
  float* out;
  float mean, factor;
  template <class Part>
  HWY_INLINE void operator()(const Part& part, std::int64_t i) const {
    const D d;
    const V x = hn::Mul(hn::Sub(part.load(d, in + i), hn::Set(d, mean)), hn::Set(d, factor));
    part.store(fn::fused(x, part.load(d, scale + i), part.load(d, shift + i)), d, out + i);
  }
};

void layer_norm(const float* in, const float* scale, const float* shift, float epsilon, float* out, std::int64_t n) noexcept {
  const auto count = static_cast<float>(n);
  const float mean = lanes::lane_sum(D(), n, AddValues{in}) / count;
  const float variance = lanes::lane_sum(D(), n, AddSquares{in, mean}) / count;
  lanes::each_part(n, Normalise{in, scale, shift, out, mean, 1.0f / std::sqrt(variance + epsilon)});
}

/// Values that fit a run of rows as lanes.
inline constexpr std::int64_t kFewValues = 15;

/// The sums of each lane over `values` of which `n` are there, in the order of `lane_sum`: value c is its lane c.
HWY_INLINE V sum_of_values(V (&values)[kFewValues + 1], std::int64_t n) {
  for (std::int64_t c = n; c <= kFewValues; ++c) values[c] = hn::Zero(D());
  for (std::int64_t half = (kFewValues + 1) / 2; half >= 1; half /= 2)
    for (std::int64_t c = 0; c < half; ++c) values[c] = hn::Add(values[c], values[c + half]);
  return values[0];
}

void few_values(const float* in, const float* scale, const float* shift, float epsilon, float* out, std::int64_t n,
                std::int64_t count) noexcept {
  const D d;
  const V values = hn::Set(d, static_cast<float>(n));
  float tile[kFewValues * kLanes] = {};  // [value][row]
  for (std::int64_t first = 0; first < count; first += kLanes, in += kLanes * n, out += kLanes * n) {
    const std::int64_t rows = std::min(kLanes, count - first);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t c = 0; c < n; ++c) tile[c * kLanes + i] = in[i * n + c];
    V terms[kFewValues + 1];
    for (std::int64_t c = 0; c < n; ++c) terms[c] = hn::LoadU(d, tile + c * kLanes);
    const V mean = hn::Div(sum_of_values(terms, n), values);
    for (std::int64_t c = 0; c < n; ++c) {
      const V difference = hn::Sub(hn::LoadU(d, tile + c * kLanes), mean);
      terms[c] = fn::fused(difference, difference, hn::Zero(d));
    }
    const V variance = hn::Div(sum_of_values(terms, n), values);
    const V factor = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::Add(variance, hn::Set(d, epsilon))));
    for (std::int64_t c = 0; c < n; ++c) {
      float* const at = tile + c * kLanes;
      const V x = hn::Mul(hn::Sub(hn::LoadU(d, at), mean), factor);
      hn::StoreU(fn::fused(x, hn::Set(d, scale[c]), hn::Set(d, shift[c])), d, at);
    }
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t c = 0; c < n; ++c) out[i * n + c] = tile[c * kLanes + i];
  }
}

#if HWY_TARGET == HWY_AVX3

/// Rows that fit some sixteen-lane vectors, several at once, whose values stay in registers: with such vectors the order of `lane_sum` is one
/// sum, vector after vector, and then of its halves.
inline constexpr std::int64_t kMostShort = 64;

/// One step of sums in halves, of the rows in two vectors: each row is 2 * kHalf neighbouring lanes, of which the upper half is added to the
/// lower one. Sums of `a` and of `b` take turns, kHalf lanes of one and then of the other. Which of several kinds of NaN comes out follows the
/// order of operands, and so how many rows are taken at once.
template <int kHalf>
HWY_INLINE V add_halves(V a, V b) {
  const D d;
  if constexpr (kHalf == 8) {
    return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
  } else if constexpr (kHalf == 4) {
    return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a), hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a)));
  } else if constexpr (kHalf == 2) {
    const hn::Repartition<double, D> pairs;
    const auto a2 = hn::BitCast(pairs, a), b2 = hn::BitCast(pairs, b);
    return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, a2, b2)), hn::BitCast(d, hn::InterleaveUpper(pairs, a2, b2)));
  } else {
    return hn::Add(hn::OddEven(hn::DupEven(b), a), hn::OddEven(b, hn::DupOdd(a)));
  }
}

/// In which lane the sum of row r lies: its four bits turned round, since each step puts the rows of two vectors side by side.
constexpr int lane_of_row(int r) noexcept { return (r & 1) << 3 | (r & 2) << 1 | (r & 4) >> 1 | (r & 8) >> 3; }

/// The sum of each row's lanes, as `sum_in_halves` adds them; that of row r in lane_of_row(r). The rows are overwritten.
template <int kRows>
HWY_INLINE V sums_of_rows(V (&rows)[kRows]) {
  const auto step = [&](auto half, int count) HWY_ATTR {
    HWY_UNROLL(8)
    for (int i = 0; i < std::max(1, count / 2); ++i) rows[i] = add_halves<half.value>(rows[2 * i], rows[count == 1 ? 0 : 2 * i + 1]);
  };
  step(std::integral_constant<int, 8>(), kRows);
  step(std::integral_constant<int, 4>(), std::max(1, kRows / 2));
  step(std::integral_constant<int, 2>(), std::max(1, kRows / 4));
  step(std::integral_constant<int, 1>(), std::max(1, kRows / 8));
  return rows[0];
}

/// kRows rows of n values, more than kVectors - 1 vectors and no more than kVectors.
template <int kVectors, int kRows>
HWY_INLINE void short_rows(const float* in, const float* scale, const float* shift, float epsilon, float* out, std::int64_t n) {
  const D d;
  const auto last = hn::FirstN(d, static_cast<std::size_t>(n - (kVectors - 1) * kLanes));
  const V count = hn::Set(d, static_cast<float>(n));
  const auto load = [&](const float* from, int v) HWY_ATTR {
    return v + 1 < kVectors ? hn::LoadU(d, from + v * kLanes) : hn::MaskedLoad(last, d, from + v * kLanes);
  };
  HWY_ALIGN float of_rows[kLanes];  // means, then factors
  V x[kRows][kVectors], sums[kRows];
  HWY_UNROLL(16)
  for (int r = 0; r < kRows; ++r) {
    sums[r] = hn::Zero(d);
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) sums[r] = hn::Add(sums[r], x[r][v] = load(in + r * n, v));
  }
  hn::Store(hn::Div(sums_of_rows(sums), count), d, of_rows);
  HWY_UNROLL(16)
  for (int r = 0; r < kRows; ++r) {
    const V mean = hn::Set(d, of_rows[lane_of_row(r)]);
    sums[r] = hn::Zero(d);
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      x[r][v] = hn::Sub(x[r][v], mean);
      const V counted = v + 1 < kVectors ? x[r][v] : hn::IfThenElseZero(last, x[r][v]);
      sums[r] = fn::fused(counted, counted, sums[r]);
    }
  }
  const V variances = hn::Div(sums_of_rows(sums), count);
  hn::Store(hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::Add(variances, hn::Set(d, epsilon)))), d, of_rows);
  HWY_UNROLL(4)
  for (int v = 0; v < kVectors; ++v) {
    const V scales = load(scale, v), shifts = load(shift, v);
    HWY_UNROLL(16)
    for (int r = 0; r < kRows; ++r) {
      const V y = fn::fused(hn::Mul(x[r][v], hn::Set(d, of_rows[lane_of_row(r)])), scales, shifts);
      float* const to = out + r * n + v * kLanes;
      v + 1 < kVectors ? hn::StoreU(y, d, to) : hn::BlendedStore(y, last, d, to);
    }
  }
}

template <int kVectors>
void all_short_rows(const float* in, const float* scale, const float* shift, float epsilon, float* out, std::int64_t n,
                    std::int64_t count) noexcept {
  constexpr int kRows = kVectors == 1 ? 16 : kVectors == 2 ? 8 : 4;  // what registers hold
  std::int64_t row = 0;
  for (; row + kRows <= count; row += kRows) short_rows<kVectors, kRows>(in + row * n, scale, shift, epsilon, out + row * n, n);
  for (; row < count; ++row) short_rows<kVectors, 1>(in + row * n, scale, shift, epsilon, out + row * n, n);
}

#endif

void layer_norm_rows(const float* in, const float* scale, const float* shift, float epsilon, float* out, std::int64_t n,
                     std::int64_t count) noexcept {
  if (n <= kFewValues) return few_values(in, scale, shift, epsilon, out, n, count);
#if HWY_TARGET == HWY_AVX3
  static constexpr decltype(&layer_norm_rows) kRuns[] = {all_short_rows<1>, all_short_rows<2>, all_short_rows<3>, all_short_rows<4>};
  if (n <= kMostShort) return kRuns[(n - 1) / kLanes](in, scale, shift, epsilon, out, n, count);
#endif
  for (std::int64_t row = 0; row < count; ++row) layer_norm(in + row * n, scale, shift, epsilon, out + row * n, n);
}

struct Scale {
  float* values;
  float factor;
  V* best;
  HWY_INLINE void operator()(const lanes::Whole& part, std::int64_t i) const {
    const V scaled = hn::Mul(part.load(D(), values + i), hn::Set(D(), factor));
    part.store(scaled, D(), values + i);
    *best = fn::at_least(*best, scaled);
  }
  // The lanes that are not there count as the least value.
  HWY_INLINE void operator()(const lanes::First& part, std::int64_t i) const {
    const D d;
    const V scaled = hn::Mul(part.load(d, values + i), hn::Set(d, factor));
    part.store(scaled, d, values + i);
    const V least = hn::Set(d, -std::numeric_limits<float>::infinity());
    *best = fn::at_least(*best, hn::IfThenElse(hn::FirstN(d, part.count), scaled, least));
  }
};

struct AddExponentials {
  float* values;
  float greatest;
  template <class Part>
  HWY_INLINE V operator()(V sum, const Part& part, std::int64_t i) const {
    const V weight = fn::exp(D(), hn::Sub(part.load(D(), values + i), hn::Set(D(), greatest)));
    part.store(weight, D(), values + i);
    return hn::Add(sum, weight);
  }
};

float weigh(float factor, float* scores, std::int64_t n) noexcept {
  V best = hn::Set(D(), -std::numeric_limits<float>::infinity());
  lanes::each_part(n, Scale{scores, factor, &best});
  HWY_ALIGN float values[16];
  hn::Store(best, D(), values);
  float greatest = values[0];
  for (std::int64_t lane = 1; lane < kLanes; ++lane) greatest = greatest < values[lane] ? values[lane] : greatest;
  return lanes::lane_sum(D(), n, AddExponentials{scores, greatest});
}

struct Divide {
  float* values;
  float divisor;
  template <class Part>
  HWY_INLINE void operator()(const Part& part, std::int64_t i) const {
    part.store(hn::Div(part.load(D(), values + i), hn::Set(D(), divisor)), D(), values + i);
  }
};

void divide(float* values, float divisor, std::int64_t n) noexcept { lanes::each_part(n, Divide{values, divisor}); }

#if HWY_TARGET != HWY_SCALAR
/// Four rows of four floats, turned in registers.
inline void transpose_square(const float* from, std::int64_t from_pitch, float* to, std::int64_t to_pitch) noexcept {
  const hn::FixedTag<float, 4> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_pitch), c = hn::LoadU(d, from + 2 * from_pitch),
             e = hn::LoadU(d, from + 3 * from_pitch);
  const auto ab = hn::InterleaveLower(d, a, b), ce = hn::InterleaveLower(d, c, e);
  const auto high_ab = hn::InterleaveUpper(d, a, b), high_ce = hn::InterleaveUpper(d, c, e);
  hn::StoreU(hn::ConcatLowerLower(d, ce, ab), d, to);
  hn::StoreU(hn::ConcatUpperUpper(d, ce, ab), d, to + to_pitch);
  hn::StoreU(hn::ConcatLowerLower(d, high_ce, high_ab), d, to + 2 * to_pitch);
  hn::StoreU(hn::ConcatUpperUpper(d, high_ce, high_ab), d, to + 3 * to_pitch);
}
#endif

// Sixteen rows at a time, so that each line of theirs is used whole while it is in the first cache.
void transpose(const float* from, std::int64_t from_pitch, std::int64_t rows, std::int64_t depth, float* to,
               std::int64_t to_pitch) noexcept {
  constexpr std::int64_t kBlock = 16;
  for (std::int64_t t = 0; t < rows; t += kBlock) {
    const std::int64_t count = std::min(kBlock, rows - t);
    const float* block = from + t * from_pitch;
    std::int64_t turned = 0;  // of the depth
#if HWY_TARGET != HWY_SCALAR
    if (count == kBlock) {
      for (; turned + 4 <= depth; turned += 4)
        for (std::int64_t i = 0; i < kBlock; i += 4)
          transpose_square(block + i * from_pitch + turned, from_pitch, to + turned * to_pitch + t + i, to_pitch);
    }
#endif
    for (std::int64_t k = turned; k < depth; ++k) {
      float* line = to + k * to_pitch + t;
      for (std::int64_t i = 0; i < count; ++i) line[i] = block[i * from_pitch + k];
    }
  }
}

constexpr RowTable kTable = {layer_norm, layer_norm_rows, weigh, divide, transpose};

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::transformer
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::transformer {

const RowTable& row_table(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, kTable) }

}  // namespace sluice::kernels::transformer
#endif  // HWY_ONCE

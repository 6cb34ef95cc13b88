// The inner loops. Compiled once for each target of targets.h by including itself; start reading at `Affine` and `each`.
#include "src/kernels/elementwise/runs.h"

#include <algorithm>
#include <limits>

#include "sluice/kernels/kernel_ids.h"
#include "src/core/build_list.h"
#include "src/kernels/reference/lane_sum.h"
#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/elementwise/runs.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "src/kernels/elementwise/functions-inl.h"
#include "src/kernels/elementwise/lane_sum-inl.h"
#include "src/kernels/elementwise/pool_pixels-inl.h"
#include "src/kernels/elementwise/power-inl.h"
#include "src/kernels/elementwise/short_rows-inl.h"
#include "src/kernels/elementwise/subnormal-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::elementwise {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace fn = kernels::HWY_NAMESPACE::functions;
namespace lanes = kernels::HWY_NAMESPACE::lanes;
namespace subnormal = kernels::HWY_NAMESPACE::subnormal;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
inline constexpr std::int64_t kLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;

/// Reads a vector of an operand at element i.
struct WholeLoader {
  HWY_INLINE V operator()(const float* from, std::int64_t i) const { return hn::LoadU(D(), from + i); }
};
struct FirstLoader {
  std::size_t count;
  HWY_INLINE V operator()(const float* from, std::int64_t i) const { return lanes::load_first(D(), from + i, count); }
};

/// out[i] = op(load, i) for i < n, whole vectors and then the rest.
template <class Op>
HWY_INLINE void each(const Op& op, float* out, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(op(WholeLoader(), i), D(), out + i);
  if (i < n) {
    const auto count = static_cast<std::size_t>(n - i);
    lanes::store_first(op(FirstLoader{count}, i), D(), out + i, count);
  }
}

HWY_INLINE V within(Bounds bounds, V x) { return fn::within(D(), bounds.low, bounds.high, x); }

struct Affine {
  const float *in, *scale, *shift;
  Bounds bounds;
  template <class Load>
  HWY_INLINE V operator()(const Load& load, std::int64_t i) const {
    return within(bounds, fn::fused(load(in, i), load(scale, i), load(shift, i)));
  }
};

void affine(const float* in, const float* scale, const float* shift, Bounds bounds, float* out, std::int64_t n) noexcept {
  each(Affine{in, scale, shift, bounds}, out, n);
}

template <Function f>
struct Unary {
  const float* in;
  float a, b;
  template <class Load>
  HWY_INLINE V operator()(const Load& load, std::int64_t i) const {
    return fn::apply(D(), Activation{f, a, b}, load(in, i));
  }
};

template <int f>
void unary_as(const Activation& activation, const float* in, float* out, std::int64_t n) noexcept {
  each(Unary<static_cast<Function>(f)>{in, activation.a, activation.b}, out, n);
}

using UnaryRun = void (*)(const Activation&, const float*, float*, std::int64_t) noexcept;
template <int... f>
constexpr std::array<UnaryRun, sizeof...(f)> unary_runs(std::integer_sequence<int, f...>) {
  return {unary_as < has_function(f) ? f : 0 > ...};  // a model with another function is not opened
}

void unary(const Activation& f, const float* in, float* out, std::int64_t n) noexcept {
  static constexpr auto kRuns = unary_runs(std::make_integer_sequence<int, kFunctionCount>());
  kRuns[static_cast<std::size_t>(f.function)](f, in, out, n);
}

template <BinaryFunction op>
HWY_INLINE V combine(V a, V b) {
  if constexpr (op == BinaryFunction::kAdd) return hn::Add(a, b);
  if constexpr (op == BinaryFunction::kSub) return hn::Sub(a, b);
  if constexpr (op == BinaryFunction::kMul) return hn::Mul(a, b);
  if constexpr (op == BinaryFunction::kDiv) return hn::Div(a, b);
  if constexpr (op == BinaryFunction::kPrelu) return hn::IfThenElse(hn::Lt(a, hn::Zero(D())), hn::Mul(a, b), a);
  if constexpr (op == BinaryFunction::kMax) return fn::at_least(a, b);
  if constexpr (op == BinaryFunction::kPow) return kernels::HWY_NAMESPACE::powers::power(D(), a, b);
  return fn::at_most(a, b);
}

template <BinaryFunction op, int a_step, int b_step>
struct Binary {
  const float *a, *b;
  Bounds bounds;
  template <class Load>
  HWY_INLINE V operator()(const Load& load, std::int64_t i) const {
    V va, vb;
    if constexpr (a_step == 1)
      va = load(a, i);
    else
      va = hn::Set(D(), *a);
    if constexpr (b_step == 1)
      vb = load(b, i);
    else
      vb = hn::Set(D(), *b);
    return within(bounds, combine<op>(va, vb));
  }
};

template <BinaryFunction op>
void binary_as(Stream a, Stream b, Bounds bounds, float* out, std::int64_t n) noexcept {
  if (a.step == 1 && b.step == 1) return each(Binary<op, 1, 1>{a.values, b.values, bounds}, out, n);
  if (a.step == 1) return each(Binary<op, 1, 0>{a.values, b.values, bounds}, out, n);
  if (b.step == 1) return each(Binary<op, 0, 1>{a.values, b.values, bounds}, out, n);
  each(Binary<op, 0, 0>{a.values, b.values, bounds}, out, n);
}

/// What `power` makes of the exponent 3, without its other cases.
struct Cube {
  const float* in;
  Bounds bounds;
  template <class Load>
  HWY_INLINE V operator()(const Load& load, std::int64_t i) const {
    const V x = load(in, i);
    return within(bounds, hn::Mul(hn::Mul(x, x), x));
  }
};

/// The long tail calls what runs it likes, and so do recurrent layers (core/build_list.h).
constexpr bool kCallsAnyRun = kHasFamilies || has_kernel(kernel_id::kRecurrent) ||
                              has_any_kernel(kernel_id::kRecurrentEightBits, kernel_id::kRecurrentFourBitsHalfScales);

void binary(BinaryFunction op, Stream a, Stream b, Bounds bounds, float* out, std::int64_t n) noexcept {
  // Pools alone ask for means.
  if constexpr (!has_kernel(kernel_id::kBinary) && !kCallsAnyRun) return binary_as<BinaryFunction::kDiv>(a, b, bounds, out, n);
  switch (op) {
    case BinaryFunction::kAdd:
      return binary_as<BinaryFunction::kAdd>(a, b, bounds, out, n);
    case BinaryFunction::kSub:
      return binary_as<BinaryFunction::kSub>(a, b, bounds, out, n);
    case BinaryFunction::kMul:
      return binary_as<BinaryFunction::kMul>(a, b, bounds, out, n);
    case BinaryFunction::kDiv:
      return binary_as<BinaryFunction::kDiv>(a, b, bounds, out, n);
    case BinaryFunction::kPrelu:
      return binary_as<BinaryFunction::kPrelu>(a, b, bounds, out, n);
    case BinaryFunction::kMax:
      return binary_as<BinaryFunction::kMax>(a, b, bounds, out, n);
    case BinaryFunction::kMin:
      return binary_as<BinaryFunction::kMin>(a, b, bounds, out, n);
    case BinaryFunction::kPow:
      if (a.step == 1 && b.step == 0 && *b.values == 3.0f) return each(Cube{a.values, bounds}, out, n);
      return binary_as<BinaryFunction::kPow>(a, b, bounds, out, n);
  }
}

struct Shifted {
  const float* in;
  float first, then;
  template <class Load>
  HWY_INLINE V operator()(const Load& load, std::int64_t i) const {
    return hn::Sub(hn::Sub(load(in, i), hn::Set(D(), first)), hn::Set(D(), then));
  }
};

/// The largest value, of those that are numbers. The order of comparisons does not matter.
float maximum(const float* in, std::int64_t n) noexcept {
  V best = hn::Set(D(), -std::numeric_limits<float>::infinity());
  lanes::each_part(n, [&](const auto& part, std::int64_t i) HWY_ATTR {
    const V values = part.load(D(), in + i);
    best = fn::at_least(best, i + kLanes <= n ? values : hn::IfThenElse(hn::FirstN(D(), static_cast<std::size_t>(n - i)), values, best));
  });
  return hn::GetLane(hn::MaxOfLanes(D(), best));
}

struct AddExponentials {
  const float* in;
  float* out;  // may be null
  float subtrahend;
  template <class Part>
  HWY_INLINE V operator()(V sum, const Part& part, std::int64_t i) const {
    const V e = subnormal::exp(D(), hn::Sub(part.load(D(), in + i), hn::Set(D(), subtrahend)));
    if (out != nullptr) part.store(e, D(), out + i);
    return hn::Add(sum, e);
  }
};

struct Quotients {
  const float* in;
  float divisor;
  template <class Load>
  HWY_INLINE V operator()(const Load& load, std::int64_t i) const {
    return subnormal::quotient(D(), load(in, i), hn::Set(D(), divisor));
  }
};

void softmax(bool log, const float* in, float* out, std::int64_t n) noexcept {
  const float greatest = maximum(in, n);
  const float sum = lanes::lane_sum(D(), n, AddExponentials{in, log ? nullptr : out, greatest});
  if (!log) return each(Quotients{out, sum}, out, n);
  const float log_sum = hn::GetLane(fn::log(D(), hn::Set(D(), sum)));
  each(Shifted{in, greatest, log_sum}, out, n);
}

void softmax_rows(bool log, const float* in, float* out, std::int64_t n, std::int64_t count) noexcept {
  if (!log && short_rows::softmax(in, out, n, count)) return;
  for (std::int64_t row = 0; row < count; ++row) softmax(log, in + row * n, out + row * n, n);
}

/// kVectors vectors of channels from `channel` on: enough independent chains to hide the latency of an addition.
template <int kVectors, class Load>
HWY_INLINE void pool_maximum(const PoolRun& run, const Load& load, std::int64_t channel, V (&acc)[kVectors]) {
  for (V& a : acc) a = hn::Set(D(), -std::numeric_limits<float>::infinity());
  for (std::int64_t y = run.window.y.begin; y < run.window.y.end; y += run.window.y.step) {
    for (std::int64_t x = run.window.x.begin; x < run.window.x.end; x += run.window.x.step) {
      const float* pixel = run.in->at<const float>(run.window.first_row + y, x);
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) acc[v] = fn::at_least(acc[v], load(pixel, channel + v * kLanes));
    }
  }
}

template <int kVectors, class Load>
HWY_INLINE void pool_mean(const PoolRun& run, const Load& load, std::int64_t channel, V (&acc)[kVectors]) {
  for (V& a : acc) a = hn::Zero(D());
  for (std::int64_t y = run.window.y.begin; y < run.window.y.end; y += run.window.y.step) {
    V row[kVectors];
    for (V& r : row) r = hn::Zero(D());
    for (std::int64_t x = run.window.x.begin; x < run.window.x.end; x += run.window.x.step) {
      const float* pixel = run.in->at<const float>(run.window.first_row + y, x);
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) row[v] = hn::Add(row[v], load(pixel, channel + v * kLanes));
    }
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) acc[v] = hn::Add(acc[v], row[v]);
  }
  const V divisor = hn::Set(D(), static_cast<float>(run.window.divisor));
  for (V& a : acc) a = hn::Div(a, divisor);
}

template <PoolingKind kind, int kVectors, class Load>
HWY_INLINE void pool_vectors(const PoolRun& run, const Load& load, std::int64_t channel, V (&acc)[kVectors]) {
  if constexpr (kind == PoolingKind::kMax) {
    pool_maximum(run, load, channel, acc);
  } else {
    pool_mean(run, load, channel, acc);
  }
  for (V& a : acc) a = within(run.bounds, a);
}

template <PoolingKind kind>
void pool_as(const PoolRun& run, float* out) noexcept {
  constexpr int kWide = 4;
  std::int64_t i = 0;
  for (; i + kWide * kLanes <= run.count; i += kWide * kLanes) {
    V acc[kWide];
    pool_vectors<kind>(run, WholeLoader(), run.first + i, acc);
    for (int v = 0; v < kWide; ++v) hn::StoreU(acc[v], D(), out + i + v * kLanes);
  }
  for (; i < run.count; i += kLanes) {
    const auto count = static_cast<std::size_t>(std::min(kLanes, run.count - i));
    V acc[1];
    if (count == static_cast<std::size_t>(kLanes)) {
      pool_vectors<kind>(run, WholeLoader(), run.first + i, acc);
      hn::StoreU(acc[0], D(), out + i);
    } else {
      pool_vectors<kind>(run, FirstLoader{count}, run.first + i, acc);
      lanes::store_first(acc[0], D(), out + i, count);
    }
  }
}

struct AddValues {
  const float* in;
  template <class Part>
  HWY_INLINE V operator()(V sum, const Part& part, std::int64_t i) const {
    return hn::Add(sum, part.load(D(), in + i));
  }
};

/// Of a single channel, whose pixels lie behind each other unless it is part of a wider tensor.
float mean_of_rows(const PoolRun& run) noexcept {
  float sum = 0.0f;
  for (std::int64_t y = run.window.y.begin; y < run.window.y.end; y += run.window.y.step) {
    const auto* row = run.in->row(run.window.first_row + y) + run.window.x.begin * run.in->pixel_pitch;
    if (run.in->pixel_pitch == sizeof(float)) {
      sum += lanes::lane_sum(D(), run.window.x.count, AddValues{reinterpret_cast<const float*>(row)});
      continue;
    }
    reference::LaneSum lane_sum;
    for (std::int64_t i = 0; i < run.window.x.count; ++i, row += run.in->pixel_pitch) lane_sum.add(i, *reinterpret_cast<const float*>(row));
    sum += lane_sum.total();
  }
  return sum / static_cast<float>(run.window.divisor);
}

void row_means(const float* from, std::int64_t row_floats, std::int64_t n, std::int64_t rows, float* out) noexcept {
  const auto divisor = static_cast<float>(n);
  for (std::int64_t r = 0; r < rows; ++r, from += row_floats) out[r] = (0.0f + lanes::lane_sum(D(), n, AddValues{from})) / divisor;
}

void pool(PoolingKind kind, const PoolRun& run, float* out) noexcept {
  if (kind == PoolingKind::kAverage && sums_lanes(*run.in, run.window)) {
    *out = hn::GetLane(within(run.bounds, hn::Set(D(), mean_of_rows(run))));
    return;
  }
  kind == PoolingKind::kMax ? pool_as<PoolingKind::kMax>(run, out) : pool_as<PoolingKind::kAverage>(run, out);
}

struct Blend {
  const float* const* from;
  const float* weights;
  int taps;
  template <class Load>
  HWY_INLINE V operator()(const Load& load, std::int64_t i) const {
    V sum = hn::Zero(D());
    for (int t = 0; t < taps; ++t) sum = fn::fused(hn::Set(D(), weights[t]), load(from[t], i), sum);
    return sum;
  }
};

void blend(const float* const* from, const float* weights, int taps, float* out, std::int64_t n) noexcept {
  each(Blend{from, weights, taps}, out, n);
}

/// exp(x - max) of each channel, a vector of pixels each, and the sum in the order of `lane_sum`: channel c is its lane c.
HWY_INLINE V exponentials(const float* tile, std::int64_t n, V greatest, V (&e)[kFewChannels]) {
  V sums[kFewChannels];
  for (std::int64_t c = 0; c < kFewChannels; ++c) {
    if (c < n) e[c] = fn::exp(D(), hn::Sub(hn::LoadU(D(), tile + c * kLanes), greatest));
    sums[c] = c < n ? e[c] : hn::Zero(D());
  }
  for (std::int64_t half = kFewChannels / 2; half >= 1; half /= 2)
    for (std::int64_t c = 0; c < half; ++c) sums[c] = hn::Add(sums[c], sums[c + half]);
  return sums[0];
}

void softmax_pixels(bool log, const float* in, float* out, std::int64_t n, std::int64_t count) noexcept {
  float tile[kFewChannels * kLanes] = {};  // [channel][pixel]
  for (std::int64_t first = 0; first < count; first += kLanes, in += kLanes * n, out += kLanes * n) {
    const std::int64_t pixels = std::min(kLanes, count - first);
    for (std::int64_t i = 0; i < pixels; ++i)
      for (std::int64_t c = 0; c < n; ++c) tile[c * kLanes + i] = in[i * n + c];
    V greatest = hn::Set(D(), -std::numeric_limits<float>::infinity());
    for (std::int64_t c = 0; c < n; ++c) greatest = fn::at_least(greatest, hn::LoadU(D(), tile + c * kLanes));
    V e[kFewChannels];
    const V sum = exponentials(tile, n, greatest, e);
    const V log_sum = log ? fn::log(D(), sum) : sum;
    for (std::int64_t c = 0; c < n; ++c) {
      float* const at = tile + c * kLanes;
      hn::StoreU(log ? hn::Sub(hn::Sub(hn::LoadU(D(), at), greatest), log_sum) : hn::Div(e[c], sum), D(), at);
    }
    for (std::int64_t i = 0; i < pixels; ++i)
      for (std::int64_t c = 0; c < n; ++c) out[i * n + c] = tile[c * kLanes + i];
  }
}

void blend_places(const PlaceRun& run, float* out, std::int64_t n) noexcept {
  const hn::RebindToSigned<D> places;
  const auto blend_at = [&](std::int64_t i) HWY_ATTR {
    V sum = hn::Zero(D());
    for (int r = 0; r < run.row_count; ++r)
      for (int c = 0; c < run.columns; ++c) {
        const V weight = hn::Mul(hn::Set(D(), run.row_weights[r]), hn::LoadU(D(), run.weights[c] + i));
        sum = fn::fused(weight, hn::GatherIndex(D(), run.rows[r], hn::LoadU(places, run.places[c] + i)), sum);
      }
    return sum;
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(blend_at(i), D(), out + i);
  // The tables go on for a vector behind the last value, with places that can be read.
  if (i < n) lanes::store_first(blend_at(i), D(), out + i, static_cast<std::size_t>(n - i));
}

template <std::int64_t kChannels>
HWY_INLINE void copy_pixels_of(const float* from, const std::int32_t* places, float* out, std::int64_t pixels) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  // Four values at once: what is written beyond a pixel the next one writes over, so the last ones go alone. (kReadTail lets them be read.)
  const hn::FixedTag<float, kMostCopied> d;
  for (; i + kMostCopied <= pixels; ++i, out += kChannels, places += kChannels)
    hn::StoreU(hn::Add(hn::LoadU(d, from + *places), hn::Zero(d)), d, out);
#endif
  for (; i < pixels; ++i, out += kChannels, places += kChannels)
    for (std::int64_t c = 0; c < kChannels; ++c) out[c] = from[*places + c] + 0.0f;
}

void copy_pixels(const float* from, const std::int32_t* places, std::int64_t channels, float* out, std::int64_t pixels) noexcept {
  switch (channels) {
    case 1:
      return copy_pixels_of<1>(from, places, out, pixels);
    case 2:
      return copy_pixels_of<2>(from, places, out, pixels);
    case 3:
      return copy_pixels_of<3>(from, places, out, pixels);
    default:
      copy_pixels_of<4>(from, places, out, pixels);
  }
}

void lrn(const LrnRun& run, const float* in, float* out, std::int64_t n) noexcept {
  const D d;
  float padded[kMostLrnFloats + kLanes];
  std::fill_n(padded, run.before, 0.0f);
  std::copy_n(in, n, padded + run.before);
  std::fill_n(padded + run.before + n, run.after + kLanes, 0.0f);
  const V scale = hn::Set(d, run.scale), exponent = hn::Set(d, -run.beta), bias = hn::Set(d, run.bias);
  const auto normalised = [&](std::int64_t i) HWY_ATTR {
    V sum = hn::Zero(d);
    for (std::int64_t k = 0; k <= run.before + run.after; ++k) {
      const V value = hn::LoadU(d, padded + i + k);
      sum = fn::fused(value, value, sum);
    }
    return hn::Mul(hn::LoadU(d, padded + run.before + i), fn::exp(d, hn::Mul(exponent, fn::log(d, fn::fused(scale, sum, bias)))));
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(normalised(i), d, out + i);
  if (i < n) lanes::store_first(normalised(i), d, out + i, static_cast<std::size_t>(n - i));
}

/// `run` where a kernel that this build has calls it.
template <class Run>
constexpr Run* if_called(KernelId kernel, Run* run) {
  return has_kernel(kernel) || kCallsAnyRun ? run : nullptr;
}

/// The same for loops of pools of more than one output.
template <class Run>
constexpr Run* if_pooled(Run* run) {
  return has_pool(0) || kCallsAnyRun ? if_called(kernel_id::kPool, run) : nullptr;
}

constexpr RunTable kTable = {unary,
                             if_called(kernel_id::kAffine, affine),
                             has_kernel(kernel_id::kPool) ? binary : if_called(kernel_id::kBinary, binary),
                             if_called(kernel_id::kSoftmax, softmax),
                             if_called(kernel_id::kSoftmax, softmax_rows),
                             if_called(kernel_id::kPool, pool),
                             if_called(kernel_id::kResize, blend),
                             if_called(kernel_id::kSoftmax, softmax_pixels),
                             if_called(kernel_id::kResize, blend_places),
                             if_called(kernel_id::kResize, copy_pixels),
                             if_pooled(pixels::pool),
                             if_called(kernel_id::kLrn, lrn),
                             if_pooled(pixels::fold),
                             if_pooled(row_means)};

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::elementwise
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::elementwise {

const RunTable& run_table(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, kTable) }

}  // namespace sluice::kernels::elementwise
#endif  // HWY_ONCE

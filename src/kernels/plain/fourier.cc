// Compiled once for each target of targets.h by including itself; start reading at `transform_here`.
#include "src/kernels/plain/fourier.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/plain/fourier.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::plain {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, kFourierLanes>;
inline constexpr int kLanes = HWY_LANES(double) < kFourierLanes ? HWY_LANES(double) : kFourierLanes;
inline constexpr int kVectors = kFourierLanes / kLanes;
inline constexpr std::int64_t kStep = 2 * kFourierLanes;

/// One complex number of a vector of signals.
struct Value {
  hn::Vec<D> re, im;
};

HWY_INLINE Value load(const double* from) { return {hn::LoadU(D(), from), hn::LoadU(D(), from + kFourierLanes)}; }
HWY_INLINE void store(const Value& x, double* to) {
  hn::StoreU(x.re, D(), to);
  hn::StoreU(x.im, D(), to + kFourierLanes);
}
HWY_INLINE Value add(const Value& x, const Value& y) { return {hn::Add(x.re, y.re), hn::Add(x.im, y.im)}; }
HWY_INLINE Value sub(const Value& x, const Value& y) { return {hn::Sub(x.re, y.re), hn::Sub(x.im, y.im)}; }
HWY_INLINE Value scaled(const Value& x, double factor) {
  return {hn::Mul(x.re, hn::Set(D(), factor)), hn::Mul(x.im, hn::Set(D(), factor))};
}
HWY_INLINE Value turned(const Value& x, Complex w) {
  const auto re = hn::Set(D(), w.re), im = hn::Set(D(), w.im);
  return {hn::Sub(hn::Mul(x.re, re), hn::Mul(x.im, im)), hn::Add(hn::Mul(x.re, im), hn::Mul(x.im, re))};
}
/// x times i * factor.
HWY_INLINE Value times_i(const Value& x, double factor) {
  return {hn::Mul(x.im, hn::Set(D(), -factor)), hn::Mul(x.re, hn::Set(D(), factor))};
}

/// One stage: of each group of `radix` values that lie `apart` from each other, a transform of that length, turned. The groups of a stage
/// that share their turns follow each other; there are `same` of them.
///
///     source  q + same * (j + groups * k)      target  q + same * (radix * j + k)      q < same, j < groups, k < radix
struct Stage {
  const Complex* turns;
  std::int64_t length, radix, groups, same;
  const double* from;
  double* to;
  Glances* glances;

  const double* source(std::int64_t q, std::int64_t j, std::int64_t k) const { return from + (q + same * (j + groups * k)) * kStep; }
  double* target(std::int64_t q, std::int64_t j, std::int64_t k) const { return to + (q + same * (radix * j + k)) * kStep; }
  Complex turn(std::int64_t j, std::int64_t k) const { return turns[j * k * same]; }
};

/// Calls body(q, j, v, w) for each group, in vectors of signals: v is the vector's place among the lanes, w the turns of k > 0.
template <int kRadix, class Body>
HWY_INLINE void each_group(const Stage& s, const Body& body) {
  for (std::int64_t j = 0; j < s.groups; ++j) {
    Complex w[kRadix];
    for (int k = 1; k < kRadix; ++k) w[k] = s.turn(j, k);
    for (std::int64_t q = 0; q < s.same; ++q)
      for (int v = 0; v < kVectors; ++v) body(q, j, v * kLanes, w);
  }
}

void stage_of_two(const Stage& s) {
  each_group<2>(s, [&](std::int64_t q, std::int64_t j, int v, const Complex* w) {
    const Value a = load(s.source(q, j, 0) + v), b = load(s.source(q, j, 1) + v);
    store(add(a, b), s.target(q, j, 0) + v);
    store(turned(sub(a, b), w[1]), s.target(q, j, 1) + v);
  });
}

void stage_of_three(const Stage& s) {
  const Complex third = s.turns[s.length / 3];
  each_group<3>(s, [&](std::int64_t q, std::int64_t j, int v, const Complex* w) {
    const Value a = load(s.source(q, j, 0) + v), b = load(s.source(q, j, 1) + v), c = load(s.source(q, j, 2) + v);
    const Value sum = add(b, c), middle = add(a, scaled(sum, third.re)), side = times_i(sub(b, c), third.im);
    store(add(a, sum), s.target(q, j, 0) + v);
    store(turned(add(middle, side), w[1]), s.target(q, j, 1) + v);
    store(turned(sub(middle, side), w[2]), s.target(q, j, 2) + v);
  });
}

void stage_of_four(const Stage& s) {
  const double quarter = s.turns[s.length / 4].im < 0 ? -1.0 : 1.0;
  each_group<4>(s, [&](std::int64_t q, std::int64_t j, int v, const Complex* w) {
    const Value a = load(s.source(q, j, 0) + v), b = load(s.source(q, j, 1) + v);
    const Value c = load(s.source(q, j, 2) + v), d = load(s.source(q, j, 3) + v);
    const Value even = add(a, c), odd = add(b, d), rest = sub(a, c), side = times_i(sub(b, d), quarter);
    store(add(even, odd), s.target(q, j, 0) + v);
    store(turned(add(rest, side), w[1]), s.target(q, j, 1) + v);
    store(turned(sub(even, odd), w[2]), s.target(q, j, 2) + v);
    store(turned(sub(rest, side), w[3]), s.target(q, j, 3) + v);
  });
}

void stage_of_five(const Stage& s) {
  const Complex one = s.turns[s.length / 5], two = s.turns[s.length / 5 * 2];
  each_group<5>(s, [&](std::int64_t q, std::int64_t j, int v, const Complex* w) {
    const Value a = load(s.source(q, j, 0) + v), b = load(s.source(q, j, 1) + v), c = load(s.source(q, j, 2) + v);
    const Value d = load(s.source(q, j, 3) + v), e = load(s.source(q, j, 4) + v);
    const Value be = add(b, e), cd = add(c, d), b_e = sub(b, e), c_d = sub(c, d);
    const Value x = add(a, add(scaled(be, one.re), scaled(cd, two.re))), y = add(a, add(scaled(be, two.re), scaled(cd, one.re)));
    const Value xi = add(times_i(b_e, one.im), times_i(c_d, two.im)), yi = sub(times_i(b_e, two.im), times_i(c_d, one.im));
    store(add(a, add(be, cd)), s.target(q, j, 0) + v);
    store(turned(add(x, xi), w[1]), s.target(q, j, 1) + v);
    store(turned(add(y, yi), w[2]), s.target(q, j, 2) + v);
    store(turned(sub(y, yi), w[3]), s.target(q, j, 3) + v);
    store(turned(sub(x, xi), w[4]), s.target(q, j, 4) + v);
  });
}

/// Any radix, by the definition: as many operations as a prime length is long, times itself.
void stage_of_any(const Stage& s) {
  const std::int64_t root = s.length / s.radix;
  for (std::int64_t j = 0; j < s.groups; ++j)
    for (std::int64_t k = 0; k < s.radix; ++k)
      for (std::int64_t q = 0; q < s.same && !s.glances->over(4 * s.radix); ++q)
        for (int v = 0; v < kVectors * kLanes; v += kLanes) {
          Value sum = load(s.source(q, j, 0) + v);
          for (std::int64_t n = 1, power = k; n < s.radix; ++n, power += k) {
            if (power >= s.radix) power -= s.radix;
            sum = add(sum, turned(load(s.source(q, j, n) + v), s.turns[power * root]));
          }
          store(turned(sum, s.turn(j, k)), s.target(q, j, k) + v);
        }
}

double* transform_here(const FourierPlan& plan, double* values, double* other) noexcept {
  std::int64_t same = 1, left = plan.length;
  Glances glances;
  for (int i = 0; i < plan.count; ++i) {
    const std::int64_t radix = plan.radices[static_cast<std::size_t>(i)];
    left /= radix;
    const Stage stage{plan.turns, plan.length, radix, left, same, values, other, &glances};
    const auto run = radix == 2   ? stage_of_two
                     : radix == 3 ? stage_of_three
                     : radix == 4 ? stage_of_four
                     : radix == 5 ? stage_of_five
                                  : stage_of_any;
    run(stage);
    same *= radix;
    std::swap(values, other);
  }
  return values;
}

using TransformFunction = double* (*)(const FourierPlan&, double*, double*) noexcept;
constexpr TransformFunction kTransform = transform_here;

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::plain
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::plain {
namespace {

using TransformFunction = double* (*)(const FourierPlan&, double*, double*) noexcept;

TransformFunction transform_for(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, kTransform) }

constexpr std::uint64_t kLine = 64;

std::uint64_t turns_bytes(std::int64_t length) noexcept {
  return (static_cast<std::uint64_t>(length) * sizeof(Complex) + kLine - 1) / kLine * kLine;
}
std::uint64_t values_bytes(std::int64_t length) noexcept { return static_cast<std::uint64_t>(length) * 2 * kFourierLanes * sizeof(double); }

/// exp(sign * 2 pi i k / length). Angles stay within an eighth of a turn, so that what is symmetric is exactly so: 0, 1 and -1 are.
Complex turn_of(std::int64_t k, std::int64_t length, double sign) noexcept {
  const std::int64_t eighths = 8 * k / length;
  const auto angle = [&](std::int64_t past) {
    return 2 * std::numbers::pi * static_cast<double>(past) / (8 * static_cast<double>(length));
  };
  const std::int64_t quarter = (eighths + 1) / 2;        // the nearest quarter turn
  const double x = angle(8 * k - 2 * quarter * length);  // from there
  const double c = std::cos(x), s = std::sin(x);
  const Complex turns[4] = {{c, s}, {-s, c}, {-c, -s}, {s, -c}};
  const Complex w = turns[quarter % 4];
  return {w.re, sign * w.im};
}

}  // namespace

double* transform(const FourierPlan& plan, double* values, double* other, Isa isa) noexcept {
  return transform_for(isa)(plan, values, other);
}

std::uint64_t fourier_scratch(std::int64_t length) noexcept { return turns_bytes(length) + 2 * values_bytes(length); }

FourierBatch::FourierBatch(std::int64_t length, bool inverse, std::byte* scratch) noexcept {
  plan_.length = length;
  auto* const turns = reinterpret_cast<Complex*>(scratch);
  for (std::int64_t k = 0; k < length; ++k) turns[k] = turn_of(k, length, inverse ? 1.0 : -1.0);
  plan_.turns = turns;
  values_ = reinterpret_cast<double*>(scratch + turns_bytes(length));
  other_ = values_ + length * kStep;
  if (inverse) scale_ = 1.0 / static_cast<double>(length);
  // Fours first: they take the fewest operations.
  std::int64_t left = length;
  for (std::int64_t radix = 4; left > 1;) {
    if (left % radix == 0) {
      plan_.radices[static_cast<std::size_t>(plan_.count++)] = radix;
      left /= radix;
    } else if (radix == 4) {
      radix = 2;
    } else {
      radix += radix == 2 ? 1 : 2;
      if (radix * radix > left) radix = left;  // what is left is a prime
    }
  }
}

}  // namespace sluice::kernels::plain
#endif  // HWY_ONCE

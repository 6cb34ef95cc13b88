// Fourier transforms of any length, several at once: the mixed-radix transform of Stockham, in double
// (docs/adr/0019-fourier-transforms.md).
//
//     signals   a b c d | e f g h      `kFourierLanes` transforms lie side by side, one a lane, so that every step of the transform
//     value 0   . . . . | . . . .      is the same operation on a vector; real signals are transformed two at a time, as the real and
//     value 1   . . . . | . . . .      the imaginary part of one
//
// Invariants: the order of every sum follows from the length alone, and no product is fused, so results are the same bits on every
// instruction set; nothing is allocated: tables and values lie in the scratch that `fourier_scratch` asks for.
#pragma once

#include <array>
#include <cstdint>
#include <numbers>

#include "sluice/core/cpu.h"
#include "sluice/kernels/turns.h"

namespace sluice::kernels::plain {

struct Complex {
  double re = 0, im = 0;
};

/// Transforms that are computed together.
inline constexpr int kFourierLanes = 4;

/// How a length is taken apart: radices, whose product it is; and the powers of its root of unity.
struct FourierPlan {
  static constexpr int kMostRadices = 32;
  std::int64_t length = 1;
  std::array<std::int64_t, kMostRadices> radices{};
  int count = 0;
  const Complex* turns = nullptr;  // [length]: exp(-2 pi i k / length), conjugated for the inverse
};

/// Transforms kFourierLanes signals; `values` are [length][real, imaginary][lane]. Returns which of the two buffers holds the result.
double* transform(const FourierPlan& plan, double* values, double* other, Isa isa) noexcept;

std::uint64_t fourier_scratch(std::int64_t length) noexcept;

/// The plan and the buffers of one length, in scratch.
class FourierBatch {
 public:
  /// Real signals: two a lane.
  static constexpr std::int64_t signals(bool real) noexcept { return real ? 2 * kFourierLanes : kFourierLanes; }

  FourierBatch(std::int64_t length, bool inverse, std::byte* scratch) noexcept;

  /// Transforms `count` signals. value(signal, n) gives a Complex, of which real signals use the real part; result(signal, k, Complex) is
  /// called for each k < `bins`. An inverse transform is divided by the length.
  template <class Value, class Result>
  void run(std::int64_t count, bool real, std::int64_t bins, const Value& value, const Result& result, Isa isa = active_isa()) noexcept {
    const std::int64_t together = signals(real);
    Glances glances;
    for (std::int64_t first = 0; first < count && !glances.over(together * plan_.length); first += together) {
      const std::int64_t here = count - first < together ? count - first : together;
      real ? load_pairs(first, here, value) : load_each(first, here, value);
      const double* const made = transform(plan_, values_, other_, isa);
      for (std::int64_t s = 0; s < here; ++s)
        for (std::int64_t k = 0; k < bins; ++k) {
          const Complex y = real ? of_pair(made, s, k) : at(made, s, k);
          result(first + s, k, Complex{y.re * scale_, y.im * scale_});
        }
    }
  }

 private:
  static constexpr std::int64_t kStep = 2 * kFourierLanes;

  static Complex at(const double* values, std::int64_t lane, std::int64_t k) noexcept {
    return {values[k * kStep + lane], values[k * kStep + kFourierLanes + lane]};
  }
  /// The transform of a real signal is symmetric, which tells the two of a lane apart.
  Complex of_pair(const double* values, std::int64_t signal, std::int64_t k) const noexcept {
    const Complex x = at(values, signal / 2, k), y = at(values, signal / 2, k == 0 ? 0 : plan_.length - k);
    if (signal % 2 == 0) return {(x.re + y.re) / 2, (x.im - y.im) / 2};
    return {(x.im + y.im) / 2, (y.re - x.re) / 2};
  }
  template <class Value>
  void load_each(std::int64_t first, std::int64_t here, const Value& value) noexcept {
    for (std::int64_t lane = 0; lane < kFourierLanes; ++lane)
      for (std::int64_t n = 0; n < plan_.length; ++n) {
        const Complex x = lane < here ? value(first + lane, n) : Complex{};
        values_[n * kStep + lane] = x.re;
        values_[n * kStep + kFourierLanes + lane] = x.im;
      }
  }
  template <class Value>
  void load_pairs(std::int64_t first, std::int64_t here, const Value& value) noexcept {
    for (std::int64_t s = 0; s < 2 * kFourierLanes; ++s)
      for (std::int64_t n = 0; n < plan_.length; ++n)
        values_[n * kStep + s % 2 * kFourierLanes + s / 2] = s < here ? value(first + s, n).re : 0.0;
  }

  FourierPlan plan_;
  double scale_ = 1.0;
  double* values_ = nullptr;
  double* other_ = nullptr;
};

}  // namespace sluice::kernels::plain

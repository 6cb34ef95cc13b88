#include "src/kernels/rounding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "sluice/core/half.h"
#include "sluice/core/panels.h"

namespace sluice::kernels {
namespace {

constexpr auto kLanes = static_cast<std::size_t>(kPanelLanes);

template <class T>
void put_rounded(std::byte* to, T value) noexcept {
  std::memcpy(to, &value, sizeof value);
}

/// The whole number nearest to value / scale, between `least` and `most`.
int nearest(float value, float scale, int least, int most) noexcept {
  if (scale == 0.0f) return 0;
  return std::clamp(static_cast<int>(std::nearbyint(value / scale)), least, most);
}

/// Values of one lane that share a scale.
using Group = std::array<float, kFourBitGroup>;

double squared_error(const Group& group, std::size_t count, float scale) noexcept {
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    const double error = static_cast<double>(group[i]) - static_cast<double>(scale) * nearest(group[i], scale, -8, 7);
    sum += error * error;
  }
  return sum;
}

/// The scale, as f16 bits, of the least squared error: from the one that makes the largest value -8 to smaller ones, which cut it off and
/// hold the others better.
std::uint16_t best_scale(const Group& group, std::size_t count) noexcept {
  constexpr int kTries = 20;
  constexpr float kLeast = 0.7f, kMost = 1.15f;  // beyond these none was best, of 10,000 groups of normal and of uniform values
  const auto larger = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
  const float extreme = *std::max_element(group.begin(), group.begin() + static_cast<std::ptrdiff_t>(count), larger);
  if (extreme == 0.0f) return 0;
  std::uint16_t best = 0;
  double least = INFINITY;
  for (int i = 0; i < kTries; ++i) {
    const float share = kLeast + (kMost - kLeast) * static_cast<float>(i) / (kTries - 1);
    const std::uint16_t scale = f16_of_float(extreme / -8.0f * share);
    const double error = squared_error(group, count, float_of_f16(scale));
    if (error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

}  // namespace

void round_to_eight_bits(std::span<const float> values, std::byte* out) noexcept {
  std::array<float, kLanes> scales{};
  for (std::size_t i = 0; i < values.size(); ++i) scales[i % kLanes] = std::max(scales[i % kLanes], std::fabs(values[i]));
  for (float& scale : scales) scale /= 127.0f;
  std::memcpy(out, scales.data(), sizeof scales);  // the zero points behind them are zeros
  std::byte* const to = out + 2 * sizeof scales;
  for (std::size_t i = 0; i < values.size(); ++i)
    put_rounded(to + i, static_cast<std::int8_t>(nearest(values[i], scales[i % kLanes], -127, 127)));
}

void round_to_four_bits(std::span<const float> values, std::byte* out) noexcept {
  constexpr std::size_t kHead = kLanes * sizeof(std::uint16_t), kGroupBytes = kHead + kFourBitGroup / 2 * kLanes;
  const std::size_t each = values.size() / kLanes;  // of a lane
  for (std::size_t first = 0; first < each; first += kFourBitGroup, out += kGroupBytes) {
    const std::size_t count = std::min<std::size_t>(kFourBitGroup, each - first);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      Group group{};
      for (std::size_t i = 0; i < count; ++i) group[i] = values[(first + i) * kLanes + lane];
      const std::uint16_t scale = best_scale(group, count);
      put_rounded(out + lane * sizeof scale, scale);
      for (std::size_t i = 0; i < kFourBitGroup; ++i) {
        const auto q = static_cast<std::byte>(nearest(group[i], float_of_f16(scale), -8, 7) + 8);
        out[kHead + i / 2 * kLanes + lane] |= q << (i % 2 * 4);
      }
    }
  }
}

}  // namespace sluice::kernels

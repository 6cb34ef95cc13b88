#include "src/quantiser/ranges.h"

#include <algorithm>
#include <cmath>

namespace sluice::quantiser {
namespace {

constexpr float kSteps = 255;
/// Below this a scale is no normal float any more once it is multiplied by a weight's.
constexpr float kLeastScale = 1e-20f;

}  // namespace

std::string_view name_of(Method method) noexcept {
  constexpr std::string_view kNames[] = {"minmax", "percentile", "mse", "auto"};
  return kNames[static_cast<int>(method)];
}

float Range::scale() const noexcept { return high - low > kLeastScale * kSteps ? (high - low) / kSteps : 1.0f; }

int Range::zero() const noexcept { return static_cast<int>(std::clamp(std::nearbyint(-low / scale()), 0.0f, kSteps)); }

void Range::include(const Range& other) noexcept {
  low = std::min(low, other.low);
  high = std::max(high, other.high);
}

void Histogram::add(std::span<const float> values) {
  if (bins_.empty()) bins_.resize(kBins);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    ++count_;
    if (value == 0.0f) {
      ++zeros_;
      continue;
    }
    lowest_ = std::min(lowest_, value);
    highest_ = std::max(highest_, value);
    if (!(value >= start_ && value < start_ + width_)) widen(value);
    const double bin = (value - start_) / width_ * static_cast<double>(kBins);
    ++bins_[std::min(static_cast<std::size_t>(bin), kBins - 1)];
  }
}

void Histogram::widen(float value) {
  if (width_ == 0) {
    width_ = 2.0 * std::abs(static_cast<double>(value));
    start_ = value > 0 ? 0 : -width_;
    // The end belongs to the interval's neighbour, and to the right of zero nothing is negative.
    return;
  }
  while (!(value >= start_ && value < start_ + width_)) {
    const bool down = value < start_;
    std::vector<std::uint64_t> merged(kBins);
    for (std::size_t bin = 0; bin < kBins; ++bin) merged[bin / 2 + (down ? kBins / 2 : 0)] += bins_[bin];
    bins_ = std::move(merged);
    if (down) start_ -= width_;
    width_ *= 2;
  }
}

double Histogram::middle(std::size_t bin) const noexcept {
  return start_ + (static_cast<double>(bin) + 0.5) * width_ / static_cast<double>(kBins);
}

Range Histogram::range(Method method, double percentile) const {
  if (method == Method::kPercentile) return cut(percentile);
  if (method == Method::kError) return least_error();
  return {lowest_, highest_};
}

/// Half of the clipped values are at each end; all at one end if values have one sign.
Range Histogram::cut(double percentile) const {
  const bool two_ends = lowest_ < 0 && highest_ > 0;
  const double most = static_cast<double>(count_) * (1.0 - percentile / 100.0) / (two_ends ? 2.0 : 1.0);
  const auto end = [&](std::size_t first, int step) {
    double passed = 0;
    for (std::size_t i = 0; i < kBins; ++i) {
      const std::size_t bin = first + static_cast<std::size_t>(step) * i;
      passed += static_cast<double>(bins_[bin]);
      if (passed > most) return static_cast<float>(middle(bin));
    }
    return 0.0f;
  };
  if (width_ == 0) return {};
  return {std::min(0.0f, std::max(lowest_, end(0, 1))), std::max(0.0f, std::min(highest_, end(kBins - 1, -1)))};
}

/// The squared error of rounding inside, evenly spread over a step, and of clipping outside.
double Histogram::error_of(const Range& range) const noexcept {
  const double step = range.scale();
  double error = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    if (bins_[bin] == 0) continue;
    const double value = middle(bin), inside = std::clamp<double>(value, range.low, range.high);
    error += static_cast<double>(bins_[bin]) * ((value - inside) * (value - inside) + (value == inside ? step * step / 12.0 : 0.0));
  }
  return error;
}

/// Each end alternately moves through shares of its maximum; more rounds find nothing better.
Range Histogram::least_error() const {
  constexpr int kShares = 100, kRounds = 2;
  const Range whole{lowest_, highest_};
  Range best = whole;
  double least = error_of(best);
  const auto try_range = [&](const Range& range) {
    const double error = error_of(range);
    if (error < least) {
      least = error;
      best = range;
    }
  };
  for (int share = 1; share < kShares; ++share) {
    const float part = static_cast<float>(share) / kShares;
    try_range({whole.low * part, whole.high * part});
  }
  for (int round = 0; round < kRounds; ++round)
    for (const bool high : {true, false}) {
      const Range start = best;
      for (int share = 1; share <= kShares; ++share) {
        const float part = static_cast<float>(share) / kShares;
        try_range(high ? Range{start.low, whole.high * part} : Range{whole.low * part, start.high});
      }
    }
  return best;
}

}  // namespace sluice::quantiser

#include "src/quantiser/codebook.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::quantiser {
namespace {

constexpr std::size_t kValues = std::tuple_size_v<CodeWeights>;

double value_of(std::size_t i) noexcept { return static_cast<double>(i) - kMostCode; }

/// Sums of weights, of weighted values and of weighted squares of the values before each.
struct Sums {
  std::array<double, kValues + 1> weight{}, first{}, second{};

  explicit Sums(const CodeWeights& weights) noexcept {
    for (std::size_t i = 0; i < kValues; ++i) {
      weight[i + 1] = weight[i] + weights[i];
      first[i + 1] = first[i] + weights[i] * value_of(i);
      second[i + 1] = second[i] + weights[i] * value_of(i) * value_of(i);
    }
  }
  double mean(std::size_t begin, std::size_t end) const noexcept {
    const double count = weight[end] - weight[begin];
    return count > 0 ? (first[end] - first[begin]) / count : 0;
  }
  /// The squared error of replacing the values [begin, end) by their mean.
  double error(std::size_t begin, std::size_t end) const noexcept {
    const double count = weight[end] - weight[begin], sum = first[end] - first[begin];
    return count > 0 ? std::max(second[end] - second[begin] - sum * sum / count, 0.0) : 0;
  }
};

}  // namespace

std::vector<int> fit_codes(const CodeWeights& weights, std::size_t count) {
  const Sums sums(weights);
  const auto used = static_cast<std::size_t>(std::count_if(weights.begin(), weights.end(), [](double w) { return w > 0; }));
  count = std::min(count, used);
  // least[e]: the least error of the values before e in so many runs; from[c][e]: where the last of c + 1 runs begins.
  std::array<double, kValues + 1> least;
  least.fill(std::numeric_limits<double>::infinity());
  least[0] = 0;
  std::vector<std::array<std::uint16_t, kValues + 1>> from(count);
  for (std::size_t c = 0; c < count; ++c) {
    std::array<double, kValues + 1> next;
    next.fill(std::numeric_limits<double>::infinity());
    for (std::size_t end = 1; end <= kValues; ++end)
      for (std::size_t begin = 0; begin < end; ++begin) {
        const double error = least[begin] + sums.error(begin, end);
        if (!(error < next[end])) continue;
        next[end] = error;
        from[c][end] = static_cast<std::uint16_t>(begin);
      }
    least = next;
  }
  std::vector<int> codes;
  for (std::size_t c = count, end = kValues; c-- > 0;) {
    const std::size_t begin = from[c][end];
    if (sums.weight[end] > sums.weight[begin]) codes.push_back(static_cast<int>(std::nearbyint(sums.mean(begin, end))));
    end = begin;
  }
  std::sort(codes.begin(), codes.end());
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  return codes;
}

std::array<std::int8_t, 2 * kMostCode + 1> nearest_codes(const std::vector<int>& codes) {
  std::array<std::int8_t, kValues> nearest{};
  for (std::size_t i = 0; i < kValues; ++i) {
    const int value = static_cast<int>(i) - kMostCode;
    const auto nearer = [&](int a, int b) { return std::abs(a - value) < std::abs(b - value); };
    if (const auto found = std::min_element(codes.begin(), codes.end(), nearer); found != codes.end())
      nearest[i] = static_cast<std::int8_t>(*found);
  }
  return nearest;
}

}  // namespace sluice::quantiser

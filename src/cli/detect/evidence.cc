#include "src/cli/detect/evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::cli::detect {
namespace {

constexpr double kCutOff = 0.2;  // at each end
constexpr double kFewAreLessSure =
    10;  // as Student's t is wider than the normal distribution where chance is to give an answer once in 30,000
constexpr double kFusedAbove = 0.2, kApartBelow = 0.4, kSeparatorTakesPart = -0.5;  // shares of the operator's time
constexpr double kSure = 4;        // standard errors, as a hundred patterns are asked about, and again with each block
constexpr double kAboveNoise = 4;  // of an operator's own time

}  // namespace

Estimate estimate_of(std::vector<double> samples) {
  const std::size_t count = samples.size();
  if (count < 2) return {count == 0 ? 0 : samples[0], std::numeric_limits<double>::infinity()};
  std::sort(samples.begin(), samples.end());
  const auto cut = static_cast<std::size_t>(kCutOff * static_cast<double>(count));
  const auto size = static_cast<double>(count);
  const double low = samples[cut], high = samples[count - 1 - cut];
  double inner = 0, all = 0, squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i >= cut && i < count - cut) inner += samples[i];
    all += std::clamp(samples[i], low, high);
  }
  for (const double sample : samples) squares += std::pow(std::clamp(sample, low, high) - all / size, 2);
  const double kept = size - 2 * static_cast<double>(cut);
  const double error = std::sqrt(squares / (size - 1)) * size / kept / std::sqrt(size);
  return {inner / kept, (1 + kFewAreLessSure / size) * error};
}

Verdict verdict_of(const Estimate& saving, const Estimate& cost) {
  const auto distance = [&](double share) {
    const double error = std::hypot(saving.error, share * cost.error);
    return (saving.middle - share * cost.middle) / std::max(error, 1e-9);
  };
  const double above = distance(kFusedAbove), below = -distance(kApartBelow);
  Verdict verdict{.fused = {}, .p_value = 0.5 * std::erfc(std::max(above, below) / std::sqrt(2.0))};
  if (!(cost.middle > kAboveNoise * cost.error)) return verdict;
  if (above > kSure && above >= below)
    verdict.fused = true;
  else if (below > kSure && saving.middle > kSeparatorTakesPart * cost.middle)
    verdict.fused = false;
  return verdict;
}

}  // namespace sluice::cli::detect

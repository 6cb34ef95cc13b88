#include "src/cli/detect/evidence.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

namespace sluice::cli::detect {
namespace {

constexpr double kLowShare = 0.25;
constexpr double kFewAreLessSure =
    10;  // times so many blocks: ideal noise passes four errors once in 2,000 of eight blocks, in 7,000 of twelve
constexpr double kRounding = 0.41;  // standard deviation of the difference of two answers that are rounded to whole ones
constexpr double kFusedAbove = 0.2, kApartBelow = 0.45, kSeparatorTakesPart = -0.5;  // shares of the operator's time
constexpr double kMostSaved = 2;                                                     // of the dearer one's
constexpr double kSure = 4;        // standard errors, as a hundred patterns are asked about, and again with each block
constexpr double kAboveNoise = 4;  // of an operator's own time

/// The lower quarter of the answers for a model, which need not be a whole number of them.
class LowQuarter {
 public:
  LowQuarter(std::span<const double> answers, std::size_t block) : block_(block), ranks_(answers.size()), sorted_(answers.size()) {
    std::vector<std::size_t> order(answers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return answers[a] < answers[b]; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      ranks_[order[i]] = i;
      sorted_[i] = answers[order[i]];
    }
    without_slow_ = mean_without(std::vector<std::size_t>(block, answers.size()));
  }

  double mean() const { return mean_without({}); }
  /// Of all answers but those of one block. Of most blocks none is in the quarter.
  double mean_without_block(std::size_t i) const {
    const auto ranks = std::span(ranks_).subspan(i * block_, block_);
    const auto reached = static_cast<std::size_t>(kLowShare * static_cast<double>(sorted_.size())) + block_ + 1;
    return *std::min_element(ranks.begin(), ranks.end()) > reached ? without_slow_ : mean_without(ranks);
  }
  const std::vector<double>& sorted() const noexcept { return sorted_; }

 private:
  double mean_without(std::span<const std::size_t> ranks) const {
    const double all = std::max(1.0, kLowShare * static_cast<double>(sorted_.size() - ranks.size()));
    double left = all, sum = 0;
    for (std::size_t i = 0; i < sorted_.size() && left > 0; ++i) {
      if (std::find(ranks.begin(), ranks.end(), i) != ranks.end()) continue;
      const double share = std::min(1.0, left);
      sum += share * sorted_[i];
      left -= share;
    }
    return sum / all;
  }

  std::size_t block_;
  double without_slow_ = 0;
  std::vector<std::size_t> ranks_;  // of the answers, in the order in which they came
  std::vector<double> sorted_;
};

/// What answers are rounded to, as far as they tell: the least that two of them differ by. Infinite where all are one.
double least_gap(const LowQuarter& a, const LowQuarter& b) {
  std::vector<double> all;
  std::merge(a.sorted().begin(), a.sorted().end(), b.sorted().begin(), b.sorted().end(), std::back_inserter(all));
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i] > all[i - 1]) least = std::min(least, all[i] - all[i - 1]);
  return least;
}

}  // namespace

Estimate difference_of(std::span<const double> less, std::span<const double> more, std::size_t block) {
  const std::size_t blocks = std::min(less.size(), more.size()) / block, count = blocks * block;
  if (blocks == 0) return {0, std::numeric_limits<double>::infinity()};
  const LowQuarter low(less.first(count), block), high(more.first(count), block);
  const double difference = high.mean() - low.mean();
  if (blocks < 2) return {difference, std::numeric_limits<double>::infinity()};
  std::vector<double> without(blocks);
  for (std::size_t i = 0; i < blocks; ++i) without[i] = high.mean_without_block(i) - low.mean_without_block(i);
  const auto size = static_cast<double>(blocks);
  const double mean = std::accumulate(without.begin(), without.end(), 0.0) / size;
  double squares = 0;
  for (const double each : without) squares += (each - mean) * (each - mean);
  const double error = std::hypot(std::sqrt((size - 1) / size * squares), kRounding * least_gap(low, high));
  return {difference, (1 + kFewAreLessSure / size) * error};
}

Verdict verdict_of(const Estimate& saving, const Estimate& cost, double dearer) {
  const auto distance = [&](double share) {
    const double error = std::hypot(saving.error, share * cost.error);
    return (saving.middle - share * cost.middle) / std::max(error, 1e-9);
  };
  const double above = distance(kFusedAbove), below = -distance(kApartBelow);
  Verdict verdict{.fused = {}, .p_value = 0.5 * std::erfc(std::max(above, below) / std::sqrt(2.0))};
  if (!(cost.middle > kAboveNoise * cost.error)) return verdict;
  if (above > kSure && above >= below && saving.middle < kMostSaved * dearer)
    verdict.fused = true;
  else if (below > kSure && below > above && saving.middle > kSeparatorTakesPart * cost.middle)
    verdict.fused = false;
  return verdict;
}

}  // namespace sluice::cli::detect

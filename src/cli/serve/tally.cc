#include "src/cli/serve/tally.h"

#include <algorithm>
#include <cmath>

namespace sluice::cli::serve_detail {
namespace {

using scheduler::kNever;
using scheduler::Outcome;
using scheduler::Time;

constexpr double kWidth = 1.01;
// 1.01 to this power is more than a day of nanoseconds.
constexpr std::size_t kBoxes = 3230;

std::size_t box_of(Time latency) noexcept {
  if (latency <= 1) return 0;
  const auto box = static_cast<std::size_t>(std::log(static_cast<double>(latency)) / std::log(kWidth));
  return std::min(box, kBoxes - 1);
}

/// As far from one end of the box as from the other, as a ratio.
Time middle_of(std::size_t box) noexcept { return static_cast<Time>(std::pow(kWidth, static_cast<double>(box) + 0.5)); }

}  // namespace

void LatencySketch::add(Time latency) {
  ++count_;
  sum_ += static_cast<double>(latency);
  if (boxes_.empty()) {
    if (first_.size() < kExact) {
      first_.push_back(latency);
      return;
    }
    boxes_.resize(kBoxes);
    for (const Time earlier : first_) ++boxes_[box_of(earlier)];
  }
  ++boxes_[box_of(latency)];
}

Time LatencySketch::percentile(double share) const {
  if (count_ == 0) return 0;
  const auto rank = std::max<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))), 1);
  if (boxes_.empty()) {
    std::vector<Time> sorted = first_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(rank - 1)];
  }
  std::uint64_t seen = 0;
  std::size_t box = 0;
  while ((seen += boxes_[box]) < rank) ++box;
  return middle_of(box);
}

void Tally::add(const Served& served) {
  const scheduler::JobResult& result = served.result;
  const bool completed = result.outcome == Outcome::kMet || result.outcome == Outcome::kLate;
  for (ModelTally* const tally : {&all_, &models_[result.model.index()]}) {
    ++tally->ended;
    tally->met += result.outcome == Outcome::kMet;
    if (completed) tally->latencies.add(result.ended - result.submitted);
  }
  checked_ += served.checked;
  wrong_ += served.wrong;
  if (!completed || result.predicted >= kNever) return;
  const auto said = static_cast<double>(result.predicted - result.submitted);
  ++told_;
  told_well_ += std::abs(static_cast<double>(result.ended - result.submitted) - said) <= 0.15 * said;
}

std::size_t Tally::bytes() const noexcept {
  std::size_t sum = all_.latencies.bytes() + models_.capacity() * sizeof(ModelTally);
  for (const ModelTally& model : models_) sum += model.latencies.bytes();
  return sum;
}

}  // namespace sluice::cli::serve_detail

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
constexpr std::size_t kBuckets = 3230;

std::size_t bucket_of(Time latency) noexcept {
  if (latency <= 1) return 0;
  const auto bucket = static_cast<std::size_t>(std::log(static_cast<double>(latency)) / std::log(kWidth));
  return std::min(bucket, kBuckets - 1);
}

/// The geometric middle of a bucket.
Time middle_of(std::size_t bucket) noexcept { return static_cast<Time>(std::pow(kWidth, static_cast<double>(bucket) + 0.5)); }

}  // namespace

void LatencySketch::add(Time latency) {
  ++count_;
  sum_ += static_cast<double>(latency);
  if (buckets_.empty()) {
    if (first_.size() < kExact) {
      first_.push_back(latency);
      return;
    }
    buckets_.resize(kBuckets);
    for (const Time earlier : first_) ++buckets_[bucket_of(earlier)];
  }
  ++buckets_[bucket_of(latency)];
}

Time LatencySketch::percentile(double share) const {
  if (count_ == 0) return 0;
  const auto rank = std::max<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))), 1);
  if (buckets_.empty()) {
    std::vector<Time> sorted = first_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(rank - 1)];
  }
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  while ((seen += buckets_[bucket]) < rank) ++bucket;
  return middle_of(bucket);
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

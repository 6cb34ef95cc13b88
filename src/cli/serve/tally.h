// What came of the requests of a run, in memory that does not grow with their number: counts, and latencies of which percentiles are asked.
//
//     JobResult --add--> Tally, of all models and of each --> counts, percentiles
//
// A sketch keeps the first latencies as they are, and its percentiles are exact as long as there are no more. After that a histogram
// counts all, in buckets of 1 %: a percentile is then the middle of its bucket, at most 0.5 % off. A full sketch takes 33 KB.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sluice/scheduler/scheduler.h"

namespace sluice::cli::serve_detail {

class LatencySketch {
 public:
  static constexpr std::size_t kExact = 1024;

  LatencySketch() { first_.reserve(kExact); }

  /// Allocates once, when it is not exact any more.
  void add(scheduler::Time latency);
  std::uint64_t count() const noexcept { return count_; }
  double mean() const noexcept { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  /// The least latency that a share of all does not exceed; 0 of none.
  scheduler::Time percentile(double share) const;
  std::size_t bytes() const noexcept { return first_.capacity() * sizeof(scheduler::Time) + buckets_.capacity() * sizeof(std::uint64_t); }

 private:
  std::vector<scheduler::Time> first_;
  std::vector<std::uint64_t> buckets_;  // by bucket_of; empty while all are in first_
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

/// Counts of one model, or of all.
struct ModelTally {
  std::uint64_t ended = 0, met = 0;
  LatencySketch latencies;  // of completed jobs
};

struct Served {
  scheduler::JobResult result;
  bool checked = false;  // its outputs were compared with the model's alone...
  bool wrong = false;    // ...and differed
};

class Tally {
 public:
  explicit Tally(std::size_t models = 0) : models_(models) {}

  void add(const Served& served);
  const ModelTally& all() const noexcept { return all_; }
  const ModelTally& model(std::size_t m) const noexcept { return models_[m]; }
  std::uint64_t checked() const noexcept { return checked_; }
  std::uint64_t wrong() const noexcept { return wrong_; }
  /// Completed jobs whose end was said when they came, and those of them whose latency was within 15 % of what was said.
  std::uint64_t told() const noexcept { return told_; }
  std::uint64_t told_well() const noexcept { return told_well_; }
  std::size_t bytes() const noexcept;

 private:
  ModelTally all_;
  std::vector<ModelTally> models_;
  std::uint64_t checked_ = 0, wrong_ = 0, told_ = 0, told_well_ = 0;
};

}  // namespace sluice::cli::serve_detail

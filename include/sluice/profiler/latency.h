// The latency model: work (kernels::CostFeatures) and a DeviceProfile give seconds. docs/cost-model.md has the formulas and their errors.
//
// A step of a kernel that was measured:
//
//     seconds = (a + b*flops + c*input + d*output + e*weight + f*beyond bytes) * exp(r)      a..f >= 0, fitted to all samples of it
//
// where r is the mean of the samples' own deviations ln(measured / fitted), each weighing 1 / distance^4 in the logarithms of the
// work, beside a weight of 1 for "no deviation": a shape that was measured gets its own time, one that resembles it a share of what the
// fit misses there, one far from all only the fit. Rejected: the fit alone (20-40 % off by shape), a forest of trees (no better on 30
// samples).
//
// A step of a kernel that was not measured takes the longer of its arithmetic and its traffic, plus what its activations take from and to
// memory because a core's own cache does not hold them, plus its dispatch.
//
// A load is read in pieces; what is read is verified, beside the next piece if several are in flight, else after it.
//
// Invariants: results are finite and positive for a profile that keeps its invariants.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "sluice/core/units.h"
#include "sluice/kernels/kernel.h"
#include "sluice/model/graph.h"
#include "sluice/profiler/device_profile.h"

namespace sluice::profiler {

namespace detail {

/// The entries of one kernel in a vector that is sorted by kernel.
template <class Entry>
std::span<const Entry> of_kernel(const std::vector<Entry>& entries, UsedKernel kernel) noexcept {
  const auto first = std::partition_point(entries.begin(), entries.end(), [&](const Entry& e) { return e.kernel < kernel; });
  const auto last = std::partition_point(first, entries.end(), [&](const Entry& e) { return e.kernel <= kernel; });
  return {first, last};
}

inline double fitted_seconds(const KernelRates& rates, const kernels::CostFeatures& work) noexcept {
  const Terms terms = terms_of(work);
  double seconds = 0;
  for (std::size_t i = 0; i < kTerms; ++i) seconds += rates.seconds_per[i] * terms[i];
  return seconds;
}

inline WorkPoint point_of(const kernels::CostFeatures& work) noexcept {
  const Terms terms = terms_of(work);
  WorkPoint point;
  for (std::size_t i = 0; i < point.size(); ++i) point[i] = std::log(terms[i + 1] + 1);
  return point;
}

/// r of the formula above.
inline double deviation_at(std::span<const KernelSample> samples, const WorkPoint& point) noexcept {
  constexpr double kNearest = 1e-3;  // keeps the weight of a sample of the very shape finite
  double weights = 1;
  double sum = 0;
  for (const KernelSample& sample : samples) {
    double d2 = kNearest;
    for (std::size_t i = 0; i < point.size(); ++i) d2 += (point[i] - sample.point[i]) * (point[i] - sample.point[i]);
    const double weight = 1 / (d2 * d2);
    weights += weight;
    sum += weight * sample.deviation;
  }
  return sum / weights;
}

inline double measured_seconds(const KernelRates& rates, std::span<const KernelSample> samples,
                               const kernels::CostFeatures& work) noexcept {
  return fitted_seconds(rates, work) * std::exp(deviation_at(samples, point_of(work)));
}

/// Bytes per second of pieces of `piece` bytes, between the sizes measured in proportion to the logarithm.
inline double read_rate(std::span<const ReadRate> rates, double piece) noexcept {
  const auto above =
      std::find_if(rates.begin(), rates.end(), [&](const ReadRate& r) { return static_cast<double>(r.piece_bytes) >= piece; });
  if (above == rates.end()) return rates.back().bytes_per_second;
  if (above == rates.begin()) {  // smaller than all: as long as the smallest one
    return rates.front().bytes_per_second * piece / static_cast<double>(rates.front().piece_bytes);
  }
  const ReadRate& below = *(above - 1);
  const double share = std::log(piece / static_cast<double>(below.piece_bytes)) /
                       std::log(static_cast<double>(above->piece_bytes) / static_cast<double>(below.piece_bytes));
  return below.bytes_per_second + share * (above->bytes_per_second - below.bytes_per_second);
}

/// One step on this CPU itself.
inline double full_speed_seconds(const DeviceProfile& profile, UsedKernel kernel, const model::Node& node,
                                 const kernels::CostFeatures& work) noexcept {
  const auto rates = of_kernel(profile.kernels, kernel);
  if (!rates.empty()) {
    return measured_seconds(rates.front(), of_kernel(profile.samples, kernel), work) + profile.step_overhead_seconds;
  }
  const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
  const double rate = conv != nullptr && conv->depthwise() ? profile.depthwise_flops_per_second : profile.flops_per_second;
  // Four products of bytes go where one of f32 goes; what is done to their sums does not.
  constexpr double kIntegerSpeed = 3;
  const double speed = node.numeric == model::NumericClass::kInt8 ? kIntegerSpeed : 1;
  const double arithmetic = static_cast<double>(work.flops) / (rate * speed * profile.threads);
  // A core's own cache is this much faster than memory: 40 to 60 GB/s against 10 to 15.
  constexpr double kCacheSpeed = 4;
  const double beyond = terms_of(work).back();
  const double near = (static_cast<double>(work.input_bytes + work.output_bytes) - beyond) / kCacheSpeed;
  const double traffic = (near + static_cast<double>(work.weight_bytes)) / profile.memory_bytes_per_second;
  return std::max(arithmetic, traffic) + beyond / profile.memory_bytes_per_second + profile.step_overhead_seconds;
}

}  // namespace detail

/// Seconds of one step of `node`.
inline double step_seconds(const DeviceProfile& profile, UsedKernel kernel, const model::Node& node,
                           const kernels::CostFeatures& work) noexcept {
  return detail::full_speed_seconds(profile, kernel, node, work) * profile.compute_slowdown;
}

/// Is a step of so many seconds on `threads` threads no faster for them? What they save is less than it costs to bring them together.
inline bool runs_alone(const DeviceProfile& profile, double seconds, int threads) noexcept {
  const double shared = std::max(0.0, seconds / profile.compute_slowdown - profile.step_overhead_seconds);
  return threads > 1 && shared * (threads - 1) < profile.share_seconds;
}

/// What `bytes` of activations cost a step more because they come from memory and not from a core's own cache.
inline double seconds_beyond_cache(const DeviceProfile& profile, UsedKernel kernel, std::uint64_t bytes) noexcept {
  const auto rates = detail::of_kernel(profile.kernels, kernel);
  const double each = rates.empty() ? 1 / profile.memory_bytes_per_second : rates.front().seconds_per.back();
  return static_cast<double>(bytes) * each * profile.compute_slowdown;
}

/// Seconds of one load of `bytes` when the loader is busy with others before and after it; else load_start_seconds come before it.
inline double load_seconds(const DeviceProfile& profile, Bytes bytes) noexcept {
  const auto size = static_cast<double>(bytes.count());
  const std::uint32_t depth = profile.reads_in_flight;
  double reading = size / profile.read_bytes_per_second;
  const auto first = std::find_if(profile.reads.begin(), profile.reads.end(), [&](const ReadRate& r) { return r.depth >= depth; });
  if (first != profile.reads.end()) {
    const auto last = std::find_if(first, profile.reads.end(), [&](const ReadRate& r) { return r.depth != first->depth; });
    reading = size / detail::read_rate({first, last}, std::min(size, static_cast<double>(profile.read_piece_bytes)));
  }
  reading /= profile.read_rate_beside_compute;
  if (profile.read_limit > 0) reading = std::max(reading, size / profile.read_limit);
  const double verifying = profile.reads.empty() ? size / profile.verify_bytes_per_second : 0;  // measured rates count it
  return depth > 1 ? std::max(reading, verifying) : reading + verifying;
}

/// How to read on this device: of the ways within 3 % of the fastest, which is less than two measurements differ by, the one with the
/// fewest bytes in flight, which a cancelled or failed run waits for. Of equal ones the larger pieces: fewer system calls. Where nothing
/// was measured, as the profile says.
inline ReadRate best_reads(DeviceProfile profile) {
  constexpr double kAsFast = 1 / 0.97;
  constexpr Bytes kLongLoad{64u << 20};
  const auto seconds = [&](const ReadRate& reads) {
    profile.reads_in_flight = reads.depth;
    profile.read_piece_bytes = reads.piece_bytes;
    return load_seconds(profile, kLongLoad);
  };
  const auto order = [](const ReadRate& reads) { return std::pair(reads.piece_bytes * reads.depth, reads.depth); };
  ReadRate best{profile.reads_in_flight, profile.read_piece_bytes, 0};
  if (profile.reads.empty()) return best;
  double least = seconds(profile.reads.front());
  for (const ReadRate& reads : profile.reads) least = std::min(least, seconds(reads));
  for (const ReadRate& reads : profile.reads) {
    if (seconds(reads) > kAsFast * least) continue;
    if (best.bytes_per_second == 0 || order(reads) < order(best)) best = reads;
  }
  return best;
}

/// The factor on the steps of a run for the reading beside them (`beside_reads`: DeviceProfile::step_time_beside_reads): the same for all,
/// by the share of the run that reads.
inline double slowdown(double beside_reads, double compute_seconds, double reading_seconds) noexcept {
  if (compute_seconds <= 0) return 1;
  return 1 + (beside_reads - 1) * std::min(1.0, reading_seconds / compute_seconds);
}

}  // namespace sluice::profiler

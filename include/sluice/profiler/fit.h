// Fits a kernel's rates and correction to its samples: what latency.h reads.
//
//  1. rates: least squares of errors relative to the fitted time, in rounds: each takes the times of the one before, the first the measured ones.
//     (Relative to the measured time what took longer than usual counts less, and sums over steps, as a net's time is, come out too short.) The
//     minimum of a round with no rate below zero is found exactly (src/profiler/fit.cc), so that more work never lessens the fit.
//  2. weights: the deviations y = ln(measured / fitted) are taken for a random field over scaled features whose values at two places agree
//     as far as these are alike: weights = (K + noise)^-1 y. Scales of features and noise are those for which each sample is predicted
//     best from the others, which one inverse says of all at once: left_out_i = weight_i / inverse_ii.
//
// The same field says how little is known of a step that was not measured (uncertainty): the profiler measures there next.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/profiler/device_profile.h"
#include "sluice/profiler/latency.h"

namespace sluice::profiler {

/// Least squares of errors, each in a unit of its sample's own: one round. All samples are of one kernel; at least one, and as many units. If
/// several choices of rates are equally good, as with samples that are all beyond the caches, it is one of them.
KernelRates closest_rates(std::span<const KernelSample> samples, std::span<const double> units, detail::TileExtent tile);

/// The rates of 1. above: several such rounds.
KernelRates fit_rates(std::span<const KernelSample> samples, detail::TileExtent tile);

/// Appends one kernel's samples, at their places, with their weights.
inline void place_samples(const KernelRates& rates, std::span<const KernelSample> samples, detail::TileExtent tile,
                          std::vector<PlacedSamples>& to) {
  constexpr double kMostWeight = 1e100;  // of a hostile profile: sums of such shares are numbers
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const std::size_t lane = s % kAbreast;
    if (lane == 0) to.emplace_back();
    const Features place = detail::place_of(samples[s].work, rates.scales, tile);
    for (std::size_t f = 0; f < kFeatures; ++f) to.back().places[f][lane] = place[f];
    to.back().weights[lane] = std::clamp(samples[s].weight, -kMostWeight, kMostWeight);
  }
}

/// DeviceRates::usual_flop_seconds: the fastest of what layers are fitted to; 0 where none was measured.
inline double usual_flop_seconds(const DeviceProfile& profile) noexcept {
  using namespace kernels::kernel_id;
  constexpr std::size_t kOfFlops = 1;
  double least = 0;
  for (const KernelRates& rates : profile.kernels) {
    const KernelId id = rates.kernel.kernel;
    const bool layer = (id == kConvPointwise || id == kConvDirect || id == kDense) && rates.kernel.use == KernelUse::kRun;
    const double seconds = layer && rates.kernel.variant == 0 ? rates.seconds_per[kOfFlops] : 0;
    if (seconds > 0 && (least == 0 || seconds < least)) least = seconds;
  }
  return least;
}

/// Of all kernels whose rates are fitted: makes `placed` follow from `kernels` and `samples`.
inline void place_samples(DeviceProfile& profile) {
  profile.usual_flop_seconds = usual_flop_seconds(profile);
  profile.placed.clear();
  const detail::TileExtent tile = detail::tile_of(profile);
  for (KernelRates& rates : profile.kernels) {
    rates.first_placed = static_cast<std::uint32_t>(profile.placed.size());
    place_samples(rates, detail::of_kernel(profile.samples, rates.kernel), tile, profile.placed);
    rates.placed_count = static_cast<std::uint32_t>(profile.placed.size()) - rates.first_placed;
  }
}

/// The uncertainty at each candidate, as a share of the uncertainty far from all samples: 0 at a sample, 1 far from all.
std::vector<double> uncertainty(const KernelRates& rates, std::span<const KernelSample> samples, std::span<const StepWork> candidates,
                                detail::TileExtent tile);

/// Sorts the samples and calls `body(samples of one kernel)` for each kernel in turn.
template <class Body>
void for_each_kernel(std::vector<KernelSample>& samples, const Body& body) {
  const auto by_kernel = [](const KernelSample& a, const KernelSample& b) { return a.kernel < b.kernel; };
  sluice::stable_sort(samples.begin(), samples.end(), by_kernel);
  for (auto first = samples.begin(); first != samples.end();) {
    const auto last = std::upper_bound(first, samples.end(), *first, by_kernel);
    body(std::span<KernelSample>(first, last));
    first = last;
  }
}

/// Rates of the same depth, by rising size: where a larger piece seems slower than a smaller one, that is noise, and they share their mean.
inline void smooth_rates(std::vector<ReadRate>& rates) {
  for (auto first = rates.begin(); first != rates.end();) {
    const auto last = std::find_if(first, rates.end(), [&](const ReadRate& r) { return r.depth != first->depth; });
    struct Run {
      double sum;
      std::ptrdiff_t count;
      double mean() const noexcept { return sum / static_cast<double>(count); }
    };
    std::vector<Run> runs;
    for (auto rate = first; rate != last; ++rate) {
      runs.push_back({rate->bytes_per_second, 1});
      for (; runs.size() > 1 && runs[runs.size() - 2].mean() > runs.back().mean(); runs.pop_back()) {
        runs[runs.size() - 2].sum += runs.back().sum;
        runs[runs.size() - 2].count += runs.back().count;
      }
    }
    for (const Run& run : runs)
      for (std::ptrdiff_t i = 0; i < run.count; ++i) (first++)->bytes_per_second = run.mean();
  }
}

/// Fits every kernel that has samples. Variants of a kernel with few samples take the rates of all variants together, times one factor, kernels
/// with very few those of an f32 kernel like them, or usual ones.
void fit(DeviceProfile& profile);

}  // namespace sluice::profiler

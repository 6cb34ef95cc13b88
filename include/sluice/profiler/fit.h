// Fits a kernel's rates to its samples: the terms of latency.h, none below zero, so that more work never lessens the fit.
//
// Least squares of relative errors: each sample's row of terms is divided by its seconds, and the fit of all of them is to be 1. The
// minimum with no rate below zero is found exactly (src/profiler/fit.cc).
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "sluice/profiler/device_profile.h"
#include "sluice/profiler/latency.h"

namespace sluice::profiler {

/// The minimum of the sum above. All samples are of one kernel; at least one. Where several choices of rates are as good, as with samples
/// that all lie beyond the caches, one of them.
KernelRates fit_rates(std::span<const KernelSample> samples);

/// Fills in what samples of one kernel are beside its rates.
inline void place_samples(const KernelRates& rates, std::span<KernelSample> samples) {
  for (KernelSample& sample : samples) {
    sample.point = detail::point_of(sample.work);
    sample.deviation = std::log(sample.seconds / detail::fitted_seconds(rates, sample.work));
  }
}

/// Sorts the samples and calls `body(samples of one kernel)` for each kernel in turn.
template <class Body>
void for_each_kernel(std::vector<KernelSample>& samples, const Body& body) {
  const auto by_kernel = [](const KernelSample& a, const KernelSample& b) { return a.kernel < b.kernel; };
  std::stable_sort(samples.begin(), samples.end(), by_kernel);
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

/// Fits every kernel that has samples.
inline void fit(DeviceProfile& profile) {
  profile.kernels.clear();
  for_each_kernel(profile.samples, [&](std::span<KernelSample> samples) {
    profile.kernels.push_back(fit_rates(samples));
    place_samples(profile.kernels.back(), samples);
  });
}

/// Median |predicted - measured| / measured over samples of one kernel, each predicted from the others: what a new shape may expect.
inline double typical_error(std::span<const KernelSample> samples) {
  std::vector<double> errors;
  for (std::size_t left_out = 0; left_out < samples.size() && samples.size() > 1; ++left_out) {
    std::vector<KernelSample> others(samples.begin(), samples.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    const KernelRates rates = fit_rates(others);
    place_samples(rates, others);
    const KernelSample& sample = samples[left_out];
    errors.push_back(std::abs(detail::measured_seconds(rates, others, sample.work) / sample.seconds - 1));
  }
  if (errors.empty()) return 0;
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

}  // namespace sluice::profiler

#include "src/profiler/device_ratios.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sluice/profiler/latency.h"

namespace sluice::profiler {
namespace {

// Standard deviations of what is expected before anything is measured, all of logarithms.
constexpr double kOfProducts = 1;
constexpr double kOfOthers = 0.4, kOfBytes = 0.4, kOfFarBytes = 0.4;
constexpr double kOfKernel = 0.25;  // beyond the common factor
constexpr double kOfStep = 0.06;    // what a step is missed by there and here together

static_assert(kTerms == 21, "a new term counts bytes, far bytes or neither: say which below");

/// Terms of terms.h that count bytes that caches which cores share have lost.
bool counts_far_bytes(KernelId kernel, std::size_t term) noexcept {
  return term == 10 || term == 15 || (term == detail::kOfLargeOutput && detail::is_dense_or_pool(kernel));
}

/// Terms that count other bytes.
bool counts_bytes(KernelId kernel, std::size_t term) noexcept {
  constexpr unsigned kAll = 1u << 2 | 1u << 3 | 1u << 9;
  constexpr unsigned kOthers = 1u << 4 | 1u << detail::kOfLargeOutput | 1u << detail::kOfLargeInput | 1u << 16 | 1u << 17;
  constexpr unsigned kRecurrent = kAll | 1u << 4;
  const unsigned beyond = 1u << (kTerms - 1) | 1u << detail::kFromOthers;  // of direct convolutions that is the input walked over again
  const unsigned counted = detail::is_recurrent(kernel)   ? kRecurrent
                           : detail::is_depthwise(kernel) ? kAll | beyond
                                                          : kAll | kOthers | beyond;
  return (counted >> term & 1) != 0;
}

double sum_of(const StepParts& parts) noexcept { return parts.arithmetic + parts.bytes + parts.far_bytes; }

/// One of the unknowns, and how far it is expected from 0.
struct Unknown {
  double* value;
  double deviation;
};

}  // namespace

StepParts parts_of(const KernelRates& rates, const StepWork& work, detail::TileExtent tile) noexcept {
  const Terms terms = detail::terms_of(rates.kernel.kernel, work, tile);
  StepParts parts;
  for (std::size_t i = 0; i < kTerms; ++i) {
    double& part = counts_far_bytes(rates.kernel.kernel, i) ? parts.far_bytes
                   : counts_bytes(rates.kernel.kernel, i)   ? parts.bytes
                                                            : parts.arithmetic;
    part += rates.seconds_per[i] * terms[i];
  }
  parts.products = work.cost.weight_bytes > 0 && !detail::by_value(rates.kernel.kernel) && !detail::is_recurrent(rates.kernel.kernel);
  return parts;
}

double DeviceRatios::arithmetic(UsedKernel kernel, bool products) const noexcept {
  const auto more = log_more_.find(kernel);
  return std::exp((products ? log_products_ : log_others_) + (more != log_more_.end() ? more->second : 0));
}

double DeviceRatios::bytes() const noexcept { return std::exp(log_bytes_); }
double DeviceRatios::far_bytes() const noexcept { return std::exp(log_far_); }

double DeviceRatios::seconds(UsedKernel kernel, const StepParts& there) const noexcept {
  return arithmetic(kernel, there.products) * there.arithmetic + bytes() * there.bytes + far_bytes() * there.far_bytes;
}

/// Goes down the sum of squares of (ln(seconds here / those predicted) / kOfStep) and of the unknowns over their deviations, one unknown after
/// another.
DeviceRatios::DeviceRatios(std::span<const TimedThere> steps) {
  std::vector<TimedThere> all;
  for (const TimedThere& step : steps)
    if (std::isfinite(step.here) && std::isfinite(1 / sum_of(step.there)) && step.here > 0 && sum_of(step.there) > 0) all.push_back(step);
  for (const TimedThere& step : all) log_more_.emplace(step.kernel, 0.0);
  std::vector<Unknown> unknowns = {
      {&log_products_, kOfProducts}, {&log_others_, kOfOthers}, {&log_bytes_, kOfBytes}, {&log_far_, kOfFarBytes}};
  for (auto& [kernel, more] : log_more_) unknowns.push_back({&more, kOfKernel});
  const auto depends = [&](const TimedThere& step, const Unknown& unknown) {
    const StepParts& there = step.there;
    if (unknown.value == &log_bytes_) return bytes() * there.bytes / seconds(step.kernel, there);
    if (unknown.value == &log_far_) return far_bytes() * there.far_bytes / seconds(step.kernel, there);
    const bool its = unknown.value == (there.products ? &log_products_ : &log_others_) || unknown.value == &log_more_.at(step.kernel);
    return its ? arithmetic(step.kernel, there.products) * there.arithmetic / seconds(step.kernel, there) : 0.0;
  };
  constexpr int kRounds = 300;
  constexpr double kFarthest = 0.5;  // at once: where most of a time becomes little, the slope there says too much
  for (int round = 0; round < kRounds; ++round) {
    for (const Unknown& unknown : unknowns) {
      double slope = -*unknown.value / (unknown.deviation * unknown.deviation), curve = 1 / (unknown.deviation * unknown.deviation);
      for (const TimedThere& step : all) {
        const double changes = depends(step, unknown), missed = std::log(step.here / seconds(step.kernel, step.there));
        slope += changes * missed / (kOfStep * kOfStep);
        curve += changes * changes / (kOfStep * kOfStep);
      }
      *unknown.value += std::clamp(slope / curve, -kFarthest, kFarthest);
    }
  }
}

}  // namespace sluice::profiler

// A profile of one device made one of another (measure.h).
//
// The other device's rates split each step's time into arithmetic and bytes; a few measured steps say how much longer either takes here
// (device_ratios.h). Then the other's samples become what this device would have given, and the fit is made anew. Steps are chosen among those that
// were measured there, if it can be: what is known of them is more than the rates.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sluice/core/affinity.h"
#include "sluice/core/cpu.h"
#include "sluice/profiler/fit.h"
#include "sluice/profiler/measure.h"
#include "src/core/out_of_memory.h"
#include "src/profiler/device_ratios.h"
#include "src/profiler/sample_graph.h"
#include "src/profiler/sampler.h"

namespace sluice::profiler {
namespace {

class Transfer {
 public:
  Transfer(DeviceProfile other, const TransferOptions& options)
      : profile_(std::move(other)), options_(options), built_in_(sample_graph()) {}

  Result<DeviceProfile> run() {
    const ScopedAffinity processors(processors_to_compute_on(options_.threads));
    SLUICE_ASSIGN_OR_RETURN(StepTimer timer, StepTimer::create(options_.threads, options_.memory));
    const double others = timer.watch_others();
    const std::vector<Candidate> candidates = candidates_of(built_in_, timer);
    group(candidates);
    choose();
    SLUICE_RETURN_IF_ERROR(measure(timer));
    apply();
    profile_.others_bytes_per_second = others;
    return std::move(profile_);
  }

 private:
  static constexpr std::uint64_t kRunBytes = 16 << 20;  // a middling net's
  static constexpr std::size_t kOfLargeRun = 5;         // with so many measurements or more one is in a run that no cache holds

  /// One kernel, in one of its variants.
  struct Kind {
    std::vector<std::pair<double, const Candidate*>> measured, others;  // there; by rising seconds
    double share = 0;
  };

  const KernelRates* rates_there(UsedKernel kernel) const noexcept {
    const auto exact = detail::of_kernel(profile_.kernels, kernel);
    return exact.empty() ? nullptr : &exact.front();
  }

  double seconds_there(const Candidate& candidate, const StepWork& work) const {
    const double seconds = step_seconds(profile_, candidate.kernel, candidate.request.node, work) - profile_.step_overhead_seconds;
    return seconds / (1 + profile_.interruptions.share);
  }

  bool was_measured(const Candidate& candidate) const {
    const auto samples = detail::of_kernel(profile_.samples, candidate.kernel);
    return std::any_of(samples.begin(), samples.end(), [&](const KernelSample& s) { return same_step(s.work, candidate.work); });
  }

  /// Whole, uncut steps of the kernels that the other profile knows.
  void group(const std::vector<Candidate>& candidates) {
    for (const Candidate& candidate : candidates) {
      if (rates_there(candidate.kernel) == nullptr || candidate.kernel.use != KernelUse::kRun) continue;
      Kind& kind = kinds_[candidate.kernel];
      StepWork work = candidate.work;
      work.run_bytes = work.shared_bytes = kRunBytes;
      const double seconds = seconds_there(candidate, work);
      (was_measured(candidate) ? kind.measured : kind.others).emplace_back(seconds, &candidate);
      kind.share += usual_share(candidate, NetType::kF32) * seconds;
    }
    for (auto& [kernel, kind] : kinds_) {
      std::sort(kind.measured.begin(), kind.measured.end());
      std::sort(kind.others.begin(), kind.others.end());
    }
  }

  std::vector<const Kind*> by_share() const {
    std::vector<const Kind*> kinds;
    for (const auto& [kernel, kind] : kinds_) kinds.push_back(&kind);
    std::sort(kinds.begin(), kinds.end(), [](const Kind* a, const Kind* b) { return a->share > b->share; });
    return kinds;
  }

  /// A longer step of what is usual of each kernel, of those with the largest share; a shorter one where there are few kernels.
  void choose() {
    for (const double place : {0.6, 0.3})
      for (const Kind* kind : by_share()) {
        if (chosen_.size() + (options_.most < kOfLargeRun ? 0 : 1) == options_.most) return;
        const auto& from = kind->measured.empty() ? kind->others : kind->measured;
        const Candidate* const candidate = from[static_cast<std::size_t>(place * static_cast<double>(from.size() - 1))].second;
        if (std::find(chosen_.begin(), chosen_.end(), candidate) == chosen_.end()) chosen_.push_back(candidate);
      }
  }

  /// Of a step that takes `there` seconds in all, by the other's measurements.
  StepParts parts_there(UsedKernel kernel, const StepWork& work, double there, detail::TileExtent tile) const {
    const KernelRates& rates = *rates_there(kernel);
    const double fitted = std::max(detail::fitted_seconds(rates, work, detail::tile_of(profile_)), detail::kLeastSeconds);
    StepParts parts = parts_of(rates, work, tile);
    parts.arithmetic *= there / fitted;
    parts.bytes *= there / fitted;
    parts.far_bytes *= there / fitted;
    const double sum = parts.arithmetic + parts.bytes + parts.far_bytes;
    if (!std::isfinite(sum) || sum <= 0) return {.arithmetic = there, .products = parts.products};  // rates that say nothing of this tile
    return parts;
  }

  /// Of the chosen steps the one that waits longest for bytes in a large run, for its share of the time.
  const Candidate* farthest(std::uint64_t run_bytes) const {
    const auto share = [&](const Candidate* candidate) {
      StepWork work = candidate->work;
      work.run_bytes = run_bytes;
      return parts_there(candidate->kernel, work, 1, detail::tile_of(profile_)).far_bytes;
    };
    return *std::max_element(chosen_.begin(), chosen_.end(), [&](const Candidate* a, const Candidate* b) { return share(a) < share(b); });
  }

  Status time_round(StepTimer& timer, const std::vector<const Candidate*>& steps, std::uint64_t run_bytes) {
    constexpr double kSeconds = 2;
    StepTimer::Turn turn{{}, run_bytes};
    for (const Candidate* candidate : steps) turn.steps.push_back(candidate->request);
    SLUICE_ASSIGN_OR_RETURN(const StepTimer::TimedTurn timed, timer.time_in_turn(turn, kSeconds));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!timed[i]) continue;
      const Candidate& candidate = *steps[i];
      StepWork work = candidate.work;
      work.run_bytes = timed[i]->run_bytes;
      work.shared_bytes = timed[i]->shared_bytes;
      const double here = detail::without_interruptions(profile_.interruptions, timed[i]->seconds);
      timed_.push_back({candidate.kernel, parts_there(candidate.kernel, work, seconds_there(candidate, work), tile_), here});
    }
    return {};
  }

  /// Measures all of them in one round, and one in another.
  Status measure(StepTimer& timer) {
    SLUICE_RETURN_IF_ERROR(time_round(timer, chosen_, kRunBytes));
    if (options_.most < kOfLargeRun || chosen_.empty()) return {};
    return time_round(timer, {farthest(timer.most_run_bytes())}, timer.most_run_bytes());
  }

  /// Samples as this device would have given them, and the fit to them.
  void apply() {
    const DeviceRatios ratios(timed_);
    for (KernelSample& sample : profile_.samples)
      if (rates_there(sample.kernel) != nullptr)
        sample.seconds = std::clamp(ratios.seconds(sample.kernel, parts_there(sample.kernel, sample.work, sample.seconds, tile_)),
                                    kLeastStepSeconds, kMostStepSeconds);
    profile_.device = device_name();
    profile_.isa = name_of(active_isa());
    profile_.threads = options_.threads;
    fit(profile_);
    constexpr double kMoreError = 2;  // than where each kernel was measured
    for (KernelRates& rates : profile_.kernels) rates.error *= kMoreError;
  }

  DeviceProfile profile_;
  const TransferOptions& options_;
  model::Graph built_in_;
  const detail::TileExtent tile_ = detail::tile_of(name_of(active_isa()), options_.threads);
  std::map<UsedKernel, Kind> kinds_;
  std::vector<const Candidate*> chosen_;
  std::vector<TimedThere> timed_;
};

}  // namespace

Result<DeviceProfile> transfer_profile(DeviceProfile other, const TransferOptions& options) {
  if (options.threads < 1 || options.most < 1)
    return fail(ErrorCode::kInvalidArgument, "transfer", "a profile is of at least one thread and one measurement");
  if (other.kernels.empty()) return fail(ErrorCode::kInvalidArgument, "transfer", "the other profile has no measured kernels");
  return or_out_of_memory("profile", [&] { return Transfer(std::move(other), options).run(); });
}

}  // namespace sluice::profiler

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
#include "src/profiler/middle.h"
#include "src/profiler/quiet.h"
#include "src/profiler/sample_graph.h"
#include "src/profiler/sampler.h"
#include "src/profiler/stopwatch.h"

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
    SLUICE_RETURN_IF_ERROR(timer.set_anchor(anchor_request(built_in_)));
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
    std::vector<const Candidate*> measured, others;  // there
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
      const bool whole = candidate.request.share >= 1 && candidate.request.share_of_rows >= 1;
      if (rates_there(candidate.kernel) == nullptr || candidate.kernel.use != KernelUse::kRun || !whole) continue;
      Kind& kind = kinds_[candidate.kernel];
      StepWork work = candidate.work;
      work.run_bytes = work.shared_bytes = kRunBytes;
      (was_measured(candidate) ? kind.measured : kind.others).push_back(&candidate);
      kind.share += usual_share(candidate, NetType::kF32) * seconds_there(candidate, work);
    }
  }

  std::vector<const Kind*> by_share() const {
    std::vector<const Kind*> kinds;
    for (const auto& [kernel, kind] : kinds_) kinds.push_back(&kind);
    std::sort(kinds.begin(), kinds.end(), [](const Kind* a, const Kind* b) { return a->share > b->share; });
    return kinds;
  }

  /// Of the steps of whole panels, as most nets have them, the half that computes most, by the share of their time: what others wait for says
  /// little of how fast this device computes. (A depthwise layer whose maps no core's own cache holds took 37 us, and 97 two minutes later.)
  std::vector<const Candidate*> computing(const std::vector<const Candidate*>& steps) const {
    const auto share = [&](const Candidate* candidate) { return shares_there(*candidate, kRunBytes).arithmetic; };
    std::vector<const Candidate*> whole;
    for (const Candidate* step : steps)
      if (step->work.shape.channels % model::kPanelLanes == 0) whole.push_back(step);
    if (whole.empty()) whole = steps;
    std::vector<double> shares;
    for (const Candidate* candidate : whole) shares.push_back(share(candidate));
    const double middle = middle_of(shares);
    std::erase_if(whole, [&](const Candidate* candidate) { return share(candidate) < middle; });
    return whole;
  }

  /// The same steps, first those that are near all others.
  std::vector<const Candidate*> most_usual_first(const std::vector<const Candidate*>& steps) const {
    std::vector<Features> places;
    for (const Candidate* step : steps) places.push_back(detail::features_of(step->work, tile_));
    std::vector<std::pair<double, const Candidate*>> far;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      far.emplace_back(0, steps[i]);
      for (const Features& other : places) {
        double squares = 0;
        for (std::size_t f = 0; f < kFeatures; ++f) squares += (places[i][f] - other[f]) * (places[i][f] - other[f]);
        far.back().first += std::sqrt(squares);
      }
    }
    std::stable_sort(far.begin(), far.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<const Candidate*> sorted;
    for (const auto& [distance, step] : far) sorted.push_back(step);
    return sorted;
  }

  /// The most usual step of each kernel, of those with the largest share; where there are few kernels, the next one, too.
  void choose() {
    const std::size_t most = options_.most - (options_.most < kOfLargeRun ? 0 : 1);
    for (const std::size_t place : {0, 1})
      for (const Kind* kind : by_share()) {
        if (chosen_.size() >= most) return;
        const std::vector<const Candidate*> from = most_usual_first(computing(kind->measured.empty() ? kind->others : kind->measured));
        const auto next =
            std::find_if(from.begin(), from.end(), [&](const Candidate* c) { return place == 0 || !same_step(c->work, from[0]->work); });
        if (next != from.end()) chosen_.push_back(*next);
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

  /// The shares of a step's time there, in a run of so many bytes.
  StepParts shares_there(const Candidate& candidate, std::uint64_t run_bytes) const {
    StepWork work = candidate.work;
    work.run_bytes = work.shared_bytes = run_bytes;
    return parts_there(candidate.kernel, work, 1, detail::tile_of(profile_));
  }

  /// Of the chosen steps the one that waits longest for bytes in a large run, for its share of the time.
  const Candidate* farthest(std::uint64_t run_bytes) const {
    const auto share = [&](const Candidate* candidate) { return shares_there(*candidate, run_bytes).far_bytes; };
    return *std::max_element(chosen_.begin(), chosen_.end(), [&](const Candidate* a, const Candidate* b) { return share(a) < share(b); });
  }

  /// Steps that are measured together, and what each took, one value for each time.
  struct Round {
    std::vector<const Candidate*> steps;
    std::uint64_t run_bytes;
    std::vector<std::vector<TimedOnce>> times{};
    StepTimer::TimedTurn last{};
  };

  Status time_once_more(StepTimer& timer, Round& round) {
    constexpr double kSeconds = 1.5;
    StepTimer::Turn turn{{}, round.run_bytes};
    for (const Candidate* candidate : round.steps) turn.steps.push_back(candidate->request);
    SLUICE_ASSIGN_OR_RETURN(round.last, timer.time_in_turn(turn, kSeconds));
    round.times.resize(round.steps.size());
    for (std::size_t i = 0; i < round.steps.size(); ++i) {
      if (!round.last[i]) continue;
      round.times[i].push_back({round.last[i]->anchors, round.last[i]->seconds});
      anchor_seconds_.push_back(round.times[i].back().anchor_seconds());
    }
    return {};
  }

  /// Measures all of them in one round, and one in another; both in turn for half a minute, since a shared machine is slower for seconds, and
  /// only those times count at which it was quiet (quiet.h).
  Status measure(StepTimer& timer) {
    constexpr int kLeastTimes = 3, kMostTimes = 100;
    constexpr double kMostSeconds = 24;
    std::vector<Round> rounds{{chosen_, kRunBytes}};
    if (options_.most >= kOfLargeRun && !chosen_.empty()) rounds.push_back({{farthest(timer.most_run_bytes())}, timer.most_run_bytes()});
    const Clock::time_point start = Clock::now();
    const auto more = [&](int times) {
      const bool early = seconds_since(start) < kMostSeconds;
      return times < kLeastTimes || (early && times < kMostTimes);
    };
    for (int time = 0; more(time); ++time)
      for (Round& round : rounds) SLUICE_RETURN_IF_ERROR(time_once_more(timer, round));
    profile_.anchor_seconds = 0;
    if (anchor_seconds_.empty()) return {};
    const QuietMachine quiet(anchor_seconds_);
    profile_.anchor_seconds = quiet.anchor_seconds();
    for (const Round& round : rounds)
      for (std::size_t i = 0; i < round.steps.size(); ++i)
        if (round.last[i]) add(*round.steps[i], *round.last[i], quiet.seconds_of(round.times[i]));
    return {};
  }

  void add(const Candidate& candidate, const TimedStep& timed, double seconds) {
    StepWork work = candidate.work;
    work.run_bytes = timed.run_bytes;
    work.shared_bytes = timed.shared_bytes;
    const double here = detail::without_interruptions(profile_.interruptions, seconds);
    timed_.push_back({candidate.kernel, parts_there(candidate.kernel, work, seconds_there(candidate, work), tile_), here});
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
  std::vector<double> anchor_seconds_;  // by measurement
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

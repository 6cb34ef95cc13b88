// A profile of one device made one of another (measure.h).
//
// Kernels of one kind (its number; whether it runs whole, derived or prepares is the same code) are slower by one factor, and, where two
// steps of the kind are measured, by one that grows or falls with the time itself: scale and tilt. A kind that is not measured takes the
// mean of those that are like it, products of weights or not.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sluice/core/affinity.h"
#include "sluice/core/cpu.h"
#include "sluice/profiler/fit.h"
#include "sluice/profiler/measure.h"
#include "src/core/out_of_memory.h"
#include "src/profiler/sample_graph.h"
#include "src/profiler/sampler.h"

namespace sluice::profiler {
namespace {

/// ln(here / there) of one measured step, and ln of its seconds there.
struct Ratio {
  double there = 0;
  double ratio = 0;
};

struct Line {
  double scale = 0;
  double tilt = 0;
  double at(double there) const noexcept { return scale + tilt * there; }
};

/// The line through all ratios of a kind; level if their times are close together.
Line line_through(const std::vector<Ratio>& ratios) {
  constexpr double kApart = 1;  // a factor of e
  constexpr double kSteepest = 0.15;
  double there = 0, ratio = 0;
  for (const Ratio& r : ratios) there += r.there, ratio += r.ratio;
  const auto count = static_cast<double>(ratios.size());
  there /= count, ratio /= count;
  double spread = 0, product = 0;
  for (const Ratio& r : ratios) {
    spread += (r.there - there) * (r.there - there);
    product += (r.there - there) * (r.ratio - ratio);
  }
  const double tilt = spread > kApart * kApart / 2 ? std::clamp(product / spread, -kSteepest, kSteepest) : 0;
  return {ratio - tilt * there, tilt};
}

class Transfer {
 public:
  Transfer(DeviceProfile other, const TransferOptions& options)
      : profile_(std::move(other)), options_(options), built_in_(sample_graph()) {}

  Result<DeviceProfile> run() {
    const ScopedAffinity processors(processors_to_compute_on(options_.threads));
    SLUICE_ASSIGN_OR_RETURN(StepTimer timer, StepTimer::create(options_.threads));
    const std::vector<Candidate> candidates = candidates_of(built_in_, timer);
    group(candidates);
    choose();
    SLUICE_RETURN_IF_ERROR(measure(timer));
    apply();
    return std::move(profile_);
  }

 private:
  static constexpr std::uint64_t kRunBytes = 16 << 20;  // a middling net's

  struct Kind {
    KernelId kernel = KernelId::kNone;
    std::vector<std::pair<double, const Candidate*>> candidates;  // by rising seconds there
    double share = 0;
  };

  double seconds_there(const Candidate& candidate, std::uint64_t run_bytes) const {
    StepWork work = candidate.work;
    work.run_bytes = run_bytes;
    const double seconds = step_seconds(profile_, candidate.kernel, candidate.request.node, work) - profile_.step_overhead_seconds;
    return seconds / (1 + profile_.interruptions.share);
  }

  /// Whole, uncut steps of the kernels that the other profile knows.
  void group(const std::vector<Candidate>& candidates) {
    for (const Candidate& candidate : candidates) {
      const KernelRates* const rates = detail::rates_of(profile_, candidate.kernel, candidate.kernel.variant);
      if (rates == nullptr || rates->kernel != candidate.kernel || candidate.kernel.use != KernelUse::kRun) continue;
      Kind& kind = kinds_[candidate.kernel.kernel];
      kind.kernel = candidate.kernel.kernel;
      kind.candidates.emplace_back(seconds_there(candidate, kRunBytes), &candidate);
      kind.share += kind.candidates.back().first;
    }
    for (auto& [kernel, kind] : kinds_) std::sort(kind.candidates.begin(), kind.candidates.end());
  }

  std::vector<const Kind*> by_share() const {
    std::vector<const Kind*> kinds;
    for (const auto& [kernel, kind] : kinds_) kinds.push_back(&kind);
    std::sort(kinds.begin(), kinds.end(), [](const Kind* a, const Kind* b) { return a->share > b->share; });
    return kinds;
  }

  /// The first kinds get two measurements each, a short and a long step of what is usual; later ones one.
  void choose() {
    constexpr std::size_t kTwice = 3;
    std::size_t kinds = 0;
    for (const Kind* kind : by_share()) {
      if (chosen_.size() == options_.most) return;
      const bool twice = kinds++ < kTwice && chosen_.size() + 2 <= options_.most;
      for (const double place : twice ? std::vector<double>{0.3, 0.8} : std::vector<double>{0.6})
        chosen_.push_back(kind->candidates[static_cast<std::size_t>(place * static_cast<double>(kind->candidates.size() - 1))].second);
    }
  }

  /// Measures all of them in one round.
  Status measure(StepTimer& timer) {
    constexpr double kSeconds = 1.5;
    StepTimer::Turn turn{{}, kRunBytes};
    for (const Candidate* candidate : chosen_) turn.steps.push_back(candidate->request);
    SLUICE_ASSIGN_OR_RETURN(const StepTimer::TimedTurn timed, timer.time_in_turn(turn, kSeconds));
    std::map<KernelId, std::vector<Ratio>> ratios;
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      if (!timed.steps[i]) continue;
      const double there = seconds_there(*chosen_[i], timed.run_bytes);
      const double seconds = detail::without_interruptions(profile_.interruptions, timed.steps[i]->seconds);
      ratios[chosen_[i]->kernel.kernel].push_back({std::log(there), std::log(seconds / there)});
    }
    for (const auto& [kernel, of_kind] : ratios) lines_[kernel] = line_through(of_kind);
    return {};
  }

  static bool multiplies(const KernelSample& sample) {
    return sample.work.cost.weight_bytes > 0 && !detail::by_value(sample.kernel.kernel);
  }

  /// Samples as this device would have given them, and the fit to them.
  void apply() {
    std::map<bool, std::vector<double>> of_class;
    for (const KernelSample& sample : profile_.samples)
      if (const auto line = lines_.find(sample.kernel.kernel); line != lines_.end())
        of_class[multiplies(sample)].push_back(line->second.at(std::log(sample.seconds)));
    const auto mean = [&](bool products) {
      const std::vector<double>& all = of_class[products].empty() ? of_class[!products] : of_class[products];
      double sum = 0;
      for (const double ratio : all) sum += ratio;
      return all.empty() ? 0.0 : sum / static_cast<double>(all.size());
    };
    for (KernelSample& sample : profile_.samples) {
      const auto line = lines_.find(sample.kernel.kernel);
      sample.seconds *= std::exp(line != lines_.end() ? line->second.at(std::log(sample.seconds)) : mean(multiplies(sample)));
    }
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
  std::map<KernelId, Kind> kinds_;
  std::map<KernelId, Line> lines_;
  std::vector<const Candidate*> chosen_;
};

}  // namespace

Result<DeviceProfile> transfer_profile(DeviceProfile other, const TransferOptions& options) {
  if (options.threads < 1 || options.most < 1)
    return fail(ErrorCode::kInvalidArgument, "transfer", "a profile is of at least one thread and one measurement");
  if (other.kernels.empty()) return fail(ErrorCode::kInvalidArgument, "transfer", "the other profile has no measured kernels");
  return or_out_of_memory("profile", [&] { return Transfer(std::move(other), options).run(); });
}

}  // namespace sluice::profiler

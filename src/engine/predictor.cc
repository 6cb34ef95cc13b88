#include "sluice/engine/predictor.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sluice/kernels/registry.h"
#include "sluice/planner/stream/expect.h"
#include "sluice/profiler/latency.h"
#include "src/core/out_of_memory.h"
#include "src/engine/expected_peak.h"
#include "src/engine/plan_costs.h"
#include "src/engine/planning.h"

namespace sluice {
namespace {

/// Nine tenths of a normal distribution are within so many standard deviations of its mean.
constexpr double kNineTenths = 1.645;

/// Adds up what steps may be off by, in milliseconds (predictor.h).
class ErrorSum {
 public:
  ErrorSum(const profiler::DeviceProfile& profile) : profile_(profile) {}

  void add(const profiler::UsedKernel& kernel, double ms) {
    Kernel& of_kernel = entry_of(kernel);
    const double deviation = ms * of_kernel.relative_error;
    of_kernel.sum += deviation;
    apart_ += deviation * deviation;
    computing_ += ms;
  }

  /// The deviation of a run that takes `ms` in all: what is not computing is waiting for reads.
  double deviation(double ms) const {
    constexpr double kTogether = 0.2;
    double variance = (1 - kTogether) * apart_;
    for (const Kernel& kernel : together_) variance += kTogether * kernel.sum * kernel.sum;
    const double common = profile_.common_error * computing_;
    const double reading = profile_.read_error * std::max(0.0, ms - computing_);
    return std::sqrt(variance + common * common + reading * reading);
  }

 private:
  struct Kernel {
    std::uint64_t key = 0;
    double relative_error = 0, sum = 0;
  };
  /// Nets have few kernels.
  Kernel& entry_of(const profiler::UsedKernel& kernel) {
    const std::uint64_t key =
        (std::uint64_t{static_cast<std::uint16_t>(kernel.kernel)} << 8 | static_cast<std::uint8_t>(kernel.use)) << 16 | kernel.variant;
    for (Kernel& entry : together_)
      if (entry.key == key) return entry;
    return together_.emplace_back(Kernel{key, profiler::relative_error(profile_, kernel, kernel.variant)});
  }

  const profiler::DeviceProfile& profile_;
  std::vector<Kernel> together_;
  double apart_ = 0;
  double computing_ = 0;
};

Bytes bytes_read_by(const plan::Plan& plan) {
  Bytes bytes;
  for (const plan::Load& load : plan.loads)
    if (!plan.repeat || load.streamed()) bytes += load.file.size;
  return bytes;
}

/// `deviation`: as a share of the time.
void set_interval(LatencyPrediction& prediction, double deviation) {
  // Times are off by factors: what may come is further above than below.
  const double factor = std::exp(kNineTenths * deviation);
  prediction.low_ms = prediction.latency_ms / factor;
  prediction.high_ms = prediction.latency_ms * factor;
}

/// What the runs of a short net take less than its steps' prices, of it and of each node.
void shorten(const profiler::DeviceProfile& profile, LatencyPrediction& prediction) {
  const double factor = profiler::of_a_short_run(profile, prediction.latency_ms / engine::kMilliseconds);
  prediction.latency_ms *= factor;
  for (NodePrediction& node : prediction.nodes) node.compute_ms *= factor, node.wait_ms *= factor;
}

/// Adds what nodes without steps take; gives the sum, in milliseconds.
double add_copies(const std::vector<planner::NodeCopy>& copies, LatencyPrediction& prediction, ErrorSum& errors) {
  double sum = 0;
  for (const planner::NodeCopy& copy : copies) {
    const double ms = copy.seconds * engine::kMilliseconds;
    prediction.nodes.push_back({.node = copy.node, .kernel = copy.kernel, .compute_ms = ms});
    errors.add({copy.kernel, profiler::KernelUse::kRun}, ms);
    sum += ms;
  }
  return sum;
}

}  // namespace

/// What is remembered of a model and a profile.
struct Predictor::Known {
  Known(const model::Graph& graph, const SessionOptions& options) : prices(engine::profile_for(options)) {
    costs.run = profiler::run_work_of(graph);
    costs.steps.reserve(graph.nodes.size());
    costs.seconds.reserve(graph.nodes.size());
  }
  std::optional<profiler::DeviceProfile> profile;  // a copy of the options' own
  profiler::WorkPrices prices;
  engine::KnownCosts costs;
};

namespace {

profiler::KernelUse use_of(const plan::Step& step) noexcept {
  if (step.prepare) return profiler::KernelUse::kPrepare;
  return step.derived.buffer.valid() ? profiler::KernelUse::kRunDerived : profiler::KernelUse::kRun;
}

Result<LatencyPrediction> price(const Model& model, const plan::Plan& plan, Bytes overhead, const SessionOptions& options,
                                profiler::WorkPrices& prices, engine::KnownCosts& known, const double* planned_ms) {
  const profiler::DeviceProfile& profile = prices.profile();
  const planner::Run kind = plan.repeat ? planner::Run::kPeriod : planner::Run::kPrologue;
  SLUICE_ASSIGN_OR_RETURN(const planner::Costs costs, engine::costs_of(model.graph(), plan, prices, known));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<planner::NodeCopy> copies, engine::copies_of(model.graph(), plan, profile));
  planner::Gates gates;
  gates.reserve(plan.loads.size());
  for (const plan::Load& load : plan.loads)
    gates.push_back(kind == planner::Run::kPrologue ? std::max<std::int64_t>(load.gate, 0) : load.gate);
  const planner::Timeline timeline = planner::expect(plan, costs, gates, kind).steps;

  LatencyPrediction prediction;
  prediction.peak = engine::expected_peak(model, plan, overhead, options);
  prediction.bytes_read = bytes_read_by(plan);
  prediction.measured = !profile.kernels.empty();
  ErrorSum errors(profile);
  std::vector<std::size_t> place(model.graph().nodes.size(), model.graph().nodes.size());
  prediction.nodes.reserve(std::min(plan.steps.size(), place.size()));
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    if (step.prepare && kind == planner::Run::kPeriod) continue;
    std::size_t& at = place[step.node.index()];
    if (at == place.size()) {
      at = prediction.nodes.size();
      prediction.nodes.push_back({step.node, step.kernel});
    }
    NodePrediction& node = prediction.nodes[at];
    ++node.steps;
    node.compute_ms += (timeline.step_end[i + 1] - timeline.step_start[i]) * engine::kMilliseconds;
    node.wait_ms += (timeline.step_start[i] - timeline.step_end[i]) * engine::kMilliseconds;
    errors.add({step.kernel, use_of(step)}, costs.step[i] * engine::kMilliseconds);
  }
  const double copying_ms = add_copies(copies, prediction, errors);
  // A planned time includes the copies.
  prediction.latency_ms = planned_ms != nullptr ? *planned_ms : timeline.seconds() * engine::kMilliseconds + copying_ms;
  const double deviation = errors.deviation(prediction.latency_ms) / std::max(prediction.latency_ms, 1e-9);
  shorten(profile, prediction);
  set_interval(prediction, deviation);
  return prediction;
}

}  // namespace

Predictor::Predictor(std::shared_ptr<const Model> model, const SessionOptions& options)
    : model_(std::move(model)), options_(options), ready_(or_out_of_memory(model_->file().path(), [&]() -> Status {
        known_ = std::make_unique<Known>(model_->graph(), options);
        if (options.profile != nullptr) options_.profile = &known_->profile.emplace(*options.profile);
        return {};
      })) {}
Predictor::~Predictor() = default;

Result<LatencyPrediction> Predictor::of(const plan::Plan& plan, Bytes overhead) const {
  SLUICE_RETURN_IF_ERROR(ready_);
  SLUICE_RETURN_IF_ERROR(engine::check_options(options_));
  return or_out_of_memory(model_->file().path(), [&] {
    const std::lock_guard lock(mutex_);
    return price(*model_, plan, overhead, options_, known_->prices, known_->costs, nullptr);
  });
}

Result<LatencyPrediction> Predictor::at(Bytes budget) const {
  SLUICE_RETURN_IF_ERROR(ready_);
  SessionOptions options = options_;
  options.budget = budget;
  return or_out_of_memory(model_->file().path(), [&]() -> Result<LatencyPrediction> {
    SLUICE_ASSIGN_OR_RETURN(const PlannedBudget planned, plan_session(*model_, options));
    const plan::Prediction& expected = planned.plan.prediction;
    const double ms = planned.plan.repeat ? expected.period_ms : expected.cold_ms;
    const std::lock_guard lock(mutex_);
    return price(*model_, planned.plan, planned.overhead, options, known_->prices, known_->costs, &ms);
  });
}

}  // namespace sluice

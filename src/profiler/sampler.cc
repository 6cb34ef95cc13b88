#include "src/profiler/sampler.h"

#include <algorithm>
#include <cmath>

#include "sluice/core/cpu.h"
#include "sluice/kernels/registry.h"
#include "sluice/operators/definition.h"
#include "sluice/profiler/fit.h"
#include "src/profiler/sample_graph.h"

namespace sluice::profiler {
namespace {

constexpr double kBand = 0.125;         // of rows
constexpr double kSlice = 0.25;         // of channels
constexpr std::size_t kLeastSeeds = 4;  // of each kernel, and as many more as it takes of a network's time; of rare ones half
constexpr double kMoreSeeds = 24;
constexpr std::size_t kAtOnce = 12;      // measurements between two fits
constexpr std::size_t kToCompare = 250;  // candidates of a kernel of which the least known is sought
constexpr std::size_t kBetweenKeeps = 50;

bool same(const StepWork& a, const StepWork& b) noexcept {
  return a.cost.flops == b.cost.flops && a.cost.input_bytes == b.cost.input_bytes && a.cost.output_bytes == b.cost.output_bytes &&
         a.cost.weight_bytes == b.cost.weight_bytes && a.shape == b.shape && a.variant == b.variant;
}

void add(std::vector<Candidate>& candidates, const StepTimer& timer, const StepTimer::Request& request) {
  Candidate candidate{request, {request.kernel.id, request.use}, {}};
  candidate.work = work_of(request.kernel, request.use, request.graph, request.node, timer.extent_of(request));
  candidate.kernel.variant = candidate.work.variant;
  candidates.push_back(candidate);
}

double distance(const StepWork& a, const StepWork& b) noexcept {
  const detail::TileExtent tile = detail::tile_of(name_of(active_isa()));
  return 1 / std::sqrt(detail::likeness(detail::features_of(a, tile), detail::features_of(b, tile)));
}

/// The part of the corpus' time that a step counts for: nets are mostly f32 convolutions and dense layers, and the corpus has a layer of
/// each other kind for every few of them. What only the first run does counts least.
double usual_share(const Candidate& candidate) noexcept {
  const model::Node& node = candidate.request.node;
  const bool panels =
      !node.weights.empty() && candidate.request.graph.weight(node.weights[0]).panel_layout.layout == model::WeightLayout::kPanels;
  if (candidate.kernel.use == KernelUse::kPrepare) return 0.02;
  if (node.numeric == model::NumericClass::kInt8) return 0.2;
  if (panels && candidate.request.graph.weight(node.weights[0]).panel_layout.dtype != DType::kF32) return 0.03;
  using model::OpKind;
  const bool rare =
      node.op == OpKind::kConvTranspose || node.op == OpKind::kResize || node.op == OpKind::kRecurrent || node.op == OpKind::kMatMul;
  return rare ? 0.1 : 1;
}

}  // namespace

std::vector<Candidate> candidates_of(const model::Graph& graph, const StepTimer& timer) {
  std::vector<Candidate> candidates;
  std::size_t turn = 0;
  for (const model::Node& node : graph.nodes) {
    for (const kernels::KernelDescriptor* kernel : sampled_kernels(graph, node)) {
      const StepTimer::Request whole{graph, node, *kernel};
      add(candidates, timer, whole);
      // Plans cut weights and rows: what a part costs more than its share is part of the fit.
      const bool cuts = kernel->slices_channels && !node.weights.empty() && graph.weight(node.weights[0]).panels >= 8;
      if (cuts && turn % 2 == 0) add(candidates, timer, {graph, node, *kernel, KernelUse::kRun, kSlice});
      const std::int64_t rows = row_extents(graph.tensor(node.outputs[0]).shape).rows;
      if (kernel->slices_rows && rows >= 28 && turn % 4 == 1) add(candidates, timer, {graph, node, *kernel, KernelUse::kRun, 1, kBand});
      ++turn;
      if (kernel->derived_panel_bytes == nullptr || node.weights.empty()) continue;
      add(candidates, timer, {graph, node, *kernel, KernelUse::kRunDerived});
      add(candidates, timer, {graph, node, *kernel, KernelUse::kPrepare});
    }
  }
  return candidates;
}

StepTimer::Request anchor_request(const model::Graph& sample_graph) {
  constexpr std::uint64_t kMacs = 14 * 14 * 512 * 128;
  const model::Node* anchor = &sample_graph.nodes.front();
  for (const model::Node& node : sample_graph.nodes) {
    const bool pointwise = node.op == model::OpKind::kConv && node.numeric == model::NumericClass::kExact &&
                           node.as<model::ConvAttributes>().window.taps() == 1;
    if (pointwise && operators::macs_of(sample_graph, node) >= kMacs) {
      anchor = &node;
      break;
    }
  }
  return {sample_graph, *anchor, *kernels::kernels_for(sample_graph, *anchor).front()};
}

Sampler::Sampler(const MeasureOptions& options, StepTimer& timer, std::vector<Candidate> required, std::vector<Candidate> corpus)
    : options_(options), timer_(timer), required_(std::move(required)), corpus_(std::move(corpus)) {
  profile_.isa = name_of(active_isa());
  profile_.threads = options.threads;
  group_corpus();
}

/// Equal steps are one candidate. A kernel's share of time is what the assumed rates give it over the corpus.
void Sampler::group_corpus() {
  double all = 0;
  for (std::size_t c = 0; c < corpus_.size(); ++c) {
    const Candidate& candidate = corpus_[c];
    Group& group = groups_[candidate.kernel];
    const double seconds = usual_share(candidate) * step_seconds(profile_, {}, candidate.request.node, candidate.work);
    group.share += seconds;
    all += seconds;
    const auto known = [&](std::size_t other) { return same(corpus_[other].work, candidate.work); };
    if (std::none_of(group.candidates.begin(), group.candidates.end(), known)) group.candidates.push_back(c);
  }
  for (auto& [kernel, group] : groups_) group.share /= std::max(all, 1e-9);
}

bool Sampler::full() const {
  return profile_.samples.size() >= options_.most || std::chrono::duration<double>(Clock::now() - start_).count() > options_.seconds;
}

Status Sampler::measure(const Candidate& candidate) {
  if (options_.progress != nullptr) options_.progress(options_.progress_context, profile_.samples.size(), options_.most);
  if (options_.known != nullptr) {
    for (const KernelSample& sample : *options_.known) {
      if (sample.kernel != candidate.kernel || !same(sample.work, candidate.work)) continue;
      anchor_seconds_.push_back(timer_.time_anchor());
      profile_.samples.push_back({candidate.kernel, candidate.work, sample.seconds / anchor_seconds_.back()});
      return {};
    }
  }
  SLUICE_ASSIGN_OR_RETURN(const auto timed, timer_.time(candidate.request));
  if (!timed) return {};
  profile_.samples.push_back({candidate.kernel, candidate.work, timed->anchors});
  anchor_seconds_.push_back(timed->seconds / timed->anchors);
  if (options_.keep != nullptr && profile_.samples.size() >= kept_ + kBetweenKeeps) {
    kept_ = profile_.samples.size();
    std::vector<KernelSample> samples = profile_.samples;
    for (KernelSample& sample : samples) sample.seconds *= anchor_seconds_.back();
    options_.keep(options_.progress_context, samples);
  }
  return {};
}

/// The middle one first, then each time the one that is farthest from all before.
Status Sampler::seed(Group& group) {
  std::vector<std::size_t> chosen;
  const bool rare = group.candidates.empty() || usual_share(corpus_[group.candidates.front()]) < 0.1;
  const std::size_t seeds = (rare ? kLeastSeeds / 2 : kLeastSeeds) + static_cast<std::size_t>(kMoreSeeds * std::sqrt(group.share));
  while (chosen.size() < seeds && !group.candidates.empty() && !full()) {
    std::size_t best = group.candidates.size() / 2;
    double farthest = 0;
    for (std::size_t i = 0; i < group.candidates.size() && !chosen.empty(); ++i) {
      double nearest = 1e300;
      for (const std::size_t other : chosen) nearest = std::min(nearest, distance(corpus_[group.candidates[i]].work, corpus_[other].work));
      if (nearest > farthest) farthest = nearest, best = i;
    }
    const std::size_t candidate = group.candidates[best];
    group.candidates.erase(group.candidates.begin() + static_cast<std::ptrdiff_t>(best));
    chosen.push_back(candidate);
    SLUICE_RETURN_IF_ERROR(measure(corpus_[candidate]));
  }
  return {};
}

/// Of all kernels the candidates that are worth most, after a fit to what is measured.
std::vector<std::size_t> Sampler::least_known() {
  fit(profile_);
  const detail::TileExtent tile = detail::tile_of(profile_.isa);
  struct Worth {
    double worth;
    UsedKernel kernel;
    std::size_t place;
  };
  std::vector<Worth> worths;
  for (auto& [kernel, group] : groups_) {
    const KernelRates* const rates = detail::rates_of(profile_, kernel, kernel.variant);
    if (rates == nullptr || rates->kernel != kernel || group.candidates.empty()) continue;
    std::vector<StepWork> works;
    const std::size_t step = std::max<std::size_t>(1, group.candidates.size() / kToCompare);
    for (std::size_t i = 0; i < group.candidates.size(); i += step) works.push_back(corpus_[group.candidates[i]].work);
    const auto samples = detail::of_kernel(profile_.samples, kernel);
    const std::vector<double> unknown = uncertainty(*rates, samples, works, tile);
    const auto most = static_cast<std::size_t>(std::max_element(unknown.begin(), unknown.end()) - unknown.begin());
    // What one more sample of many brings is less.
    const double worth = unknown[most] * rates->error * std::sqrt(group.share) / static_cast<double>(samples.size());
    worths.push_back({worth, kernel, most * step});
  }
  std::sort(worths.begin(), worths.end(), [](const Worth& a, const Worth& b) { return a.worth > b.worth; });
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < std::min(kAtOnce, worths.size()); ++i) {
    std::vector<std::size_t>& left = groups_[worths[i].kernel].candidates;
    chosen.push_back(left[worths[i].place]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(worths[i].place));
  }
  return chosen;
}

Status Sampler::refine() {
  while (!full()) {
    const std::vector<std::size_t> chosen = least_known();
    if (chosen.empty()) return {};
    for (const std::size_t candidate : chosen)
      if (!full()) SLUICE_RETURN_IF_ERROR(measure(corpus_[candidate]));
  }
  return {};
}

Result<std::vector<KernelSample>> Sampler::run() {
  for (const Candidate& candidate : required_) SLUICE_RETURN_IF_ERROR(measure(candidate));
  for (auto& [kernel, group] : groups_) SLUICE_RETURN_IF_ERROR(seed(group));
  SLUICE_RETURN_IF_ERROR(refine());
  // The machine at its usual speed: the median of what an anchor took.
  double anchor = 1;
  if (!anchor_seconds_.empty()) {
    const auto middle = anchor_seconds_.begin() + static_cast<std::ptrdiff_t>(anchor_seconds_.size() / 2);
    std::nth_element(anchor_seconds_.begin(), middle, anchor_seconds_.end());
    anchor = *middle;
  }
  for (KernelSample& sample : profile_.samples) sample.seconds *= anchor;
  return std::move(profile_.samples);
}

}  // namespace sluice::profiler

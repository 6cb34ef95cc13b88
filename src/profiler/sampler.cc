#include "src/profiler/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "sluice/core/cpu.h"
#include "sluice/kernels/registry.h"
#include "sluice/operators/definition.h"
#include "sluice/profiler/fit.h"
#include "src/profiler/drift.h"
#include "src/profiler/sample_graph.h"
#include "src/profiler/typed_nodes.h"

namespace sluice::profiler {
namespace {

constexpr double kBand = 0.125;          // of rows
constexpr double kSlice = 0.25;          // of channels
constexpr std::size_t kLeastOfKind = 4;  // samples of each kernel; of rare ones half
constexpr double kRare = 0.25;
constexpr double kSeeds = 0.5;     // the part of a quota that is chosen far apart
constexpr std::size_t kDrawn = 5;  // candidates of which the least known is taken: so what is usual in nets is usual among samples
constexpr std::size_t kStepsOfTurn = 20;
constexpr std::size_t kComings = 6;       // of each turn
constexpr std::size_t kMostComings = 12;  // while there is time: a shared machine is slower or faster for half a minute
constexpr std::size_t kBetweenKeeps = 50;
constexpr double kLongestStep = 0.012;  // seconds, by assumed rates: longer steps are priced by rates alone

void add(std::vector<Candidate>& candidates, const StepTimer& timer, const StepTimer::Request& request) {
  Candidate candidate{request, {request.kernel.id, request.use}, {}};
  candidate.work = work_of(request.kernel, request.use, request.graph, request.node, timer.extent_of(request));
  candidate.kernel.variant = candidate.work.variant;
  candidates.push_back(candidate);
}

/// The share of its rows that a sampled band has; 1: none is sampled. A kernel that computes several rows together is cut where they end: plans
/// have bands of few such runs, and what each of them does again counts most where there is one, or two.
double band_of(const kernels::KernelDescriptor& kernel, const model::Node& node, std::int64_t rows, std::size_t turn) noexcept {
  constexpr std::int64_t kLeastRows = 28;
  const auto* attention = std::get_if<model::AttentionAttributes>(&node.attributes);
  const bool rows_differ = attention != nullptr && attention->causal;  // the first ones see few keys
  if (!kernel.slices_rows || rows_differ || turn % 4 != 1) return 1;
  const std::int64_t granule = kernel.row_granule, wanted = granule * (turn % 8 == 1 ? 1 : 2);
  if (granule > 1) return wanted < rows ? (static_cast<double>(wanted) + 0.5) / static_cast<double>(rows) : 1;
  return rows >= kLeastRows ? kBand : 1;
}

double distance(const StepWork& a, const StepWork& b) noexcept {
  const detail::TileExtent tile = detail::tile_of(name_of(active_isa()));
  return 1 / std::sqrt(detail::likeness(detail::features_of(a, tile), detail::features_of(b, tile)));
}

/// All bytes that a step uses.
std::uint64_t touched(const StepWork& work) noexcept { return work.cost.input_bytes + work.cost.output_bytes + work.cost.weight_bytes; }

/// Steps that may come in one turn: of nets of the same type, at the same point of a model's life. All operators are mixed, as in nets: each
/// kernel is then measured in runs of many sizes. (By operator, each had two or three sizes of its own, and nets of others were guessed.)
auto company_of(const Candidate& candidate, NetType nets) noexcept {
  const NetType type = type_of(candidate.request.graph, candidate.request.node);
  const bool integers = type == NetType::kIntegers;
  const bool strange = !may_have(nets, type);
  return std::tuple(strange && integers, strange && !integers, candidate.kernel.use == KernelUse::kPrepare);
}

}  // namespace

bool same_step(const StepWork& a, const StepWork& b) noexcept {
  return a.cost.flops == b.cost.flops && a.cost.input_bytes == b.cost.input_bytes && a.cost.output_bytes == b.cost.output_bytes &&
         a.cost.weight_bytes == b.cost.weight_bytes && a.shape == b.shape && a.variant == b.variant;
}

double usual_share(const Candidate& candidate, NetType nets) noexcept {
  const model::Node& node = candidate.request.node;
  if (candidate.kernel.use == KernelUse::kPrepare) return 0.02;
  using model::OpKind;
  const NetType type = type_of(candidate.request.graph, node);
  if (!may_have(nets, type)) {
    const bool layer = node.op == OpKind::kConv || node.op == OpKind::kDense;
    return type != NetType::kIntegers ? 0.02 : layer ? 0.3 : 0.2;  // so little that layers of stored types get two samples each
  }
  if (node.op == OpKind::kMatMul) return 0.006;
  if (node.op == OpKind::kConvTranspose) return nets == NetType::kIntegers ? 0.1 : 0.3;
  if (node.op == OpKind::kResize) return 0.1;
  if (node.op == OpKind::kRecurrent) return nets == NetType::kF32 || nets == NetType::kIntegers ? 1 : 4;
  if (node.op == OpKind::kUnary) return type == NetType::kIntegers ? 12 : 0.2;  // tables
  if (node.op == OpKind::kPool) return type == NetType::kIntegers ? 60 : 20;
  if (node.op == OpKind::kQuantize) return 8;
  if (node.op == OpKind::kDense) {
    if (candidate.kernel.variant == 2) return 150;  // of few rows there are few
    // One row of narrow weights takes a quarter of its time with f32, and fewer than 17 samples are no fit of their own.
    const bool narrow = type != NetType::kF32 && type != NetType::kIntegers;
    return narrow && candidate.kernel.variant == 1 ? 40 : 10;
  }
  if (node.op == OpKind::kAttention) return 30;  // six were too few for rows, keys and widths
  if (node.op == OpKind::kLayerNorm) return 30;  // six were too few: all of large runs
  if (node.op == OpKind::kBinary) return 6;
  if (node.op == OpKind::kTranspose) return 8;
  if (node.op == OpKind::kConcat) return 30;  // bands copy what is in one buffer without them
  const bool depthwise = node.op == OpKind::kConv && node.as<model::ConvAttributes>().depthwise();
  const bool pointwise = node.op == OpKind::kConv && node.as<model::ConvAttributes>().window.taps() == 1;
  if (pointwise && candidate.kernel.variant == 1) return 64;
  if (node.numeric == model::NumericClass::kWinograd4 && candidate.kernel.use == KernelUse::kRun) return 8;
  const bool first = node.op == OpKind::kConv && type == NetType::kF32 && nets != NetType::kF32;
  if (first && !depthwise && !pointwise && candidate.kernel.use == KernelUse::kRun) return 16;  // only a net's first layer stays f32
  // Of all layers direct ones' rates tell least.
  return depthwise ? 120 : pointwise ? 16 : candidate.kernel.use == KernelUse::kRunDerived ? 0.2 : 3;
}

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
      if (const double band = band_of(*kernel, node, rows, turn); band < 1)
        add(candidates, timer, {graph, node, *kernel, KernelUse::kRun, 1, band});
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

std::optional<double> Measured::anchor() const {
  return anchor_seconds.empty() ? std::nullopt : std::optional(usual_quiet_anchor(anchor_seconds));
}

std::vector<KernelSample> Measured::in_seconds(int threads) const {
  const QuietMachine quiet(anchor_seconds);
  const Interruptions met = meter.met(threads);
  std::vector<KernelSample> all = samples;
  for (std::size_t i = 0; i < all.size(); ++i) all[i].seconds = detail::without_interruptions(met, quiet.seconds_of(times[i]));
  return all;
}

double Measured::drift() const {
  double squares = 0;
  for (const double drift : drifts) squares += drift * drift / static_cast<double>(drifts.size());
  return std::sqrt(squares);
}

Sampler::Sampler(const MeasureOptions& options, const MeasuredType& of, StepTimer& timer, std::vector<Candidate> required,
                 std::vector<Candidate> corpus, Measured& measured)
    : options_(options), of_(of), timer_(timer), measured_(measured), required_(std::move(required)), corpus_(std::move(corpus)) {
  profile_.isa = name_of(active_isa());
  profile_.threads = options.threads;
  group_corpus();
  drop_repeated();
  take_known();
  set_quotas();
}

/// Equal steps are one candidate. A kernel's share of time is what the assumed rates give it over the corpus.
void Sampler::group_corpus() {
  double all = 0;
  for (std::size_t c = 0; c < corpus_.size(); ++c) {
    const Candidate& candidate = corpus_[c];
    Kind& kind = kinds_[kind_of(candidate)];
    const double weight = usual_share(candidate, of_.type), seconds = step_seconds(profile_, {}, candidate.request.node, candidate.work);
    kind.rare = weight <= kRare;
    assumed_.push_back(seconds);
    kind.share += weight * seconds;
    all += weight * seconds;
    const auto known = [&](std::size_t other) { return same_step(corpus_[other].work, candidate.work); };
    if (seconds < kLongestStep && std::none_of(kind.candidates.begin(), kind.candidates.end(), known)) kind.candidates.push_back(c);
  }
  for (auto& [kernel, kind] : kinds_) kind.share /= std::max(all, 1e-9);
  for (const KernelSample& sample : measured_.samples)
    if (const auto kind = kinds_.find(sample.kernel); kind != kinds_.end()) ++kind->second.before;
}

/// A model has many layers twice, and some that the corpus has.
void Sampler::drop_repeated() {
  std::vector<Candidate> once;
  for (const Candidate& candidate : required_) {
    const auto is_it = [&](const Candidate& c) { return c.kernel == candidate.kernel && same_step(c.work, candidate.work); };
    if (std::any_of(once.begin(), once.end(), is_it)) continue;
    once.push_back(candidate);
    std::erase_if(kinds_[kind_of(candidate)].candidates, [&](std::size_t c) { return is_it(corpus_[c]); });
  }
  required_ = std::move(once);
}

/// Samples of a measurement that was interrupted.
void Sampler::take_known() {
  if (of_.known == nullptr) return;
  // They are in seconds of the quiet machine of that time.
  const double anchor = of_.known_anchor_seconds > 0 ? of_.known_anchor_seconds : timer_.time_anchor();
  for (const KernelSample& sample : *of_.known) {
    if (full()) return;
    const auto is_it = [&](const Candidate& c) { return c.kernel == sample.kernel && same_step(c.work, sample.work); };
    std::vector<Candidate> still_required;
    for (const Candidate& candidate : required_) {
      if (!is_it(candidate)) still_required.push_back(candidate);
    }
    const bool required = still_required.size() < required_.size();
    required_ = std::move(still_required);
    const auto candidate = std::find_if(corpus_.begin(), corpus_.end(), is_it);
    Kind& kind = kinds_[candidate == corpus_.end() ? sample.kernel : kind_of(*candidate)];
    if (std::erase_if(kind.candidates, [&](std::size_t c) { return is_it(corpus_[c]); }) == 0 && !required) continue;
    ++kind.chosen;
    profile_.samples.push_back(sample);
    profile_.samples.back().seconds /= anchor;
    measured_.anchor_seconds.push_back(anchor);
    times_.push_back({{profile_.samples.back().seconds, sample.seconds}});
  }
}

/// Kernels of nets of other types have a few samples for all their variants.
UsedKernel Sampler::kind_of(const Candidate& candidate) const noexcept {
  UsedKernel kernel = candidate.kernel;
  if (!may_have(of_.type, type_of(candidate.request.graph, candidate.request.node))) kernel.variant = 0;
  return kernel;
}

std::map<UsedKernel, std::size_t> Sampler::quotas() const {
  std::map<UsedKernel, std::size_t> quotas;
  for (const auto& [kernel, kind] : kinds_) quotas[kernel] = kind.quota;
  return quotas;
}

/// One after another goes to the kernel that has least for its share. First each kernel gets a few.
void Sampler::set_quotas() {
  std::size_t given = profile_.samples.size() + required_.size();
  for (auto& [kernel, kind] : kinds_) kind.quota = kind.chosen;
  while (given < options_.most) {
    Kind* next = nullptr;
    double least = 0;
    for (auto& [kernel, kind] : kinds_) {
      if (left(kind) >= kind.candidates.size()) continue;
      const auto has = static_cast<double>(kind.quota + kind.before);
      const bool few = kind.quota + kind.before < (kind.rare ? kLeastOfKind / 2 : kLeastOfKind);
      constexpr double kBeforeAll = 1e9;
      const double wants = few ? has - kind.share - kBeforeAll : has / std::sqrt(std::max(kind.share, 1e-6));
      if (next == nullptr || wants < least) next = &kind, least = wants;
    }
    if (next == nullptr) return;
    ++next->quota;
    ++given;
  }
}

double Sampler::seconds_left() const { return options_.seconds - seconds_since(start_); }

bool Sampler::full() const { return profile_.samples.size() >= options_.most || seconds_left() <= 0; }

/// 0 to 1.
double Sampler::drawn() noexcept {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(state_ >> 11) * 0x1p-53;
}

/// Draws the bytes that a run of a net touches: twice as many are as likely as half as many.
std::uint64_t Sampler::drawn_run_bytes() noexcept {
  return static_cast<std::uint64_t>(kLeastRunBytes * std::pow(static_cast<double>(timer_.most_run_bytes()) / kLeastRunBytes, drawn()));
}

const Candidate* Sampler::take(Kind& kind, std::size_t place) {
  const Candidate* const taken = &corpus_[kind.candidates[place]];
  kind.candidates.erase(kind.candidates.begin() + static_cast<std::ptrdiff_t>(place));
  ++kind.chosen;
  return taken;
}

/// The middle one first, then each time the one that is farthest from all before.
std::vector<const Candidate*> Sampler::farthest(Kind& kind, std::size_t count) {
  std::vector<const Candidate*> chosen;
  while (chosen.size() < count && !kind.candidates.empty()) {
    std::size_t best = kind.candidates.size() / 2;
    double most = 0;
    for (std::size_t i = 0; i < kind.candidates.size() && !chosen.empty(); ++i) {
      double nearest = 1e300;
      for (const Candidate* other : chosen) nearest = std::min(nearest, distance(corpus_[kind.candidates[i]].work, other->work));
      if (nearest > most) most = nearest, best = i;
    }
    chosen.push_back(take(kind, best));
  }
  return chosen;
}

std::vector<const Candidate*> Sampler::least_known(const UsedKernel& kernel, Kind& kind, std::size_t count) {
  const detail::TileExtent tile = detail::tile_of(profile_);
  const KernelRates* const rates = detail::rates_of(profile_, kernel, kernel.variant);
  std::vector<const Candidate*> chosen;
  while (chosen.size() < count && !kind.candidates.empty()) {
    std::vector<std::size_t> places;
    std::vector<StepWork> works;
    for (std::size_t i = 0; i < kDrawn; ++i) {
      const auto draw = [&] { return static_cast<std::size_t>(drawn() * static_cast<double>(kind.candidates.size())); };
      const std::size_t a = draw(), b = draw();  // the longer one: nets' time is in their long steps
      places.push_back(assumed_[kind.candidates[a]] > assumed_[kind.candidates[b]] ? a : b);
      works.push_back(corpus_[kind.candidates[places.back()]].work);
      works.back().run_bytes = drawn_run_bytes();
    }
    std::size_t most = 0;
    if (rates != nullptr && rates->kernel == kernel) {
      const std::vector<double> unknown = uncertainty(*rates, detail::of_kernel(profile_.samples, kernel), works, tile);
      most = static_cast<std::size_t>(std::max_element(unknown.begin(), unknown.end()) - unknown.begin());
    }
    chosen.push_back(take(kind, places[most]));
  }
  return chosen;
}

/// Makes rounds of these, and measures each once.
Status Sampler::measure(std::vector<const Candidate*> chosen) {
  std::stable_sort(chosen.begin(), chosen.end(), [&](const Candidate* a, const Candidate* b) {
    const auto fa = company_of(*a, of_.type), fb = company_of(*b, of_.type);
    return fa != fb ? fa < fb : touched(a->work) > touched(b->work);
  });
  for (auto first = chosen.begin(); first != chosen.end();) {
    const auto last =
        std::find_if(first, chosen.end(), [&](const Candidate* c) { return company_of(*c, of_.type) != company_of(**first, of_.type); });
    const auto count = static_cast<std::size_t>(last - first), turns = (count + kStepsOfTurn - 1) / kStepsOfTurn;
    // Two rounds of neighbouring sizes share their steps, so that the size of a step does not determine the size of the run.
    for (std::size_t t = 0; t < turns; ++t) {
      const std::size_t pair = t / 2 * 2, sharing = std::min<std::size_t>(2, turns - pair);
      std::vector<const Candidate*> steps;
      for (std::size_t i = count * pair / turns + t % 2; i < count * (pair + sharing) / turns; i += sharing)
        steps.push_back(first[static_cast<std::ptrdiff_t>(i)]);
      // Nets come back to a kernel before its code and branches are forgotten; steps of 2 us took a fifth to a half longer where they do not.
      std::stable_sort(steps.begin(), steps.end(), [](const Candidate* a, const Candidate* b) { return a->kernel < b->kernel; });
      SLUICE_RETURN_IF_ERROR(measure_first(steps));
    }
    first = last;
  }
  return {};
}

/// The remaining time is divided evenly among the remaining measurements.
Result<StepTimer::TimedTurn> Sampler::time(const StepTimer::Turn& turn) {
  // What a measurement of full length has, where fewer turns than that are known yet.
  const std::size_t usual = 3 * std::min(options_.most, std::size_t{600}) / (2 * kStepsOfTurn);
  const std::size_t all = kComings * std::max(turns_.size() + 1, usual);
  const double seconds = comings_ < all ? seconds_left() / static_cast<double>(all - comings_)
                                        : std::min(seconds_left(), options_.seconds / static_cast<double>(all));
  ++comings_;
  SLUICE_ASSIGN_OR_RETURN(StepTimer::TimedTurn timed, timer_.time_in_turn(turn, seconds));
  measured_.meter.watch();
  return timed;
}

Status Sampler::measure_first(std::span<const Candidate* const> steps) {
  if (full() || steps.empty()) return {};
  if (options_.progress != nullptr)
    options_.progress(options_.progress_context, measured_.samples.size() + profile_.samples.size(), options_.most * options_.types.size());
  // Sizes of runs are evenly spread, however many there are: each next one is a golden section further on.
  run_share_ += 0.618034;
  run_share_ -= std::floor(run_share_);
  PlannedTurn planned;
  std::uint64_t least = kLeastRunBytes;
  for (const Candidate* step : steps.first(std::min(steps.size(), options_.most - profile_.samples.size()))) {
    planned.turn.steps.push_back(step->request);
    least = std::max(least, touched(step->work));
  }
  const std::uint64_t most = timer_.most_run_bytes();
  least = std::min(least, most);
  planned.turn.run_bytes =
      static_cast<std::uint64_t>(static_cast<double>(least) * std::pow(static_cast<double>(most) / static_cast<double>(least), run_share_));
  SLUICE_ASSIGN_OR_RETURN(const StepTimer::TimedTurn timed, time(planned.turn));
  for (std::size_t i = 0; i < planned.turn.steps.size(); ++i) {
    planned.samples.push_back(profile_.samples.size());  // of a step that does not fit never asked for
    if (!timed[i]) continue;
    KernelSample sample{steps[i]->kernel, steps[i]->work, timed[i]->anchors};
    sample.work.run_bytes = timed[i]->run_bytes;
    sample.work.shared_bytes = timed[i]->shared_bytes;
    profile_.samples.push_back(sample);
    times_.push_back({{timed[i]->anchors, timed[i]->seconds}});
    measured_.anchor_seconds.push_back(timed[i]->seconds / timed[i]->anchors);
  }
  turns_.push_back(std::move(planned));
  keep();
  return {};
}

/// All turns once more, until time is over.
Status Sampler::measure_again() {
  for (const PlannedTurn& planned : turns_) {
    if (seconds_left() <= 0) return {};
    SLUICE_ASSIGN_OR_RETURN(const StepTimer::TimedTurn timed, time(planned.turn));
    for (std::size_t i = 0; i < planned.samples.size(); ++i) {
      if (!timed[i]) continue;
      times_[planned.samples[i]].push_back({timed[i]->anchors, timed[i]->seconds});
      measured_.anchor_seconds.push_back(timed[i]->seconds / timed[i]->anchors);
    }
  }
  return {};
}

void Sampler::keep(bool all) {
  if (options_.keep == nullptr || (!all && profile_.samples.size() < std::min(kept_ + kBetweenKeeps, options_.most))) return;
  kept_ = profile_.samples.size();
  std::vector<KernelSample> samples = profile_.samples;
  const QuietMachine quiet(measured_.anchor_seconds);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].seconds = quiet.seconds_of(times_[i]);
  options_.keep(options_.progress_context, of_.type, samples, quiet.anchor_seconds());
}

Status Sampler::run() {
  std::vector<const Candidate*> chosen;
  for (const Candidate& candidate : required_) chosen.push_back(&candidate);
  SLUICE_RETURN_IF_ERROR(measure(std::exchange(chosen, {})));
  const auto choose = [&](double share_of_quota, const auto& choice) {
    for (auto& [kernel, kind] : kinds_) {
      const auto count = static_cast<std::size_t>(std::ceil(share_of_quota * static_cast<double>(left(kind))));
      for (const Candidate* candidate : choice(kernel, kind, count)) chosen.push_back(candidate);
    }
  };
  choose(kSeeds, [&](const UsedKernel&, Kind& kind, std::size_t count) { return farthest(kind, count); });
  SLUICE_RETURN_IF_ERROR(measure(std::exchange(chosen, {})));
  DeviceProfile known = profile_;  // sorted by kernel, where turns_ knows samples by their places
  fit(profile_);
  choose(1, [&](const UsedKernel& kernel, Kind& kind, std::size_t count) { return least_known(kernel, kind, count); });
  profile_ = std::move(known);
  SLUICE_RETURN_IF_ERROR(measure(std::move(chosen)));
  for (std::size_t coming = 1; coming < kMostComings; ++coming) SLUICE_RETURN_IF_ERROR(measure_again());
  std::vector<std::vector<double>> seconds;
  for (const std::vector<TimedOnce>& times : times_)
    for (seconds.emplace_back(); const TimedOnce& timed : times) seconds.back().push_back(timed.seconds);
  if (const std::optional<double> drift = drift_of(seconds)) measured_.drifts.push_back(*drift);
  if (!profile_.samples.empty()) keep(true);
  measured_.samples.insert(measured_.samples.end(), profile_.samples.begin(), profile_.samples.end());
  measured_.times.insert(measured_.times.end(), times_.begin(), times_.end());
  return {};
}

}  // namespace sluice::profiler

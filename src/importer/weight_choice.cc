#include "sluice/importer/weight_choice.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "sluice/core/cpu.h"
#include "src/core/out_of_memory.h"
#include "src/importer/convert_graph.h"
#include "src/kernels/weighted/narrow.h"

namespace sluice::importer {
namespace {

using kernels::PanelStorage;
using kernels::weighted::NarrowForm;

constexpr std::int64_t kSampledValues = 1 << 20;  // of a weight, in panels evenly spread: the noise of more differs by less than 0.1 dB
constexpr double kHidden = 1.01;                  // times the shortest time: what a prediction cannot tell apart
constexpr int kTakenBack = 24;                    // steps that are tried, those with the most noise first: each costs a plan

constexpr double kNever = std::numeric_limits<double>::infinity();

NarrowForm form_of(PanelStorage storage) noexcept {
  switch (storage) {
    case PanelStorage::kBf16:
      return NarrowForm::kBf16;
    case PanelStorage::kF16:
      return NarrowForm::kF16;
    case PanelStorage::kInt8:
      return NarrowForm::kEightBits;
    default:
      return NarrowForm::kFourBitsOfHalfScales;
  }
}

struct Form {
  Bytes bytes;
  double noise = kNever;
};

/// One weight, in each form.
struct Measured {
  std::int64_t values = 0;
  std::array<Form, kernels::kPanelStorages> forms;
};

/// Packs some panels in each form and compares what they stand for.
class NoiseMeter {
 public:
  explicit NoiseMeter(const kernels::PackSource& source) : source_(source), each_(source.taps * source.depth) {
    whole_.resize(static_cast<std::size_t>(each_ * kPanelLanes));
    widened_.resize(whole_.size());
  }

  double noise(PanelStorage storage, std::int64_t panels, Bytes panel_bytes) {
    const auto widen = kernels::weighted::widen_of(best_isa(), form_of(storage));
    const std::int64_t sampled = std::clamp<std::int64_t>(kSampledValues / std::max<std::int64_t>(1, each_ * kPanelLanes), 1, panels);
    std::vector<std::byte> packed(panel_bytes.count());
    double error = 0, signal = 0;
    for (std::int64_t i = 0; i < sampled; ++i) {
      const std::int64_t panel = panels * i / sampled;
      pack(PanelStorage::kF32, panel, std::as_writable_bytes(std::span(whole_)));
      pack(storage, panel, packed);
      widen(packed.data(), kernels::layout_of(storage).k_group, 0, each_, widened_.data());
      for (std::size_t v = 0; v < whole_.size(); ++v) {
        const double value = whole_[v], off = value - static_cast<double>(widened_[v]);
        error += off * off;
        signal += value * value;
      }
    }
    if (error == 0) return 0;
    return std::isfinite(error) ? error / signal : kNever;
  }

 private:
  void pack(PanelStorage storage, std::int64_t panel, std::span<std::byte> to) {
    source_.storage = storage;
    kernels::pack_panels(source_, {panel, panel + 1}, to);
  }

  kernels::PackSource source_;
  std::int64_t each_;
  std::vector<float> whole_, widened_;
};

Measured measure(const model::Weight& weight, const Recipe& recipe) {
  kernels::PackSource source = recipe.source;
  source.tap_order = recipe.tap_order;
  Measured measured{source.outputs * source.taps * source.depth, {}};
  NoiseMeter meter(source);
  for (std::size_t i = 0; i < measured.forms.size(); ++i) {
    const auto storage = static_cast<PanelStorage>(i);
    const auto values = static_cast<std::uint64_t>(source.taps * source.depth);
    const Bytes panel = panel_bytes_of(kernels::layout_of(storage), values).value_or(Bytes());
    Form& form = measured.forms[i];
    form.bytes = panel * static_cast<std::uint64_t>(weight.panels);
    if (storage == PanelStorage::kF32)
      form.noise = 0;
    else if (can_hold(storage, source))
      form.noise = meter.noise(storage, weight.panels, panel);
  }
  return measured;
}

/// Weights by name, which identifies them: if several share a name, the worst figure of any.
struct MeasuredWeights {
  std::vector<std::string> names;
  std::vector<Measured> measured;

  void add(const std::string& name, const Measured& more) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      names.push_back(name);
      measured.push_back(more);
      return;
    }
    Measured& one = measured[static_cast<std::size_t>(found - names.begin())];
    one.values += more.values;
    for (std::size_t i = 0; i < one.forms.size(); ++i) {
      one.forms[i].bytes += more.forms[i].bytes;
      one.forms[i].noise = std::max(one.forms[i].noise, more.forms[i].noise);
    }
  }
};

/// From one form of a weight to the next on its hull.
struct Step {
  std::size_t weight = 0;
  std::size_t from = 0, to = 0;
  double cost = 0;  // noise for each byte that is saved
};

/// The form that everything begins with: the least noise in the fewest bytes.
std::size_t first_form(const Measured& weight) {
  const auto less = [](const Form& a, const Form& b) { return a.noise < b.noise || (a.noise == b.noise && a.bytes < b.bytes); };
  return static_cast<std::size_t>(std::min_element(weight.forms.begin(), weight.forms.end(), less) - weight.forms.begin());
}

std::vector<Step> steps_of(const MeasuredWeights& weights) {
  std::vector<Step> steps;
  for (std::size_t w = 0; w < weights.measured.size(); ++w) {
    const auto& forms = weights.measured[w].forms;
    for (std::optional<std::size_t> at = first_form(weights.measured[w]); at;) {
      std::optional<Step> best;
      for (std::size_t to = 0; to < forms.size(); ++to) {
        if (!(forms[to].bytes < forms[*at].bytes) || !std::isfinite(forms[to].noise)) continue;
        const double cost = (forms[to].noise - forms[*at].noise) / static_cast<double>((forms[*at].bytes - forms[to].bytes).count());
        if (!best || cost < best->cost) best = Step{w, *at, to, cost};
      }
      if (!best) break;
      steps.push_back(*best);
      at = best->to;
    }
  }
  // A weight's own steps cost more and more, so they stay in order.
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.cost < b.cost; });
  return steps;
}

using Forms = std::vector<std::size_t>;  // of each weight

/// A file that is gone at the end.
struct Scratch {
  const std::string& path;
  ~Scratch() { ::unlink(path.c_str()); }
};

class Sweep {
 public:
  Sweep(const OnnxGraph& onnx, const std::string& onnx_path, const std::string& scratch_path, const ConvertOptions& options,
        const PriceWeights& price, const MeasuredWeights& weights)
      : onnx_(onnx), onnx_path_(onnx_path), scratch_path_(scratch_path), price_(price), weights_(weights), steps_(steps_of(weights)) {
    options_.dims = options.dims;
    options_.open_dims = options.open_dims;
    options_.dim_sums = options.dim_sums;
    options_.values = options.values;
    options_.bounds = options.bounds;
    options_.exact = options.exact;
    options_.max_constants = options.max_constants;
    options_.without_weights = true;
  }

  Status run(WeightChoice& choice) {
    SLUICE_ASSIGN_OR_RETURN(const WeightPrice least, price(forms_after(steps_.size())));
    SLUICE_ASSIGN_OR_RETURN(choice.given, price_or_never(forms_after(0)));
    choice.held = std::isfinite(choice.given.period_ms);
    // Fewer bytes may make computing itself a little faster, which is worth no noise.
    goal_ = kHidden * std::max(least.period_ms, (choice.held ? choice.given : least).compute_ms);
    std::size_t low = 0, high = steps_.size();  // `high` steps reach the goal
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      SLUICE_ASSIGN_OR_RETURN(const WeightPrice priced, price_or_never(forms_after(middle)));
      if (priced.period_ms <= goal_)
        high = middle;
      else
        low = middle + 1;
    }
    forms_ = forms_after(high);
    SLUICE_RETURN_IF_ERROR(take_back(high));
    SLUICE_ASSIGN_OR_RETURN(choice.chosen, price(forms_));
    choice.plans = plans_;
    return {};
  }
  const Forms& forms() const noexcept { return forms_; }

 private:
  Forms forms_after(std::size_t count) const {
    Forms forms;
    for (const Measured& weight : weights_.measured) forms.push_back(first_form(weight));
    for (std::size_t i = 0; i < count; ++i) forms[steps_[i].weight] = steps_[i].to;
    return forms;
  }

  Result<WeightPrice> price(const Forms& forms) {
    const Scratch scratch{scratch_path_};
    for (std::size_t w = 0; w < forms.size(); ++w) options_.weight_forms[weights_.names[w]] = static_cast<PanelStorage>(forms[w]);
    ConvertReport report;
    SLUICE_RETURN_IF_ERROR(convert_graph(onnx_, onnx_path_, scratch_path_, options_, report));
    ++plans_;
    return price_(scratch_path_);
  }

  Result<WeightPrice> price_or_never(const Forms& forms) {
    Result<WeightPrice> priced = price(forms);
    if (!priced && priced.error().code == ErrorCode::kBudgetTooSmall)
      return WeightPrice{.period_ms = kNever, .compute_ms = 0, .streamed = {}};
    return priced;
  }

  /// Last steps of weights, those with the most noise first, where the goal is reached without them.
  Status take_back(std::size_t count) {
    std::vector<Step> last;
    for (std::size_t i = 0; i < count; ++i)
      if (forms_[steps_[i].weight] == steps_[i].to) last.push_back(steps_[i]);
    const auto noise = [&](const Step& step) {
      const auto& forms = weights_.measured[step.weight].forms;
      return forms[step.to].noise - forms[step.from].noise;
    };
    std::stable_sort(last.begin(), last.end(), [&](const Step& a, const Step& b) { return noise(a) > noise(b); });
    if (last.size() > static_cast<std::size_t>(kTakenBack)) last.resize(static_cast<std::size_t>(kTakenBack));
    for (const Step& step : last) {
      Forms forms = forms_;
      forms[step.weight] = step.from;
      SLUICE_ASSIGN_OR_RETURN(const WeightPrice priced, price_or_never(forms));
      if (priced.period_ms <= goal_) forms_ = forms;
    }
    return {};
  }

  const OnnxGraph& onnx_;
  const std::string& onnx_path_;
  const std::string& scratch_path_;
  const PriceWeights& price_;
  const MeasuredWeights& weights_;
  ConvertOptions options_;
  std::vector<Step> steps_;
  Forms forms_;
  double goal_ = 0;
  int plans_ = 0;
};

Status choose(const std::string& onnx_path, const std::string& scratch_path, const ConvertOptions& options, const PriceWeights& price,
              WeightChoice& choice, ConvertReport& report) {
  OnnxGraph onnx;
  SLUICE_RETURN_IF_ERROR(read_onnx(onnx_path, onnx, report));
  MeasuredWeights weights;
  SLUICE_RETURN_IF_ERROR(visit_weights(onnx, onnx_path, options, report, [&](const model::Weight& weight, const Recipe& recipe) {
    if (recipe.may_round && !weight.name.empty()) weights.add(weight.name, measure(weight, recipe));
  }));
  Sweep sweep(onnx, onnx_path, scratch_path, options, price, weights);
  SLUICE_RETURN_IF_ERROR(sweep.run(choice));
  for (std::size_t w = 0; w < weights.names.size(); ++w) {
    const std::size_t form = sweep.forms()[w];
    const Measured& measured = weights.measured[w];
    choice.weights.push_back({weights.names[w], measured.values, static_cast<PanelStorage>(form), measured.forms[form].bytes,
                              measured.forms[static_cast<std::size_t>(PanelStorage::kF32)].bytes, measured.forms[form].noise});
    choice.noise += measured.forms[form].noise;
  }
  return {};
}

}  // namespace

bool can_hold(kernels::PanelStorage storage, const kernels::PackSource& source) noexcept {
  using kernels::PanelStorage;
  constexpr float kBeyondF16 = 65520.0f;  // the least that rounds to an infinite f16
  if (storage == PanelStorage::kF32 || storage == PanelStorage::kBf16) return true;
  const float largest = kernels::largest_magnitude(source);
  return std::isfinite(largest) && (storage == PanelStorage::kInt8 || largest < kBeyondF16);
}

Status choose_weights(const std::string& onnx_path, const std::string& scratch_path, const ConvertOptions& options,
                      const PriceWeights& price, WeightChoice& choice, ConvertReport& report) {
  choice = {};
  report = {};
  return or_out_of_memory(onnx_path, [&] { return choose(onnx_path, scratch_path, options, price, choice, report); });
}

}  // namespace sluice::importer

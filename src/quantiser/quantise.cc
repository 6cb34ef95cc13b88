#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include "sluice/quantiser/quantiser.h"
#include "src/core/out_of_memory.h"
#include "src/importer/convert_graph.h"
#include "src/importer/refusal.h"
#include "src/quantiser/assess.h"
#include "src/quantiser/equalise.h"
#include "src/quantiser/fold_norms.h"
#include "src/quantiser/integers.h"
#include "src/quantiser/probe.h"
#include "src/quantiser/write_onnx.h"

namespace sluice::quantiser {
namespace {

using importer::OnnxPort;

bool is_layer(const Unit& unit) noexcept { return unit.kind == Unit::Kind::kWeighted; }

/// Statistics of one activation over the data.
struct Seen {
  Histogram histogram;
  std::vector<double> sums;  // by channel; empty: no layer with weights reads it
  std::vector<float> most;   // magnitudes, likewise
  std::int64_t inner = 1;
  std::int64_t each = 0;  // values of a channel

  void add(std::int64_t first, std::span<const float> values) {
    histogram.add(values);
    if (sums.empty()) return;
    const auto channels = static_cast<std::int64_t>(sums.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) continue;  // one of them would spoil the mean of its channel, and the bias of every layer after it
      const auto channel = static_cast<std::size_t>((first + static_cast<std::int64_t>(i)) / inner % channels);
      sums[channel] += values[i];
      most[channel] = std::max(most[channel], std::abs(values[i]));
    }
  }
};

class Quantiser {
 public:
  Quantiser(Editor editor, const std::string& onnx_path, const std::string& out_path, const Data& data, const Options& options,
            Report& report)
      : editor_(std::move(editor)), out_path_(out_path), data_(data), options_(options), report_(report) {
    settings_ = {onnx_path, out_path, options.convert, &scratch_};
    report_.corrected = options.correct_bias;
  }

  Status run() {
    fold_norms(editor_);
    units_ = find_units(editor_, {});
    keep_what_is_not_finite();
    if (std::none_of(units_.begin(), units_.end(), is_layer))
      return refuse("no Conv, Gemm or MatMul with a constant weight of f32 was found: there is nothing to quantise");
    if (is_onnx() && editor_.graph().opset < 13)
      return refuse("operator set " + std::to_string(editor_.graph().opset) +
                    " has no scales for each channel: export the model with 13 or newer, or write a model file");
    SLUICE_RETURN_IF_ERROR(name_problems(see()));
    SLUICE_RETURN_IF_ERROR(name_problems(choose_method()));
    SLUICE_RETURN_IF_ERROR(name_problems(choose_kept()));
    SLUICE_RETURN_IF_ERROR(name_problems(try_other_ranges()));
    const std::vector<Unit> units = find_units(editor_, kept_);
    const IntegerGraph integers = made_of(units, report_.method);
    SLUICE_RETURN_IF_ERROR(name_problems(assess_all(units, integers)));
    return write(integers);
  }

 private:
  bool is_onnx() const { return out_path_.ends_with(".onnx"); }

  Status refuse(const std::string& why) {
    report_.problems.push_back({ErrorCode::kUnsupported, "", "", editor_.graph().opset, why});
    return fail(ErrorCode::kUnsupported, settings_.onnx_path, "the file cannot be quantised; the report says why");
  }

  /// Errors of converting the probe are errors of the file.
  Status name_problems(Status status) {
    if (!status) report_.problems = scratch_.problems;
    return status;
  }

  /// Weights without a largest magnitude have no scale: such layers stay f32.
  void keep_what_is_not_finite() {
    const auto finite = [&](std::string_view name) {
      const Constant* given = name.empty() ? nullptr : editor_.constant(name);
      if (given == nullptr) return true;
      for (std::int64_t i = 0; i < given->elements(); ++i)  // one by one: a copy of a large weight is not made
        if (!std::isfinite(importer::read_real(*given, i))) return false;
      return true;
    };
    kept_.clear();
    for (const Unit& unit : units_)
      if (is_layer(unit) && (!finite(unit.weight) || !finite(unit.bias))) kept_.insert(unit.weight);
  }

  /// Ranges and means of all activations that units read.
  Status see() {
    Observed observed{&editor_.graph(), {}};
    std::vector<const Unit*> layer_of;
    std::map<std::string_view, std::size_t> place;
    for (const Unit& unit : units_)
      for (const std::string_view input : unit.inputs) {
        const auto [found, added] = place.emplace(input, observed.names.size());
        if (added) {
          observed.names.push_back(input);
          layer_of.push_back(nullptr);
        }
        if (is_layer(unit)) layer_of[found->second] = &unit;
      }
    std::vector<Seen> seen(observed.names.size());
    const auto shown = [&](std::size_t name, const Shape& shape) {
      const Unit* layer = layer_of[name];
      if (layer == nullptr) return;
      const int axis = layer->channel_axis < 0 ? shape.rank() - 1 : layer->channel_axis;
      seen[name].sums.resize(static_cast<std::size_t>(shape[axis]));
      seen[name].most.resize(static_cast<std::size_t>(shape[axis]));
      seen[name].inner = shape.count(axis + 1, shape.rank());
      seen[name].each = shape.element_count() / shape[axis];
    };
    const auto visit = [&](std::size_t name, std::int64_t first, std::span<const float> values, std::span<const float>) {
      seen[name].add(first, values);
    };
    SLUICE_RETURN_IF_ERROR(observe(observed, {}, settings_, data_, data_.items, options_, "looking at the data", shown, visit));
    seen_.clear();
    for (std::size_t i = 0; i < seen.size(); ++i) seen_.emplace(observed.names[i], std::move(seen[i]));
    return {};
  }

  Activations activations_by(Method method) const {
    Activations made;
    for (const auto& [name, seen] : seen_) {
      Activation& activation = made[name];
      const auto own = own_method_.find(name);
      activation.range = seen.histogram.range(own == own_method_.end() ? method : own->second, options_.percentile);
      for (const double sum : seen.sums)
        activation.means.push_back(sum / (static_cast<double>(seen.each) * static_cast<double>(data_.items)));
    }
    return made;
  }

  IntegerGraph made_of(const std::vector<Unit>& units, Method method) const {
    Activations activations = activations_by(method);
    tie_ranges(editor_, units, activations);
    return insert_integers(editor_, units, activations, report_.corrected);
  }

  /// By what alternatives are judged: outputs of floats; of a model that gives integers alone (an ArgMax at its end), the last layer's.
  std::vector<std::string_view> output_names() const {
    std::vector<std::string_view> names;
    for (const OnnxPort& port : editor_.graph().outputs) {
      const auto dtype = importer::dtype_of(port.elem_type);
      if (dtype && importer::is_float(*dtype)) names.push_back(port.name);
    }
    if (names.empty()) names.push_back(std::find_if(units_.rbegin(), units_.rend(), is_layer)->output);
    return names;
  }

  /// Signal to noise of the outputs with these units in integers: the least of them.
  Result<double> noise_of(const IntegerGraph& integers, std::string_view stage) {
    const std::vector<std::string_view> names = output_names();
    std::vector<Noise> noise(names.size());
    const std::size_t items = std::min(data_.items, std::max<std::size_t>(options_.trial_items, 1));
    SLUICE_RETURN_IF_ERROR(observe(
        {&editor_.graph(), names}, {&integers.editor.graph(), names}, settings_, data_, items, options_, stage,
        [](std::size_t, const Shape&) {},
        [&](std::size_t name, std::int64_t, std::span<const float> values, std::span<const float> others) {
          noise[name].add(values, others);
        }));
    double least = std::numeric_limits<double>::infinity();
    for (const Noise& each : noise) least = std::min(least, each.decibels());
    return least;
  }

  struct Choice {
    Method method = Method::kMinMax;
    double noise_db = -std::numeric_limits<double>::infinity();
  };

  /// The best of the methods that the options allow.
  Result<Choice> best_method() {
    Choice best;
    for (const Method method : {Method::kMinMax, Method::kPercentile, Method::kError}) {
      if (options_.method != Method::kAuto && options_.method != method) continue;
      SLUICE_ASSIGN_OR_RETURN(const double noise, noise_of(made_of(find_units(editor_, kept_), method), "comparing methods"));
      if (noise > best.noise_db) best = {method, noise};
    }
    return best;
  }

  Status choose_method() {
    report_.method = options_.method;
    const bool equalises = options_.equalise && has_depthwise(editor_, units_), chooses = options_.method == Method::kAuto;
    if (!chooses && !equalises) return {};
    SLUICE_ASSIGN_OR_RETURN(Choice best, best_method());
    report_.method = best.method;
    if (equalises) SLUICE_RETURN_IF_ERROR(try_equalised(best));
    return chooses && options_.correct_bias ? try_biases_as_they_are(best) : Status{};
  }

  /// What mean errors leave may make more noise behind them than they did.
  Status try_biases_as_they_are(const Choice& best) {
    report_.corrected = false;
    SLUICE_ASSIGN_OR_RETURN(const double noise, noise_of(made_of(find_units(editor_, kept_), best.method), "comparing methods"));
    report_.corrected = noise <= best.noise_db;
    return {};
  }

  /// Activations whose range by another method leaves less noise at the outputs take that one, each after the others. In small nets, where
  /// few roundings make all the noise, that is worth more than the choice for all; large ones would be converted and run too often.
  Status try_other_ranges() {
    if (options_.method != Method::kAuto) return {};
    const std::vector<Unit> units = find_units(editor_, kept_);
    const std::size_t most = most_trials(units);
    if (most < 2) return {};
    SLUICE_ASSIGN_OR_RETURN(double least, noise_of(made_of(units, report_.method), "comparing ranges"));
    std::set<std::string_view> tried;
    for (const Unit& unit : units)
      for (const std::string_view name : unit.inputs) {
        if (2 * tried.size() + 2 > most || !tried.insert(name).second) continue;
        std::optional<Method> best;
        for (const Method method : {Method::kMinMax, Method::kPercentile, Method::kError}) {
          if (method == report_.method) continue;
          own_method_[name] = method;
          SLUICE_ASSIGN_OR_RETURN(const double noise, noise_of(made_of(units, report_.method), "comparing ranges"));
          if (noise <= least) continue;
          least = noise;
          best = method;
        }
        best ? void(own_method_[name] = *best) : void(own_method_.erase(name));
      }
    report_.own_ranges = own_method_.size();
    return {};
  }

  /// How often a graph of these units may be converted, and run over the items.
  std::size_t most_trials(const std::vector<Unit>& units) const {
    constexpr std::uint64_t kMost = 96, kBytes = std::uint64_t{256} << 20, kOfAModel = std::uint64_t{1} << 20;
    constexpr std::uint64_t kProducts = std::uint64_t{1} << 33, kOfAnItem = std::uint64_t{1} << 20;
    std::uint64_t bytes = kOfAModel, products = kOfAnItem;
    for (const Unit& unit : units) {
      if (!is_layer(unit)) continue;
      const auto weights = static_cast<std::uint64_t>(editor_.constant(unit.weight)->elements());
      const auto seen = seen_.find(unit.inputs[0]);
      bytes += weights * sizeof(float);
      products += weights * static_cast<std::uint64_t>(seen == seen_.end() ? 1 : std::max<std::int64_t>(seen->second.each, 1));
    }
    products *= std::min(data_.items, std::max<std::size_t>(options_.trial_items, 1));
    return static_cast<std::size_t>(std::min({kMost, kBytes / bytes, kProducts / products}));
  }

  /// The equalised graph, where it makes less noise.
  Status try_equalised(Choice& best) {
    std::map<std::string_view, std::vector<float>> largest;
    for (const auto& [name, seen] : seen_)
      if (!seen.most.empty()) largest[name] = seen.most;
    Editor equal = editor_;
    const std::size_t count = equalise(equal, units_, largest);
    if (count == 0) return {};
    std::swap(editor_, equal);
    std::vector<Unit> units = std::exchange(units_, find_units(editor_, {}));
    std::set<std::string_view> kept = kept_;
    keep_what_is_not_finite();
    std::map<std::string_view, Seen> seen = std::exchange(seen_, {});
    SLUICE_RETURN_IF_ERROR(see());
    SLUICE_ASSIGN_OR_RETURN(const Choice after, best_method());
    if (after.noise_db > best.noise_db) {
      report_.equalised = count;
      report_.method = after.method;
      best = after;
      return {};
    }
    std::swap(editor_, equal);
    units_ = std::move(units);
    kept_ = std::move(kept);
    seen_ = std::move(seen);
    return {};
  }

  /// Each layer alone in integers: those that leave the most noise at the outputs stay f32.
  Status choose_kept() {
    if (options_.keep_f32 == 0) return {};
    std::set<std::string_view> weights;
    for (const Unit& unit : units_)
      if (is_layer(unit) && !kept_.contains(unit.weight)) weights.insert(unit.weight);
    std::vector<std::pair<double, std::string_view>> by_noise;
    for (const std::string_view alone : weights) {
      std::set<std::string_view> others = weights;
      others.erase(alone);
      others.insert(kept_.begin(), kept_.end());
      SLUICE_ASSIGN_OR_RETURN(const double noise, noise_of(made_of(find_units(editor_, others), report_.method), "weighing layers"));
      alone_db_[alone] = noise;
      by_noise.emplace_back(noise, alone);
    }
    std::sort(by_noise.begin(), by_noise.end());
    for (std::size_t i = 0; i < std::min(options_.keep_f32, by_noise.size()); ++i) kept_.insert(by_noise[i].second);
    return {};
  }

  static std::string name_of_node(const OnnxNode& node) { return std::string(node.name.empty() ? node.outputs[0] : node.name); }

  Bytes bytes_of(const Unit& unit, bool quantised) const {
    const Constant& weight = *editor_.constant(unit.weight);
    const auto values = static_cast<std::uint64_t>(weight.elements());
    const auto channels = static_cast<std::uint64_t>(weight.shape[unit.output_axis]);
    const std::uint64_t bias = unit.bias.empty() && !quantised ? 0 : 4 * channels;
    return Bytes(quantised ? values + 4 * channels + bias : 4 * values + bias);
  }

  /// Layers and outputs over all items, f32 and integers side by side.
  Status assess_all(const std::vector<Unit>& units, const IntegerGraph& integers) {
    Observed floats{&editor_.graph(), {}}, bytes{&integers.editor.graph(), {}};
    std::set<std::string_view> quantised;
    for (const Unit& unit : units)
      if (is_layer(unit)) quantised.insert(unit.weight);
    for (const Unit& unit : units_) {
      if (!is_layer(unit)) continue;
      const OnnxNode& node = editor_.node(unit.first());
      const bool now = quantised.contains(unit.weight);
      const auto alone = alone_db_.find(unit.weight);
      report_.layers.push_back({name_of_node(node), std::string(node.op_type), now, 0, alone == alone_db_.end() ? 0 : alone->second,
                                bytes_of(unit, false), bytes_of(unit, now)});
      report_.weights_before += report_.layers.back().before;
      report_.weights_after += report_.layers.back().after;
      const auto rounded = integers.dequantised.find(unit.output);
      floats.names.push_back(unit.output);
      bytes.names.push_back(rounded == integers.dequantised.end() ? unit.output : rounded->second);
    }
    const std::size_t layers = floats.names.size();
    std::vector<std::size_t> outputs;  // indices into `floats`; the last layer often makes one of them
    for (const std::string_view output : output_names()) {
      const auto found = std::find(floats.names.begin(), floats.names.end(), output);
      outputs.push_back(static_cast<std::size_t>(found - floats.names.begin()));
      if (found != floats.names.end()) continue;
      floats.names.push_back(output);
      bytes.names.push_back(output);
    }
    const std::size_t judged = outputs.empty() ? Editor::kNone : outputs[0];
    std::vector<Noise> noise(floats.names.size());
    Agreement agreement;
    SLUICE_RETURN_IF_ERROR(observe(
        floats, bytes, settings_, data_, data_.items, options_, "comparing with f32",
        [&](std::size_t name, const Shape& shape) {
          if (name == judged) agreement.show(shape);
        },
        [&](std::size_t name, std::int64_t first, std::span<const float> values, std::span<const float> others) {
          noise[name].add(values, others);
          if (name == judged) agreement.add(first, values, others);
        }));
    for (std::size_t i = 0; i < layers; ++i) report_.layers[i].noise_db = noise[i].decibels();
    for (const std::size_t output : outputs) report_.outputs.push_back({std::string(floats.names[output]), noise[output].decibels()});
    report_.items = data_.items;
    report_.rows = agreement.rows();
    report_.agreeing = agreement.agreeing();
    return {};
  }

  Status write(const IntegerGraph& integers) {
    if (options_.progress) options_.progress("writing", 0, 1);
    if (is_onnx()) return write_onnx(integers.editor.graph(), out_path_);
    importer::ConvertReport converted;
    const Status status = importer::convert_graph(integers.editor.graph(), settings_.onnx_path, out_path_, options_.convert, converted);
    report_.problems = converted.problems;
    return status;
  }

  Editor editor_;
  const std::string& out_path_;
  const Data& data_;
  const Options& options_;
  Report& report_;
  importer::ConvertReport scratch_;
  ProbeSettings settings_;
  std::vector<Unit> units_;  // all, before any is kept
  std::map<std::string_view, Seen> seen_;
  std::map<std::string_view, Method> own_method_;  // activations whose range is by another than the chosen one
  std::set<std::string_view> kept_;                // weights of layers that stay f32
  std::map<std::string_view, double> alone_db_;
};

Status quantise_file(const std::string& onnx_path, const std::string& out_path, const Data& data, const Options& options, Report& report) {
  if (data.items == 0) return fail(ErrorCode::kInvalidArgument, "data", "there is nothing to show the model");
  importer::OnnxGraph onnx;
  importer::ConvertReport read;
  const Status status = importer::read_onnx(onnx_path, onnx, read);
  report.problems = read.problems;
  SLUICE_RETURN_IF_ERROR(status);
  for (const auto& file : onnx.files)
    if (file->is_at(out_path)) return fail(ErrorCode::kInvalidArgument, out_path, "the result would replace a file that it is made from");
  try {
    return Quantiser(Editor(std::move(onnx)), onnx_path, out_path, data, options, report).run();
  } catch (const importer::Refusal& refusal) {
    report.problems.push_back({refusal.code(), "", "", 0, refusal.what()});
    return fail(refusal.code(), onnx_path, "the file cannot be quantised; the report says why");
  }
}

}  // namespace

Status quantise(const std::string& onnx_path, const std::string& out_path, const Data& data, const Options& options, Report& report) {
  report = {};
  return or_out_of_memory(onnx_path, [&] { return quantise_file(onnx_path, out_path, data, options, report); });
}

}  // namespace sluice::quantiser

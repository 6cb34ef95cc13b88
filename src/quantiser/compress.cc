#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "sluice/quantiser/compressor.h"
#include "src/core/out_of_memory.h"
#include "src/importer/convert_graph.h"
#include "src/importer/refusal.h"
#include "src/importer/sparse_weights.h"
#include "src/quantiser/assess.h"
#include "src/quantiser/fold_norms.h"
#include "src/quantiser/forms.h"
#include "src/quantiser/linear.h"
#include "src/quantiser/probe.h"
#include "src/quantiser/shrink.h"

namespace sluice::quantiser {
namespace {

using importer::OnnxPort;

// Beyond, the inverse of the inputs' products would take minutes, and gigabytes; up to here 400 MiB.
constexpr std::int64_t kMostLength = 5120;
static_assert(bytes_of_compensation(kMostLength) <= 400u << 20);

/// What `smaller` chooses from, layer by layer: SNRs of 35 to 5 dB of weights that are spread as noise is.
constexpr Shrinking kForms[] = {{0.0, false, 64},  {0.0, false, 40}, {0.0, false, 28}, {0.1, false, 22}, {0.2, false, 18},
                                {0.25, false, 15}, {0.3, false, 12}, {0.3, false, 10}, {0.35, false, 8}, {0.4, false, 8},
                                {0.4, false, 6},   {0.5, false, 6},  {0.55, false, 5}, {0.6, false, 4},  {0.7, false, 4}};

/// A weight and the nodes that multiply by it.
struct Layer {
  std::vector<const Unit*> units;
  std::vector<Shrunk> forms;  // with `smaller`: without weights, of which the one is chosen that becomes
  Shrunk shrunk;
  Eigen::VectorXf means;  // of inputs; empty: not seen
};

Lines lines_of(const Unit& unit, const Constant& weight) {
  const WeightRows rows(unit, weight.shape);
  std::vector<float> values(static_cast<std::size_t>(weight.elements()));
  importer::write_floats(weight, values);
  Lines lines(rows.count, rows.length);
  for (std::int64_t n = 0; n < rows.count; ++n)
    for (std::int64_t k = 0; k < rows.length; ++k) lines(n, k) = values[static_cast<std::size_t>(n * rows.row_step + k * rows.step)];
  return lines;
}

/// Returns the values of the matrix to their positions in the weight.
template <class T, class Values>
std::vector<T> weight_of(const Unit& unit, const Shape& shape, const Values& lines) {
  const WeightRows rows(unit, shape);
  std::vector<T> values(static_cast<std::size_t>(shape.element_count()));
  for (std::int64_t n = 0; n < rows.count; ++n)
    for (std::int64_t k = 0; k < rows.length; ++k) values[static_cast<std::size_t>(n * rows.row_step + k * rows.step)] = lines(n, k);
  return values;
}

std::string name_of_node(const OnnxNode& node) { return std::string(node.name.empty() ? node.outputs[0] : node.name); }

class Compressor {
 public:
  Compressor(Editor editor, const std::string& onnx_path, const std::string& out_path, const Data& data, const CompressOptions& options,
             CompressReport& report)
      : editor_(std::move(editor)), onnx_path_(onnx_path), out_path_(out_path), data_(data), options_(options), report_(report) {
    settings_ = {onnx_path, out_path, options.convert, &scratch_};
    observing_.tensor_memory = options.tensor_memory;
    observing_.progress = options.progress;
  }

  Status run() {
    fold_norms(editor_);
    units_ = find_units(editor_, {});
    find_layers();
    if (layers_.empty()) {
      report_.problems.push_back(
          {ErrorCode::kUnsupported, "", "", editor_.graph().opset,
           "no Conv, Gemm or MatMul of one group has a constant weight of f32 of 16 KiB or more that gains by it: there "
           "is nothing to prune or cluster"});
      return fail(ErrorCode::kUnsupported, onnx_path_, "the file cannot be compressed; the report says why");
    }
    for (const auto& initializer : editor_.graph().initializers)
      if (importer::is_float(initializer.tensor.dtype))
        report_.float_bytes += Bytes(static_cast<std::uint64_t>(initializer.tensor.elements()) * size_of(initializer.tensor.dtype));
    SLUICE_RETURN_IF_ERROR(name_problems(shrink_all()));
    SLUICE_RETURN_IF_ERROR(choose());
    report_layers();
    Editor changed = changed_graph();
    if (data_.items > 0) SLUICE_RETURN_IF_ERROR(name_problems(assess(changed)));
    if (options_.progress) options_.progress("writing", 0, 1);
    const Status written = importer::convert_graph(changed.graph(), onnx_path_, out_path_, options_.convert, report_.converted);
    report_.problems = report_.converted.problems;
    return written;
  }

 private:
  Status name_problems(Status status) {
    if (!status) report_.problems = scratch_.problems;
    return status;
  }

  bool clusters() const noexcept { return options_.cluster > 0 || options_.smaller > 0; }

  static bool is_finite(const Constant& weight) {
    for (std::int64_t i = 0; i < weight.elements(); ++i)
      if (!std::isfinite(importer::read_real(weight, i))) return false;
    return true;
  }

  /// Small ones are kept for good, and nothing is gained by changing them.
  bool is_layer(const Unit& unit) const {
    if (unit.kind != Unit::Kind::kWeighted || unit.groups != 1) return false;
    const Constant& weight = *editor_.constant(unit.weight);
    const auto bytes = static_cast<std::uint64_t>(weight.elements()) * sizeof(float);
    return bytes >= model::kAlwaysResidentBelow.count() && (clusters() || options_.prune >= share_that_pays(unit)) && is_finite(weight);
  }

  /// From which share of zero blocks on kernels skip them. Which 3x3 convolutions take Winograd's sums is decided later: any may.
  double share_that_pays(const Unit& unit) const {
    const Shape& shape = editor_.constant(unit.weight)->shape;
    const bool winograd = !options_.convert.exact && shape.rank() == 4 && shape[2] == 3 && shape[3] == 3;
    return winograd ? importer::kPaysBesideWinograd : importer::kPays;
  }

  void find_layers() {
    for (const Unit& unit : units_) {
      if (!is_layer(unit)) continue;
      if (!layers_.contains(unit.weight)) order_.push_back(unit.weight);
      layers_[unit.weight].units.push_back(&unit);
    }
  }

  void shrink_one(std::string_view name, Statistics inputs) {
    Layer& layer = layers_.at(name);
    const Unit& unit = *layer.units.front();
    const Lines weights = lines_of(unit, *editor_.constant(name));
    const Shrinker shrinker(weights, inputs);
    if (options_.smaller > 0) {
      for (const Shrinking& how : kForms) {
        layer.forms.push_back(shrinker.shrink(how));
        layer.forms.back().weights.resize(0, 0);
      }
    } else {
      layer.shrunk = shrinker.shrink({options_.prune, options_.cluster == 0, options_.cluster});
    }
    layer.means = std::move(inputs.means);
  }

  /// Used with `smaller`: the form of each layer.
  Status choose() {
    if (options_.smaller == 0) return {};
    std::vector<std::vector<Form>> forms;
    std::uint64_t changed = 0;
    double least = 0;
    for (const std::string_view name : order_) {
      const std::vector<Shrunk>& all = layers_.at(name).forms;
      changed += static_cast<std::uint64_t>(all.front().codes.size()) * sizeof(float);
      auto& of_layer = forms.emplace_back();
      for (const Shrunk& shrunk : all) of_layer.push_back({coded_bytes(shrunk), shrunk.error / std::max(shrunk.signal, 1e-30)});
      least += std::ranges::min(of_layer, {}, &Form::bytes).bytes;
    }
    const auto others = static_cast<double>((report_.float_bytes - Bytes(changed)).count()),
               all = static_cast<double>(report_.float_bytes.count());
    const auto chosen = choose_forms(forms, all / options_.smaller - others);
    if (!chosen) {
      report_.problems.push_back({ErrorCode::kInvalidArgument, "", "", editor_.graph().opset,
                                  "the weights can be " + std::to_string(all / (least + others)) +
                                      " times smaller than the file's floats at the most: ask for less"});
      return fail(ErrorCode::kInvalidArgument, onnx_path_, "the file cannot be so much smaller; the report says why");
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
      Layer& layer = layers_.at(order_[i]);
      layer.shrunk = std::move(layer.forms[(*chosen)[i]]);
      layer.shrunk.weights = weights_of(layer.shrunk);
      layer.forms = {};
    }
    return {};
  }

  void report_layers() {
    for (const std::string_view name : order_) {
      const Layer& layer = layers_.at(name);
      const Unit& unit = *layer.units.front();
      const OnnxNode& node = editor_.node(unit.first());
      Noise noise;
      noise.signal = layer.shrunk.signal;
      noise.error = layer.shrunk.error;
      const std::int64_t length = layer.shrunk.weights.cols();
      report_.layers.push_back({name_of_node(node), std::string(node.op_type), static_cast<std::size_t>(layer.shrunk.weights.size()),
                                layer.shrunk.values, layer.shrunk.zeros, noise.decibels(),
                                data_.items > 0 && length > kMostLength ? length : 0});
    }
  }

  /// Takes as many layers at a time as there is memory for what is kept of their inputs.
  Status shrink_all() {
    for (std::size_t first = 0; first < order_.size();) {
      std::size_t end = first;
      for (std::uint64_t bytes = 0; end < order_.size(); ++end) {
        const Unit& unit = *layers_.at(order_[end]).units.front();
        const std::int64_t length = WeightRows(unit, editor_.constant(order_[end])->shape).length;
        if (length <= kMostLength) bytes += static_cast<std::uint64_t>(length * length) * sizeof(float);
        if (end > first && bytes > options_.tensor_memory.count()) break;
      }
      SLUICE_RETURN_IF_ERROR(shrink_some(std::span(order_).subspan(first, end - first)));
      first = end;
    }
    return {};
  }

  Status shrink_some(std::span<const std::string_view> names) {
    std::vector<std::optional<Gram>> grams(names.size());
    Observed observed{&editor_.graph(), {}};
    std::map<std::string_view, std::size_t> number_of;  // among those that are observed: several layers may read one value
    std::vector<std::vector<std::size_t>> readers_of;
    for (std::size_t i = 0; i < names.size() && data_.items > 0; ++i) {
      const Layer& layer = layers_.at(names[i]);
      grams[i].emplace(editor_, *layer.units.front(), editor_.constant(names[i])->shape);
      if (grams[i]->length() > kMostLength) {
        grams[i].reset();
        continue;
      }
      for (const Unit* unit : layer.units) {
        const auto [value, is_new] = number_of.try_emplace(unit->inputs[0], readers_of.size());
        if (is_new) {
          observed.names.push_back(unit->inputs[0]);
          readers_of.emplace_back();
        }
        readers_of[value->second].push_back(i);
      }
    }
    if (!observed.names.empty())
      SLUICE_RETURN_IF_ERROR(observe(
          observed, {}, settings_, data_, data_.items, observing_, "looking at the data",
          [&](std::size_t name, const Shape& shape) {
            for (const std::size_t i : readers_of[name]) grams[i]->show(shape);
          },
          [&](std::size_t name, std::int64_t first, std::span<const float> values, std::span<const float>) {
            for (const std::size_t i : readers_of[name]) grams[i]->add(first, values);
          }));
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (options_.progress) options_.progress("changing layers", ++changed_, order_.size());
      shrink_one(names[i], grams[i] ? grams[i]->take() : Statistics());
    }
    return {};
  }

  /// The graph with the layers' new weights and biases.
  Editor changed_graph() const {
    Editor changed = editor_;
    std::vector<OnnxNode> made;
    std::map<std::size_t, std::vector<std::pair<std::string_view, std::string_view>>> replaced;  // by node: an input and what it becomes
    std::map<std::size_t, std::vector<OnnxNode>> before;
    for (const auto& [name, layer] : layers_) {
      const Unit& first = *layer.units.front();
      const std::string_view weight = add_weight(changed, name, layer, before[first.first()]);
      for (const Unit* unit : layer.units) {
        replaced[unit->first()].emplace_back(unit->weight, weight);
        if (!unit->bias.empty() && layer.means.size() != 0)
          replaced[unit->bias_node].emplace_back(unit->bias, corrected_bias(changed, *unit, layer));
      }
    }
    std::vector<OnnxNode> old = std::move(changed.graph().nodes);
    for (std::size_t n = 0; n < old.size(); ++n) {
      for (const auto& [from, to] : replaced[n]) std::replace(old[n].inputs.begin(), old[n].inputs.end(), from, to);
      for (OnnxNode& node : before[n]) made.push_back(std::move(node));
      made.push_back(std::move(old[n]));
    }
    changed.graph().nodes = std::move(made);
    changed.sweep();
    return changed;
  }

  /// What nodes read in place of a weight; nodes that make it go to `before`.
  std::string_view add_weight(Editor& changed, std::string_view name, const Layer& layer, std::vector<OnnxNode>& before) const {
    const Unit& unit = *layer.units.front();
    const Shape shape = editor_.constant(name)->shape;
    const std::string base(name);
    if (!clusters())
      return changed.add_constant(base + "_pruned", constant_of(DType::kF32, shape, weight_of<float>(unit, shape, layer.shrunk.weights)));
    const Shape outputs{shape[unit.output_axis]};
    const auto codes =
        changed.add_constant(base + "_codes", constant_of(DType::kI8, shape, weight_of<std::int8_t>(unit, shape, layer.shrunk.codes)));
    const auto scales = changed.add_constant(base + "_scale", constant_of(DType::kF32, outputs, layer.shrunk.scales));
    const auto zeros = changed.add_constant(
        base + "_zero_point", constant_of(DType::kI8, outputs, std::vector<std::int8_t>(static_cast<std::size_t>(outputs[0]))));
    before.push_back(linear_node(changed, base, "DequantizeLinear", {codes, scales, zeros}, unit.output_axis));
    return before.back().outputs[0];
  }

  /// The bias, corrected by what the new weights take from the outputs on average.
  std::string_view corrected_bias(Editor& changed, const Unit& unit, const Layer& layer) const {
    const Constant& given = *editor_.constant(unit.bias);
    std::vector<float> values(static_cast<std::size_t>(given.elements()));
    importer::write_floats(given, values);
    const Lines weights = lines_of(unit, *editor_.constant(unit.weight));
    const Eigen::VectorXf lost = (weights - layer.shrunk.weights) * layer.means;
    for (std::size_t n = 0; n < values.size(); ++n) values[n] += lost[static_cast<Eigen::Index>(n)];
    return changed.add_constant(std::string(unit.bias), constant_of(DType::kF32, given.shape, values));
  }

  /// Outputs over all items, before and after side by side.
  Status assess(const Editor& changed) {
    Observed floats{&editor_.graph(), {}}, fewer{&changed.graph(), {}};
    for (const OnnxPort& port : editor_.graph().outputs) {
      const auto dtype = importer::dtype_of(port.elem_type);
      if (!dtype || !importer::is_float(*dtype)) continue;
      floats.names.push_back(port.name);
      fewer.names.push_back(port.name);
    }
    report_.items = data_.items;
    if (floats.names.empty()) return {};
    std::vector<Noise> noise(floats.names.size());
    Agreement agreement;
    SLUICE_RETURN_IF_ERROR(observe(
        floats, fewer, settings_, data_, data_.items, observing_, "comparing with f32",
        [&](std::size_t name, const Shape& shape) {
          if (name == 0) agreement.show(shape);
        },
        [&](std::size_t name, std::int64_t first, std::span<const float> values, std::span<const float> others) {
          noise[name].add(values, others);
          if (name == 0) agreement.add(first, values, others);
        }));
    for (std::size_t i = 0; i < noise.size(); ++i) report_.outputs.push_back({std::string(floats.names[i]), noise[i].decibels()});
    report_.rows = agreement.rows();
    report_.agreeing = agreement.agreeing();
    return {};
  }

  Editor editor_;
  const std::string& onnx_path_;
  const std::string& out_path_;
  const Data& data_;
  const CompressOptions& options_;
  CompressReport& report_;
  importer::ConvertReport scratch_;
  ProbeSettings settings_;
  Options observing_;
  std::vector<Unit> units_;
  std::map<std::string_view, Layer> layers_;
  std::vector<std::string_view> order_;  // of the graph
  std::size_t changed_ = 0;              // of `order_`
};

Status check(const CompressOptions& options) noexcept {
  if (!(options.prune >= 0 && options.prune <= 0.99)) return fail(ErrorCode::kInvalidArgument, "prune", "is a share from 0 to 0.99");
  if (options.cluster != 0 && (options.cluster < 2 || options.cluster > 256))
    return fail(ErrorCode::kInvalidArgument, "cluster", "is a number of values from 2 to 256");
  if (options.smaller != 0 && !(options.smaller > 1)) return fail(ErrorCode::kInvalidArgument, "smaller", "is a number of times above 1");
  if (options.smaller != 0 && (options.prune != 0 || options.cluster != 0))
    return fail(ErrorCode::kInvalidArgument, "smaller", "chooses zeros and values itself: prune and cluster are not for it");
  if ((options.cluster != 0 || options.smaller != 0) && options.convert.weights)
    return fail(ErrorCode::kInvalidArgument, "cluster", "decides what weights hold: no other form can be asked for");
  return {};
}

Status compress_file(const std::string& onnx_path, const std::string& out_path, const Data& data, const CompressOptions& options,
                     CompressReport& report) {
  SLUICE_RETURN_IF_ERROR(check(options));
  importer::OnnxGraph onnx;
  importer::ConvertReport read;
  const Status status = importer::read_onnx(onnx_path, onnx, read);
  report.problems = read.problems;
  SLUICE_RETURN_IF_ERROR(status);
  for (const auto& file : onnx.files)
    if (file->is_at(out_path)) return fail(ErrorCode::kInvalidArgument, out_path, "the result would replace a file that it is made from");
  try {
    return Compressor(Editor(std::move(onnx)), onnx_path, out_path, data, options, report).run();
  } catch (const importer::Refusal& refusal) {
    report.problems.push_back({refusal.code(), "", "", 0, refusal.what()});
    return fail(refusal.code(), onnx_path, "the file cannot be compressed; the report says why");
  }
}

}  // namespace

Status compress(const std::string& onnx_path, const std::string& out_path, const Data& data, const CompressOptions& options,
                CompressReport& report) {
  report = {};
  return or_out_of_memory(onnx_path, [&] { return compress_file(onnx_path, out_path, data, options, report); });
}

}  // namespace sluice::quantiser

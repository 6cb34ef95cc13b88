#include "src/quantiser/integers.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/quantiser/linear.h"

namespace sluice::quantiser {
namespace {

constexpr float kMostWeight = 127;
/// The largest bias in units of its scale: sums of products are added to it and must stay within 32 bits.
constexpr float kMostBias = 1 << 30;

struct LayerIntegers {
  std::vector<std::int8_t> values;
  std::vector<float> scales;
  std::vector<float> bias;  // corrected
};

/// Means of the values that row `n` is multiplied by; none where they were not observed.
Eigen::VectorXf means_of_row(const Unit& unit, const WeightRows& rows, const std::vector<double>& means, std::int64_t n) {
  const std::int64_t depth = rows.length / rows.taps;
  if (static_cast<std::int64_t>(means.size()) != depth * unit.groups) return {};
  const std::int64_t first = n / (rows.count / unit.groups) * depth;
  Eigen::VectorXf row(rows.length);
  for (std::int64_t k = 0; k < rows.length; ++k) row[k] = static_cast<float>(means[static_cast<std::size_t>(first + k / rows.taps)]);
  return row;
}

LayerIntegers quantise_layer(const Unit& unit, const Constant& weight, std::vector<float> bias, const Activation& input, bool correct) {
  const WeightRows rows(unit, weight.shape);
  LayerIntegers made;
  made.values.resize(static_cast<std::size_t>(weight.elements()));
  made.bias = std::move(bias);
  Eigen::ArrayXf row(rows.length);
  for (std::int64_t n = 0; n < rows.count; ++n) {
    const auto at = [&](std::int64_t k) { return n * rows.row_step + k * rows.step; };
    for (std::int64_t k = 0; k < rows.length; ++k) row[k] = static_cast<float>(importer::read_real(weight, at(k)));
    const float most = row.abs().maxCoeff();
    // A channel of next to no weights must not make its bias, in units of the scale, larger than an i32.
    const float least = std::abs(made.bias[static_cast<std::size_t>(n)]) / kMostBias / input.range.scale();
    const float scale = std::max({most / kMostWeight, least, std::numeric_limits<float>::min() * kMostBias});
    const Eigen::ArrayXf steps = (row / scale).rint().max(-kMostWeight).min(kMostWeight);
    for (std::int64_t k = 0; k < rows.length; ++k) made.values[static_cast<std::size_t>(at(k))] = static_cast<std::int8_t>(steps[k]);
    made.scales.push_back(scale);
    if (!correct) continue;
    const Eigen::VectorXf means = means_of_row(unit, rows, input.means, n);
    if (means.size() == rows.length) made.bias[static_cast<std::size_t>(n)] += (row - steps * scale).matrix().dot(means);
  }
  return made;
}

class Inserter {
 public:
  Inserter(const Editor& editor, const std::vector<Unit>& units, const Activations& activations, bool correct)
      : made_{editor, {}}, units_(units), activations_(activations), correct_(correct) {}

  IntegerGraph run() {
    std::map<std::size_t, const Unit*> unit_of;
    for (const Unit& unit : units_)
      for (const std::size_t node : unit.nodes) unit_of[node] = &unit;
    const std::vector<OnnxNode> old = std::move(made_.editor.graph().nodes);
    made_.editor.graph().nodes.clear();
    std::map<std::size_t, std::string_view> biases;  // of additions behind a MatMul
    for (std::size_t n = 0; n < old.size(); ++n) {
      OnnxNode node = old[n];
      if (const auto found = unit_of.find(n); found != unit_of.end()) {
        const Unit& unit = *found->second;
        if (n == unit.first()) begin(unit, node, biases);
        if (const auto bias = biases.find(n); bias != biases.end()) replace(node, unit.bias, bias->second);
        for (const std::string_view input : unit.inputs) replace(node, input, made_.dequantised.at(input));
      }
      nodes().push_back(std::move(node));
    }
    made_.editor.sweep();
    return std::move(made_);
  }

 private:
  std::vector<OnnxNode>& nodes() { return made_.editor.graph().nodes; }
  Editor& editor() { return made_.editor; }

  static void replace(OnnxNode& node, std::string_view from, std::string_view to) {
    std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  }

  /// What stands before the first node of a unit.
  void begin(const Unit& unit, OnnxNode& node, std::map<std::size_t, std::string_view>& biases) {
    for (const std::string_view input : unit.inputs)
      if (!made_.dequantised.contains(input)) add_bytes(input);
    if (unit.kind == Unit::Kind::kWeighted) add_layer(unit, node, biases);
  }

  std::string_view add_node(const std::string& base, std::string_view op, std::vector<std::string_view> inputs, std::int64_t axis) {
    nodes().push_back(linear_node(editor(), base, op, std::move(inputs), axis));
    return nodes().back().outputs[0];
  }

  void add_bytes(std::string_view tensor) {
    const std::string base(tensor);
    const Range& range = activations_.at(tensor).range;
    const auto scale = editor().add_constant(base + "_scale", constant_of<float>(DType::kF32, Shape{}, {range.scale()}));
    const auto zero = editor().add_constant(base + "_zero_point",
                                            constant_of<std::uint8_t>(DType::kU8, Shape{}, {static_cast<std::uint8_t>(range.zero())}));
    const std::string_view bytes = add_node(base, "QuantizeLinear", {tensor, scale, zero}, -1);
    made_.dequantised[tensor] = add_node(base, "DequantizeLinear", {bytes, scale, zero}, -1);
  }

  void add_layer(const Unit& unit, OnnxNode& node, std::map<std::size_t, std::string_view>& biases) {
    const Constant weight = *editor().constant(unit.weight);
    const Constant* given = unit.bias.empty() ? nullptr : editor().constant(unit.bias);
    const Shape bias_shape = given == nullptr ? Shape{} : given->shape;
    const bool has_bias = given != nullptr;
    const auto channels = static_cast<std::size_t>(weight.shape[unit.output_axis]);
    const Activation& input = activations_.at(unit.inputs[0]);
    const bool is_matmul = node.op_type == "MatMul";
    LayerIntegers made = quantise_layer(unit, weight, has_bias ? importer::floats(*given) : std::vector<float>(channels), input,
                                        correct_ && (!is_matmul || has_bias));
    const std::string base(unit.weight);
    const Shape per_channel{static_cast<std::int64_t>(channels)};
    const auto scale = editor().add_constant(base + "_scale", constant_of(DType::kF32, per_channel, made.scales));
    const auto zero = editor().add_constant(base + "_zero_point", constant_of(DType::kI8, per_channel, std::vector<std::int8_t>(channels)));
    const auto values = editor().add_constant(base + "_quantized", constant_of(DType::kI8, weight.shape, made.values));
    node.inputs[1] = add_node(base, "DequantizeLinear", {values, scale, zero}, unit.output_axis);
    if (is_matmul) {
      if (has_bias) biases[unit.bias_node] = editor().add_constant(std::string(unit.bias), constant_of(DType::kF32, bias_shape, made.bias));
      return;
    }
    const bool wanted = std::any_of(made.bias.begin(), made.bias.end(), [](float value) { return value != 0; });
    if (!has_bias && !wanted) return;
    std::vector<float> scales;
    std::vector<std::int32_t> whole;
    for (std::size_t n = 0; n < channels; ++n) {
      scales.push_back(input.range.scale() * made.scales[n]);
      whole.push_back(static_cast<std::int32_t>(std::clamp(std::nearbyint(made.bias[n] / scales[n]), -kMostBias, kMostBias)));
    }
    const std::string bias_base = has_bias ? std::string(unit.bias) : base + "_bias";
    const auto bias_scale = editor().add_constant(bias_base + "_scale", constant_of(DType::kF32, per_channel, scales));
    const auto bias = editor().add_constant(bias_base + "_quantized", constant_of(DType::kI32, per_channel, whole));
    node.inputs.resize(3);
    node.inputs[2] = add_node(bias_base, "DequantizeLinear", {bias, bias_scale}, 0);
  }

  IntegerGraph made_;
  const std::vector<Unit>& units_;
  const Activations& activations_;
  bool correct_;
};

}  // namespace

void tie_ranges(const Editor& editor, const std::vector<Unit>& units, Activations& activations) {
  std::map<std::string_view, std::string_view> parent;
  const auto root = [&](std::string_view tensor) {
    while (parent.contains(tensor)) tensor = parent.at(tensor);
    return tensor;
  };
  for (const Unit& unit : units) {
    if (unit.kind != Unit::Kind::kMovement || !activations.contains(unit.output)) continue;
    for (const std::string_view input : unit.inputs) {
      // Among several inputs, one that other nodes read too keeps a scale of its own.
      if (unit.inputs.size() > 1 && editor.single_reader(input) == Editor::kNone) continue;
      if (root(input) != root(unit.output)) parent[root(input)] = root(unit.output);
    }
  }
  for (const auto& [tensor, activation] : activations) activations.at(root(tensor)).range.include(activation.range);
  for (auto& [tensor, activation] : activations) activation.range = activations.at(root(tensor)).range;
}

IntegerGraph insert_integers(const Editor& editor, const std::vector<Unit>& units, const Activations& activations, bool correct_bias) {
  return Inserter(editor, units, activations, correct_bias).run();
}

}  // namespace sluice::quantiser

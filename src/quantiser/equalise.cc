#include "src/quantiser/equalise.h"

#include <algorithm>
#include <cmath>

namespace sluice::quantiser {
namespace {

/// No channel is made larger than this many times: what hardly ever stirs need not fill the range.
constexpr float kMostFactor = 256;

/// The channel of its input that an element of a layer's weight is multiplied by.
std::int64_t input_channel(const Unit& unit, const Shape& shape, std::int64_t element) {
  const std::int64_t depth = shape[unit.input_axis];
  const std::int64_t within = element / shape.count(unit.input_axis + 1, shape.rank()) % depth;
  if (unit.groups == 1) return within;
  return element / shape.count(1, shape.rank()) / (shape[0] / unit.groups) * depth + within;
}

std::int64_t output_channel(const Unit& unit, const Shape& shape, std::int64_t element) {
  return element / shape.count(unit.output_axis + 1, shape.rank()) % shape[unit.output_axis];
}

std::vector<float> values_of(const Constant& constant) {
  std::vector<float> values(static_cast<std::size_t>(constant.elements()));
  importer::write_floats(constant, values);
  return values;
}

class Equaliser {
 public:
  explicit Equaliser(Editor& editor) : editor_(editor) {}

  /// `before` makes what `after` alone reads.
  bool join(const Unit& before, const Unit& after, const std::vector<float>& largest) {
    const std::string_view from = editor_.node(before.first()).inputs[1], to = editor_.node(after.first()).inputs[1];
    const Shape from_shape = editor_.constant(from)->shape, to_shape = editor_.constant(to)->shape;
    if (from_shape[before.output_axis] != static_cast<std::int64_t>(largest.size()) ||
        to_shape[after.input_axis] * after.groups != static_cast<std::int64_t>(largest.size()))
      return false;
    std::vector<float> weights(largest.size(), 0.0f);
    const std::vector<float> values = values_of(*editor_.constant(to));
    for (std::size_t e = 0; e < values.size(); ++e) {
      float& most = weights[static_cast<std::size_t>(input_channel(after, to_shape, static_cast<std::int64_t>(e)))];
      most = std::max(most, std::abs(values[e]));
    }
    const std::vector<float> divisors = divisors_of(largest, weights, after.groups == static_cast<std::int64_t>(largest.size()));
    scale(before.first(), 1,
          [&](std::int64_t e) { return 1.0f / divisors[static_cast<std::size_t>(output_channel(before, from_shape, e))]; });
    scale(after.first(), 1, [&](std::int64_t e) { return divisors[static_cast<std::size_t>(input_channel(after, to_shape, e))]; });
    if (!before.bias.empty()) {
      const std::vector<std::string_view>& inputs = editor_.node(before.bias_node).inputs;
      const auto place = static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), before.bias) - inputs.begin());
      scale(before.bias_node, place, [&](std::int64_t e) { return 1.0f / divisors[static_cast<std::size_t>(e)]; });
    }
    return true;
  }

 private:
  static std::vector<float> divisors_of(const std::vector<float>& largest, const std::vector<float>& weights, bool depthwise) {
    const float most = *std::max_element(largest.begin(), largest.end());
    std::vector<float> divisors;
    for (std::size_t i = 0; i < largest.size(); ++i) {
      const bool idle = largest[i] <= 0 || weights[i] <= 0;
      const float wanted = idle ? 1.0f : depthwise ? largest[i] / most : std::sqrt(largest[i] / most / weights[i]);
      divisors.push_back(std::clamp(wanted, 1.0f / kMostFactor, kMostFactor));
    }
    return divisors;
  }

  /// A constant that a node reads, each element times `factor(element)`, under a new name.
  template <class Factor>
  void scale(std::size_t node, std::size_t input, const Factor& factor) {
    const std::string_view name = editor_.node(node).inputs[input];
    const Constant given = *editor_.constant(name);
    auto values = std::make_shared<std::vector<float>>(values_of(given));
    for (std::size_t e = 0; e < values->size(); ++e) (*values)[e] *= factor(static_cast<std::int64_t>(e));
    Constant scaled = importer::make_view(DType::kF32, given.shape, reinterpret_cast<const std::byte*>(values->data()), values);
    editor_.graph().nodes[node].inputs[input] = editor_.add_constant(std::string(name) + "_equalised", std::move(scaled));
  }

  Editor& editor_;
};

}  // namespace

bool has_depthwise(const Editor& editor, const std::vector<Unit>& units) {
  return std::any_of(units.begin(), units.end(), [&](const Unit& unit) {
    return unit.kind == Unit::Kind::kWeighted && unit.groups > 1 && editor.constant(unit.weight)->shape[1] == 1;
  });
}

std::size_t equalise(Editor& editor, const std::vector<Unit>& units, const std::map<std::string_view, std::vector<float>>& largest) {
  std::map<std::string_view, const Unit*> maker;
  for (const Unit& unit : units)
    if (unit.kind == Unit::Kind::kWeighted && unit.homogeneous) maker[unit.output] = &unit;
  Equaliser equaliser(editor);
  std::size_t count = 0;
  for (const Unit& after : units) {
    if (after.kind != Unit::Kind::kWeighted) continue;
    const auto before = maker.find(after.inputs[0]);
    const auto seen = largest.find(after.inputs[0]);
    if (before == maker.end() || seen == largest.end() || editor.single_reader(after.inputs[0]) != after.first()) continue;
    if (before->second->channel_axis != after.channel_axis) continue;
    count += equaliser.join(*before->second, after, seen->second) ? 1 : 0;
  }
  if (count > 0) editor.sweep();
  return count;
}

}  // namespace sluice::quantiser

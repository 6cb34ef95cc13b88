#include "src/quantiser/units.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace sluice::quantiser {
namespace {

using importer::AttributeType;
using importer::OnnxAttribute;

bool is_of(const OnnxNode& node, std::initializer_list<std::string_view> ops) {
  return node.domain.empty() && std::find(ops.begin(), ops.end(), node.op_type) != ops.end();
}

std::string_view input_of(const OnnxNode& node, std::size_t index) { return index < node.inputs.size() ? node.inputs[index] : ""; }

class Finder {
 public:
  Finder(const Editor& editor, const std::set<std::string_view>& kept) : editor_(editor), kept_(kept) {}

  std::vector<Unit> run() {
    for (std::size_t n = 0; n < editor_.graph().nodes.size(); ++n) {
      if (used_.contains(n)) continue;
      Unit unit;
      unit.nodes = {n};
      unit.output = editor_.node(n).outputs.empty() ? std::string_view() : editor_.node(n).outputs[0];
      if (!take(n, unit)) continue;
      used_.insert(unit.nodes.begin(), unit.nodes.end());
      units_.push_back(std::move(unit));
    }
    drop_between_floats();
    return std::move(units_);
  }

 private:
  bool take(std::size_t n, Unit& unit) {
    const OnnxNode& node = editor_.node(n);
    if (take_conv(node, unit) || take_gemm(node, unit) || take_matmul(node, unit)) {
      absorb_rectifier(unit);
      return !kept_.contains(unit.weight);
    }
    if (take_arithmetic(n, unit)) return true;
    return take_movement(node, unit);
  }

  bool is_weight(std::string_view name, int least_rank, int most_rank) const {
    const Constant* w = editor_.constant(name);
    return w != nullptr && w->dtype == DType::kF32 && w->shape.rank() >= least_rank && w->shape.rank() <= most_rank && w->elements() > 0;
  }
  bool is_bias(std::string_view name, std::int64_t channels) const {
    const Constant* b = editor_.constant(name);
    return b != nullptr && b->dtype == DType::kF32 && b->elements() == channels && b->shape.rank() >= 1 &&
           b->shape[b->shape.rank() - 1] == channels;
  }
  bool is_activation(std::string_view name) const { return !name.empty() && editor_.constant(name) == nullptr; }

  bool take_conv(const OnnxNode& node, Unit& unit) const {
    if (!is_of(node, {"Conv"}) || !is_activation(input_of(node, 0)) || !is_weight(input_of(node, 1), 3, 4)) return false;
    const std::int64_t channels = editor_.constant(node.inputs[1])->shape[0];
    const std::string_view bias = input_of(node, 2);
    if (!bias.empty() && !is_bias(bias, channels)) return false;
    unit.inputs = {node.inputs[0]};
    unit.weight = node.inputs[1];
    unit.bias = bias;
    unit.bias_node = unit.first();
    unit.groups = integer_of(node, "group", 1);
    return unit.groups >= 1 && channels % unit.groups == 0;
  }

  bool take_gemm(const OnnxNode& node, Unit& unit) const {
    if (!is_of(node, {"Gemm"}) || !is_activation(input_of(node, 0)) || !is_weight(input_of(node, 1), 2, 2)) return false;
    if (integer_of(node, "transA", 0) != 0 || real_of(node, "alpha", 1) != 1 || real_of(node, "beta", 1) != 1) return false;
    const bool turned = integer_of(node, "transB", 0) != 0;
    unit.output_axis = turned ? 0 : 1;
    unit.input_axis = turned ? 1 : 0;
    const std::string_view bias = input_of(node, 2);
    if (!bias.empty() && !is_bias(bias, editor_.constant(node.inputs[1])->shape[unit.output_axis])) return false;
    unit.inputs = {node.inputs[0]};
    unit.weight = node.inputs[1];
    unit.bias = bias;
    unit.bias_node = unit.first();
    unit.channel_axis = -1;
    return true;
  }

  bool take_matmul(const OnnxNode& node, Unit& unit) const {
    if (!is_of(node, {"MatMul"}) || !is_activation(input_of(node, 0)) || !is_weight(input_of(node, 1), 2, 2)) return false;
    unit.inputs = {node.inputs[0]};
    unit.weight = node.inputs[1];
    unit.output_axis = 1;
    unit.input_axis = 0;
    unit.channel_axis = -1;
    const std::size_t next = editor_.single_reader(unit.output);
    if (next == Editor::kNone || !is_of(editor_.node(next), {"Add"})) return true;
    const OnnxNode& add = editor_.node(next);
    const std::string_view other = add.inputs[0] == unit.output ? input_of(add, 1) : add.inputs[0];
    if (!is_bias(other, editor_.constant(unit.weight)->shape[1])) return true;
    unit.bias = other;
    unit.bias_node = next;
    unit.nodes.push_back(next);
    unit.output = add.outputs[0];
    return true;
  }

  /// A Relu, or a Clip with constant ends, that alone reads what the unit makes.
  void absorb_rectifier(Unit& unit) const {
    const std::size_t next = editor_.single_reader(unit.output);
    if (next == Editor::kNone || !is_rectifier(editor_.node(next)) || editor_.node(next).inputs[0] != unit.output) return;
    unit.nodes.push_back(next);
    unit.output = editor_.node(next).outputs[0];
    unit.rectified = true;
    unit.homogeneous = is_of(editor_.node(next), {"Relu"});
  }

  bool is_rectifier(const OnnxNode& node) const {
    if (is_of(node, {"Relu"})) return true;
    if (!is_of(node, {"Clip"})) return false;
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      if (!node.inputs[i].empty() && editor_.constant(node.inputs[i]) == nullptr) return false;
    return true;
  }

  bool take_arithmetic(std::size_t n, Unit& unit) const {
    const OnnxNode& node = editor_.node(n);
    unit.kind = Unit::Kind::kArithmetic;
    if (is_of(node, {"Add", "Sub", "Mul"}) && node.inputs.size() == 2 && is_activation(node.inputs[0]) && is_activation(node.inputs[1]) &&
        node.inputs[0] != node.inputs[1]) {
      unit.inputs = {node.inputs[0], node.inputs[1]};
      absorb_rectifier(unit);
      return true;
    }
    const bool pool = is_of(node, {"AveragePool", "GlobalAveragePool"}) || is_mean_over_space(node);
    const bool function = is_of(node, {"Sigmoid", "HardSigmoid", "HardSwish", "LeakyRelu", "Tanh", "Elu"}) || is_rectifier(node);
    if ((!pool && !function) || !is_activation(input_of(node, 0))) return false;
    unit.inputs = {node.inputs[0]};
    if (is_of(node, {"Sigmoid", "HardSigmoid"})) absorb_gate(unit);
    return true;
  }

  /// x * sigmoid(x) is one function of x.
  void absorb_gate(Unit& unit) const {
    const std::size_t next = editor_.single_reader(unit.output);
    if (next == Editor::kNone || !is_of(editor_.node(next), {"Mul"})) return;
    const OnnxNode& product = editor_.node(next);
    const std::string_view other = product.inputs[0] == unit.output ? input_of(product, 1) : product.inputs[0];
    if (other != unit.inputs[0]) return;
    unit.nodes.push_back(next);
    unit.output = product.outputs[0];
  }

  bool is_mean_over_space(const OnnxNode& node) const {
    if (!is_of(node, {"ReduceMean"})) return false;
    const OnnxAttribute* axes = find_attribute(node, "axes");
    std::vector<std::int64_t> over = axes == nullptr ? std::vector<std::int64_t>() : axes->ints;
    if (const Constant* given = node.inputs.size() > 1 ? editor_.constant(node.inputs[1]) : nullptr) over = importer::integers(*given);
    std::sort(over.begin(), over.end());
    return over == std::vector<std::int64_t>{2, 3} || over == std::vector<std::int64_t>{-2, -1};
  }

  bool take_movement(const OnnxNode& node, Unit& unit) const {
    unit.kind = Unit::Kind::kMovement;
    const bool nearest = is_of(node, {"Resize"}) && mode_of(node) == "nearest";
    if (is_of(node, {"Concat"})) {
      unit.inputs.assign(node.inputs.begin(), node.inputs.end());
      return std::all_of(unit.inputs.begin(), unit.inputs.end(), [&](std::string_view input) { return is_activation(input); });
    }
    if (!nearest &&
        !is_of(node, {"MaxPool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Slice", "DepthToSpace", "Identity"}))
      return false;
    unit.inputs = {input_of(node, 0)};
    return node.outputs.size() == 1 && is_activation(unit.inputs[0]);
  }

  static std::string_view mode_of(const OnnxNode& node) {
    const OnnxAttribute* mode = find_attribute(node, "mode");
    return mode == nullptr ? "nearest" : mode->s;
  }

  /// Removes nodes that are not layers until all that are left read units and are read by units.
  void drop_between_floats() {
    for (bool changed = true; changed;) {
      std::map<std::size_t, const Unit*> by_first;
      std::set<std::string_view> made;
      for (const Unit& unit : units_) {
        by_first[unit.first()] = &unit;
        made.insert(unit.output);
      }
      const auto reads_bytes = [&](std::size_t reader, std::string_view value) {
        const auto unit = by_first.find(reader);
        if (unit != by_first.end())
          return std::find(unit->second->inputs.begin(), unit->second->inputs.end(), value) != unit->second->inputs.end();
        return false;
      };
      const auto between_floats = [&](const Unit& unit) {
        if (unit.kind == Unit::Kind::kWeighted) return false;
        if (editor_.read_outside(unit.output) || editor_.readers(unit.output).empty()) return true;
        for (const std::string_view input : unit.inputs)
          if (!made.contains(input)) return true;
        return !std::all_of(editor_.readers(unit.output).begin(), editor_.readers(unit.output).end(),
                            [&](std::size_t reader) { return reads_bytes(reader, unit.output) || inside(unit, reader); });
      };
      std::set<std::size_t> gone;
      for (const Unit& unit : units_)
        if (between_floats(unit)) gone.insert(unit.first());
      changed = std::erase_if(units_, [&](const Unit& unit) { return gone.contains(unit.first()); }) > 0;
    }
  }

  static bool inside(const Unit& unit, std::size_t node) {
    return std::find(unit.nodes.begin(), unit.nodes.end(), node) != unit.nodes.end();
  }

  const Editor& editor_;
  const std::set<std::string_view>& kept_;
  std::set<std::size_t> used_;
  std::vector<Unit> units_;
};

}  // namespace

std::vector<Unit> find_units(const Editor& editor, const std::set<std::string_view>& kept) { return Finder(editor, kept).run(); }

}  // namespace sluice::quantiser

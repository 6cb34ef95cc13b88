#include "src/model/validate_forms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "sluice/core/sort.h"
#include "src/core/build_list.h"
#include "src/model/built_features.h"

namespace sluice::model {
namespace {

bool quantisable(DType dtype) noexcept {
  return dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI16 || dtype == DType::kU16 || dtype == DType::kI32;
}

bool holds(DType dtype, std::int32_t value) noexcept {
  if (dtype == DType::kI32) return true;
  const bool is_signed = dtype == DType::kI8 || dtype == DType::kI16;
  const std::int32_t span = size_of(dtype) == 1 ? 256 : 65536;
  const std::int32_t least = is_signed ? -span / 2 : 0;
  return value >= least && value < least + span;
}

/// (G7) First each quantisation for itself, then each thing that names one: a long list is walked once, however many name it.
class QuantisationCheck {
 public:
  explicit QuantisationCheck(const Graph& graph) : graph_(graph) {}

  Status check_values() {
    for (const Quantisation& q : graph_.quantisations) {
      const auto sound = [](float scale) { return std::isfinite(scale) && scale > 0.0f; };
      if (!std::all_of(q.scales.begin(), q.scales.end(), sound)) return invalid(graph_.name, "G7: a scale is not finite and above zero");
      if (q.scale_weight.valid() && !q.scales.empty()) return invalid(graph_.name, "G7: scales are both values and a weight");
      if (q.zero_weight.valid() && !q.zero_points.empty()) return invalid(graph_.name, "G7: zero points are both values and a weight");
      const auto [least, most] = std::minmax_element(q.zero_points.begin(), q.zero_points.end());
      zero_points_.push_back(q.zero_points.empty() ? Extremes{} : Extremes{*least, *most});
    }
    return {};
  }

  Status check(std::string_view name, std::uint32_t index, DType dtype, const Shape& shape) const {
    if (index >= graph_.quantisations.size()) return invalid(name, "G7: its quantisation does not exist");
    if (!quantisable(dtype)) return invalid(name, "G7: only integers up to 32 bits have a scale");
    const Quantisation& q = graph_.quantisations[index];
    if (q.axis < -1 || q.axis >= shape.rank()) return invalid(name, "G7: its scales are along an axis that it has not");
    const auto count = q.axis < 0 ? std::uint64_t{1} : static_cast<std::uint64_t>(shape[q.axis]);
    if (q.scale_weight.valid() ? !holds_values(q.scale_weight, DType::kF32, count) : q.scales.size() != count)
      return invalid(name, "G7: it has not one scale, or one for each index on its axis");
    if (q.zero_weight.valid() ? !holds_values(q.zero_weight, dtype, count) : !q.zero_points.empty() && q.zero_points.size() != count)
      return invalid(name, "G7: it has not as many zero points of its type as scales");
    const Extremes& zeros = zero_points_[index];
    if (!holds(dtype, zeros.least) || !holds(dtype, zeros.most)) return invalid(name, "G7: a zero point is no value of its type");
    return {};
  }

  Status check(const std::vector<Tensor>& tensors) const {
    for (const Tensor& tensor : tensors)
      if (tensor.quantisation != kNoQuantisation)
        SLUICE_RETURN_IF_ERROR(check(tensor.name, tensor.quantisation, tensor.dtype, tensor.shape));
    return {};
  }

  /// Checks the quantisation of each node's u8 sums: it has one scale.
  Status check(const std::vector<Node>& nodes) const {
    for (const Node& node : nodes)
      if (node.quantisation != kNoQuantisation) SLUICE_RETURN_IF_ERROR(check(node.name, node.quantisation, DType::kU8, Shape{}));
    return {};
  }

 private:
  struct Extremes {
    std::int32_t least = 0;
    std::int32_t most = 0;
  };

  bool holds_values(WeightId id, DType dtype, std::uint64_t count) const {
    if (id.index() >= graph_.weights.size()) return false;
    const Weight& weight = graph_.weight(id);
    return weight.panel_layout.layout == WeightLayout::kPlain && weight.panel_layout.dtype == dtype &&
           weight.panel_bytes.count() / size_of(dtype) >= count;
  }

  const Graph& graph_;
  std::vector<Extremes> zero_points_;  // by quantisation
};

/// (G8) Checks which nodes run which subgraphs, and each subgraph by itself.
class SubgraphCheck {
 public:
  explicit SubgraphCheck(const Graph& graph)
      : graph_(graph), runner_(graph.subgraphs.size(), nullptr), outside_(graph.subgraphs.size()), depth_of_(graph.subgraphs.size(), 0) {}

  Status run() {
    SLUICE_RETURN_IF_ERROR(find_runners(graph_.nodes, graph_.tensors, 0));
    for (std::size_t s = 0; s < graph_.subgraphs.size(); ++s) {
      depth_ = depth_of_[s] + 1;
      SLUICE_RETURN_IF_ERROR(find_runners(graph_.subgraphs[s].nodes, graph_.subgraphs[s].tensors, s + 1));
    }
    for (std::size_t s = 0; s < graph_.subgraphs.size(); ++s) SLUICE_RETURN_IF_ERROR(check(s));
    return {};
  }

 private:
  /// A body may run subgraphs from number `least` on only: those with a lower number may run it, so there can be no cycle.
  Status find_runners(const std::vector<Node>& nodes, const std::vector<Tensor>& tensors, std::size_t least) {
    for (const Node& node : nodes) {
      const std::size_t count = graph_.subgraphs.size();
      if (node.subgraph_count == 0) {
        if (node.first_subgraph != 0) return invalid(node.name, "G8: a node without subgraphs names one");
        continue;
      }
      if (node.first_subgraph < least || node.first_subgraph > count || node.subgraph_count > count - node.first_subgraph)
        return invalid(node.name, "G8: a subgraph that the node runs does not exist, or may run the node");
      for (std::size_t s = node.first_subgraph; s < node.first_subgraph + std::size_t{node.subgraph_count}; ++s) {
        if (runner_[s] != nullptr) return invalid(graph_.subgraphs[s].name, "G8: two nodes run this subgraph");
        if (depth_ >= kMaxNested) return invalid(graph_.subgraphs[s].name, "G8: subgraphs lie too deep in each other");
        depth_of_[s] = depth_;
        runner_[s] = &node;
        outside_[s] = &tensors;
      }
    }
    return {};
  }

  Status check(std::size_t s) {
    const Subgraph& subgraph = graph_.subgraphs[s];
    if (runner_[s] == nullptr) return invalid(subgraph.name, "G8: no node runs this subgraph");
    for (const Tensor& tensor : subgraph.tensors) SLUICE_RETURN_IF_ERROR(check_tensor(graph_, tensor));
    std::vector<bool> made(subgraph.tensors.size(), false);
    for (const TensorId id : subgraph.inputs) SLUICE_RETURN_IF_ERROR(make(subgraph, id, made));
    for (const Capture& capture : subgraph.captures) SLUICE_RETURN_IF_ERROR(check_capture(s, capture, made));
    for (const Node& node : subgraph.nodes) SLUICE_RETURN_IF_ERROR(check_node(subgraph, node, made));
    for (std::size_t t = 0; t < made.size(); ++t)
      if (!made[t] && !subgraph.tensors[t].weight.valid() && subgraph.tensors[t].shape.element_count() > 0)
        return invalid(subgraph.tensors[t].name, "G8: nothing makes this tensor");
    if (subgraph.outputs.empty()) return invalid(subgraph.name, "G8: a subgraph without outputs");
    for (const TensorId id : subgraph.outputs)
      if (!id.valid() || id.index() >= made.size()) return invalid(subgraph.name, "G8: an output of the subgraph does not exist");
    return {};
  }

  static Status make(const Subgraph& subgraph, TensorId id, std::vector<bool>& made) {
    if (!id.valid() || id.index() >= made.size()) return invalid(subgraph.name, "G8: a tensor of the subgraph does not exist");
    const Tensor& tensor = subgraph.tensors[id.index()];
    if (made[id.index()] || tensor.weight.valid()) return invalid(tensor.name, "G8: a tensor of the subgraph is a constant, or made twice");
    made[id.index()] = true;
    return {};
  }

  /// A captured tensor is an input of the node that runs the subgraph, so that lifetimes and units need not look inside.
  Status check_capture(std::size_t s, const Capture& capture, std::vector<bool>& made) {
    const Subgraph& subgraph = graph_.subgraphs[s];
    SLUICE_RETURN_IF_ERROR(make(subgraph, capture.inner, made));
    if (sorted_of_ != runner_[s]) {  // subgraphs of one node follow each other
      sorted_of_ = runner_[s];
      sorted_inputs_ = sorted_of_->inputs;
      sluice::sort(sorted_inputs_.begin(), sorted_inputs_.end());
    }
    if (!capture.outer.valid() || capture.outer.index() >= outside_[s]->size() ||
        !std::binary_search(sorted_inputs_.begin(), sorted_inputs_.end(), capture.outer))
      return invalid(subgraph.name, "G8: the subgraph captures what is no input of the node that runs it");
    const Tensor& outer = (*outside_[s])[capture.outer.index()];
    const Tensor& inner = subgraph.tensors[capture.inner.index()];
    if (outer.dtype != inner.dtype || outer.shape != inner.shape || outer.bounded != inner.bounded ||
        outer.quantisation != inner.quantisation)
      return invalid(inner.name, "G8: a captured tensor is another inside than outside");
    return {};
  }

  Status check_node(const Subgraph& subgraph, const Node& node, std::vector<bool>& made) const {
    for (const TensorId id : node.inputs) {
      if (!id.valid() || id.index() >= made.size()) return invalid(node.name, "G8: an input tensor does not exist");
      if (!made[id.index()] && !subgraph.tensors[id.index()].weight.valid())
        return invalid(node.name, "G8: an input is used before it is made");
    }
    for (const WeightId id : node.weights)
      if (!id.valid() || id.index() >= graph_.weights.size()) return invalid(node.name, "G8: a weight does not exist");
    if (node.outputs.empty()) return invalid(node.name, "G8: a node without outputs");
    for (const TensorId id : node.outputs) SLUICE_RETURN_IF_ERROR(make(subgraph, id, made));
    return {};
  }

  const Graph& graph_;
  std::vector<const Node*> runner_;                  // by subgraph
  std::vector<const std::vector<Tensor>*> outside_;  // by subgraph: the tensors among which its runner lives
  std::vector<int> depth_of_;                        // by subgraph whose runner is known
  int depth_ = 0;                                    // of those that the nodes being looked at run
  const Node* sorted_of_ = nullptr;
  std::vector<TensorId> sorted_inputs_;
};

/// (G9) The units of a graph whose nodes are sound.
class UnitCheck {
 public:
  explicit UnitCheck(const Graph& graph)
      : graph_(graph), unit_of_(graph.tensors.size(), kOutside), read_elsewhere_(graph.tensors.size(), false) {}

  Status run() {
    SLUICE_RETURN_IF_ERROR(check_runs());
    for (std::size_t u = 0; u < graph_.units.size(); ++u)
      for (const Node& node : nodes_of(u))
        for (const TensorId id : node.outputs) unit_of_[id.index()] = u;
    for (std::size_t u = 0; u < graph_.units.size(); ++u)
      for (const Node& node : nodes_of(u))
        for (const TensorId id : node.inputs) read_elsewhere_[id.index()] = read_elsewhere_[id.index()] || unit_of_[id.index()] != u;
    for (const Port& port : graph_.outputs) read_elsewhere_[port.tensor.index()] = true;
    for (std::size_t u = 0; u < graph_.units.size(); ++u) SLUICE_RETURN_IF_ERROR(check_ports(u));
    return {};
  }

 private:
  static constexpr std::size_t kOutside = std::numeric_limits<std::size_t>::max();

  std::span<const Node> nodes_of(std::size_t u) const {
    return std::span(graph_.nodes).subspan(graph_.units[u].first_node, graph_.units[u].node_count);
  }

  Status check_runs() const {
    std::size_t next = 0;
    std::vector<std::string_view> names;
    for (const Unit& unit : graph_.units) {
      if (unit.first_node != next || unit.node_count == 0 || unit.node_count > graph_.nodes.size() - next)
        return invalid(unit.name, "G9: the units are not the nodes in runs");
      next += unit.node_count;
      names.push_back(unit.name);
    }
    if (next != graph_.nodes.size()) return invalid(graph_.units.back().name, "G9: nodes behind this unit belong to none");
    sluice::sort(names.begin(), names.end());
    if (names.front().empty() || std::adjacent_find(names.begin(), names.end()) != names.end())
      return invalid(graph_.name, "G9: a unit has no name of its own");
    return {};
  }

  Status check_ports(std::size_t u) const {
    std::vector<TensorId> inputs, outputs;
    for (const Node& node : nodes_of(u)) {
      for (const TensorId id : node.inputs)
        if (unit_of_[id.index()] != u && !graph_.tensor(id).weight.valid()) inputs.push_back(id);
      for (const TensorId id : node.outputs)
        if (read_elsewhere_[id.index()]) outputs.push_back(id);
    }
    sluice::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    sluice::sort(outputs.begin(), outputs.end());
    const auto same = [](std::vector<TensorId> ports, const std::vector<TensorId>& crossing) {
      sluice::sort(ports.begin(), ports.end());
      return ports == crossing;
    };
    const Unit& unit = graph_.units[u];
    if (same(unit.inputs, inputs) && same(unit.outputs, outputs)) return {};
    return invalid(unit.name, "G9: the unit's ports are not the tensors that cross its border");
  }

  const Graph& graph_;
  std::vector<std::size_t> unit_of_;  // by tensor: that makes it
  std::vector<bool> read_elsewhere_;  // by tensor: outside of the unit that makes it
};

}  // namespace

Status check_quantisations(const Graph& graph) {
  if constexpr (!is_built(Feature::kInt8)) {
    const auto refers = [](const auto& item) { return item.quantisation != kNoQuantisation; };
    const auto any = [&](const auto& items) { return std::any_of(items.begin(), items.end(), refers); };
    if (any(graph.tensors) || any(graph.nodes) || any(graph.weights))
      return fail(ErrorCode::kUnsupported, graph.name, "this build was trimmed to models without quantised tensors");
    return {};
  }
  QuantisationCheck check(graph);
  SLUICE_RETURN_IF_ERROR(check.check_values());
  SLUICE_RETURN_IF_ERROR(check.check(graph.tensors));
  SLUICE_RETURN_IF_ERROR(check.check(graph.nodes));
  for (const Subgraph& subgraph : graph.subgraphs) {
    SLUICE_RETURN_IF_ERROR(check.check(subgraph.tensors));
    SLUICE_RETURN_IF_ERROR(check.check(subgraph.nodes));
  }
  for (const Weight& weight : graph.weights)
    if (weight.quantisation != kNoQuantisation)
      SLUICE_RETURN_IF_ERROR(check.check(weight.name, weight.quantisation, weight.panel_layout.dtype, weight.shape));
  return {};
}

Status check_subgraphs(const Graph& graph) { return SubgraphCheck(graph).run(); }

Status check_units(const Graph& graph) {
  if (!kSharesArenas || graph.units.empty()) return {};  // nobody cuts the graph into them
  return UnitCheck(graph).run();
}

}  // namespace sluice::model

#include "sluice/model/body.h"

#include <algorithm>
#include <array>
#include <string>

namespace sluice::model {
namespace {

class BodyMaker {
 public:
  BodyMaker(const Graph& graph, const Node& node, std::size_t s)
      : graph_(graph), node_(node), subgraph_(graph.subgraphs[s]), number_(graph.weights.size()) {}

  Body make() {
    Graph& to = body_.graph;
    to.name = subgraph_.name;
    to.quantisations = graph_.quantisations;
    to.codes = graph_.codes;
    to.tensors = subgraph_.tensors;
    to.nodes = subgraph_.nodes;
    copy_subgraphs();
    renumber(to.tensors, to.nodes);
    for (Subgraph& deeper : to.subgraphs) renumber(deeper.tensors, deeper.nodes);
    add_ports();
    copy_weights();
    return std::move(body_);
  }

 private:
  /// Those that its nodes run, then those that these run, and so on: a run stays one, and what lies deeper gets a higher number.
  void copy_subgraphs() {
    std::vector<Subgraph>& to = body_.graph.subgraphs;
    const auto take = [&](std::vector<Node>& nodes) {
      for (Node& node : nodes) {
        if (node.subgraph_count == 0) continue;
        const auto first = static_cast<std::uint32_t>(to.size());
        for (std::uint32_t i = 0; i < node.subgraph_count; ++i) runs_.push_back(&graph_.subgraphs[node.first_subgraph + i]);
        node.first_subgraph = first;
        to.resize(runs_.size());
      }
    };
    take(body_.graph.nodes);
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      Subgraph copy = *runs_[i];
      take(copy.nodes);
      to[i] = std::move(copy);
    }
  }

  void renumber(std::vector<Tensor>& tensors, std::vector<Node>& nodes) {
    for (Tensor& tensor : tensors)
      if (tensor.weight.valid()) tensor.weight = here(tensor.weight);
    for (Node& node : nodes)
      for (WeightId& weight : node.weights) weight = here(weight);
  }

  WeightId here(WeightId outside) {
    WeightId& number = number_[outside.index()];
    if (!number.valid()) {
      number = WeightId(body_.weights.size());
      body_.weights.push_back(outside);
    }
    return number;
  }

  void add_ports() {
    for (const TensorId id : subgraph_.inputs) body_.graph.inputs.push_back(port(id));
    body_.inputs = subgraph_.inputs.size();
    for (const Capture& capture : subgraph_.captures) {
      body_.graph.inputs.push_back(port(capture.inner));
      const auto found = std::find(node_.inputs.begin(), node_.inputs.end(), capture.outer);
      body_.captures.push_back(static_cast<std::size_t>(found - node_.inputs.begin()));
    }
    for (const TensorId id : subgraph_.outputs) body_.graph.outputs.push_back(port(id));
  }

  Port port(TensorId id) const {
    const Tensor& tensor = subgraph_.tensors[id.index()];
    Port made;
    made.name = tensor.name;
    made.tensor = id;
    made.onnx_shape = tensor.shape;
    return made;
  }

  /// In the order of the file, so that weights take their stretches in turn (G5).
  void copy_weights() {
    std::vector<Weight>& to = body_.graph.weights;
    for (const WeightId id : body_.weights) to.push_back(graph_.weight(id));
    std::vector<std::size_t> order(to.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return to[a].first_stretch < to[b].first_stretch; });
    for (const std::size_t i : order) {
      const std::uint32_t first = to[i].first_stretch, count = to[i].stretch_count;
      if (first > graph_.stretches.size() || count > graph_.stretches.size() - first) continue;  // not laid out
      to[i].first_stretch = static_cast<std::uint32_t>(body_.stretches.size());
      for (std::uint32_t s = first; s < first + count; ++s) {
        body_.stretches.push_back(s);
        body_.graph.stretches.push_back(graph_.stretches[s]);
      }
    }
  }

  const Graph& graph_;
  const Node& node_;
  const Subgraph& subgraph_;
  Body body_;
  std::vector<WeightId> number_;  // here, by weight of the graph around
  std::vector<const Subgraph*> runs_;
};

}  // namespace

Body body_of(const Graph& graph, const Node& node, std::size_t s) { return BodyMaker(graph, node, s).make(); }

std::vector<const Node*> runners_of(const Graph& graph) {
  std::vector<const Node*> runners(graph.subgraphs.size(), nullptr);
  for (const Node& node : graph.nodes)
    for (std::uint32_t i = 0; i < node.subgraph_count; ++i) runners[node.first_subgraph + i] = &node;
  return runners;
}

}  // namespace sluice::model

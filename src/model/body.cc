#include "sluice/model/body.h"

#include <algorithm>
#include <map>
#include <string>

#include "sluice/core/sort.h"

namespace sluice::model {
namespace {

class BodyMaker {
 public:
  BodyMaker(const Graph& graph, const Node& node, std::size_t s) : graph_(graph), node_(node), subgraph_(graph.subgraphs[s]) {}

  Body make() {
    Graph& to = body_.graph;
    to.name = subgraph_.name;
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
    for (Tensor& tensor : tensors) {
      if (tensor.weight.valid()) tensor.weight = here(tensor.weight);
      tensor.quantisation = quantisation(tensor.quantisation);
    }
    for (Node& node : nodes) {
      for (WeightId& weight : node.weights) weight = here(weight);
      node.quantisation = quantisation(node.quantisation);
    }
  }

  /// Those that are used, so that all bodies of a file together are no larger than it is. Scales that are weights no kernel of ours reads.
  std::uint32_t quantisation(std::uint32_t outside) {
    if (outside == kNoQuantisation) return outside;
    std::vector<Quantisation>& to = body_.graph.quantisations;
    const auto [found, is_new] = quantisations_.try_emplace(outside, static_cast<std::uint32_t>(to.size()));
    if (is_new) {
      to.push_back(graph_.quantisations[outside]);
      to.back().scale_weight = to.back().zero_weight = {};
    }
    return found->second;
  }

  WeightId here(WeightId outside) {
    const auto [found, is_new] = numbers_.try_emplace(outside, WeightId(body_.weights.size()));
    if (is_new) body_.weights.push_back(outside);
    return found->second;
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
    std::map<std::uint32_t, std::uint32_t> codes;
    for (const WeightId id : body_.weights) {
      Weight weight = graph_.weight(id);
      weight.quantisation = quantisation(weight.quantisation);
      if (weight.code != kNoCode && weight.code < graph_.codes.size()) {
        const auto [found, is_new] = codes.try_emplace(weight.code, static_cast<std::uint32_t>(body_.graph.codes.size()));
        if (is_new) body_.graph.codes.push_back(graph_.codes[weight.code]);
        weight.code = found->second;
      }
      to.push_back(std::move(weight));
    }
    std::vector<std::size_t> order(to.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    sluice::stable_sort(order.begin(), order.end(),
                        [&](std::size_t a, std::size_t b) { return to[a].first_stretch < to[b].first_stretch; });
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
  std::map<WeightId, WeightId> numbers_;                  // here, by weight of the graph around
  std::map<std::uint32_t, std::uint32_t> quantisations_;  // likewise
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

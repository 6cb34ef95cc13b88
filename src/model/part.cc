#include "sluice/model/part.h"

#include <algorithm>
#include <utility>

namespace sluice::model {
namespace {

class PartMaker {
 public:
  PartMaker(const Graph& graph, std::size_t first, std::size_t count)
      : graph_(graph), first_(first), last_(first + count), number_(graph.tensors.size(), TensorId::invalid()) {}

  Result<Part> make() {
    part_.graph.name = graph_.name;
    part_.graph.weights = graph_.weights;
    part_.graph.stretches = graph_.stretches;
    part_.graph.quantisations = graph_.quantisations;
    part_.graph.codes = graph_.codes;
    part_.graph.tags = graph_.tags;
    // Adds ports in the order of the graph's own, then of use.
    for (const Port& port : graph_.inputs)
      if (is_read(port.tensor) || whole()) SLUICE_RETURN_IF_ERROR(add_port(part_.graph.inputs, part_.inputs, port));
    for (std::size_t i = first_; i < last_; ++i) SLUICE_RETURN_IF_ERROR(add_node(graph_.nodes[i]));
    for (const Port& port : graph_.outputs)
      if (is_made(port.tensor) || whole()) SLUICE_RETURN_IF_ERROR(add_port(part_.graph.outputs, part_.outputs, port));
    for (std::size_t i = first_; i < last_; ++i)
      for (const TensorId output : graph_.nodes[i].outputs)
        if (crosses(output)) SLUICE_RETURN_IF_ERROR(add_port(part_.graph.outputs, part_.outputs, crossing(output)));
    return std::move(part_);
  }

 private:
  bool whole() const { return first_ == 0 && last_ == graph_.nodes.size(); }

  bool reads(std::size_t node, TensorId tensor) const {
    const std::vector<TensorId>& inputs = graph_.nodes[node].inputs;
    return std::find(inputs.begin(), inputs.end(), tensor) != inputs.end();
  }
  bool is_read(TensorId tensor) const {
    for (std::size_t i = first_; i < last_; ++i)
      if (reads(i, tensor)) return true;
    return false;
  }
  bool is_made(TensorId tensor) const {
    return std::any_of(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(first_),
                       graph_.nodes.begin() + static_cast<std::ptrdiff_t>(last_),
                       [&](const Node& node) { return std::find(node.outputs.begin(), node.outputs.end(), tensor) != node.outputs.end(); });
  }
  /// Made here and read after. A port of the graph, too, gives it to the caller as that wants it: other parts read what the nodes made.
  bool crosses(TensorId tensor) const {
    for (std::size_t i = last_; i < graph_.nodes.size(); ++i)
      if (reads(i, tensor)) return true;
    return false;
  }

  Port physical(TensorId tensor) const {
    Port port;
    port.name = graph_.tensor(tensor).name;
    port.tensor = tensor;
    port.onnx_shape = graph_.tensor(tensor).shape;
    return port;
  }

  /// No two outputs have one name.
  Port crossing(TensorId tensor) const {
    Port port = physical(tensor);
    if (is_output(tensor)) port.name += ":crossing";
    return port;
  }

  TensorId here(TensorId tensor) {
    TensorId& number = number_[tensor.index()];
    if (!number.valid()) {
      number = TensorId(part_.graph.tensors.size());
      part_.graph.tensors.push_back(graph_.tensor(tensor));
    }
    return number;
  }

  Status add_port(std::vector<Port>& ports, std::vector<TensorId>& tensors, Port port) {
    const Tensor& tensor = graph_.tensor(port.tensor);
    const bool own = whole() || &ports == &part_.graph.outputs;
    if (tensor.bounded != 0 && !(own && is_output(port.tensor)))
      return fail(ErrorCode::kUnsupported, tensor.name, "extents that are known at run only cannot cross the border of a unit");
    tensors.push_back(port.tensor);
    port.tensor = here(port.tensor);
    ports.push_back(std::move(port));
    return {};
  }

  bool is_output(TensorId tensor) const {
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(), [&](const Port& port) { return port.tensor == tensor; });
  }

  Status add_node(const Node& node) {
    Node copy = node;
    for (TensorId& input : copy.inputs) {
      if (!input.valid()) continue;
      const bool known = number_[input.index()].valid() || graph_.tensor(input).weight.valid();
      if (!known) SLUICE_RETURN_IF_ERROR(add_port(part_.graph.inputs, part_.inputs, physical(input)));
      input = here(input);
    }
    for (TensorId& output : copy.outputs) output = here(output);
    take_subgraphs(copy, true);
    part_.graph.nodes.push_back(std::move(copy));
    return {};
  }

  /// Those that the node runs, a run as before, behind which those that they run follow. `own`: it is a node of the graph, not of a subgraph.
  void take_subgraphs(Node& node, bool own) {
    if (node.subgraph_count == 0) return;
    std::vector<Subgraph>& subgraphs = part_.graph.subgraphs;
    const std::size_t from = node.first_subgraph, first = subgraphs.size();
    node.first_subgraph = static_cast<std::uint32_t>(first);
    subgraphs.resize(first + node.subgraph_count);
    for (std::size_t i = 0; i < node.subgraph_count; ++i) {
      Subgraph copy = graph_.subgraphs[from + i];
      for (Capture& capture : copy.captures)
        if (own) capture.outer = here(capture.outer);
      for (Node& inside : copy.nodes) take_subgraphs(inside, false);
      subgraphs[first + i] = std::move(copy);
    }
  }

  const Graph& graph_;
  std::size_t first_, last_;
  std::vector<TensorId> number_;  // here, by the whole graph's
  Part part_;
};

}  // namespace

Result<Part> part_of(const Graph& graph, std::size_t first, std::size_t count) {
  if (count == 0 || first + count > graph.nodes.size())
    return fail(ErrorCode::kInvalidArgument, graph.name, "a part is one or more of the graph's nodes");
  return PartMaker(graph, first, count).make();
}

}  // namespace sluice::model

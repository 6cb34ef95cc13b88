#include <algorithm>
#include <map>

#include "sluice/engine/engine.h"
#include "src/cli/commands.h"
#include "src/cli/failure.h"
#include "src/cli/host_tensor.h"
#include "src/cli/json.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

using model::Graph;
using model::Node;
using model::OpKind;

struct OperatorCount {
  std::int64_t nodes = 0;
  std::uint64_t macs = 0;
};

struct Summary {
  std::map<OpKind, OperatorCount> operators;
  std::map<model::NumericClass, OperatorCount> numeric;  // of nodes that multiply
  std::uint64_t macs = 0;
  Bytes weight_bytes;
  Bytes activation_bytes;       // all activations together
  Bytes peak_activation_bytes;  // the most that is alive at one node, nothing in place
};

/// Multiply-accumulates of a node, from its shapes.
std::uint64_t macs_of(const Graph& graph, const Node& node) {
  const auto outputs = static_cast<std::uint64_t>(graph.tensor(node.outputs.front()).shape.element_count());
  switch (node.op) {
    case OpKind::kConv: {
      const auto& conv = node.as<model::ConvAttributes>();
      return outputs * static_cast<std::uint64_t>(conv.window.taps() * conv.in_channels / conv.groups);
    }
    case OpKind::kConvTranspose: {
      const auto& conv = node.as<model::ConvAttributes>();
      const auto inputs = static_cast<std::uint64_t>(graph.tensor(node.inputs.front()).shape.element_count());
      return inputs * static_cast<std::uint64_t>(conv.window.taps() * conv.out_channels / conv.groups);
    }
    case OpKind::kDense:
      return outputs * static_cast<std::uint64_t>(node.as<model::DenseAttributes>().in_features);
    case OpKind::kMatMul:
      return outputs * static_cast<std::uint64_t>(graph.tensor(node.inputs.front()).shape.back());
    case OpKind::kAttention: {
      const Shape &q = graph.tensor(node.inputs[0]).shape, &k = graph.tensor(node.inputs[1]).shape;
      const auto keys = static_cast<std::uint64_t>(k[k.rank() - 2]);
      return (outputs + static_cast<std::uint64_t>(q.element_count())) * keys;
    }
    default:
      return 0;
  }
}

/// The largest sum of activations alive at one node, each from its making to its last use.
Bytes peak_activations(const Graph& graph) {
  const std::size_t count = graph.nodes.size();
  std::vector<std::size_t> first(graph.tensors.size(), count);
  std::vector<std::size_t> last(graph.tensors.size(), 0);
  for (const model::Port& port : graph.inputs) first[port.tensor.index()] = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (const TensorId id : graph.nodes[i].outputs) first[id.index()] = last[id.index()] = i;
    for (const TensorId id : graph.nodes[i].inputs) last[id.index()] = i;
  }
  for (const model::Port& port : graph.outputs) last[port.tensor.index()] = count == 0 ? 0 : count - 1;
  std::vector<std::int64_t> change(count + 1, 0);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].weight.valid() || first[t] >= count) continue;
    const auto bytes = static_cast<std::int64_t>(graph.tensors[t].bytes().count());
    change[first[t]] += bytes;
    change[last[t] + 1] -= bytes;
  }
  std::int64_t alive = 0;
  std::int64_t most = 0;
  for (const std::int64_t step : change) most = std::max(most, alive += step);
  return Bytes(static_cast<std::uint64_t>(most));
}

Summary summarise(const Graph& graph) {
  Summary summary;
  for (const Node& node : graph.nodes) {
    OperatorCount& row = summary.operators[node.op];
    const std::uint64_t macs = macs_of(graph, node);
    ++row.nodes;
    row.macs += macs;
    if (macs != 0) {
      OperatorCount& of_class = summary.numeric[node.numeric];
      ++of_class.nodes;
      of_class.macs += macs;
    }
    summary.macs += macs;
  }
  for (const model::Weight& weight : graph.weights) summary.weight_bytes += weight.bytes;
  for (const model::Tensor& tensor : graph.tensors)
    if (!tensor.weight.valid()) summary.activation_bytes += tensor.bytes();
  summary.peak_activation_bytes = peak_activations(graph);
  return summary;
}

Json json_of_ports(const Graph& graph, const std::vector<model::Port>& ports) {
  Json list = Json::array();
  for (const model::Port& port : ports) {
    list.push_back({{"name", port.name}, {"shape", json_of(port.onnx_shape)}, {"dtype", name_of(graph.tensor(port.tensor).dtype)}});
  }
  return list;
}

void print_as_json(const Model& model, const Summary& summary) {
  const Graph& graph = model.graph();
  Json operators = Json::object();
  Json numeric = Json::object();
  for (const auto& [name, row] : summary.numeric) numeric[std::string(name_of(name))] = {{"nodes", row.nodes}, {"macs", row.macs}};
  for (const auto& [op, row] : summary.operators) operators[std::string(name_of(op))] = {{"nodes", row.nodes}, {"macs", row.macs}};
  print_json({{"name", graph.name},
              {"inputs", json_of_ports(graph, graph.inputs)},
              {"outputs", json_of_ports(graph, graph.outputs)},
              {"nodes", graph.nodes.size()},
              {"operators", std::move(operators)},
              {"numeric", std::move(numeric)},
              {"macs", summary.macs},
              {"weights", graph.weights.size()},
              {"weight_bytes", summary.weight_bytes.count()},
              {"activation_bytes", summary.activation_bytes.count()},
              {"peak_activation_bytes", summary.peak_activation_bytes.count()},
              {"file_bytes", model.file().file_size().count()},
              {"labels", graph.labels.size()},
              {"hash", fmt::format("{:016x}", model.file().hash())}});
}

void print_ports(const char* title, const Graph& graph, const std::vector<model::Port>& ports) {
  for (const model::Port& port : ports) {
    fmt::print("  {:<12} {} {} {}\n", title, port.name, shape_text(port.onnx_shape), name_of(graph.tensor(port.tensor).dtype));
  }
}

void print_as_text(const Model& model, const Summary& summary) {
  const Graph& graph = model.graph();
  fmt::print("{}  {}\n\n", model.file().path(), format_bytes(model.file().file_size()));
  print_ports("input", graph, graph.inputs);
  print_ports("output", graph, graph.outputs);
  fmt::print("  {:<12} {} in {} tensors\n", "weights", format_bytes(summary.weight_bytes), graph.weights.size());
  fmt::print("  {:<12} {} at once, {} in all\n", "activations", format_bytes(summary.peak_activation_bytes),
             format_bytes(summary.activation_bytes));
  fmt::print("  {:<12} {:.1f} million\n\n", "MACs", static_cast<double>(summary.macs) / 1e6);
  fmt::print("  {:<14}{:>7}{:>14}\n", "operator", "nodes", "million MACs");
  for (const auto& [op, row] : summary.operators) {
    fmt::print("  {:<14}{:>7}{:>14.1f}\n", name_of(op), row.nodes, static_cast<double>(row.macs) / 1e6);
  }
}

}  // namespace

void inspect(const InspectOptions& options) {
  const auto model = unwrap(Model::open(options.model));
  const Summary summary = summarise(model->graph());
  if (options.json) {
    print_as_json(*model, summary);
  } else {
    print_as_text(*model, summary);
  }
}

}  // namespace sluice::cli

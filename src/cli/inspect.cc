#include <algorithm>
#include <map>

#include "sluice/engine/engine.h"
#include "sluice/kernels/plain.h"
#include "sluice/operators/definition.h"
#include "src/cli/commands.h"
#include "src/cli/dims.h"
#include "src/cli/failure.h"
#include "src/cli/host_tensor.h"
#include "src/cli/inspect_weights.h"
#include "src/cli/json.h"
#include "src/cli/open_model.h"
#include "src/cli/text.h"
#include "src/cli/visible.h"

namespace sluice::cli {
namespace {

using model::Graph;
using model::Node;
using model::OpKind;
using operators::macs_of;

struct OperatorCount {
  std::int64_t nodes = 0;
  std::uint64_t macs = 0;
};

struct Summary {
  std::map<std::string, OperatorCount> operators;
  std::map<model::NumericClass, OperatorCount> numeric;  // of nodes that multiply
  std::uint64_t macs = 0;
  Bytes weight_bytes;
  Bytes stored_bytes;           // of weights, in the file
  Bytes activation_bytes;       // all activations together
  Bytes peak_activation_bytes;  // the most that is alive at one node, nothing in place
};

/// "conv", or for the long tail the ONNX operator: "TopK".
std::string operator_of(const Node& node) {
  if (node.op == OpKind::kPlain)
    if (const kernels::PlainOperator* plain = kernels::find_plain(node.as<model::PlainAttributes>().op)) return std::string(plain->name);
  return std::string(name_of(node.op));
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
    OperatorCount& row = summary.operators[operator_of(node)];
    const std::uint64_t macs = operators::macs_of(graph, node);
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
  for (const model::Stretch& stretch : graph.stretches) summary.stored_bytes += stretch.stored_size;
  for (const model::Tensor& tensor : graph.tensors)
    if (!tensor.weight.valid()) summary.activation_bytes += tensor.bytes();
  summary.peak_activation_bytes = peak_activations(graph);
  return summary;
}

/// "bias, residual, relu": what ran as nodes of its own in the ONNX file.
std::string fused_into(const Node& node) {
  std::string fused;
  const auto add = [&](std::string_view word) { fused += (fused.empty() ? "" : ", ") + std::string(word); };
  if (node.epilogue.has_bias) add("bias");
  if (node.epilogue.has_residual) add("residual");
  const model::Function function = node.epilogue.activation.function;
  if (function != model::Function::kNone && node.op != OpKind::kUnary) add(name_of(function));
  return fused;
}

Bytes weight_bytes_of(const Graph& graph, const Node& node) {
  std::vector<WeightId> weights;
  model::weights_read_by(graph, node, weights);
  Bytes bytes;
  for (const WeightId id : weights) bytes += graph.weight(id).bytes;
  return bytes;
}

/// Type and, of quantised ones, scale and zero point.
Json json_of_type(const Graph& graph, const model::Tensor& tensor) {
  Json json = {{"shape", json_of(tensor.shape)}, {"dtype", name_of(tensor.dtype)}};
  if (tensor.quantisation == model::kNoQuantisation) return json;
  const model::Quantisation& q = graph.quantisations[tensor.quantisation];
  if (!q.scales.empty()) json["scale"] = q.scales[0];
  json["zero_point"] = q.zero_points.empty() ? 0 : q.zero_points[0];
  return json;
}

/// "f32", "u8 0.0235 128".
std::string type_text(const Graph& graph, const model::Tensor& tensor) {
  std::string text(name_of(tensor.dtype));
  if (tensor.quantisation == model::kNoQuantisation) return text;
  const model::Quantisation& q = graph.quantisations[tensor.quantisation];
  if (!q.scales.empty()) text += fmt::format(" {:.4g}", q.scales[0]);
  return text + fmt::format(" {}", q.zero_points.empty() ? 0 : q.zero_points[0]);
}

Json json_of_nodes(const Graph& graph) {
  Json list = Json::array();
  for (const Node& node : graph.nodes) {
    Json inputs = Json::array();
    for (const TensorId id : node.inputs) {
      inputs.push_back(json_of_type(graph, graph.tensor(id)));
      inputs.back()["name"] = graph.tensor(id).name;
    }
    const model::Tensor& out = graph.tensor(node.outputs.front());
    Json json = json_of_type(graph, out);
    json.update({{"name", node.name},
                 {"operator", operator_of(node)},
                 {"numeric", name_of(node.numeric)},
                 {"inputs", std::move(inputs)},
                 {"output", out.name},
                 {"weight_bytes", weight_bytes_of(graph, node).count()},
                 {"activation_bytes", out.bytes().count()},
                 {"macs", macs_of(graph, node)},
                 {"fused", fused_into(node)}});
    list.push_back(std::move(json));
  }
  return list;
}

void print_nodes(const Graph& graph) {
  fmt::print("\n  {:<40} {:<16} {:<20} {:<18} {:>11} {:>11} {:>11}  {}\n", "node", "operator", "output", "type", "weights", "activation",
             "kMACs", "fused");
  for (const Node& node : graph.nodes) {
    const model::Tensor& out = graph.tensor(node.outputs.front());
    fmt::print("  {:<40} {:<16} {:<20} {:<18} {:>11} {:>11} {:>11.1f}  {}\n", visible(node.name), operator_of(node), out.shape.to_string(),
               type_text(graph, out), weight_bytes_of(graph, node).count(), out.bytes().count(),
               static_cast<double>(macs_of(graph, node)) / 1e3, fused_into(node));
  }
}

/// Names from files may hold anything; a label may not hold a bare quote, a backslash or a line's end.
std::string dot_text(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '"' || c == '\\') safe += '\\';
    safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return safe;
}

void print_as_dot(const Graph& graph) {
  fmt::print("digraph \"{}\" {{\n  node [shape=box, fontname=monospace];\n", dot_text(graph.name));
  std::vector<std::string> maker(graph.tensors.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    maker[graph.inputs[i].tensor.index()] = fmt::format("in{}", i);
    fmt::print("  in{} [shape=oval, label=\"{}\"];\n", i, dot_text(graph.inputs[i].name));
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const std::string fused = fused_into(node);
    fmt::print("  n{} [label=\"{}{}\\n{}\"];\n", n, operator_of(node), fused.empty() ? "" : " + " + fused, dot_text(node.name));
    for (const TensorId id : node.inputs)
      if (!maker[id.index()].empty()) fmt::print("  {} -> n{} [label=\"{}\"];\n", maker[id.index()], n, graph.tensor(id).shape.to_string());
    for (const TensorId id : node.outputs) maker[id.index()] = fmt::format("n{}", n);
  }
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    fmt::print("  out{} [shape=oval, label=\"{}\"];\n", i, dot_text(graph.outputs[i].name));
    const std::string& from = maker[graph.outputs[i].tensor.index()];
    if (!from.empty()) fmt::print("  {} -> out{};\n", from, i);
  }
  fmt::print("}}\n");
}

Json json_of_ports(const Graph& graph, const std::vector<model::Port>& ports) {
  Json list = Json::array();
  for (const model::Port& port : ports) {
    list.push_back({{"name", port.name}, {"shape", json_of(port.onnx_shape)}, {"dtype", name_of(graph.dtype_of(port))}});
  }
  return list;
}

Json json_of_dimensions(const Model& model) {
  Json list = Json::array();
  for (const model::Dimension& dimension : model.file().dimensions())
    list.push_back({{"name", dimension.name}, {"extent", dimension.extent}, {"extents", dimension.extents}});
  return list;
}

void print_as_json(const Model& model, const Summary& summary) {
  const Graph& graph = model.graph();
  Json operators = Json::object();
  for (const auto& [op, row] : summary.operators) operators[op] = {{"nodes", row.nodes}, {"macs", row.macs}};
  Json numeric = Json::object();
  for (const auto& [name, row] : summary.numeric) numeric[std::string(name_of(name))] = {{"nodes", row.nodes}, {"macs", row.macs}};
  print_json("sluice inspect", {{"name", graph.name},
                                {"inputs", json_of_ports(graph, graph.inputs)},
                                {"outputs", json_of_ports(graph, graph.outputs)},
                                {"dimensions", json_of_dimensions(model)},
                                {"nodes", graph.nodes.size()},
                                {"node_list", json_of_nodes(graph)},
                                {"operators", std::move(operators)},
                                {"numeric", std::move(numeric)},
                                {"macs", summary.macs},
                                {"weights", graph.weights.size()},
                                {"weight_list", json_of_weights(graph)},
                                {"encrypted", model.file().key() != nullptr},
                                {"weight_bytes", summary.weight_bytes.count()},
                                {"stored_bytes", summary.stored_bytes.count()},
                                {"activation_bytes", summary.activation_bytes.count()},
                                {"peak_activation_bytes", summary.peak_activation_bytes.count()},
                                {"file_bytes", model.file().file_size().count()},
                                {"labels", graph.labels.size()},
                                {"hash", fmt::format("{:016x}", model.file().hash())}});
}

void print_ports(const char* title, const Graph& graph, const std::vector<model::Port>& ports) {
  for (const model::Port& port : ports) {
    fmt::print("  {:<12} {} {} {}\n", title, visible(port.name), shape_text(port.onnx_shape), name_of(graph.dtype_of(port)));
  }
}

void print_as_text(const Model& model, const Summary& summary) {
  const Graph& graph = model.graph();
  fmt::print("{}  {}\n\n", visible(model.file().path()), format_bytes(model.file().file_size()));
  for (const model::Dimension& dimension : model.file().dimensions())
    fmt::print("  {:<12} {} = {} of {}\n", "dimension", visible(dimension.name), dimension.extent, model::extents_text(dimension.extents));
  print_ports("input", graph, graph.inputs);
  print_ports("output", graph, graph.outputs);
  const std::string stored = summary.stored_bytes == summary.weight_bytes ? "" : ", stored in " + format_bytes(summary.stored_bytes);
  fmt::print("  {:<12} {} in {} tensors{}{}\n", "weights", format_bytes(summary.weight_bytes), graph.weights.size(), stored,
             model.file().key() == nullptr ? "" : ", encrypted");
  fmt::print("  {:<12} {} at once, {} in all\n", "activations", format_bytes(summary.peak_activation_bytes),
             format_bytes(summary.activation_bytes));
  fmt::print("  {:<12} {:.1f} million\n\n", "MACs", static_cast<double>(summary.macs) / 1e6);
  fmt::print("  {:<14}{:>7}{:>14}\n", "operator", "nodes", "million MACs");
  for (const auto& [op, row] : summary.operators) {
    fmt::print("  {:<14}{:>7}{:>14.1f}\n", op, row.nodes, static_cast<double>(row.macs) / 1e6);
  }
}

}  // namespace

void inspect(const InspectOptions& options) {
  const auto model = open_model(options.model, options.dims, options.key);
  const Summary summary = summarise(model->graph());
  if (options.dot) {
    print_as_dot(model->graph());
  } else if (options.json) {
    print_as_json(*model, summary);
  } else {
    print_as_text(*model, summary);
    if (options.nodes) print_nodes(model->graph());
    if (options.weights) print_weights(model->graph());
  }
}

}  // namespace sluice::cli

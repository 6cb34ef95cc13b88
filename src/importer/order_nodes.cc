#include "src/importer/order_nodes.h"

#include <string>
#include <unordered_map>
#include <vector>

#include "src/importer/refusal.h"

namespace sluice::importer {
namespace {

std::string label(const OnnxNode& node) {
  std::string_view name = node.name;
  if (name.empty() && !node.outputs.empty()) name = node.outputs[0];
  return "node `" + std::string(name) + "` (" + std::string(node.op_type) + ")";
}

/// The names that the bodies of a node may take from outside: all that their nodes read and all that they give back.
void add_body_reads(const OnnxNode& node, std::vector<std::string_view>& reads) {
  for (const OnnxAttribute& attribute : node.attributes) {
    if (!attribute.graph) continue;
    for (const OnnxNode& inner : attribute.graph->nodes) {
      for (const std::string_view input : inner.inputs)
        if (!input.empty()) reads.push_back(input);
      add_body_reads(inner, reads);
    }
    for (const OnnxPort& output : attribute.graph->outputs) reads.push_back(output.name);
  }
}

/// The maker of a value: a node by its number, or none of the nodes.
constexpr std::size_t kNoNode = ~std::size_t{0};
using Makers = std::unordered_map<std::string_view, std::size_t>;

Makers makers_of(const OnnxGraph& graph) {
  Makers maker;
  for (const OnnxInitializer& initializer : graph.initializers)
    if (!maker.emplace(initializer.name, kNoNode).second)
      refuse_malformed("two initialisers are called `" + std::string(initializer.name) + "`");
  std::unordered_map<std::string_view, int> input_names;
  for (const OnnxPort& input : graph.inputs) {
    if (input_names[input.name]++ > 0) refuse_malformed("two inputs are called `" + std::string(input.name) + "`");
    maker.emplace(input.name, kNoNode);
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const std::string_view output : graph.nodes[n].outputs)
      if (!output.empty() && !maker.emplace(output, n).second)
        refuse_malformed("value `" + std::string(output) + "` is made more than once, again by " + label(graph.nodes[n]));
  return maker;
}

/// Which nodes wait for each node, and for how many each of them waits.
struct Waits {
  std::vector<std::vector<std::size_t>> users;
  std::vector<std::size_t> missing;
  bool in_order = true;  // as the file has them
};

Waits waits_of(const OnnxGraph& graph, const Makers& maker, bool is_body) {
  Waits waits{std::vector<std::vector<std::size_t>>(graph.nodes.size()), std::vector<std::size_t>(graph.nodes.size(), 0)};
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto wait_for = [&](std::size_t other) {
      if (other == kNoNode) return;
      waits.users[other].push_back(n);
      ++waits.missing[n];
      waits.in_order = waits.in_order && other < n;
    };
    for (const std::string_view input : graph.nodes[n].inputs) {
      if (input.empty()) continue;
      const auto found = maker.find(input);
      if (found != maker.end()) {
        wait_for(found->second);
      } else if (!is_body) {
        refuse_malformed(label(graph.nodes[n]) + " reads `" + std::string(input) + "`, which nothing makes");
      }
    }
    std::vector<std::string_view> body_reads;
    add_body_reads(graph.nodes[n], body_reads);
    for (const std::string_view name : body_reads)
      if (const auto found = maker.find(name); found != maker.end()) wait_for(found->second);
  }
  return waits;
}

}  // namespace

void order_nodes(OnnxGraph& graph, bool is_body) {
  const Makers maker = makers_of(graph);
  Waits waits = waits_of(graph, maker, is_body);
  for (OnnxNode& node : graph.nodes)
    for (OnnxAttribute& attribute : node.attributes)
      if (attribute.graph) order_nodes(*attribute.graph, true);
  for (const OnnxPort& output : graph.outputs)
    if (!is_body && !maker.contains(output.name)) refuse_malformed("output `" + std::string(output.name) + "` is made by nothing");
  if (waits.in_order) return;

  std::vector<std::size_t> ready;
  for (std::size_t n = graph.nodes.size(); n-- > 0;)
    if (waits.missing[n] == 0) ready.push_back(n);
  std::vector<OnnxNode> ordered;
  while (!ready.empty()) {
    const std::size_t n = ready.back();
    ready.pop_back();
    ordered.push_back(std::move(graph.nodes[n]));
    for (auto user = waits.users[n].rbegin(); user != waits.users[n].rend(); ++user)
      if (--waits.missing[*user] == 0) ready.push_back(*user);
  }
  if (ordered.size() != graph.nodes.size()) refuse_malformed("the graph has a cycle: some nodes wait for their own output");
  graph.nodes = std::move(ordered);
}

}  // namespace sluice::importer

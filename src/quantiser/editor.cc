#include "src/quantiser/editor.h"

#include <algorithm>

namespace sluice::quantiser {

using importer::AttributeType;
using importer::OnnxAttribute;
using importer::OnnxInitializer;
using importer::OnnxPort;

const OnnxAttribute* find_attribute(const OnnxNode& node, std::string_view name) {
  for (const OnnxAttribute& attribute : node.attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

std::int64_t integer_of(const OnnxNode& node, std::string_view name, std::int64_t otherwise) {
  const OnnxAttribute* found = find_attribute(node, name);
  return found != nullptr && found->type == AttributeType::kInt ? found->i : otherwise;
}

float real_of(const OnnxNode& node, std::string_view name, float otherwise) {
  const OnnxAttribute* found = find_attribute(node, name);
  return found != nullptr && found->type == AttributeType::kFloat ? found->f : otherwise;
}

Editor::Editor(OnnxGraph graph) : graph_(std::move(graph)) {
  lift_constants();
  // Nodes without outputs are dropped, as the importer does too, so that every node has a first output.
  std::erase_if(graph_.nodes, [](const OnnxNode& node) {
    return std::all_of(node.outputs.begin(), node.outputs.end(), [](std::string_view output) { return output.empty(); });
  });
  // Old files list their initialisers as inputs too.
  std::erase_if(graph_.inputs, [&](const OnnxPort& port) {
    return std::any_of(graph_.initializers.begin(), graph_.initializers.end(),
                       [&](const OnnxInitializer& initializer) { return initializer.name == port.name; });
  });
  reindex();
}

void Editor::lift_constants() {
  for (OnnxNode& node : graph_.nodes) {
    if (node.op_type != "Constant" || !node.domain.empty() || node.outputs.size() != 1) continue;
    const OnnxAttribute* value = find_attribute(node, "value");
    if (value == nullptr || value->type != AttributeType::kTensor || !value->tensor_problem.empty()) continue;
    graph_.initializers.push_back({node.outputs[0], value->tensor, ""});
    node.op_type = {};
  }
  std::erase_if(graph_.nodes, [](const OnnxNode& node) { return node.op_type.empty(); });
}

void Editor::note_body(const OnnxGraph& body) {
  for (const OnnxPort& output : body.outputs) outside_.insert(output.name);
  for (const OnnxNode& node : body.nodes) {
    outside_.insert(node.inputs.begin(), node.inputs.end());
    for (const OnnxAttribute& attribute : node.attributes)
      if (attribute.graph) note_body(*attribute.graph);
  }
}

void Editor::reindex() {
  makers_.clear();
  readers_.clear();
  constants_.clear();
  outside_.clear();
  for (const OnnxPort& output : graph_.outputs) outside_.insert(output.name);
  for (std::size_t i = 0; i < graph_.initializers.size(); ++i) {
    constants_[graph_.initializers[i].name] = i;
    taken_.emplace(graph_.initializers[i].name);
  }
  for (const OnnxPort& input : graph_.inputs) taken_.emplace(input.name);
  for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
    const OnnxNode& node = graph_.nodes[n];
    for (const std::string_view input : node.inputs)
      if (!input.empty()) readers_[input].push_back(n);
    for (const std::string_view output : node.outputs) {
      if (output.empty()) continue;
      makers_[output] = n;
      taken_.emplace(output);
    }
    for (const OnnxAttribute& attribute : node.attributes)
      if (attribute.graph) note_body(*attribute.graph);
  }
}

std::size_t Editor::maker(std::string_view value) const {
  const auto found = makers_.find(value);
  return found == makers_.end() ? kNone : found->second;
}

const std::vector<std::size_t>& Editor::readers(std::string_view value) const {
  static const std::vector<std::size_t> kNobody;
  const auto found = readers_.find(value);
  return found == readers_.end() ? kNobody : found->second;
}

std::size_t Editor::single_reader(std::string_view value) const {
  const std::vector<std::size_t>& all = readers(value);
  return all.size() == 1 && !read_outside(value) ? all[0] : kNone;
}

const Constant* Editor::constant(std::string_view name) const {
  const auto found = constants_.find(name);
  if (found == constants_.end() || !graph_.initializers[found->second].problem.empty()) return nullptr;
  return &graph_.initializers[found->second].tensor;
}

std::string_view Editor::fresh(const std::string& base) {
  std::string name = base;
  for (int number = 1; !taken_.insert(name).second; ++number) name = base + "_" + std::to_string(number);
  return texts_->emplace_back(std::move(name));
}

std::string_view Editor::add_constant(const std::string& base, Constant value) {
  const std::string_view name = fresh(base);
  constants_[name] = graph_.initializers.size();
  graph_.initializers.push_back({name, std::move(value), ""});
  return name;
}

void Editor::sweep() {
  std::erase_if(graph_.nodes, [](const OnnxNode& node) { return node.op_type.empty(); });
  reindex();
  std::erase_if(graph_.initializers, [&](const OnnxInitializer& each) { return readers(each.name).empty() && !read_outside(each.name); });
  reindex();
}

}  // namespace sluice::quantiser

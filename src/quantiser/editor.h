// Edits an ONNX graph: maker and readers of each value, constants by name, new names.
//
// Invariants: names are views of the file or of texts that are kept here (the editor outlives graphs that are copied from it); the index is
// that of the last `reindex`.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/importer/onnx_graph.h"

namespace sluice::quantiser {

using importer::Constant;
using importer::OnnxGraph;
using importer::OnnxNode;

class Editor {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// Values of Constant nodes become initialisers.
  explicit Editor(OnnxGraph graph);

  OnnxGraph& graph() noexcept { return graph_; }
  const OnnxGraph& graph() const noexcept { return graph_; }
  const OnnxNode& node(std::size_t index) const noexcept { return graph_.nodes[index]; }

  /// The index of the node that makes a value; kNone: an input or a constant.
  std::size_t maker(std::string_view value) const;
  /// One entry for each mention.
  const std::vector<std::size_t>& readers(std::string_view value) const;
  /// Is it an output of the graph, or read by a body?
  bool read_outside(std::string_view value) const { return outside_.contains(value); }
  /// The only node that reads a value; kNone: several, or a reader outside the graph.
  std::size_t single_reader(std::string_view value) const;

  /// Null if the value is not a constant, or of a kind that cannot be used.
  const Constant* constant(std::string_view name) const;
  /// Adds an initialiser under a new name like `base`, and returns the name.
  std::string_view add_constant(const std::string& base, Constant value);
  /// A name like `base` that nothing has.
  std::string_view fresh(const std::string& base);

  /// After nodes or initialisers were changed.
  void reindex();
  /// Removes nodes that are marked by an empty operator, and initialisers without readers.
  void sweep();

 private:
  void lift_constants();
  void note_body(const OnnxGraph& body);

  OnnxGraph graph_;
  std::shared_ptr<std::deque<std::string>> texts_ = std::make_shared<std::deque<std::string>>();
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string_view, std::size_t> makers_, constants_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> readers_;
  std::set<std::string_view> outside_;
};

const importer::OnnxAttribute* find_attribute(const OnnxNode& node, std::string_view name);
std::int64_t integer_of(const OnnxNode& node, std::string_view name, std::int64_t otherwise);
float real_of(const OnnxNode& node, std::string_view name, float otherwise);

}  // namespace sluice::quantiser

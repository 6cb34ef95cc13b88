#include <algorithm>
#include <cmath>

#include "sluice/core/sort.h"
#include "sluice/model/body.h"
#include "sluice/model/features.h"
#include "sluice/model/graph.h"
#include "src/core/out_of_memory.h"
#include "src/model/built_features.h"
#include "src/model/layout.h"
#include "src/model/limits.h"
#include "src/model/permutation.h"
#include "src/model/validate_forms.h"

namespace sluice::model {
namespace {

// Far above real models and low enough that products of a few sizes stay inside 63 bits everywhere behind this check.
constexpr std::uint64_t kMaxTensorBytes = std::uint64_t{1} << 40;  // of one tensor

/// The end of each panel of a sparse weight: one behind the other, none larger than `panel_bytes`.
bool panel_ends_are_sound(const Weight& weight) noexcept {
  if (weight.panel_layout.layout != WeightLayout::kSparse) return weight.panel_ends.empty();
  if (weight.panels < 1 || weight.panel_ends.size() != static_cast<std::uint64_t>(weight.panels)) return false;
  std::uint32_t begin = 0;
  for (const std::uint32_t end : weight.panel_ends) {
    if (end <= begin || (end - begin) * kWeightAlignment > weight.panel_bytes.count()) return false;
    begin = end;
  }
  return true;
}

/// The bytes that a weight's panels take in memory. They do not overflow: `check_weight` has passed.
Bytes bytes_of_panels(const Weight& weight) noexcept {
  if (!weight.panel_ends.empty()) return Bytes(weight.panel_ends.back() * kWeightAlignment);
  return static_cast<std::uint64_t>(weight.panels) * weight.panel_bytes;
}

class GraphValidator {
 public:
  GraphValidator(const Graph& graph, NodeRules rules)
      : graph_(graph), rules_(rules), made_(graph.tensors.size(), false), made_by_node_(made_) {}

  Status run(Bytes file_size) {
    SLUICE_RETURN_IF_ERROR(check_counts());
    for (const Weight& weight : graph_.weights) SLUICE_RETURN_IF_ERROR(check_weight(weight));
    for (const Tensor& tensor : graph_.tensors) SLUICE_RETURN_IF_ERROR(check_tensor(graph_, tensor));
    SLUICE_RETURN_IF_ERROR(check_quantisations(graph_));
    if constexpr (kRunsSubgraphs) {
      SLUICE_RETURN_IF_ERROR(check_subgraphs(graph_));
    }
    if (file_size != Bytes(0)) SLUICE_RETURN_IF_ERROR(check_stretches(file_size));
    SLUICE_RETURN_IF_ERROR(check_supported(graph_));
    SLUICE_RETURN_IF_ERROR(check_inputs());
    for (const Node& node : graph_.nodes) SLUICE_RETURN_IF_ERROR(check_node(node));
    SLUICE_RETURN_IF_ERROR(check_all_made());
    SLUICE_RETURN_IF_ERROR(check_bodies());
    SLUICE_RETURN_IF_ERROR(check_outputs());
    SLUICE_RETURN_IF_ERROR(check_units(graph_));
    return check_preprocess();
  }

 private:
  /// (G8) The graphs that nodes run. That each tensor is there when it is read has been checked where their numbers were.
  Status check_bodies() const {
    if constexpr (!kRunsSubgraphs) return {};
    const std::vector<const Node*> runners = runners_of(graph_);
    for (std::size_t s = 0; s < runners.size(); ++s) {
      if (runners[s] == nullptr) continue;  // its runner's body has it
      const Body body = body_of(graph_, *runners[s], s);
      GraphValidator inside(body.graph, rules_);
      SLUICE_RETURN_IF_ERROR(inside.check_body(body.inputs));
    }
    return {};
  }

  /// As a body of so many inputs, behind which what it captures follows.
  Status check_body(std::size_t inputs) {
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const TensorId id = graph_.inputs[i].tensor;
      if (i < inputs && graph_.tensor(id).bounded != 0)
        return invalid(graph_.inputs[i].name, "G8: an input of a subgraph has extents that are known at run only");
      made_[id.index()] = true;
    }
    for (const Node& node : graph_.nodes) SLUICE_RETURN_IF_ERROR(check_node(node));
    for (const Port& port : graph_.outputs)
      if (!is_empty(port.tensor) && !made_by_node_[port.tensor.index()])
        return invalid(port.name, "G8: no node makes this output of a subgraph");
    return check_bodies();
  }

  Status check_counts() const {
    const std::size_t counts[] = {graph_.tensors.size(),   graph_.weights.size(), graph_.nodes.size(),
                                  graph_.inputs.size(),    graph_.outputs.size(), graph_.labels.size(),
                                  graph_.subgraphs.size(), graph_.units.size(),   graph_.quantisations.size()};
    for (const std::size_t count : counts) {
      if (count > kMaxItems) {
        return fail(make_limit_error(ErrorCode::kInvalidModel, graph_.name,
                                     "more tensors, weights, nodes, ports, labels, subgraphs or units than any model has", kMaxItems,
                                     count));
      }
    }
    if (graph_.outputs.empty()) return invalid(graph_.name, "a graph without outputs computes nothing");
    return {};
  }

  /// Rules for every weight, whichever node uses it.
  Status check_weight(const Weight& weight) const {
    if (!Shape::make(weight.shape.dims())) return invalid(weight.name, "G5: a weight's extents are negative or overflow");
    const PanelLayout& layout = weight.panel_layout;
    const bool plain = layout.layout == WeightLayout::kPlain;
    if (plain && layout != PanelLayout{.dtype = layout.dtype}) return invalid(weight.name, "G5: a plain weight has the form of panels");
    if (plain && weight.panels != 1) return invalid(weight.name, "G5: a plain weight has one panel");
    constexpr std::uint64_t kSomeValues = 4;  // a multiple of each k_interleave
    if (!plain && !panel_bytes_of(layout, kSomeValues)) {
      return fail(ErrorCode::kUnsupported, weight.name, "its panels are of a form that this build does not know");
    }
    if (weight.panels < 1) return invalid(weight.name, "G5: a weight has no panels");
    if (weight.panel_bytes > kMaxPanelBytes) return invalid(weight.name, "G5: a panel is larger than a stretch can be");
    if (!plain && (weight.panel_bytes == Bytes() || weight.panel_bytes.count() % kWeightAlignment != 0)) {
      return invalid(weight.name, "G5: the size of a panel is not a multiple of 64");
    }
    if (!panel_ends_are_sound(weight)) return invalid(weight.name, "G5: the ends of its panels do not fit them");
    const auto bytes = checked_mul(static_cast<std::uint64_t>(weight.panels), weight.panel_bytes.count());
    if (!bytes || *bytes > kMaxFileBytes.count()) return invalid(weight.name, "G5: a weight is larger than a file can be");
    return {};
  }

  Status check_port(const Port& port) const {
    if (!port.tensor.valid() || port.tensor.index() >= graph_.tensors.size())
      return invalid(port.name, "G1: a port's tensor does not exist");
    const Shape& physical = graph_.tensor(port.tensor).shape;
    if (port.onnx_shape.rank() != physical.rank() || !is_permutation(port.perm, physical.rank())) {
      return invalid(port.name, "G2: a port's axes are not a permutation of its tensor's");
    }
    const bool converts = port.dtype == DType::kF16 || port.dtype == DType::kBF16 || port.dtype == DType::kF64;
    if (port.dtype && (!converts || graph_.tensor(port.tensor).dtype != DType::kF32))
      return invalid(port.name, "G2: a port's type is not its tensor's, and no other form of its f32 values");
    for (int axis = 0; axis < physical.rank(); ++axis) {
      if (physical[axis] != port.onnx_shape[port.perm[static_cast<std::size_t>(axis)]]) {
        return invalid(port.name, "G2: a port's shape is not its tensor's, permuted");
      }
      if (graph_.tensor(port.tensor).bounded != 0 && port.perm[static_cast<std::size_t>(axis)] != axis) {
        return invalid(port.name, "G6: a bounded output is not in ONNX's order of axes");
      }
    }
    return {};
  }

  Status check_inputs() {
    for (const Port& port : graph_.inputs) {
      SLUICE_RETURN_IF_ERROR(check_port(port));
      if (graph_.tensor(port.tensor).weight.valid()) return invalid(port.name, "G1: a graph input is a constant");
      if (graph_.tensor(port.tensor).bounded != 0) return invalid(port.name, "G6: a graph input has extents that are known at run only");
      if (made_[port.tensor.index()]) return invalid(port.name, "G1: two graph inputs are one tensor");
      made_[port.tensor.index()] = true;
    }
    return check_unique_names(graph_.inputs);
  }

  bool is_empty(TensorId id) const { return graph_.tensor(id).shape.element_count() == 0; }

  Status check_all_made() const {
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      const Tensor& tensor = graph_.tensors[t];
      if (!made_[t] && !tensor.weight.valid() && !is_empty(TensorId(t))) return invalid(tensor.name, "G1: nothing makes this tensor");
    }
    return {};
  }

  Status check_outputs() const {
    for (const Port& port : graph_.outputs) {
      SLUICE_RETURN_IF_ERROR(check_port(port));
      if (!is_empty(port.tensor) && !made_by_node_[port.tensor.index()]) return invalid(port.name, "G1: no node makes this graph output");
    }
    return check_unique_names(graph_.outputs);
  }

  /// Callers find ports by name.
  static Status check_unique_names(const std::vector<Port>& ports) {
    std::vector<std::string_view> names;
    names.reserve(ports.size());
    for (const Port& port : ports) names.push_back(port.name);
    sluice::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) return invalid(*twice, "two graph inputs or two graph outputs have this name");
    return {};
  }

  Status check_node(const Node& node) {
    for (const TensorId id : node.inputs) {
      if (!id.valid() || id.index() >= graph_.tensors.size()) return invalid(node.name, "G1: an input tensor does not exist");
      if (is_empty(id)) return invalid(node.name, "G3: an input has no elements");
      if (!made_[id.index()] && !graph_.tensor(id).weight.valid()) return invalid(node.name, "G1: an input is used before it is made");
    }
    for (const WeightId id : node.weights) {
      if (!id.valid() || id.index() >= graph_.weights.size()) return invalid(node.name, "G1: a weight does not exist");
    }
    if (node.outputs.size() != 1) return invalid(node.name, "G1: a node has one output");
    const TensorId output = node.outputs[0];
    if (!output.valid() || output.index() >= graph_.tensors.size()) return invalid(node.name, "G1: the output tensor does not exist");
    if (made_[output.index()] || graph_.tensor(output).weight.valid()) {
      return invalid(node.name, "G1: the output tensor is an input, a constant, or made twice");
    }
    if (is_empty(output)) return invalid(node.name, "G3: the output has no elements");
    if (node.op != OpKind::kPlain) {
      const auto bounded = [&](TensorId id) { return graph_.tensor(id).bounded != 0; };
      if (bounded(output) || std::any_of(node.inputs.begin(), node.inputs.end(), bounded)) {
        return invalid(node.name, "G6: a tensor of extents known at run only is used by a node that is not plain");
      }
    }
    made_[output.index()] = true;
    made_by_node_[output.index()] = true;
    return rules_(graph_, node);
  }

  Status check_preprocess() const {
    const Preprocess& p = graph_.preprocess;
    if (!p.present) return {};
    constexpr std::int64_t kMaxSide = 1 << 16;
    if (p.resize_short_side < 0 || p.resize_short_side > kMaxSide || p.crop < 0 || p.crop > kMaxSide) {
      return invalid(graph_.name, "the preprocessing's image sizes are out of range");
    }
    bool sane = std::isfinite(p.scale);
    for (std::size_t i = 0; i < 3; ++i) sane = sane && std::isfinite(p.mean[i]) && std::isfinite(p.stddev[i]) && p.stddev[i] != 0.0f;
    if (!sane) return invalid(graph_.name, "the preprocessing's numbers are not finite or divide by zero");
    return {};
  }

  /// (G5) Weights take the stretches in turn, stretches lie in rising order, and each is where the layout of its weight says.
  Status check_stretches(Bytes file_size) const {
    std::vector<const Weight*> order;
    order.reserve(graph_.weights.size());
    for (const Weight& weight : graph_.weights) order.push_back(&weight);
    sluice::sort(order.begin(), order.end(), [](const Weight* a, const Weight* b) { return a->first_stretch < b->first_stretch; });
    std::size_t next_stretch = 0;
    std::uint64_t end = 0;
    for (const Weight* weight : order) {
      SLUICE_RETURN_IF_ERROR(check_place(*weight, next_stretch, end, file_size));
      SLUICE_RETURN_IF_ERROR(check_stretches_of(*weight));
      next_stretch += weight->stretch_count;
      end = (weight->offset + stored_bytes(*weight)).count();
    }
    if (next_stretch != graph_.stretches.size()) return invalid(graph_.name, "G5: stretches that belong to no weight");
    if constexpr (is_built(Feature::kCodedStretches)) SLUICE_RETURN_IF_ERROR(check_codes());
    return is_built(Feature::kEncryption) ? check_tags() : Status();
  }

  Status check_place(const Weight& weight, std::size_t first_stretch, std::uint64_t end_of_last, Bytes file_size) const {
    if (weight.bytes != bytes_of_panels(weight) || weight.bytes == Bytes() || weight.bytes.count() % kWeightAlignment != 0) {
      return invalid(weight.name, "G5: a weight's size is not that of its panels, or not a multiple of 64");
    }
    const std::int64_t expected = ceil_div(weight.panels, panels_per_stretch(weight.panel_bytes));
    if (weight.first_stretch != first_stretch || weight.stretch_count != expected ||
        weight.stretch_count > graph_.stretches.size() - first_stretch) {
      return invalid(weight.name, "G5: a weight's stretches are not those of its panels");
    }
    const Bytes stored = stored_bytes(weight);
    if (stored > file_size || weight.offset > file_size - stored) {
      return fail(
          make_error(ErrorCode::kInvalidModel, weight.name, "G5: a weight ends beyond the file", weight.offset.count(), file_size.count()));
    }
    if (weight.offset.count() % kWeightAlignment != 0) return invalid(weight.name, "G5: a weight's offset is not a multiple of 64");
    if (weight.offset.count() < end_of_last) return invalid(weight.name, "G5: weights overlap or are out of order");
    return {};
  }

  /// What the stretches of a weight, which exist, take in the file.
  Bytes stored_bytes(const Weight& weight) const {
    Bytes stored;
    for (const Stretch& stretch : graph_.stretches_of(weight)) stored += stretch.stored_size;
    return stored;
  }

  Status check_stretches_of(const Weight& weight) const {
    const std::int64_t step = panels_per_stretch(weight.panel_bytes);
    std::int64_t panel = 0;
    Bytes offset = weight.offset;
    for (const Stretch& stretch : graph_.stretches_of(weight)) {
      const Bytes raw = panel_range(weight, {panel, std::min(panel + step, weight.panels)}).size;
      const bool sized =
          shrinks(stretch.form) ? stretch.stored_size != Bytes() && Bytes(stretch.stored_size) < raw : stretch.stored_size == raw;
      if (stretch.offset != offset || stretch.raw_size != raw || !sized) {
        return invalid(weight.name, "G5: a stretch is not a run of its weight's panels");
      }
      offset += stretch.stored_size;
      panel += step;
    }
    return {};
  }

  /// Tables are sound, and what is coded has one.
  Status check_codes() const {
    if (!std::all_of(graph_.codes.begin(), graph_.codes.end(), check_code)) return invalid(graph_.name, "G5: a table of codes is none");
    for (const Weight& weight : graph_.weights) {
      if (weight.code != kNoCode && weight.code >= graph_.codes.size())
        return invalid(weight.name, "G5: its table of codes does not exist");
      for (const Stretch& stretch : graph_.stretches_of(weight))
        if (has_form(stretch.form, StretchForm::kCoded) && weight.code == kNoCode)
          return invalid(weight.name, "G5: a stretch is coded, but its weight has no table");
    }
    return {};
  }

  /// A file is encrypted as a whole.
  Status check_tags() const {
    const auto encrypted = [](const Stretch& stretch) { return has_form(stretch.form, StretchForm::kEncrypted); };
    const auto count = static_cast<std::size_t>(std::count_if(graph_.stretches.begin(), graph_.stretches.end(), encrypted));
    if (graph_.tags.size() != count || (count != 0 && count != graph_.stretches.size()))
      return invalid(graph_.name, "G5: some stretches are encrypted and others not, or one has no tag");
    return {};
  }

  const Graph& graph_;
  NodeRules rules_;
  std::vector<bool> made_;  // graph inputs, and what the nodes so far have made
  std::vector<bool> made_by_node_;
};

}  // namespace

Status check_tensor(const Graph& graph, const Tensor& tensor) {
  const auto shape = Shape::make(tensor.shape.dims());
  if (!shape) return invalid(tensor.name, "G3: a tensor's extents are negative or overflow");
  const auto elements = static_cast<std::uint64_t>(shape->element_count());
  if (elements == 0 && tensor.weight.valid()) return invalid(tensor.name, "G3: a constant has no elements");
  const std::uint64_t most = kMaxTensorBytes / size_of(tensor.dtype);  // bytes of the extents may not fit 64 bits
  if (elements > most)
    return fail(
        make_limit_error(ErrorCode::kInvalidModel, tensor.name, "G3: a tensor has more elements than any may have", most, elements));
  if (tensor.bounded >> tensor.shape.rank() != 0) return invalid(tensor.name, "G6: an axis is bounded that the tensor has not");
  if (!tensor.weight.valid()) return {};
  if (tensor.bounded != 0) return invalid(tensor.name, "G6: a constant has extents that are known at run only");
  if (tensor.weight.index() >= graph.weights.size()) return invalid(tensor.name, "G1: a constant's weight does not exist");
  const Weight& weight = graph.weight(tensor.weight);
  if (weight.panel_layout.layout != WeightLayout::kPlain || weight.panel_layout.dtype != tensor.dtype) {
    return invalid(tensor.name, "G1: a constant's weight is not stored as plain values of its type");
  }
  if (weight.panel_bytes < tensor.bytes()) {
    return fail(make_error(ErrorCode::kInvalidModel, tensor.name, "G1: a constant's weight is smaller than the tensor",
                           tensor.bytes().count(), weight.panel_bytes.count()));
  }
  return {};
}

Status validate(const Graph& graph, Bytes file_size, NodeRules rules) {
  return or_out_of_memory(graph.name, [&] { return GraphValidator(graph, rules).run(file_size); });
}

}  // namespace sluice::model

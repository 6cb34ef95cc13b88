#include "sluice/model/features.h"

#include <string>

#include "sluice/model/graph.h"
#include "src/model/built_features.h"

namespace sluice::model {
namespace {

struct FeatureRow {
  std::string_view name;
  const char* refusal;
};

constexpr FeatureRow kRows[kFeatureCount] = {
    {"int8 arithmetic", "it computes with integers of a scale, and this build has no int8 arithmetic"},
    {"bf16 tensors", "it is a bf16 tensor, and this build computes with none"},
    {"subgraphs", "it runs subgraphs of the file, and this build runs none"},
    {"16-bit panels", "its panels hold 16-bit values, which no kernel of this build reads"},
    {"f16 scales", "its panels have f16 scales, which no kernel of this build reads"},
    {"interleaved panels", "its panels are interleaved, and no kernel of this build reads those"},
    {"sparse panels", "its panels are sparse, which no kernel of this build reads"},
    {"panels of inputs", "its panels are of input features, and no kernel of this build reads those"},
    {"coded stretches", "its bytes are coded, and this build decodes none"},
    {"encryption", "its bytes are encrypted, and this build decrypts none"},
    {"stretches without zeros", "its zeros are left out, and this build fills none in"},
    {"no weights", "its file has no weights"},
};

const FeatureRow& row_of(Feature feature) noexcept { return kRows[static_cast<int>(feature)]; }

Features of_layout(const PanelLayout& layout) noexcept {
  Features features = 0;
  if (layout.layout == WeightLayout::kPlain) return layout.dtype == DType::kBF16 ? bit_of(Feature::kBrainTensors) : 0;
  if (layout.dtype == DType::kF16 || layout.dtype == DType::kBF16) features |= bit_of(Feature::kHalfPanels);
  if (layout.scale == PanelScale::kF16) features |= bit_of(Feature::kHalfScales);
  if (layout.k_interleave != 1) features |= bit_of(Feature::kInterleavedPanels);
  if (layout.side == PanelSide::kInputs) features |= bit_of(Feature::kInputPanels);
  if (layout.layout == WeightLayout::kSparse) features |= bit_of(Feature::kSparsePanels);
  return features;
}

Features of_form(StretchForm form) noexcept {
  const auto need = [form](StretchForm part, Feature feature) { return has_form(form, part) ? bit_of(feature) : 0; };
  return need(StretchForm::kZerosLeftOut, Feature::kStretchesWithoutZeros) | need(StretchForm::kCoded, Feature::kCodedStretches) |
         need(StretchForm::kEncrypted, Feature::kEncryption);
}

Features of_weight(const Weight& weight) noexcept {
  return of_layout(weight.panel_layout) | (weight.quantisation != kNoQuantisation ? bit_of(Feature::kInt8) : 0);
}

Features of_tensor(const Tensor& tensor) noexcept {
  return (tensor.dtype == DType::kBF16 ? bit_of(Feature::kBrainTensors) : 0) |
         (tensor.quantisation != kNoQuantisation ? bit_of(Feature::kInt8) : 0);
}

Features of_node(const Node& node) noexcept {
  return (node.numeric == NumericClass::kInt8 ? bit_of(Feature::kInt8) : 0) | (node.subgraph_count != 0 ? bit_of(Feature::kSubgraphs) : 0);
}

/// Calls visit(features, name) for each weight, tensor and node of the graph until it says no.
template <class Visit>
void for_each_thing(const Graph& graph, Visit&& visit) {
  const auto body = [&](const auto& of) {
    for (const Tensor& tensor : of.tensors)
      if (!visit(of_tensor(tensor), tensor.name)) return false;
    for (const Node& node : of.nodes)
      if (!visit(of_node(node), node.name)) return false;
    return true;
  };
  for (const Weight& weight : graph.weights)
    if (!visit(of_weight(weight), weight.name)) return;
  if (!body(graph)) return;
  for (const Subgraph& subgraph : graph.subgraphs)
    if (!body(subgraph)) return;
}

/// The name of the weight that a stretch belongs to, or of the graph if there is none. Asked once, since weights of hostile files may share
/// stretches.
const std::string& owner_of(const Graph& graph, std::size_t stretch) {
  for (const Weight& weight : graph.weights)
    if (weight.first_stretch <= stretch && stretch - weight.first_stretch < weight.stretch_count) return weight.name;
  return graph.name;
}

tl::unexpected<Error> refuse(Features missing, const std::string& name) {
  return fail(ErrorCode::kUnsupported, name, row_of(static_cast<Feature>(std::countr_zero(missing))).refusal);
}

}  // namespace

std::string_view name_of(Feature feature) noexcept { return row_of(feature).name; }

Features features_of(const Graph& graph) noexcept {
  Features all = 0;
  for_each_thing(graph, [&](Features features, const std::string&) {
    all |= features;
    return true;
  });
  for (const Stretch& stretch : graph.stretches) all |= of_form(stretch.form);
  return all;
}

namespace {

/// Functions of one value, which a trimmed build may lack.
Status check_functions(const std::vector<Node>& nodes) {
  for (const Node& node : nodes)
    if (!has_function(static_cast<int>(node.epilogue.activation.function)))
      return fail(ErrorCode::kUnsupported, node.name,
                  "this build was trimmed to models that do without its function: trim it to this model too");
  return {};
}

}  // namespace

Status check_supported(const Graph& graph) {
  SLUICE_RETURN_IF_ERROR(check_functions(graph.nodes));
  for (const Subgraph& subgraph : graph.subgraphs) SLUICE_RETURN_IF_ERROR(check_functions(subgraph.nodes));
  Status status;
  for_each_thing(graph, [&](Features features, const std::string& name) {
    const Features missing = features & ~kBuiltFeatures;
    if (missing != 0) status = refuse(missing, name);
    return missing == 0;
  });
  for (std::size_t s = 0; status && s < graph.stretches.size(); ++s) {
    const Features missing = of_form(graph.stretches[s].form) & ~kBuiltFeatures;
    if (missing != 0) status = refuse(missing, owner_of(graph, s));
  }
  return status;
}

}  // namespace sluice::model

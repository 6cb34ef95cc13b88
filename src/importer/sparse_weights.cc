#include "src/importer/sparse_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sluice/kernels/sparse_packing.h"

namespace sluice::importer {
namespace {

// A share of so and so many blocks is a little less than what was asked for.
constexpr double kNearly = 0.95;

/// The share of zero blocks from which the node would have its weight sparse; above 1: it has no kernel for that.
double share_wanted(const model::Graph& graph, const model::Node& node) noexcept {
  constexpr double kNever = 2;
  const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
  const bool multiplies = node.op == model::OpKind::kDense || (node.op == model::OpKind::kConv && conv->groups == 1);
  if (!multiplies || node.numeric == model::NumericClass::kInt8) return kNever;
  const model::Weight& weight = graph.weight(node.weights[0]);
  const model::PanelLayout& layout = weight.panel_layout;
  const bool bare = layout.layout == model::WeightLayout::kPanels && layout.scale == model::PanelScale::kNone && is_float(layout.dtype);
  if (!bare || weight.bytes < model::kAlwaysResidentBelow) return kNever;
  return node.numeric == model::NumericClass::kWinograd4 ? kPaysBesideWinograd : kPays;
}

/// Of each weight, the share that every node wants which reads it.
std::vector<double> shares_wanted(const model::Graph& graph) {
  std::vector<double> shares(graph.weights.size(), 0.0);
  std::vector<WeightId> read;
  for (const model::Node& node : graph.nodes) {
    read.clear();
    model::weights_read_by(graph, node, read);
    for (std::size_t i = 0; i < read.size(); ++i) {
      const bool panels = !node.weights.empty() && read[i] == node.weights[0];
      double& share = shares[read[i].index()];
      share = std::max(share, panels ? share_wanted(graph, node) : 2.0);
    }
  }
  return shares;
}

/// Are so many of its blocks zero? Most weights have none, and a sample says so.
bool has_zero_blocks(const kernels::PackSource& source, double share) {
  return kernels::share_of_zero_blocks(source, true) >= share / 2 && kernels::share_of_zero_blocks(source, false) >= share;
}

}  // namespace

void choose_sparse(model::Graph& graph, std::vector<Recipe>& recipes, double prune_share, std::vector<PrunedWeight>& pruned) {
  const std::vector<double> wanted = shares_wanted(graph);
  for (std::size_t w = 0; w < graph.weights.size(); ++w) {
    Recipe& recipe = recipes[w];
    if (recipe.kind != Recipe::Kind::kPanels || wanted[w] <= 0 || wanted[w] > 1) continue;
    recipe.source.tap_order = recipe.tap_order;
    model::Weight& weight = graph.weights[w];
    const kernels::Pruning pruning = prune_share >= wanted[w] ? kernels::prune(recipe.source, prune_share) : kernels::Pruning();
    const bool prunes = pruning.share >= kNearly * wanted[w];
    if (prunes) {
      recipe.largest_left_out = pruning.largest;
      const double decibels = pruning.error > 0 ? 10 * std::log10(pruning.signal / pruning.error) : std::numeric_limits<double>::infinity();
      pruned.push_back({weight.name, weight.bytes, {}, decibels});
    } else if (!has_zero_blocks(recipe.source, wanted[w])) {
      continue;
    }
    recipe.kind = Recipe::Kind::kSparse;
    kernels::describe_sparse(recipe.source, weight, recipe.largest_left_out);
    if (prunes) pruned.back().after = weight.bytes;
  }
  for (model::Node& node : graph.nodes)
    if (node.numeric == model::NumericClass::kWinograd4 && recipes[node.weights[0].index()].kind == Recipe::Kind::kSparse)
      node.numeric = model::NumericClass::kExact;
}

}  // namespace sluice::importer

// A laid-out Draft to the model::Graph that is stored, and its weights to packed bytes, a run of panels at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/kernels/packing.h"
#include "sluice/model/graph.h"
#include "sluice/model/model_writer.h"
#include "src/importer/draft.h"

namespace sluice::importer {

/// How one weight's bytes come about. Views the Draft, which must outlive it.
struct Recipe {
  enum class Kind : std::uint8_t { kPanels, kSparse, kDepthwise, kQuantised, kIntegers, kValues, kConstant };
  Kind kind = Kind::kValues;
  kernels::PackSource source;           // kPanels, kSparse, kDepthwise
  float largest_left_out = 0;           // kSparse: kernels::Pruning::largest
  std::vector<std::int32_t> tap_order;  // what source.tap_order views
  kernels::QuantisedSource quantised;   // kQuantised, beside `source`
  kernels::IntegerSource integers;      // kIntegers, beside `source`
  std::span<const std::byte> values;    // kValues: biases, scales, shifts, tables; the rest of the weight is zero
  Constant constant;                    // kConstant, in physical order
  bool may_round = false;               // kPanels of floats: its node takes narrower ones, and they are large enough to gain by it
};

/// Do both pack the same values from the same place? (Not for kValues, whose values are their own.)
bool same(const Recipe& a, const Recipe& b);

/// Packs each weight from where its values are. Recipes are by WeightId.
class Packer final : public model::WeightProducer {
 public:
  explicit Packer(std::vector<Recipe> recipes) : recipes_(std::move(recipes)) {}
  Status produce(WeightId id, PanelRange p, std::span<std::byte> out) override;
  const Recipe& recipe(WeightId id) const noexcept { return recipes_[id.index()]; }

 private:
  std::vector<Recipe> recipes_;
};

/// Where the trained values of a node with panels lie, as those of its layout count them.
kernels::PackSource pack_source_of(const DraftNode& node);

/// Can panels of this storage hold the values? Infinite ones they cannot, and those with f16 none that becomes infinite.
bool can_hold(kernels::PanelStorage storage, const kernels::PackSource& source) noexcept;

/// What panels of floats hold.
struct Storage {
  std::optional<kernels::PanelStorage> all;  // where the file does not decide it; nothing: as the file has them
  std::map<std::string, kernels::PanelStorage, std::less<>> by_name = {};  // of these weights, instead
  bool merge_groups = true;  // of integer convolutions whose groups fill no panel, as many as fill one become a group (zeros between them)
};

/// Fills tensors, weights, nodes and ports of `graph` and returns the recipes of its weights.
std::vector<Recipe> emit(const Draft& draft, model::Graph& graph, const Storage& storage = {});

}  // namespace sluice::importer

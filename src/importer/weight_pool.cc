#include "src/importer/weight_pool.h"

#include <algorithm>
#include <cstring>

#include "src/importer/refusal.h"

namespace sluice::importer {
namespace {

// They are held until they are written, and each is for some extents only. A causal mask of 1024 x 1024 bytes, cut for each of 128
// lengths, takes 44 MiB.
constexpr Bytes kMaxAddedBytes{std::uint64_t{64} << 20};

bool same_form(const model::Weight& a, const model::Weight& b) noexcept {
  return a.panel_layout == b.panel_layout && a.shape == b.shape && a.panels == b.panels && a.panel_bytes == b.panel_bytes &&
         a.panel_ends == b.panel_ends;
}

Bytes bytes_of(const model::Weight& weight, std::int64_t panels) noexcept {
  return static_cast<std::uint64_t>(panels) * weight.panel_bytes;
}

/// Calls `visit(panels)` for runs of panels that are good to hold at once, until it says no.
template <class Visit>
bool for_each_run(const model::Weight& weight, Visit&& visit) {
  const std::uint64_t panel_bytes = std::max<std::uint64_t>(1, weight.panel_bytes.count());
  const auto step = static_cast<std::int64_t>(std::max<std::uint64_t>(1, model::kStretchBytes.count() / panel_bytes));
  for (std::int64_t panel = 0; panel < weight.panels; panel += step)
    if (!visit(PanelRange{panel, std::min(panel + step, weight.panels)})) return false;
  return true;
}

}  // namespace

WeightPool::WeightPool(const model::Graph& graph, std::vector<Recipe> recipes)
    : packer_(std::move(recipes)), first_added_(graph.weights.size()), weights_(graph.weights) {
  for (std::size_t i = 0; i < weights_.size(); ++i) by_name_[weights_[i].name].push_back(i);
}

void WeightPool::share(model::Graph& graph, std::vector<Recipe> recipes) {
  Packer packer(std::move(recipes));
  std::vector<bool> taken(weights_.size(), false);  // two weights of a graph stay two
  std::vector<WeightId> id_of;
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    const model::Weight& weight = graph.weights[i];
    const std::vector<std::size_t>& candidates = by_name_[weight.name];
    const auto found = std::find_if(candidates.begin(), candidates.end(), [&](std::size_t mine) {
      return !taken[mine] && same_form(weights_[mine], weight) && equal(mine, weight, WeightId(i), packer);
    });
    const std::size_t mine = found == candidates.end() ? add(weight, WeightId(i), packer) : *found;
    taken.resize(weights_.size(), false);
    taken[mine] = true;
    id_of.push_back(WeightId(mine));
  }
  const auto renumber = [&](auto& of) {
    for (model::Tensor& tensor : of.tensors)
      if (tensor.weight.valid()) tensor.weight = id_of[tensor.weight.index()];
    for (model::Node& node : of.nodes)
      for (WeightId& id : node.weights) id = id_of[id.index()];
  };
  renumber(graph);
  for (model::Subgraph& subgraph : graph.subgraphs) renumber(subgraph);
  graph.weights.clear();
}

bool WeightPool::equal(std::size_t mine, const model::Weight& weight, WeightId theirs, Packer& packer) {
  const Recipe& recipe = packer.recipe(theirs);
  const bool by_place =
      recipe.kind != Recipe::Kind::kValues && recipe.kind != Recipe::Kind::kQuantised && recipe.kind != Recipe::Kind::kIntegers;
  if (by_place && mine < first_added_ && same(packer_.recipe(WeightId(mine)), recipe)) return true;
  std::vector<std::byte> a, b;
  return for_each_run(weight, [&](PanelRange p) {
    a.assign(bytes_of(weight, p.size()).count(), std::byte{});
    b = a;
    return produce(WeightId(mine), p, a).has_value() && packer.produce(theirs, p, b).has_value() && a == b;
  });
}

std::size_t WeightPool::add(const model::Weight& weight, WeightId theirs, Packer& packer) {
  added_bytes_ += bytes_of(weight, weight.panels);
  if (added_bytes_ > kMaxAddedBytes)
    refuse_unsupported("constants that follow from the extents of --dim (such as `" + weight.name + "`) would take more than " +
                       format_bytes(kMaxAddedBytes) + " beside the weights; state fewer extents");
  std::vector<std::byte> bytes;
  for_each_run(weight, [&](PanelRange p) {
    std::vector<std::byte> run(bytes_of(weight, p.size()).count());
    const bool made = packer.produce(theirs, p, run).has_value();
    bytes.insert(bytes.end(), run.begin(), run.end());
    return made;
  });
  packed_.push_back(std::move(bytes));
  weights_.push_back(weight);
  by_name_[weight.name].push_back(weights_.size() - 1);
  return weights_.size() - 1;
}

Status WeightPool::produce(WeightId id, PanelRange p, std::span<std::byte> out) {
  if (id.index() < first_added_) return packer_.produce(id, p, out);
  const std::vector<std::byte>& bytes = packed_[id.index() - first_added_];
  const std::size_t first = bytes_of(weights_[id.index()], p.begin).count();
  std::memset(out.data(), 0, out.size());  // the writer's sizes are padded
  std::memcpy(out.data(), bytes.data() + first, std::min(out.size(), bytes.size() - first));
  return {};
}

}  // namespace sluice::importer

// A copy of a tensor with values written at places that other values name. A place outside is a fault of the run; nothing is written there.
#include "sluice/operators/generic/scatter.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace scatter;
namespace {

constexpr std::string_view kElementsArguments = "axis:i=0 reduction:s=none|add|mul|max|min";

constexpr std::string_view kNdArguments = "reduction:s=none|add|mul|max|min";

PlainRefusal check_types(const PlainNode& node, std::int64_t reduction) noexcept {
  if (!node.has(0) || !node.has(1) || !node.has(2)) return kMissingInput;
  if (!is_index(node.in(1).dtype) || node.in(2).dtype != node.in(0).dtype) return kWrongType;
  return reduction == scatter::kNone || is_number(node.in(0).dtype) ? nullptr : kWrongType;
}

// ---- ScatterElements

PlainRefusal infer_scatter_elements(const PlainNode& node, PlainTensor& out) noexcept {
  if (PlainRefusal refusal = check_types(node, node.integer(1))) return refusal;
  const Shape &data = node.in(0).shape, &indices = node.in(1).shape;
  const int axis = axis_of(node.integer(0), data.rank());
  if (axis < 0) return kWrongAxis;
  if (indices.rank() != data.rank() || !(indices == node.in(2).shape)) return kWrongShape;
  for (int a = 0; a < data.rank(); ++a)
    if (a != axis && indices[a] > data[a]) return kWrongShape;
  out = {node.in(0).dtype, data};
  return nullptr;
}

// ---- ScatterND

PlainRefusal infer_scatter_nd(const PlainNode& node, PlainTensor& out) noexcept {
  if (PlainRefusal refusal = check_types(node, node.integer(0))) return refusal;
  const Shape &data = node.in(0).shape, &indices = node.in(1).shape, &updates = node.in(2).shape;
  if (data.rank() < 1 || indices.rank() < 1) return kWrongRank;
  const std::int64_t depth = indices.back();
  if (depth < 1 || depth > data.rank()) return kWrongShape;
  Dims dims;
  dims.add(indices, 0, indices.rank() - 1);
  dims.add(data, static_cast<int>(depth), data.rank());
  Shape expected;
  if (!make_shape(dims.span(), expected) || !(expected == updates)) return kWrongShape;
  out = {node.in(0).dtype, data};
  return nullptr;
}

PlainRefusal infer_tensor(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  const Shape &cache = node.in(0).shape, &update = node.in(1).shape;
  const int axis = axis_of(node.integer(0), cache.rank());
  if (node.in(0).dtype != node.in(1).dtype || (node.has(2) && !is_index(node.in(2).dtype))) return kWrongType;
  if (axis < 1 || update.rank() != cache.rank()) return kWrongAxis;
  for (int a = 0; a < cache.rank(); ++a)
    if (a == axis ? update[a] > cache[a] : update[a] != cache[a]) return kWrongShape;
  if (node.has(2) && node.in(2).count() != cache[0]) return kWrongShape;
  out = {node.in(0).dtype, cache};
  return nullptr;
}

constexpr PlainOperator kScatterOperators[] = {
    {280, "ScatterElements", kElementsArguments, infer_scatter_elements},
    {281, "Scatter", kElementsArguments, infer_scatter_elements},
    {282, "ScatterND", kNdArguments, infer_scatter_nd},
    {283, "TensorScatter", "axis:i=-2 mode:s=linear|circular", infer_tensor},
};

}  // namespace

std::span<const PlainOperator> scatter_operators() noexcept { return kScatterOperators; }

}  // namespace sluice::operators::generic

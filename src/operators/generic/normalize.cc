// Values shifted and scaled by their own statistics.
#include "sluice/operators/generic/elements.h"
#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
namespace {

bool floats(const PlainNode& node) noexcept {
  return std::all_of(node.inputs().begin(), node.inputs().end(), [](const PlainTensor& t) { return is_f32(t.dtype); });
}

// ---- LayerNormalization, RMSNormalization: over all axes from `axis` on

PlainRefusal infer_layer(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  if (!floats(node)) return kWrongType;
  const Shape& in = node.in(0).shape;
  const int axis = axis_of(node.integer(0), in.rank());
  if (axis < 0) return kWrongAxis;
  out = {DType::kF32, in};
  Shape joined;
  for (const int parameter : {1, 2})
    if (node.has(parameter) && (!broadcast_to(in, node.in(parameter).shape, joined) || !(joined == in))) return kWrongShape;
  if (node.result() > 0)
    for (int a = axis; a < in.rank(); ++a) out.shape[a] = 1;
  return nullptr;
}

// ---- InstanceNormalization, GroupNormalization: over the values of each group of channels

PlainRefusal infer_group(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1) || !node.has(2)) return kMissingInput;
  if (!floats(node)) return kWrongType;
  const Shape& in = node.in(0).shape;
  if (in.rank() < 2) return kWrongRank;
  const std::int64_t channels = in[1], groups = node.given(1) ? node.integer(1) : channels;
  if (groups < 1 || channels % groups != 0) return kWrongArgument;
  for (const int parameter : {1, 2})
    if (const std::int64_t n = node.in(parameter).count(); n != channels && n != groups) return kWrongShape;
  out = {DType::kF32, in};
  return nullptr;
}

// ---- MeanVarianceNormalization

PlainRefusal infer_mvn(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!floats(node)) return kWrongType;
  out = {DType::kF32, node.in(0).shape};
  for (const std::int64_t axis : node.list(0))
    if (axis_of(axis, out.shape.rank()) < 0) return kWrongAxis;
  return node.list(0).empty() && out.shape.rank() < 4 ? kWrongRank : nullptr;
}

// ---- LpNormalization

PlainRefusal infer_lp(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!floats(node)) return kWrongType;
  if (axis_of(node.integer(0), node.in(0).shape.rank()) < 0) return kWrongAxis;
  if (node.integer(1) != 1 && node.integer(1) != 2) return kWrongArgument;
  out = {DType::kF32, node.in(0).shape};
  return nullptr;
}

// ---- BatchNormalization with statistics of the run time, or its own: Y, running mean, running variance

PlainRefusal infer_batch(const PlainNode& node, PlainTensor& out) noexcept {
  for (int i = 0; i < 5; ++i)
    if (!node.has(i)) return kMissingInput;
  if (!floats(node)) return kWrongType;
  const Shape& in = node.in(0).shape;
  if (in.rank() < 2) return kWrongRank;
  for (int i = 1; i < 5; ++i)
    if (node.in(i).count() != in[1]) return kWrongShape;
  if (node.result() > 0 && node.integer(2) == 0) return "running statistics are outputs in training mode only";
  out = {DType::kF32, node.result() == 0 ? in : Shape{in[1]}};
  return nullptr;
}

constexpr PlainOperator kNormalizeOperators[] = {
    {300, "LayerNormalization", "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", infer_layer, nullptr, 3},
    {301, "RMSNormalization", "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", infer_layer},
    {302, "InstanceNormalization", "epsilon:f=1e-5 num_groups:i", infer_group},
    {303, "GroupNormalization", "epsilon:f=1e-5 num_groups:i", infer_group},
    {304, "MeanVarianceNormalization", "axes:I", infer_mvn},
    {305, "LpNormalization", "axis:i=-1 p:i=2", infer_lp},
    {306, "BatchNormalization", "epsilon:f=1e-5 momentum:f=0.9 training_mode:i=0", infer_batch, nullptr, 3},
};

}  // namespace

std::span<const PlainOperator> normalize_operators() noexcept { return kNormalizeOperators; }

}  // namespace sluice::operators::generic

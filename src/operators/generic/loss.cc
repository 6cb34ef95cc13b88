// Losses: exported by training graphs, and by models that report one.
#include "sluice/operators/generic/loss.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace loss;
namespace {

constexpr std::string_view kArguments = "reduction:s=mean|sum|none ignore_index:i";

PlainRefusal infer_loss(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  const Shape &scores = node.in(0).shape, &targets = node.in(1).shape;
  if (scores.rank() < 2 || targets.rank() != scores.rank() - 1) return kWrongRank;
  if (!is_f32(node.in(0).dtype) || !is_index(node.in(1).dtype)) return kWrongType;
  for (int axis = 0; axis < targets.rank(); ++axis)
    if (targets[axis] != scores[axis == 0 ? 0 : axis + 1]) return kWrongShape;
  if (node.has(2) && (!is_f32(node.in(2).dtype) || node.in(2).count() != scores[1])) return kWrongShape;
  out.dtype = DType::kF32;
  if (node.result() == 1)
    out.shape = scores;
  else
    out.shape = node.integer(0) == kNone ? targets : Shape{};
  return nullptr;
}

constexpr PlainOperator kLossOperators[] = {
    {330, "NegativeLogLikelihoodLoss", kArguments, infer_loss},
    {331, "SoftmaxCrossEntropyLoss", kArguments, infer_loss, nullptr, 2},
};

}  // namespace

std::span<const PlainOperator> loss_operators() noexcept { return kLossOperators; }

}  // namespace sluice::operators::generic

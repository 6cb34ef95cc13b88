#include "src/importer/allowance.h"
#include "src/importer/rewrite/pattern.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::BinaryFunction;
using model::Function;

/// x where the value is x less the mean of its last axis.
std::optional<ValueId> centred(const Pattern& p, ValueId value) {
  const DraftNode* sub = p.binary(value, BinaryFunction::kSub);
  if (sub == nullptr || !p.is_last_axis_mean(sub->inputs[1], sub->inputs[0])) return std::nullopt;
  return sub->inputs[0];
}

/// Is the value the mean of the squares of x less its mean? Some exporters subtract the mean twice.
bool is_variance(const Pattern& p, ValueId value, ValueId difference, ValueId x) {
  const DraftNode* pool = p.maker(p.unshaped(value));
  if (pool == nullptr || pool->inputs.empty()) return false;
  const ValueId squares = p.unshaped(pool->inputs[0]);
  const DraftNode* square = p.binary(squares, BinaryFunction::kMul);
  if (square == nullptr || square->inputs[0] != square->inputs[1] || !p.is_last_axis_mean(value, squares)) return false;
  return square->inputs[0] == difference || centred(p, square->inputs[0]) == x;
}

struct Normed {
  ValueId x;
  double epsilon = 0.0;
};

/// difference / sqrt(variance + epsilon)
std::optional<Normed> normed(const Pattern& p, const DraftNode& node) {
  if (node.op != model::OpKind::kBinary || node.as_binary() != BinaryFunction::kDiv) return std::nullopt;
  const auto x = centred(p, node.inputs[0]);
  const DraftNode* root = p.unary(node.inputs[1], Function::kSqrt);
  const DraftNode* sum = x && root != nullptr ? p.binary(root->inputs[0], BinaryFunction::kAdd) : nullptr;
  if (sum == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto epsilon = p.scalar(sum->inputs[1 - i]);
    if (epsilon && *epsilon >= 0.0 && is_variance(p, sum->inputs[i], node.inputs[0], *x)) return Normed{*x, *epsilon};
  }
  return std::nullopt;
}

}  // namespace

void recognise_layer_norms(Draft& draft) {
  const Pattern pattern(draft);
  for (DraftNode& node : draft.nodes) {
    const auto found = normed(pattern, node);
    if (!found) continue;
    const Shape& shape = draft.value(found->x).shape;
    if (shape.back() > kMaxFoldedElements) continue;
    count_made(static_cast<std::uint64_t>(shape.back()), 2 * sizeof(float));
    node.op = model::OpKind::kLayerNorm;
    node.attributes = model::LayerNormAttributes{static_cast<float>(found->epsilon)};
    node.axis = shape.rank() - 1;
    node.inputs = {found->x};
    node.scale.assign(static_cast<std::size_t>(shape.back()), 1.0f);
    node.bias.assign(node.scale.size(), 0.0f);
  }
}

}  // namespace sluice::importer

#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::OpKind;

/// Does the node take what `add` adds? Integers are rounded before it, and kernels of single channels add none.
bool takes_residual(const Draft& draft, const DraftNode& node, const DraftNode& add) {
  const bool linear = node.op == OpKind::kConv || node.op == OpKind::kConvTranspose || node.op == OpKind::kDense;
  if (!linear || node.numeric != add.numeric) return false;
  if (node.numeric == model::NumericClass::kInt8) {
    const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
    if (draft.value(node.output).dtype != DType::kU8 || (conv != nullptr && conv->depthwise())) return false;
  }
  return !node.epilogue.has_residual && node.epilogue.activation.function == model::Function::kNone;
}

}  // namespace

void fuse_residual(Draft& draft) {
  Uses uses(draft);
  for (std::size_t n = 0; n < draft.nodes.size(); ++n) {
    DraftNode& add = draft.nodes[n];
    if (add.op != OpKind::kBinary || add.as_binary() != model::BinaryFunction::kAdd || add.inputs[0] == add.inputs[1]) continue;
    const Shape& shape = draft.value(add.output).shape;
    if (draft.value(add.inputs[0]).shape != shape || draft.value(add.inputs[1]).shape != shape) continue;
    if (draft.value(add.inputs[0]).constant || draft.value(add.inputs[1]).constant) continue;
    // The later of the two makers takes the other value, which then exists already; the earlier one may too, at the place of the addition.
    std::array<std::size_t, 2> order{0, 1};
    const auto position = [&](std::size_t i) {
      const std::size_t maker = uses.maker[add.inputs[i].index()];
      return maker == Uses::kNone ? -1 : static_cast<std::ptrdiff_t>(maker);
    };
    if (position(0) < position(1)) order = {1, 0};
    for (const std::size_t i : order) {
      const std::size_t maker = uses.maker[add.inputs[i].index()];
      if (maker == Uses::kNone || !takes_residual(draft, draft.nodes[maker], add) || !uses.single_reader(add.inputs[i])) continue;
      DraftNode fused = std::move(draft.nodes[maker]);
      draft.nodes[maker].dead = true;
      fused.epilogue.has_residual = true;
      if (fused.numeric == model::NumericClass::kInt8) {
        fused.sums = draft.value(fused.output).bytes;
        fused.epilogue.activation = add.epilogue.activation;
        fused.epilogue.residual_first = i == 1;
        fused.epilogue.of_i8 = add.epilogue.of_i8;
      }
      fused.inputs.push_back(add.inputs[1 - i]);
      fused.output = add.output;
      add = std::move(fused);
      break;
    }
  }
}

}  // namespace sluice::importer

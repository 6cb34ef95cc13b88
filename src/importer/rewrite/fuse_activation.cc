#include "sluice/operators/definition.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::Function;
using model::OpKind;

/// Functions that every kernel's epilogue computes; the others stay nodes.
bool is_epilogue_function(Function function) noexcept {
  switch (function) {
    case Function::kRelu:
    case Function::kClip:
    case Function::kLeakyRelu:
    case Function::kSigmoid:
    case Function::kHardSigmoid:
    case Function::kHardSwish:
    case Function::kSilu:
    case Function::kTanh:
    case Function::kGelu:
    case Function::kGeluTanh:
      return true;
    default:
      return false;
  }
}

/// Integers take no function of reals, but where a node of theirs gives f32.
bool takes_activation(const Draft& draft, const DraftNode& node) noexcept {
  return draft.value(node.output).dtype != DType::kU8 && operators::definition_of(node.op).epilogue.activation &&
         node.epilogue.activation.function == Function::kNone;
}

}  // namespace

void fuse_activation(Draft& draft) {
  Uses uses(draft);
  for (DraftNode& node : draft.nodes) {
    if (node.op != OpKind::kUnary || !is_epilogue_function(node.epilogue.activation.function)) continue;
    const ValueId input = node.inputs[0];
    const std::size_t maker = uses.maker[input.index()];
    if (maker == Uses::kNone || !takes_activation(draft, draft.nodes[maker]) || !uses.single_reader(input)) continue;
    DraftNode& before = draft.nodes[maker];
    before.epilogue.activation = node.epilogue.activation;
    before.output = node.output;
    uses.maker[node.output.index()] = maker;
    node.dead = true;
  }
}

}  // namespace sluice::importer

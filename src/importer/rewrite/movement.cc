#include "src/importer/rewrite/movement.h"

#include <algorithm>

#include "sluice/operators/definition.h"
#include "src/importer/rewrite/linear.h"

namespace sluice::importer {

using model::OpKind;

bool moves(const Draft& draft, const DraftNode& node) {
  const bool plain_epilogue = node.epilogue.activation.function == model::Function::kNone;
  if (!plain_epilogue || draft.value(node.output).bounded != 0 || draft.value(node.output).shape.element_count() == 0) return false;
  const auto computed = [&](ValueId input) { return !draft.value(input).constant && draft.value(input).shape.element_count() > 0; };
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), computed)) return false;
  if (operators::definition_of(node.op).moves) return true;
  if (const auto* resize = std::get_if<model::ResizeAttributes>(&node.attributes)) return resize->mode == model::ResizeMode::kNearest;
  const auto* pool = std::get_if<model::PoolAttributes>(&node.attributes);
  return pool != nullptr && pool->kind == model::PoolKind::kMax;
}

bool move_bytes(DraftNode& node, const ByteScale& scale, DType dtype) {
  if (auto* pad = std::get_if<model::PadAttributes>(&node.attributes); pad != nullptr && pad->mode == model::PadMode::kConstant) {
    const std::uint8_t byte = byte_of(pad->value, scale);
    if (real_of(byte, scale) != pad->value) return false;
    pad->value = static_cast<float>(static_cast<int>(byte) - (dtype == DType::kI8 ? 128 : 0));
  }
  if (node.op == OpKind::kResize || node.op == OpKind::kPool) node.numeric = model::NumericClass::kInt8;
  return true;
}

bool share_bytes(Value& from, const Value& view) {
  if (from.bytes && view.bytes && *from.bytes != *view.bytes) return false;
  if (!from.bytes) from.bytes = view.bytes;
  return true;
}

}  // namespace sluice::importer

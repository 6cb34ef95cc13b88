#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

/// Only what stands for zero, only on the spatial axes of an image, nothing cropped.
bool is_zero_border(const Draft& draft, const DraftNode& node) {
  if (node.op != model::OpKind::kPad || draft.value(node.inputs[0]).shape.rank() != 4) return false;
  const auto& pad = std::get<model::PadAttributes>(node.attributes);
  const auto& bytes = draft.value(node.output).bytes;
  if (pad.mode != model::PadMode::kConstant || pad.value != (bytes ? static_cast<float>(bytes->zero) : 0.0f)) return false;
  if (pad.before[0] != 0 || pad.before[1] != 0 || pad.after[0] != 0 || pad.after[1] != 0) return false;
  return pad.before[2] >= 0 && pad.before[3] >= 0 && pad.after[2] >= 0 && pad.after[3] >= 0;
}

}  // namespace

void fold_padding(Draft& draft) {
  const Uses uses(draft);
  for (DraftNode& conv : draft.nodes) {
    if (conv.op != model::OpKind::kConv) continue;
    const std::size_t maker = uses.maker[conv.inputs[0].index()];
    if (maker == Uses::kNone || !is_zero_border(draft, draft.nodes[maker]) || !uses.single_reader(conv.inputs[0])) continue;
    const auto& pad = std::get<model::PadAttributes>(draft.nodes[maker].attributes);
    model::Window& window = std::get<model::ConvAttributes>(conv.attributes).window;
    window.pad_top += pad.before[2];
    window.pad_left += pad.before[3];
    window.pad_bottom += pad.after[2];
    window.pad_right += pad.after[3];
    conv.inputs[0] = draft.nodes[maker].inputs[0];
    window.in_h = draft.value(conv.inputs[0]).shape[2];
    window.in_w = draft.value(conv.inputs[0]).shape[3];
  }
}

}  // namespace sluice::importer

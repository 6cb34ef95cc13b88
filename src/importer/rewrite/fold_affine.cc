#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::BinaryFunction;
using model::OpKind;

/// y = x * scale[c] + shift[c].
struct ChannelAffine {
  ValueId x;
  std::vector<float> scale, shift;
};

/// The values of a constant for each index of `axis`, if it varies along no other.
std::optional<std::vector<float>> along_axis(const Constant& constant, const Shape& out, int axis) {
  if (!is_float(constant.dtype) || constant.shape.rank() > out.rank()) return std::nullopt;
  const Constant whole = broadcast(constant, out);
  for (int a = 0; a < out.rank(); ++a)
    if (a != axis && out[a] != 1 && whole.strides[static_cast<std::size_t>(a)] != 0) return std::nullopt;
  if (out[axis] > kMaxFoldedElements) return std::nullopt;
  Constant line = whole;
  line.shape = Shape{out[axis]};
  line.strides = {whole.strides[static_cast<std::size_t>(axis)]};
  return floats(line);
}

std::optional<ChannelAffine> as_affine(const Draft& draft, const DraftNode& node, int axis) {
  if (node.epilogue.activation.function != model::Function::kNone) return std::nullopt;
  if (node.op == OpKind::kAffine) {
    if (axis != 1) return std::nullopt;
    return ChannelAffine{node.inputs[0], node.scale, node.bias};
  }
  if (node.op != OpKind::kBinary) return std::nullopt;
  const Shape& out = draft.value(node.output).shape;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& constant = draft.value(node.inputs[1 - i]).constant;
    if (!constant || draft.value(node.inputs[i]).shape != out) continue;
    auto values = along_axis(*constant, out, axis);
    if (!values) continue;
    ChannelAffine affine{node.inputs[i], std::vector<float>(values->size(), 1.0f), std::vector<float>(values->size(), 0.0f)};
    for (std::size_t c = 0; c < values->size(); ++c) {
      const float v = (*values)[c];
      switch (node.as_binary()) {
        case BinaryFunction::kAdd:
          affine.shift[c] = v;
          break;
        case BinaryFunction::kMul:
          affine.scale[c] = v;
          break;
        case BinaryFunction::kSub:
          affine.scale[c] = i == 0 ? 1.0f : -1.0f;
          affine.shift[c] = i == 0 ? -v : v;
          break;
        case BinaryFunction::kDiv:
          if (i == 1 || v == 0.0f) return std::nullopt;
          affine.scale[c] = 1.0f / v;
          break;
        default:
          return std::nullopt;
      }
    }
    return affine;
  }
  return std::nullopt;
}

/// Does the node itself multiply by node.scale and add node.bias?
bool scales_and_shifts(const DraftNode& node) { return node.op == OpKind::kAffine || node.op == OpKind::kLayerNorm; }

bool takes_affine(const DraftNode& node) {
  const bool linear = node.op == OpKind::kConv || node.op == OpKind::kConvTranspose || node.op == OpKind::kDense || scales_and_shifts(node);
  return linear && !node.sums_whole_numbers && !node.epilogue.has_residual && node.epilogue.activation.function == model::Function::kNone;
}

void absorb(DraftNode& node, const ChannelAffine& affine) {
  const std::size_t channels = affine.scale.size();
  std::vector<float>& scale = scales_and_shifts(node) ? node.scale : node.panels->scale;
  bool scales = false, shifts = !node.bias.empty();
  for (std::size_t c = 0; c < channels; ++c) {
    scales = scales || affine.scale[c] != 1.0f;
    shifts = shifts || affine.shift[c] != 0.0f;
  }
  if (scales && scale.empty()) scale.assign(channels, 1.0f);
  if (scales)
    for (std::size_t c = 0; c < channels; ++c) scale[c] *= affine.scale[c];
  if (!shifts) return;
  node.bias.resize(channels, 0.0f);
  for (std::size_t c = 0; c < channels; ++c)
    node.bias[c] = static_cast<float>(static_cast<double>(node.bias[c]) * affine.scale[c] + affine.shift[c]);
  node.epilogue.has_bias = !scales_and_shifts(node);
}

}  // namespace

void fold_affine(Draft& draft) {
  Uses uses(draft);
  for (DraftNode& node : draft.nodes) {
    if (node.op != OpKind::kAffine && node.op != OpKind::kBinary) continue;
    for (const ValueId input : node.inputs) {
      const std::size_t maker = uses.maker[input.index()];
      if (maker == Uses::kNone || !takes_affine(draft.nodes[maker]) || !uses.single_reader(input)) continue;
      DraftNode& before = draft.nodes[maker];
      const int rank = draft.value(input).shape.rank();
      const int axis = before.op == OpKind::kDense ? rank - 1 : before.op == OpKind::kLayerNorm ? before.axis : 1;
      if (rank <= axis) continue;
      const auto affine = as_affine(draft, node, axis);
      if (!affine || affine->x != input) continue;
      absorb(before, *affine);
      before.output = node.output;
      uses.maker[node.output.index()] = maker;
      node.dead = true;
      break;
    }
  }
}

}  // namespace sluice::importer

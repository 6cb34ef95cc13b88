#include "src/quantiser/fold_norms.h"

#include <array>
#include <cmath>

namespace sluice::quantiser {
namespace {

/// What a norm does to each channel: times `factor`, plus `shift`.
struct Norm {
  std::vector<float> factor, shift;
};

/// Nothing where the node is no norm of constants over `channels` channels.
bool read_norm(const Editor& editor, const OnnxNode& node, std::int64_t channels, Norm& norm) {
  if (node.op_type != "BatchNormalization" || !node.domain.empty() || node.inputs.size() != 5) return false;
  if (integer_of(node, "training_mode", 0) != 0) return false;
  std::array<std::vector<float>, 4> values;  // scale, shift, mean, variance
  for (std::size_t i = 0; i < 4; ++i) {
    const Constant* given = editor.constant(node.inputs[i + 1]);
    if (given == nullptr || given->dtype != DType::kF32 || given->elements() != channels) return false;
    values[i] = importer::floats(*given);
  }
  const double epsilon = real_of(node, "epsilon", 1e-5f);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    const double factor = values[0][c] / std::sqrt(values[3][c] + epsilon);
    norm.factor.push_back(static_cast<float>(factor));
    norm.shift.push_back(static_cast<float>(values[1][c] - values[2][c] * factor));
  }
  return true;
}

bool fold(Editor& editor, OnnxNode& conv) {
  if (conv.op_type != "Conv" || !conv.domain.empty() || conv.inputs.size() < 2) return false;
  const Constant* weight = editor.constant(conv.inputs[1]);
  const std::size_t next = editor.single_reader(conv.outputs[0]);
  if (weight == nullptr || weight->dtype != DType::kF32 || weight->shape.rank() < 3 || weight->elements() == 0 || next == Editor::kNone)
    return false;
  const std::int64_t channels = weight->shape[0];
  std::vector<float> bias(static_cast<std::size_t>(channels), 0.0f);
  if (conv.inputs.size() > 2 && !conv.inputs[2].empty()) {
    const Constant* given = editor.constant(conv.inputs[2]);
    if (given == nullptr || given->dtype != DType::kF32 || given->elements() != channels) return false;
    bias = importer::floats(*given);
  }
  OnnxNode& after = editor.graph().nodes[next];
  Norm norm;
  if (!read_norm(editor, after, channels, norm)) return false;
  auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(weight->elements()));
  importer::write_floats(*weight, *values);
  const std::size_t row = values->size() / bias.size();
  for (std::size_t i = 0; i < values->size(); ++i) (*values)[i] *= norm.factor[i / row];
  for (std::size_t c = 0; c < bias.size(); ++c) bias[c] = bias[c] * norm.factor[c] + norm.shift[c];
  Constant folded = importer::make_view(DType::kF32, weight->shape, reinterpret_cast<const std::byte*>(values->data()), values);
  const std::string base(conv.inputs[1]);
  conv.inputs.resize(3);
  conv.inputs[1] = editor.add_constant(base + "_folded", std::move(folded));
  conv.inputs[2] = editor.add_constant(base + "_folded_bias", importer::make_constant(Shape{channels}, std::span<const float>(bias)));
  conv.outputs[0] = after.outputs[0];
  after.op_type = {};
  return true;
}

}  // namespace

void fold_norms(Editor& editor) {
  for (std::size_t n = 0; n < editor.graph().nodes.size(); ++n) fold(editor, editor.graph().nodes[n]);
  editor.sweep();
}

}  // namespace sluice::quantiser

// Operators of com.microsoft that exporters and optimisers write, and ONNX's own that no longer exist, as nodes that are there already.
#include <algorithm>
#include <cmath>

#include "src/importer/allowance.h"
#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

using model::Activation;
using model::BinaryFunction;
using model::Function;

ValueId layer_norm(NodeContext& c, ValueId x, ValueId scale, ValueId shift) {
  const std::vector<std::vector<std::int64_t>> arguments = {{-1}, {real_bits(c.real("epsilon", 1e-5f))}, {1}};
  return add_plain(c, "LayerNormalization", {x, scale, shift}, arguments);
}

/// input, skip, gamma, beta, bias: the norm of the sum; output 3 is the sum.
void skip_layer_norm(NodeContext& c) {
  const ValueId sum = c.add_sum(c.add_sum(c.float_input(0), c.float_input(1)), c.optional_input(4));
  c.set_output(0, layer_norm(c, sum, c.float_input(2), c.optional_input(3)));
  if (c.wants_output(1) || c.wants_output(2)) c.refuse("mean and inverse deviation are used; supported are the norm and the sum");
  c.set_output(3, sum);
}

void skip_simplified_layer_norm(NodeContext& c) {
  const ValueId sum = c.add_sum(c.add_sum(c.float_input(0), c.float_input(1)), c.optional_input(3));
  c.set_output(0, add_plain(c, "RMSNormalization", {sum, c.float_input(2)}, {{-1}, {real_bits(c.real("epsilon", 1e-5f))}, {1}}));
  c.set_output(3, sum);
}

/// Rows of a table, which streams where it is a weight.
ValueId rows_of(NodeContext& c, std::size_t table, ValueId ids) {
  const ValueId values = c.float_input(table);
  const Constant* known = c.constant(values);
  if (known == nullptr || known->shape.rank() != 2 || c.constant(ids) != nullptr) return add_plain(c, "Gather", {values, ids}, {{0}});
  return add_embedding(c, Constant(*known), c.draft().value(values).name, ids);
}

}  // namespace

/// word ids, segment ids, word table, position table, segment table, gamma, beta, mask, position ids.
void lower_embed_layer_norm(NodeContext& c) {
  ValueId sum = rows_of(c, 2, c.input(0));
  const Shape ids = c.input_shape(0);
  if (c.has_input(8)) {
    sum = c.add_sum(sum, rows_of(c, 3, c.input(8)));
  } else {
    count_made(static_cast<std::uint64_t>(ids.back()), sizeof(std::int64_t));
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < ids.back(); ++i) positions.push_back(i);
    const ValueId places = c.add_constant(make_constant(Shape{ids.back()}, positions));
    sum = c.add_sum(sum, add_plain(c, "Gather", {c.float_input(3), places}, {{0}}));
  }
  if (c.has_input(1) && c.has_input(4)) sum = c.add_sum(sum, rows_of(c, 4, c.input(1)));
  c.set_output(0, layer_norm(c, sum, c.float_input(5), c.optional_input(6)));
  c.set_output(2, sum);
  if (!c.wants_output(1)) return;
  // How many ids the mask leaves; without one, nought by definition.
  const std::int64_t zero = 0;
  if (!c.has_input(7))
    return c.set_output(1, c.add_constant(broadcast(make_constant(Shape{}, std::span(&zero, 1), DType::kI32), Shape{ids[0]})));
  c.set_output(1, add_plain(c, "ReduceSum", {c.input(7)}, {{1}, {0}, {0}}));
}

namespace {

void fast_gelu(NodeContext& c) { c.set_output(0, add_plain(c, "GeluTanh", {c.add_sum(c.float_input(0), c.optional_input(1))})); }
void bias_gelu(NodeContext& c) { c.set_output(0, c.add_unary(c.add_sum(c.float_input(0), c.optional_input(1)), {Function::kGelu})); }
void quick_gelu(NodeContext& c) { c.set_output(0, add_plain(c, "Swish", {c.float_input(0)}, {{real_bits(c.real("alpha", 1.702f))}})); }

/// The activation that attribute `activation` names; `parameter(i, otherwise)` gives its numbers.
template <class Parameter>
ValueId activated(NodeContext& c, ValueId y, const Parameter& parameter) {
  const std::string_view activation = c.string("activation", "");
  if (activation.empty()) return y;
  if (activation == "Relu") return c.add_unary(y, {Function::kRelu});
  if (activation == "Sigmoid") return c.add_unary(y, {Function::kSigmoid});
  if (activation == "Tanh") return c.add_unary(y, {Function::kTanh});
  if (activation == "LeakyRelu") return c.add_unary(y, {Function::kLeakyRelu, parameter(0, 0.01f)});
  if (activation == "HardSigmoid") return c.add_unary(y, {Function::kHardSigmoid, parameter(0, 0.2f), parameter(1, 0.5f)});
  if (activation == "Clip") return c.add_unary(y, {Function::kClip, parameter(0, -3.4e38f), parameter(1, 3.4e38f)});
  c.refuse("activation " + std::string(activation));
}

/// Conv, then + Z, then an activation by name.
void fused_conv(NodeContext& c) {
  lower_conv(c);
  const OnnxAttribute* parameters = c.attribute("activation_params");
  const ValueId y = c.add_sum(c.outputs()[0], c.optional_input(3));
  c.set_output(0, activated(c, y, [&](std::size_t i, float otherwise) {
                 return parameters != nullptr && i < parameters->floats.size() ? parameters->floats[i] : otherwise;
               }));
}

void fused_gemm(NodeContext& c) {
  lower_gemm(c);
  c.set_output(0, activated(c, c.outputs()[0], [&](std::size_t i, float otherwise) {
                 return c.real(i == 0 ? "activation_alpha" : "activation_beta", otherwise);
               }));
}

/// MatMul of factors whose last two axes may be turned, times alpha.
void fused_matmul(NodeContext& c) {
  if (c.integer("transBatchA", 0) != 0 || c.integer("transBatchB", 0) != 0) c.refuse("transBatchA or transBatchB");
  const auto factor = [&](std::size_t at, const char* attribute) {
    const ValueId x = c.float_input(at);
    const int rank = c.shape(x).rank();
    if (c.integer(attribute, 0) == 0 || rank < 2) return x;
    Perm perm = kIdentityPerm;
    std::swap(perm[static_cast<std::size_t>(rank - 1)], perm[static_cast<std::size_t>(rank - 2)]);
    return c.add_transpose(x, perm);
  };
  const ValueId y = add_product(c, factor(0, "transA"), factor(1, "transB"));
  const float alpha = c.real("alpha", 1.0f);
  c.set_output(0, alpha == 1.0f ? y : c.add_binary(BinaryFunction::kMul, y, c.add_constant(make_fill(Shape{}, alpha))));
}

/// Of the ONNX domain, though ONNX has it under another name.
void simplified_layer_norm(NodeContext& c) {
  if (c.wants_output(1)) c.refuse("the inverse deviation is used; supported is the norm");
  const std::vector<std::vector<std::int64_t>> arguments = {{c.integer("axis", -1)}, {real_bits(c.real("epsilon", 1e-5f))}, {1}};
  c.set_output(0, add_plain(c, "RMSNormalization", {c.float_input(0), c.float_input(1)}, arguments));
}

/// x * scale + bias[channel]: opset 1 experimental.
void image_scaler(NodeContext& c) {
  const ValueId x = c.float_input(0);
  const Shape in = c.shape(x);
  const OnnxAttribute* bias = c.attribute("bias");
  if (in.rank() != 4 || (bias != nullptr && static_cast<std::int64_t>(bias->floats.size()) != in[1]))
    c.malformed("input must be [N, C, H, W], with one bias a channel");
  ValueId y = c.add_binary(BinaryFunction::kMul, x, c.add_constant(make_fill(Shape{}, c.real("scale", 1.0f))));
  if (bias != nullptr) y = c.add_sum(y, c.add_constant(make_constant(Shape{in[1], 1, 1}, bias->floats)));
  c.set_output(0, y);
}

constexpr OperatorEntry kContribOperators[] = {
    {"ImageScaler", image_scaler},
    {"SimplifiedLayerNormalization", simplified_layer_norm},
    {"com.microsoft::Attention", lower_contrib_attention},
    {"com.microsoft::BiasGelu", bias_gelu},
    {"com.microsoft::DequantizeLinear", lower_contrib_linear},
    {"com.microsoft::DynamicQuantizeLSTM", lower_dynamic_quantize_lstm},
    {"com.microsoft::DynamicQuantizeMatMul", lower_dynamic_quantize_matmul},
    {"com.microsoft::EmbedLayerNormalization", lower_embed_layer_norm},
    {"com.microsoft::FastGelu", fast_gelu},
    {"com.microsoft::FusedConv", fused_conv},
    {"com.microsoft::FusedGemm", fused_gemm},
    {"com.microsoft::FusedMatMul", fused_matmul},
    {"com.microsoft::GatherBlockQuantized", lower_gather_block_quantized},
    {"com.microsoft::Gelu", bias_gelu},
    {"com.microsoft::GroupQueryAttention", lower_group_query_attention},
    {"com.microsoft::MatMulIntegerToFloat", lower_matmul_integer_to_float},
    {"com.microsoft::MatMulNBits", lower_matmul_n_bits},
    {"com.microsoft::MultiHeadAttention", lower_multi_head_attention},
    {"com.microsoft::QAttention", lower_qattention},
    {"com.microsoft::QEmbedLayerNormalization", lower_qembed_layer_norm},
    {"com.microsoft::QGemm", lower_qgemm},
    {"com.microsoft::QLinearAdd", lower_qlinear_add},
    {"com.microsoft::QLinearAveragePool", lower_qlinear_average_pool},
    {"com.microsoft::QLinearConcat", lower_qlinear_concat},
    {"com.microsoft::QLinearConv", lower_contrib_qlinear_conv},
    {"com.microsoft::QLinearGlobalAveragePool", lower_qlinear_global_average_pool},
    {"com.microsoft::QLinearLeakyRelu", lower_qlinear_leaky_relu},
    {"com.microsoft::QLinearMul", lower_qlinear_mul},
    {"com.microsoft::QLinearReduceMean", lower_qlinear_reduce_mean},
    {"com.microsoft::QLinearSigmoid", lower_qlinear_sigmoid},
    {"com.microsoft::QLinearSoftmax", lower_qlinear_softmax},
    {"com.microsoft::QLinearWhere", lower_qlinear_where},
    {"com.microsoft::QuantizeLinear", lower_contrib_linear},
    {"com.microsoft::QuickGelu", quick_gelu},
    {"com.microsoft::RotaryEmbedding", lower_contrib_rotary},
    {"com.microsoft::SkipLayerNormalization", skip_layer_norm},
    {"com.microsoft::SkipSimplifiedLayerNormalization", skip_simplified_layer_norm},
};

}  // namespace

std::span<const OperatorEntry> contrib_table() noexcept { return kContribOperators; }

}  // namespace sluice::importer

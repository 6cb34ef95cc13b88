// Operators of com.microsoft that exporters and optimisers write, and ONNX's own that no longer exist, as nodes that are there already.
#include <algorithm>
#include <cmath>

#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

using model::Activation;
using model::BinaryFunction;
using model::Function;

ValueId optional_input(const NodeContext& c, std::size_t index) { return c.has_input(index) ? c.input(index) : ValueId(); }

ValueId add(NodeContext& c, ValueId a, ValueId b) { return b.valid() ? c.add_binary(BinaryFunction::kAdd, a, b) : a; }

ValueId layer_norm(NodeContext& c, ValueId x, ValueId scale, ValueId shift) {
  const std::vector<std::vector<std::int64_t>> arguments = {{-1}, {real_bits(c.real("epsilon", 1e-5f))}, {1}};
  return add_plain(c, "LayerNormalization", {x, scale, shift}, arguments);
}

/// input, skip, gamma, beta, bias: the norm of the sum; output 3 is the sum.
void skip_layer_norm(NodeContext& c) {
  const ValueId sum = add(c, add(c, c.float_input(0), c.float_input(1)), optional_input(c, 4));
  c.set_output(0, layer_norm(c, sum, c.float_input(2), optional_input(c, 3)));
  if (c.wants_output(1) || c.wants_output(2)) c.refuse("mean and inverse deviation are used; supported are the norm and the sum");
  c.set_output(3, sum);
}

void skip_simplified_layer_norm(NodeContext& c) {
  const ValueId sum = add(c, add(c, c.float_input(0), c.float_input(1)), optional_input(c, 3));
  c.set_output(0, add_plain(c, "RMSNormalization", {sum, c.float_input(2)}, {{-1}, {real_bits(c.real("epsilon", 1e-5f))}, {1}}));
  c.set_output(3, sum);
}

/// word ids, segment ids, word table, position table, segment table, gamma, beta, mask, position ids.
void embed_layer_norm(NodeContext& c) {
  ValueId sum = add_plain(c, "Gather", {c.float_input(2), c.input(0)}, {{0}});
  const Shape ids = c.input_shape(0);
  if (c.has_input(8)) {
    sum = add(c, sum, add_plain(c, "Gather", {c.float_input(3), c.input(8)}, {{0}}));
  } else {
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < ids.back(); ++i) positions.push_back(i);
    const ValueId places = c.add_constant(make_constant(Shape{ids.back()}, positions));
    sum = add(c, sum, add_plain(c, "Gather", {c.float_input(3), places}, {{0}}));
  }
  if (c.has_input(1) && c.has_input(4)) sum = add(c, sum, add_plain(c, "Gather", {c.float_input(4), c.input(1)}, {{0}}));
  c.set_output(0, layer_norm(c, sum, c.float_input(5), optional_input(c, 6)));
  c.set_output(2, sum);
  if (!c.wants_output(1)) return;
  // How many ids the mask leaves; without one, nought by definition.
  const std::int64_t zero = 0;
  if (!c.has_input(7))
    return c.set_output(1, c.add_constant(broadcast(make_constant(Shape{}, std::span(&zero, 1), DType::kI32), Shape{ids[0]})));
  c.set_output(1, add_plain(c, "ReduceSum", {c.input(7)}, {{1}, {0}, {0}}));
}

/// The keys that may be looked at, as the plain Attention wants them: [batch, 1, 1, keys] or [batch, 1, rows, keys].
ValueId attention_mask(NodeContext& c, ValueId mask) {
  constexpr std::int64_t kBool = 9;
  const Shape shape = c.shape(mask);
  const ValueId truth = add_plain(c, "Cast", {mask}, {{kBool}});
  if (shape.rank() == 2) return c.add_reshape(truth, Shape{shape[0], 1, 1, shape[1]});
  if (shape.rank() == 3) return c.add_reshape(truth, Shape{shape[0], 1, shape[1], shape[2]});
  c.refuse("a mask of shape " + shape.to_string() + "; supported are [batch, keys] and [batch, rows, keys]");
}

/// input, weights [in, 3 * hidden], bias, mask, past [2, batch, heads, rows, size], attention bias.
void attention(NodeContext& c) {
  const std::int64_t heads = c.integer("num_heads", 0);
  const Shape in = c.input_shape(0);
  if (heads < 1 || in.rank() != 3) c.malformed("attribute num_heads or the input's shape makes no sense");
  if (c.integer("do_rotary", 0) != 0) c.refuse("do_rotary = 1");
  const ValueId qkv = add(c, add_product(c, c.float_input(0), c.float_input(1)), optional_input(c, 2));
  std::vector<std::int64_t> sizes = c.integers("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, c.shape(qkv).back() / 3);
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != c.shape(qkv).back())
    c.malformed("the sizes of queries, keys and values do not add up");
  const ValueId q = c.add_range(qkv, 2, 0, sizes[0]), k = c.add_range(qkv, 2, sizes[0], sizes[1]),
                v = c.add_range(qkv, 2, sizes[0] + sizes[1], sizes[2]);
  ValueId past_key, past_value;
  if (c.has_input(4) && c.input_shape(4).element_count() > 0) {
    past_key = c.add_row(c.input(4), 0, 0);
    past_value = c.add_row(c.input(4), 0, 1);
  }
  ValueId mask;
  if (c.has_input(3)) mask = attention_mask(c, c.input(3));
  if (c.has_input(5)) {
    if (mask.valid()) c.refuse("a mask and an attention bias together");
    mask = c.float_input(5);
  }
  std::vector<std::int64_t> scale;
  if (c.has("scale") && c.real("scale", 0.0f) != 0.0f) scale = {real_bits(static_cast<double>(c.real("scale", 0.0f)))};
  const std::vector<std::vector<std::int64_t>> arguments = {
      {c.integer("unidirectional", 0)}, {heads}, {heads}, {0}, scale, {real_bits(0)}, {0}};
  const std::vector<ValueId> inputs = {q, k, v, mask, past_key, past_value};
  c.set_output(0, add_plain(c, "Attention", inputs, arguments));
  if (!c.wants_output(1)) return;
  c.set_output(1, c.add_stack({add_plain(c, "Attention", inputs, arguments, 1), add_plain(c, "Attention", inputs, arguments, 2)}, 0));
}

void fast_gelu(NodeContext& c) { c.set_output(0, add_plain(c, "GeluTanh", {add(c, c.float_input(0), optional_input(c, 1))})); }
void bias_gelu(NodeContext& c) { c.set_output(0, c.add_unary(add(c, c.float_input(0), optional_input(c, 1)), {Function::kGelu})); }
void quick_gelu(NodeContext& c) { c.set_output(0, add_plain(c, "Swish", {c.float_input(0)}, {{real_bits(c.real("alpha", 1.702f))}})); }

/// Conv, then + Z, then an activation by name.
void fused_conv(NodeContext& c) {
  lower_conv(c);
  ValueId y = add(c, c.outputs()[0], optional_input(c, 3));
  const std::string_view activation = c.string("activation", "");
  const OnnxAttribute* parameters = c.attribute("activation_params");
  const auto parameter = [&](std::size_t i, float otherwise) {
    return parameters != nullptr && i < parameters->floats.size() ? parameters->floats[i] : otherwise;
  };
  if (activation == "Relu")
    y = c.add_unary(y, {Function::kRelu});
  else if (activation == "Sigmoid")
    y = c.add_unary(y, {Function::kSigmoid});
  else if (activation == "Tanh")
    y = c.add_unary(y, {Function::kTanh});
  else if (activation == "LeakyRelu")
    y = c.add_unary(y, {Function::kLeakyRelu, parameter(0, 0.01f)});
  else if (activation == "HardSigmoid")
    y = c.add_unary(y, {Function::kHardSigmoid, parameter(0, 0.2f), parameter(1, 0.5f)});
  else if (activation == "Clip")
    y = c.add_unary(y, {Function::kClip, parameter(0, -3.4e38f), parameter(1, 3.4e38f)});
  else if (!activation.empty())
    c.refuse("activation " + std::string(activation));
  c.set_output(0, y);
}

/// A [.., K] times a weight of `bits` bits: B [N, K / block, block * bits / 8], a scale and perhaps a zero point for each block. The weight
/// is made real here.
void matmul_n_bits(NodeContext& c) {
  const std::int64_t k = c.integer("K", 0), n = c.integer("N", 0), bits = c.integer("bits", 4), block = c.integer("block_size", 32);
  if (bits != 4 && bits != 8) c.refuse(std::to_string(bits) + " bits; supported are 4 and 8");
  if (c.has_input(4) && c.input_shape(4).element_count() > 0) c.refuse("g_idx, an order of groups");
  const auto count = Shape::make(std::array{n, k});
  if (!count || n < 1 || k < 1 || block < 16 || block > (1 << 16) || (block & (block - 1)) != 0 ||
      count->element_count() > (std::int64_t{1} << 32))
    c.malformed("attributes N, K or block_size are out of range");
  const Constant &b = c.require_constant(1, "B"), &scales = c.require_constant(2, "the scales");
  const std::int64_t blocks = (k + block - 1) / block, bytes = block * bits / 8;
  if (b.dtype != DType::kU8 || b.elements() != n * blocks * bytes || scales.elements() != n * blocks)
    c.malformed("B or the scales have not the size that N, K and block_size say");
  std::vector<std::byte> packed(static_cast<std::size_t>(b.elements()));
  write_elements(b, packed.data());
  std::vector<float> scale(static_cast<std::size_t>(scales.elements()));
  write_floats(scales, scale);
  std::vector<float> zeros(scale.size(), bits == 4 ? 8.0f : 128.0f);
  if (c.has_input(3)) {
    const Constant& given = c.require_constant(3, "the zero points");
    if (is_float(given.dtype)) {
      if (given.elements() != scales.elements()) c.malformed("the zero points are not one for each block");
      write_floats(given, zeros);
    } else {
      const std::int64_t row = bits == 4 ? (blocks + 1) / 2 : blocks;
      if (given.dtype != DType::kU8 || given.elements() != n * row) c.malformed("the zero points are not one for each block");
      std::vector<std::byte> raw(static_cast<std::size_t>(given.elements()));
      write_elements(given, raw.data());
      for (std::int64_t i = 0; i < n * blocks; ++i) {
        const auto value = std::to_integer<unsigned>(raw[static_cast<std::size_t>(bits == 4 ? i / blocks * row + i % blocks / 2 : i)]);
        zeros[static_cast<std::size_t>(i)] = static_cast<float>(bits == 8 ? value : i % blocks % 2 == 0 ? value & 15u : value >> 4);
      }
    }
  }
  std::vector<float> weight(static_cast<std::size_t>(count->element_count()));
  auto quantised = std::make_shared<QuantisedValues>();
  quantised->values.resize(weight.size());
  for (std::int64_t row = 0; row < n; ++row)
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t group = row * blocks + i / block, within = i % block;
      const auto value = std::to_integer<unsigned>(packed[static_cast<std::size_t>(group * bytes + (bits == 4 ? within / 2 : within))]);
      const unsigned q = bits == 8 ? value : within % 2 == 0 ? value & 15u : value >> 4;
      const auto g = static_cast<std::size_t>(group);
      quantised->values[static_cast<std::size_t>(row * k + i)] = static_cast<std::int8_t>(q);
      weight[static_cast<std::size_t>(row * k + i)] = (static_cast<float>(q) - zeros[g]) * scale[g];
    }
  Constant real_values = make_constant(*count, weight);
  const bool whole =
      std::all_of(zeros.begin(), zeros.end(), [](float zero) { return zero == std::floor(zero) && zero >= 0 && zero < 256; });
  if (bits == 4 && whole && block < (1 << 16)) {
    quantised->base = real_values.data;
    quantised->scales = std::move(scale);
    quantised->zeros = std::move(zeros);
    quantised->group = block;
    real_values.quantised = std::move(quantised);
  }
  const ValueId real = c.add_constant(permuted(real_values, Perm{1, 0, 2, 3, 4, 5, 6, 7}));
  c.set_output(0, add(c, add_product(c, c.float_input(0), real), optional_input(c, 5)));
}

/// x * scale + bias[channel]: opset 1 experimental.
void image_scaler(NodeContext& c) {
  const ValueId x = c.float_input(0);
  const Shape in = c.shape(x);
  const OnnxAttribute* bias = c.attribute("bias");
  if (in.rank() != 4 || (bias != nullptr && static_cast<std::int64_t>(bias->floats.size()) != in[1]))
    c.malformed("input must be [N, C, H, W], with one bias a channel");
  ValueId y = c.add_binary(BinaryFunction::kMul, x, c.add_constant(make_fill(Shape{}, c.real("scale", 1.0f))));
  if (bias != nullptr) y = add(c, y, c.add_constant(make_constant(Shape{in[1], 1, 1}, bias->floats)));
  c.set_output(0, y);
}

constexpr OperatorEntry kOperators[] = {
    {"ImageScaler", image_scaler},
    {"com.microsoft::Attention", attention},
    {"com.microsoft::BiasGelu", bias_gelu},
    {"com.microsoft::EmbedLayerNormalization", embed_layer_norm},
    {"com.microsoft::FastGelu", fast_gelu},
    {"com.microsoft::FusedConv", fused_conv},
    {"com.microsoft::Gelu", bias_gelu},
    {"com.microsoft::MatMulNBits", matmul_n_bits},
    {"com.microsoft::QuickGelu", quick_gelu},
    {"com.microsoft::SkipLayerNormalization", skip_layer_norm},
    {"com.microsoft::SkipSimplifiedLayerNormalization", skip_simplified_layer_norm},
};

}  // namespace

std::span<const OperatorEntry> contrib_table() noexcept { return kOperators; }

}  // namespace sluice::importer

// Operators of com.microsoft over weights of few bits, as dense layers and lookups whose weights keep their own bytes.
#include <algorithm>
#include <cmath>
#include <functional>

#include "src/importer/allowance.h"
#include "src/importer/lower_plain.h"
#include "src/importer/quantised.h"
#include "src/importer/rewrite/perm.h"

namespace sluice::importer {
namespace {

std::vector<float> all_floats(const Constant& constant) {
  count_made(static_cast<std::uint64_t>(constant.elements()), sizeof(float));
  std::vector<float> values(static_cast<std::size_t>(constant.elements()));
  write_floats(constant, values);
  return values;
}

/// Zero points of blocks, rows of `blocks`: floats, whole values of a byte, or packed as the weight is; each row begins with a byte.
std::vector<float> zeros_of_blocks(const NodeContext& c, std::size_t at, std::int64_t rows, std::int64_t blocks, int bits) {
  const Constant& given = c.require_constant(at, "the zero points");
  const std::int64_t each = 8 / bits, row_bytes = (blocks + each - 1) / each;
  if (is_float(given.dtype) || given.bits != 8) {
    if (given.elements() != rows * blocks) c.malformed("the zero points are not one for each block");
    return all_floats(given);
  }
  if (given.dtype != DType::kU8 || given.elements() != rows * row_bytes) c.malformed("the zero points are not one for each block");
  return all_floats(unpacked(given, Shape{rows, blocks}, blocks, bits, false));
}

/// Which block each input belongs to; the plain order is the only one that panels have.
void check_order_of_groups(const NodeContext& c, std::int64_t k, std::int64_t block) {
  if (!c.has_input(4) || c.input_shape(4).element_count() == 0) return;
  const std::vector<std::int64_t> groups = integers(c.require_constant(4, "g_idx"));
  bool plain = groups.size() >= static_cast<std::size_t>(k);
  for (std::int64_t i = 0; i < k && plain; ++i) plain = groups[static_cast<std::size_t>(i)] == i / block;
  if (!plain) c.refuse("g_idx, another order of groups than one block after the other; export without activation order (desc_act)");
}

}  // namespace

/// A [.., K] times a weight of `bits` bits: B [N, K / block, block * bits / 8], a scale and perhaps a zero point for each block.
/// `accuracy_level` lets ONNX Runtime round A to fewer bits before it multiplies; here it is always f32, which every level allows.
void lower_matmul_n_bits(NodeContext& c) {
  const std::int64_t k = c.integer("K", 0), n = c.integer("N", 0), bits = c.integer("bits", 4), block = c.integer("block_size", 32);
  if (bits != 2 && bits != 4 && bits != 8) c.refuse(std::to_string(bits) + " bits; supported are 2, 4 and 8");
  const auto shape = Shape::make(std::array{n, k});
  if (!shape || n < 1 || k < 1 || block < 16 || block > (1 << 16) || (block & (block - 1)) != 0 ||
      shape->element_count() > (std::int64_t{1} << 32))
    c.malformed("attributes N, K or block_size are out of range");
  check_order_of_groups(c, k, block);
  const Constant &b = c.require_constant(1, "B"), &scales = c.require_constant(2, "the scales");
  const std::int64_t blocks = (k + block - 1) / block, row = blocks * block;
  if (b.dtype != DType::kU8 || b.bits != 8 || b.elements() != n * row * bits / 8 || scales.elements() != n * blocks)
    c.malformed("B or the scales have not the size that N, K and block_size say");
  const int narrow = static_cast<int>(bits);
  Constant q = unpacked(b, Shape{n, row}, row, narrow, false);
  q.shape[1] = k;  // the last block may be a part of one
  count_made(static_cast<std::uint64_t>(n * blocks), sizeof(float));
  std::vector<float> zeros(static_cast<std::size_t>(n * blocks), static_cast<float>(1 << (bits - 1)));
  if (c.has_input(3)) zeros = zeros_of_blocks(c, 3, n, blocks, narrow);
  const Constant weight = dequantised(q, all_floats(scales), std::move(zeros), {.inner = 1, .extent = k, .block = block});
  const ValueId y = add_product(c, c.float_input(0), c.add_constant(permuted(weight, Perm{1, 0, 2, 3, 4, 5, 6, 7})));
  c.set_output(0, c.has_input(5) ? c.add_binary(model::BinaryFunction::kAdd, y, c.float_input(5)) : y);
}

/// data, indices, scales, zero points: rows of a table of 4 or 8 bits whose last axis is quantised in blocks.
void lower_gather_block_quantized(NodeContext& c) {
  const Constant data = c.require_constant(0, "the table"), scales = c.require_constant(2, "the scales");
  const std::int64_t block = c.integer("block_size", 128);
  const int rank = data.shape.rank();
  if (rank < 2 || block < 16 || block > (1 << 16) || (block & (block - 1)) != 0)
    c.malformed("the table's rank or block_size is out of range");
  if (data.dtype != DType::kU8 && data.dtype != DType::kI8) c.malformed("the table is not of 4 or 8 bits");
  if (c.axis(c.integer("gather_axis", 0), rank) != 0) c.refuse("supported are indices of the table's first axis");
  if (c.axis(c.integer("quantize_axis", 1), rank) != rank - 1) c.refuse("supported are blocks of the table's last axis");
  const std::int64_t bits = data.bits != 8 ? data.bits : c.integer("bits", 4);
  if (bits != 4 && bits != 8) c.refuse(std::to_string(bits) + " bits; supported are 4 and 8");
  // Bytes of a table of 4 bits hold two values each, and then the zero is in the middle unless it is stated.
  const bool packed = data.bits == 8 && data.dtype == DType::kU8 && bits == 4, bytes = data.bits == 8;
  Shape shape = data.shape;
  if (packed && __builtin_mul_overflow(shape[rank - 1], std::int64_t{2}, &shape[rank - 1])) c.malformed("the table's shape overflows");
  const auto made = Shape::make(shape.dims());
  if (!made) c.malformed("the table's shape overflows");
  const Constant q = packed ? unpacked(data, *made, made->back(), 4, false) : data;
  const std::int64_t features = made->back(), rows = made->count(0, rank - 1), blocks = (features + block - 1) / block;
  if (scales.elements() != rows * blocks) c.malformed("the scales are not one for each block");
  count_made(static_cast<std::uint64_t>(rows * blocks), sizeof(float));
  std::vector<float> zeros(static_cast<std::size_t>(rows * blocks), bytes ? static_cast<float>(1 << (bits - 1)) : 0.0f);
  if (c.has_input(3)) zeros = zeros_of_blocks(c, 3, rows, blocks, static_cast<int>(bits));
  const Constant table = dequantised(q, all_floats(scales), std::move(zeros), {.inner = 1, .extent = features, .block = block});
  c.set_output(0, add_embedding(c, table, c.draft().value(c.input(0)).name, c.input(1)));
}

namespace {

/// What `lower` makes of an image whose channels come last.
ValueId with_channels_second(NodeContext& c, ValueId x, const std::function<ValueId(ValueId)>& lower) {
  const int rank = c.shape(x).rank();
  if (rank < 3) c.malformed("an image of fewer than three axes");
  return c.add_transpose(lower(c.add_transpose(x, channels_second(rank))), channels_last(rank));
}

/// x, its scale and zero point, the result's: what `lower` makes of the floats, as bytes.
void between_bytes(NodeContext& c, LowerFunction lower, int opset) {
  const auto made = [&](ValueId x) {
    NodeContext inner(c.draft(), c.node(), opset, {x}, c.name() + "/real");
    lower(inner);
    return inner.outputs()[0];
  };
  const ValueId x = real_input(c, 0);
  set_quantised(c, c.integer("channels_last", 0) != 0 ? with_channels_second(c, x, made) : made(x), 3);
}

/// Of what is no image.
void between_bytes_of_any(NodeContext& c, LowerFunction lower, int opset) {
  if (c.integer("channels_last", 0) != 0) c.refuse("channels_last = 1");
  between_bytes(c, lower, opset);
}

}  // namespace

void lower_qlinear_sigmoid(NodeContext& c) { set_quantised(c, c.add_unary(real_input(c, 0), {model::Function::kSigmoid}), 3); }

void lower_qlinear_leaky_relu(NodeContext& c) {
  set_quantised(c, c.add_unary(real_input(c, 0), {model::Function::kLeakyRelu, c.real("alpha", 0.01f)}), 3);
}

void lower_qlinear_average_pool(NodeContext& c) { between_bytes(c, lower_average_pool, c.opset()); }
void lower_qlinear_global_average_pool(NodeContext& c) { between_bytes(c, lower_global_average_pool, c.opset()); }
/// Its attribute `opset` is that of the Softmax it was.
void lower_qlinear_softmax(NodeContext& c) { between_bytes_of_any(c, lower_softmax, static_cast<int>(c.integer("opset", c.opset()))); }

/// Its axes are an attribute, as ONNX's were up to opset 17.
void lower_qlinear_reduce_mean(NodeContext& c) { between_bytes_of_any(c, lower_reduce_mean, std::min(c.opset(), 17)); }

/// ONNX's, and with `channels_last` that of an image whose channels come last, by a weight as ONNX has it.
void lower_contrib_qlinear_conv(NodeContext& c) {
  if (c.integer("channels_last", 0) == 0) return lower_qlinear_conv(c);
  c.set_output(0, with_channels_second(c, c.input(0), [&](ValueId x) {
                 std::vector<ValueId> inputs{x};
                 for (std::size_t at = 1; at < c.input_count(); ++at) inputs.push_back(c.optional_input(at));
                 NodeContext inner(c.draft(), c.node(), c.opset(), std::move(inputs), c.name() + "/channels_second");
                 lower_qlinear_conv(inner);
                 return inner.outputs()[0];
               }));
}

/// word ids, segment ids, then word table, position table, segment table, gamma, beta of bytes, mask, the five's scales, their zero points.
void lower_qembed_layer_norm(NodeContext& c) {
  constexpr std::size_t kFirst = 2, kMask = 7, kScales = 8, kZeros = 13;
  std::vector<ValueId> inputs{c.input(0), c.optional_input(1)};
  for (std::size_t i = 0; kFirst + i < kMask; ++i) {
    if (!c.has_input(kFirst + i)) {
      inputs.push_back(ValueId());
      continue;
    }
    const Constant &q = c.require_constant(kFirst + i, "a table"), &scale = c.require_constant(kScales + i, "a scale");
    std::vector<float> zeros(1, 0.0f);
    if (c.has_input(kZeros + i)) zeros = all_floats(c.require_constant(kZeros + i, "a zero point"));
    if ((q.dtype != DType::kU8 && q.dtype != DType::kI8) || scale.elements() != 1 || zeros.size() != 1)
      c.malformed("a table of bytes has one scale and one zero point");
    inputs.push_back(c.add_constant(dequantised(q, all_floats(scale), std::move(zeros), {.inner = 1, .extent = 1})));
  }
  inputs.push_back(c.optional_input(kMask));
  NodeContext inner(c.draft(), c.node(), c.opset(), std::move(inputs), c.name() + "/real");
  lower_embed_layer_norm(inner);
  for (std::size_t o = 0; o < c.output_count(); ++o)
    if (c.wants_output(o)) c.set_output(o, inner.outputs()[o]);
}

/// The result's scale and zero point, then each part with its own.
void lower_qlinear_concat(NodeContext& c) {
  if (c.input_count() < 5 || (c.input_count() - 2) % 3 != 0) c.malformed("each part has a scale and a zero point");
  std::vector<ValueId> parts;
  for (std::size_t at = 2; at < c.input_count(); at += 3) parts.push_back(real_input(c, at));
  NodeContext inner(c.draft(), c.node(), c.opset(), parts, c.name() + "/real");
  lower_concat(inner);
  set_quantised(c, inner.outputs()[0], 0);
}

/// A condition, then X and Y, each with scale and zero point, then the result's.
void lower_qlinear_where(NodeContext& c) { set_quantised(c, add_plain(c, "Where", {c.input(0), real_input(c, 1), real_input(c, 4)}), 7); }

/// ONNX's operators in the domain where onnxruntime's quantiser writes them.
void lower_contrib_linear(NodeContext& c) { lower_plain(c, *kernels::find_plain(c.node().op_type)); }

/// X, W [D, in, 4H], R [D, H, 4H], B, lengths, states, peepholes, then scale and zero of W and of R. ONNX Runtime also rounds each step's
/// inputs to 8 bits; here they stay f32.
void lower_dynamic_quantize_lstm(NodeContext& c) {
  const auto matrix = [&](std::size_t at, std::size_t scale) {
    const Constant &q = c.require_constant(at, "W and R"), &scales = c.require_constant(scale, "the scales");
    if (q.shape.rank() != 3 || (q.dtype != DType::kI8 && q.dtype != DType::kU8)) c.malformed("W and R are no matrices of bytes");
    const std::int64_t directions = q.shape[0], inputs = q.shape[1], outputs = q.shape[2], count = scales.elements();
    if (count != directions && count != directions * outputs)
      c.malformed("scales are one for each direction, or one for each gate's output");
    std::vector<float> zeros(static_cast<std::size_t>(count));
    if (c.has_input(scale + 1)) zeros = all_floats(c.require_constant(scale + 1, "the zero points"));
    if (zeros.size() != static_cast<std::size_t>(count)) c.malformed("there is one zero point for each scale");
    kernels::ScaleOrder order{.inner = inputs * outputs, .extent = directions};
    if (count != directions) order = {.inner = outputs, .extent = inputs, .block = inputs};
    return c.add_constant(permuted(dequantised(q, all_floats(scales), std::move(zeros), order), Perm{0, 2, 1, 3, 4, 5, 6, 7}));
  };
  std::vector<ValueId> inputs{c.float_input(0), matrix(1, 8), matrix(2, 10)};
  for (std::size_t at = 3; at < 8; ++at) inputs.push_back(c.optional_input(at));
  OnnxNode node = c.node();
  node.op_type = "LSTM";
  node.domain = {};
  NodeContext inner(c.draft(), node, c.opset(), std::move(inputs), c.name() + "/real");
  lower_recurrent(inner);
  for (std::size_t o = 0; o < c.output_count(); ++o)
    if (c.wants_output(o)) c.set_output(o, inner.outputs()[o]);
}

}  // namespace sluice::importer

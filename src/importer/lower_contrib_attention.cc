// The attentions of com.microsoft, as the plain Attention with the masks, pasts and rotations that they have.
#include <algorithm>

#include "src/importer/allowance.h"
#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

using model::BinaryFunction;

/// The same where a tensor without elements is none.
ValueId filled_input(const NodeContext& c, std::size_t index) {
  return c.has_input(index) && c.input_shape(index).element_count() > 0 ? c.input(index) : ValueId();
}

/// A scale that is stated and not nought; else the operator's own.
std::vector<std::int64_t> stated_scale(const NodeContext& c) {
  const double scale = static_cast<double>(c.real("scale", 0.0f));
  return scale != 0 ? std::vector<std::int64_t>{real_bits(scale)} : std::vector<std::int64_t>{};
}

struct AttentionForm {
  bool causal = false;
  std::int64_t heads = 0, key_heads = 0;
  float softcap = 0;
};

/// query, key, value, mask, past key, past value; outputs `keys` and `keys` + 1 are the keys and values with the past.
void set_attention(NodeContext& c, const std::vector<ValueId>& inputs, const AttentionForm& form, std::size_t keys) {
  const std::vector<std::vector<std::int64_t>> arguments = {
      {form.causal ? 1 : 0}, {form.key_heads}, {form.heads}, {0}, stated_scale(c), {real_bits(static_cast<double>(form.softcap))}, {0}};
  c.set_output(0, add_plain(c, "Attention", inputs, arguments));
  for (const std::size_t part : {std::size_t{0}, std::size_t{1}})
    if (c.wants_output(keys + part)) c.set_output(keys + part, add_plain(c, "Attention", inputs, arguments, static_cast<int>(part) + 1));
}

Constant whole_numbers(const Shape& shape, const std::vector<std::int64_t>& values, DType dtype) {
  return make_constant(shape, std::span<const std::int64_t>(values), dtype);
}

/// 0, 1, ... for each key, [1, 1, 1, keys].
ValueId places_of_keys(NodeContext& c, std::int64_t keys, DType dtype) {
  count_made(static_cast<std::uint64_t>(keys), sizeof(std::int64_t));
  std::vector<std::int64_t> places;
  for (std::int64_t t = 0; t < keys; ++t) places.push_back(t);
  return c.add_constant(whole_numbers(Shape{1, 1, 1, keys}, places, dtype));
}

/// The keys before the end of each batch, and from its begin on where the begins stand behind the ends.
ValueId keys_between(NodeContext& c, ValueId ends, std::int64_t batches, std::int64_t keys) {
  const std::int64_t count = c.shape(ends)[0];
  if (count != batches && count != 2 * batches)
    c.refuse("a mask with one axis that states other than the end of each batch, or the ends and the begins");
  const ValueId places = places_of_keys(c, keys, c.draft().value(ends).dtype);
  const Shape column{batches, 1, 1, 1};
  const ValueId before = add_plain(c, "Less", {places, c.add_reshape(c.add_range(ends, 0, 0, batches), column)});
  if (count == batches) return before;
  return add_plain(c, "And",
                   {before, add_plain(c, "GreaterOrEqual", {places, c.add_reshape(c.add_range(ends, 0, batches, batches), column)})});
}

/// The keys that may be looked at, as the plain Attention wants them: [batch, 1, 1, keys] or [batch, 1, rows, keys].
ValueId attention_mask(NodeContext& c, ValueId mask, std::int64_t batches, std::int64_t keys) {
  constexpr std::int64_t kBool = 9;
  const Shape shape = c.shape(mask);
  if (shape.rank() == 1) return keys_between(c, mask, batches, keys);
  const ValueId truth = add_plain(c, "Cast", {mask}, {{kBool}});
  if (shape.rank() == 2) return c.add_reshape(truth, Shape{shape[0], 1, 1, shape[1]});
  if (shape.rank() == 3) return c.add_reshape(truth, Shape{shape[0], 1, shape[1], shape[2]});
  c.refuse("a mask of shape " + shape.to_string() + "; supported are [batch], [2 * batch], [batch, keys] and [batch, rows, keys]");
}

/// A mask of keys and what is added to scores: one of them, as the plain Attention takes it.
ValueId mask_or_bias(NodeContext& c, std::size_t mask, std::size_t bias, std::int64_t batches, std::int64_t keys) {
  if (!c.has_input(mask)) return c.has_input(bias) ? c.float_input(bias) : ValueId();
  if (c.has_input(bias)) c.refuse("a mask and an attention bias together");
  return attention_mask(c, c.input(mask), batches, keys);
}

/// first + 0, 1, ... for each batch: [batches, rows], of the type of `first` [batches] or of one element.
ValueId counted(NodeContext& c, ValueId first, std::int64_t batches, std::int64_t rows, std::int64_t offset) {
  const DType dtype = c.draft().value(first).dtype;
  count_made(static_cast<std::uint64_t>(batches), static_cast<std::uint64_t>(rows) * sizeof(std::int64_t));
  std::vector<std::int64_t> steps;
  for (std::int64_t b = 0; b < batches; ++b)
    for (std::int64_t i = 0; i < rows; ++i) steps.push_back(i + offset);
  const ValueId column = c.add_reshape(first, Shape{c.shape(first).element_count(), 1});
  return add_plain(c, "Add", {c.add_constant(whole_numbers(Shape{batches, rows}, steps, dtype)), column});
}

/// x [batch, rows, heads * size] or [batch, heads, rows, size], turned by the rows of cosines and sines that `positions` asks for.
ValueId rotated(NodeContext& c, ValueId x, ValueId cosines, ValueId sines, ValueId positions, std::int64_t heads, bool interleaved) {
  const std::int64_t turned = 2 * c.shape(cosines).back();
  return add_plain(c, "RotaryEmbedding", {x, cosines, sines, positions}, {{interleaved ? 1 : 0}, {heads}, {turned}});
}

/// Where a node has what belongs to an attention.
struct AttentionInputs {
  std::size_t mask, past, bias;
};

/// Attention of queries, keys and values that lie side by side: [batch, rows, all features].
void set_attention_of(NodeContext& c, ValueId qkv, const AttentionInputs& at) {
  const std::int64_t heads = c.integer("num_heads", 0);
  if (heads < 1 || c.shape(qkv).rank() != 3) c.malformed("attribute num_heads or the input's shape makes no sense");
  if (c.integer("do_rotary", 0) != 0) c.refuse("do_rotary = 1");
  if (c.integer("past_present_share_buffer", 0) != 0)
    c.refuse("past_present_share_buffer = 1; export without a shared buffer of past and present");
  std::vector<std::int64_t> sizes = c.integers("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, c.shape(qkv).back() / 3);
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != c.shape(qkv).back())
    c.malformed("the sizes of queries, keys and values do not add up");
  const ValueId q = c.add_range(qkv, 2, 0, sizes[0]), k = c.add_range(qkv, 2, sizes[0], sizes[1]),
                v = c.add_range(qkv, 2, sizes[0] + sizes[1], sizes[2]);
  ValueId past_key, past_value;
  std::int64_t keys = c.shape(qkv)[1];
  if (filled_input(c, at.past).valid()) {
    const Shape past = c.input_shape(at.past);
    if (past.rank() != 5 || past[0] != 2) c.malformed("a past of shape " + past.to_string() + "; it is [2, batch, heads, rows, size]");
    past_key = c.add_row(c.input(at.past), 0, 0);
    past_value = c.add_row(c.input(at.past), 0, 1);
    keys += c.shape(past_key)[2];
  }
  const ValueId mask = mask_or_bias(c, at.mask, at.bias, c.shape(qkv)[0], keys);
  const std::vector<std::vector<std::int64_t>> arguments = {
      {c.integer("unidirectional", 0)}, {heads}, {heads}, {0}, stated_scale(c), {real_bits(0)}, {0}};
  const std::vector<ValueId> inputs = {q, k, v, mask, past_key, past_value};
  c.set_output(0, add_plain(c, "Attention", inputs, arguments));
  if (!c.wants_output(1)) return;
  c.set_output(1, c.add_stack({add_plain(c, "Attention", inputs, arguments, 1), add_plain(c, "Attention", inputs, arguments, 2)}, 0));
}

}  // namespace

/// input, weights [in, 3 * hidden], bias, mask, past [2, batch, heads, rows, size], attention bias.
void lower_contrib_attention(NodeContext& c) {
  const ValueId qkv = c.add_sum(add_product(c, c.float_input(0), c.float_input(1)), c.optional_input(2));
  set_attention_of(c, qkv, {.mask = 3, .past = 4, .bias = 5});
}

/// input and weights of bytes, bias, their scales, mask, their zero points, past.
void lower_qattention(NodeContext& c) {
  constexpr std::size_t kInputs = 9;
  if (c.input_count() > kInputs) c.malformed("it has more than nine inputs");
  NodeContext inner(c.draft(), c.node(), c.opset(),
                    {c.input(0), c.input(1), c.input(3), c.input(4), c.optional_input(6), c.optional_input(7), c.optional_input(2)},
                    c.name() + "/projection");
  lower_matmul_integer_to_float(inner);
  set_attention_of(c, inner.outputs()[0], {.mask = 5, .past = 8, .bias = kInputs});
}

/// query, key, value [batch, rows, heads * size], bias of all three, mask of keys, what is added to scores, past key, past value.
void lower_multi_head_attention(NodeContext& c) {
  const std::int64_t heads = c.integer("num_heads", 0);
  if (heads < 1) c.malformed("attribute num_heads makes no sense");
  if (!c.has_input(1) || !c.has_input(2)) c.refuse("queries, keys and values packed in one tensor; supported are three");
  std::vector<ValueId> parts{c.float_input(0), c.float_input(1), c.float_input(2)};
  if (c.shape(parts[0]).rank() != 3)
    c.refuse("queries of shape " + c.shape(parts[0]).to_string() + "; supported is [batch, rows, features]");
  if (c.has_input(3)) {
    std::int64_t first = 0;
    for (ValueId& part : parts) {
      if (c.shape(part).rank() != 3) c.refuse("a bias of keys that have an axis of heads");
      const std::int64_t features = c.shape(part).back();
      if (c.input_shape(3).rank() != 1 || first + features > c.input_shape(3)[0]) c.malformed("the bias is too short");
      part = c.add_sum(part, c.add_range(c.float_input(3), 0, first, features));
      first += features;
    }
  }
  const Shape keys = c.shape(parts[1]);
  const ValueId past = filled_input(c, 6);
  if ((keys.rank() != 3 && keys.rank() != 4) || (past.valid() && c.shape(past).rank() != 4))
    c.malformed("keys have three axes or four, and their past four");
  const std::int64_t before = past.valid() ? c.shape(past)[2] : 0;
  parts.push_back(mask_or_bias(c, 4, 5, c.shape(parts[0])[0], before + keys[keys.rank() - 2]));
  parts.push_back(past);
  parts.push_back(filled_input(c, 7));
  set_attention(c, parts, {.causal = c.integer("unidirectional", 0) != 0, .heads = heads, .key_heads = heads}, 1);
}

/// x, positions, cosines, sines; one position is that of the first row of each batch.
void lower_contrib_rotary(NodeContext& c) {
  const ValueId x = c.float_input(0), cosines = c.float_input(2), sines = c.float_input(3);
  const Shape shape = c.shape(x);
  if (c.real("scale", 1.0f) != 1.0f || c.integer("is_packed_batching", 0) != 0) c.refuse("a scale, or batches packed in one");
  if ((shape.rank() != 3 && shape.rank() != 4) || c.shape(cosines).rank() != 2)
    c.malformed("the input or the cosines have another number of axes");
  const std::int64_t turned = c.integer("rotary_embedding_dim", 0);
  if (turned != 0 && turned != 2 * c.shape(cosines).back()) c.malformed("rotary_embedding_dim is not what the cosines have");
  std::int64_t heads = c.integer("num_heads", 0);
  if (heads == 0) heads = shape.back() / (2 * c.shape(cosines).back());
  ValueId positions = c.input(1);
  if (c.shape(positions).element_count() == 1) positions = counted(c, positions, shape[0], shape[shape.rank() - 2], 0);
  c.set_output(0, rotated(c, x, cosines, sines, positions, heads, c.integer("interleaved", 0) != 0));
}

/// query, key, value (or all in the first), past key, past value, lengths of keys less 1, length of all, cosines, sines, positions, what is
/// added to scores. The rows of keys are the past's and then the new ones; of a batch whose lengths say less, the past's end is hidden.
void lower_group_query_attention(NodeContext& c) {
  const std::int64_t heads = c.integer("num_heads", 0), key_heads = c.integer("kv_num_heads", 0);
  ValueId q = c.float_input(0), k = c.optional_input(1), v = c.optional_input(2);
  const Shape shape = c.shape(q);
  if (heads < 1 || key_heads < 1 || heads % key_heads != 0 || shape.rank() != 3) c.malformed("the numbers of heads make no sense");
  if (c.integer("local_window_size", -1) != -1) c.refuse("local_window_size: a window of keys");
  if (c.integer("smooth_softmax", 0) == 1 || c.has_input(11)) c.refuse("smooth_softmax, or sinks of heads");
  if (c.has_input(10)) c.refuse("an attention bias");
  if (!k.valid()) {
    const std::int64_t size = shape[2] / (heads + 2 * key_heads);
    if (shape[2] != size * (heads + 2 * key_heads)) c.malformed("queries, keys and values in one do not fill its last axis");
    k = c.add_range(q, 2, heads * size, key_heads * size);
    v = c.add_range(q, 2, (heads + key_heads) * size, key_heads * size);
    q = c.add_range(q, 2, 0, heads * size);
  }
  const std::int64_t batches = shape[0], rows = shape[1];
  const ValueId past_key = filled_input(c, 3), past_value = filled_input(c, 4), lengths = c.input(5);
  const std::int64_t past = past_key.valid() ? c.shape(past_key)[2] : 0, keys = past + rows;
  if (c.constant_integers(6, "the length of all keys") != std::vector<std::int64_t>{keys})
    c.refuse("a length of all keys that is not the past's and the new ones'; export without a shared buffer of past and present");
  if (c.shape(lengths).element_count() != batches) c.malformed("there is one length for each batch");
  // Where the past of one is longer than that of another, the new rows would have to lie at another place in each.
  const Constant* known = c.constant(lengths);
  for (std::int64_t b = 0; b < batches && batches > 1 && past > 0; ++b)
    if (known == nullptr || read_integer(*known, b) != keys - 1) c.refuse("several batches with a past, whose lengths may differ");
  const DType type = c.draft().value(lengths).dtype;
  if (c.integer("do_rotary", 0) != 0) {
    const ValueId first = past == 0 ? c.add_constant(whole_numbers(Shape{1}, {0}, type)) : lengths;
    const ValueId positions = c.has_input(9) ? c.input(9) : counted(c, first, batches, rows, past == 0 ? 0 : 1 - rows);
    const bool interleaved = c.integer("rotary_interleaved", 0) != 0;
    q = rotated(c, q, c.float_input(7), c.float_input(8), positions, heads, interleaved);
    k = rotated(c, k, c.float_input(7), c.float_input(8), positions, key_heads, interleaved);
  }
  ValueId mask;
  if (past > 0) {
    // A key of the past is seen if it lies before the new rows: place < length + 1 - rows. New ones (place -1) are seen by all after them.
    count_made(static_cast<std::uint64_t>(rows) + 1, static_cast<std::uint64_t>(keys) * sizeof(std::int64_t));
    std::vector<std::int64_t> places, causal;
    for (std::int64_t t = 0; t < keys; ++t) places.push_back(t < past ? t + rows - 1 : -1);
    for (std::int64_t s = 0; s < rows; ++s)
      for (std::int64_t t = 0; t < keys; ++t) causal.push_back(t <= past + s ? 1 : 0);
    const ValueId seen = add_plain(
        c, "Less", {c.add_constant(whole_numbers(Shape{1, 1, 1, keys}, places, type)), c.add_reshape(lengths, Shape{batches, 1, 1, 1})});
    mask = add_plain(c, "And", {seen, c.add_constant(whole_numbers(Shape{1, 1, rows, keys}, causal, DType::kBool))});
  }
  set_attention(c, {q, k, v, mask, past_key, past_value},
                {.causal = past == 0, .heads = heads, .key_heads = key_heads, .softcap = c.real("softcap", 0.0f)}, 1);
}

}  // namespace sluice::importer

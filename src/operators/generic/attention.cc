// Attention in all its forms, one query row at a time, and what goes with it. The fast form of the common case is kAttention.
#include "sluice/operators/generic/attention.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace attention;
namespace {

bool floats(const PlainNode& node, std::initializer_list<int> inputs) noexcept {
  return std::all_of(inputs.begin(), inputs.end(), [&](int i) { return !node.has(i) || is_f32(node.in(i).dtype); });
}

PlainRefusal infer_attention(const PlainNode& node, PlainTensor& out) noexcept {
  for (const int i : {0, 1, 2})
    if (!node.has(i)) return kMissingInput;
  if (!floats(node, {0, 1, 2, 4, 5})) return kWrongType;
  Geometry g;
  if (!geometry_of(node, g)) return kWrongShape;
  if (node.has(3)) {
    const PlainTensor& mask = node.in(3);
    if (!is_f32(mask.dtype) && mask.dtype != DType::kBool) return kWrongType;
    const int rank = mask.shape.rank();
    if (rank < 1 || rank > 4 || mask.shape.back() > g.keys()) return kWrongShape;
    const std::int64_t full[] = {g.q.batches, g.q.heads, g.q.rows};
    for (int axis = 0; axis + 1 < rank; ++axis) {
      const std::int64_t extent = mask.shape[axis], wanted = full[axis + 4 - rank];
      if (extent != 1 && extent != wanted) return kWrongShape;
    }
  }
  if (node.has(6) && (!is_index(node.in(6).dtype) || node.in(6).count() != g.q.batches)) return kWrongShape;
  out.dtype = DType::kF32;
  switch (node.result()) {
    case 0:
      out.shape = node.in(0).shape.rank() == 4 ? Shape{g.q.batches, g.q.heads, g.q.rows, g.v.size}
                                               : Shape{g.q.batches, g.q.rows, g.q.heads * g.v.size};
      break;
    case 1:
      out.shape = {g.k.batches, g.k.heads, g.keys(), g.k.size};
      break;
    case 2:
      out.shape = {g.v.batches, g.v.heads, g.keys(), g.v.size};
      break;
    default:
      out.shape = {g.q.batches, g.q.heads, g.q.rows, g.keys()};
  }
  return nullptr;
}

// ---- RotaryEmbedding: X, cosines, sines, positions

PlainRefusal infer_rotary(const PlainNode& node, PlainTensor& out) noexcept {
  for (const int i : {0, 1, 2})
    if (!node.has(i)) return kMissingInput;
  if (!floats(node, {0, 1, 2}) || (node.has(3) && !is_index(node.in(3).dtype))) return kWrongType;
  Heads x;
  if (!heads_of(node.in(0).shape, node.integer(1), x)) return kWrongShape;
  const std::int64_t turned = node.integer(2) == 0 ? x.size : node.integer(2);
  if (turned < 2 || turned > x.size || turned % 2 != 0) return kWrongArgument;
  const Shape& cosines = node.in(1).shape;
  if (!(cosines == node.in(2).shape) || cosines.back() != turned / 2) return kWrongShape;
  if (node.has(3) ? cosines.rank() != 2 || !(node.in(3).shape == Shape{x.batches, x.rows})
                  : !(cosines == Shape{x.batches, x.rows, turned / 2}))
    return kWrongShape;
  out = {DType::kF32, node.in(0).shape};
  return nullptr;
}

PlainRefusal infer_linear(const PlainNode& node, PlainTensor& out) noexcept {
  for (const int i : {0, 1, 2})
    if (!node.has(i)) return kMissingInput;
  if (!floats(node, {0, 1, 2, 3, 4, 5})) return kWrongType;
  LinearGeometry g;
  if (!linear_geometry(node, g)) return kWrongShape;
  const Shape state{g.k.batches, g.k.heads, g.k.size, g.v.size};
  if (node.has(3) && !(node.in(3).shape == state)) return kWrongShape;
  if ((decays(node) && !node.has(4)) || (corrects(node) && !node.has(5))) return kMissingInput;
  const auto per_step = [&](int input, std::int64_t a, std::int64_t b) {
    const Shape& s = node.in(input).shape;
    return s == Shape{g.k.batches, g.k.rows, a} || s == Shape{g.k.batches, g.k.rows, b};
  };
  if (node.has(4) && !per_step(4, g.k.heads * g.k.size, g.k.heads)) return kWrongShape;
  if (node.has(5) && !per_step(5, g.k.heads, 1)) return kWrongShape;
  out.dtype = DType::kF32;
  out.shape = node.result() == 0 ? Shape{g.q.batches, g.q.rows, g.q.heads * g.v.size} : state;
  return nullptr;
}

// ---- CausalConvWithState: input [B, C, T], weight [C, 1, K], bias, the K - 1 values before

PlainRefusal infer_causal(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  if (!floats(node, {0, 1, 2, 3})) return kWrongType;
  const Shape &x = node.in(0).shape, &w = node.in(1).shape;
  if (x.rank() != 3 || w.rank() != 3 || w[0] != x[1] || w[1] != 1) return kWrongShape;
  const Shape state{x[0], x[1], w[2] - 1};
  if ((node.has(2) && node.in(2).count() != x[1]) || (node.has(3) && !(node.in(3).shape == state))) return kWrongShape;
  out = {DType::kF32, node.result() == 0 ? x : state};
  return nullptr;
}

constexpr PlainOperator kAttentionOperators[] = {
    {410, "Attention", "is_causal:i=0 kv_num_heads:i=0 q_num_heads:i=0 qk_matmul_output_mode:i=0 scale:f softcap:f=0 softmax_precision:i=0",
     infer_attention, nullptr, 4},
    {411, "RotaryEmbedding", "interleaved:i=0 num_heads:i=0 rotary_embedding_dim:i=0", infer_rotary},
    {412, "LinearAttention", "q_num_heads:i=0 kv_num_heads:i=0 update_rule:s=gated_delta|linear|gated|delta scale:f chunk_size:i=0",
     infer_linear, nullptr, 2},
    {413, "CausalConvWithState", "activation:s=none|silu|swish", infer_causal, nullptr, 2},
};

}  // namespace

std::span<const PlainOperator> attention_operators() noexcept { return kAttentionOperators; }

}  // namespace sluice::operators::generic

// One-node graphs of the operators that transformers are made of.
#pragma once

#include "differential/kernel_harness.h"

namespace sluice::kernels::test {

inline Problem layer_norm_problem(const Shape& shape, float epsilon = 1e-5f) {
  Problem p = plain_problem(model::OpKind::kLayerNorm, model::LayerNormAttributes{epsilon}, {shape}, shape);
  std::mt19937 random(3);
  add_plain_weight(p, shape.back(), random);
  add_plain_weight(p, shape.back(), random);
  return p;
}

struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t queries = 1, keys = 1;
  std::int64_t heads = 1;
  std::int64_t depth = 1, width = 1;  // channels of a head in keys, in values
  bool causal = false;
};

inline Problem attention_problem(const AttentionShape& s) {
  const auto attributes = model::AttentionAttributes{s.heads, 0.7f, s.causal};
  const Shape q{s.batch, s.queries, s.heads * s.depth}, k{s.batch, s.keys, s.heads * s.depth}, v{s.batch, s.keys, s.heads * s.width};
  return plain_problem(model::OpKind::kAttention, attributes, {q, k, v}, Shape{s.batch, s.queries, s.heads * s.width});
}

inline Problem embedding_problem(const Shape& indices, std::int64_t table_rows, std::int64_t features, DType dtype = DType::kI64) {
  Shape out;
  std::vector<std::int64_t> dims(indices.dims().begin(), indices.dims().end());
  dims.push_back(features);
  out = *Shape::make(dims);
  Problem p = plain_problem(model::OpKind::kEmbedding, model::EmbeddingAttributes{table_rows, features}, {indices}, out, {}, dtype);
  p.graph.tensors.back().dtype = DType::kF32;
  std::mt19937 random(8);
  add_packed_weight(p, {.outputs = table_rows, .depth = features, .outputs_per_group = table_rows}, false, random);
  return p;
}

}  // namespace sluice::kernels::test

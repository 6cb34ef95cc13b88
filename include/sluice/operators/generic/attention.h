// Geometry of attention and its kin: heads, whichever way a tensor lays them out, and what goes with them.
//
// Read by the definitions (src/operators/generic/attention.cc), which refuse what does not fit, and by the generic kernels
// (src/kernels/plain/attention.cc), which take for granted that it fits.
//
// Invariant: after a function here has returned true, every extent that it gives is at least 0 and its divisions have no rest.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::attention {

/// The position of a row of a head in [batch, heads, rows, size] or [batch, rows, heads * size].
struct Heads {
  std::int64_t batches = 0, heads = 0, rows = 0, size = 0;
  bool flat = false;
  const float* row(const float* data, std::int64_t b, std::int64_t h, std::int64_t r) const noexcept {
    return data + (flat ? (b * rows + r) * heads + h : (b * heads + h) * rows + r) * size;
  }
};

inline bool heads_of(const Shape& shape, std::int64_t heads, Heads& out) noexcept {
  if (shape.rank() == 4) {
    if (shape[1] < 1) return false;
    out = {shape[0], shape[1], shape[2], shape[3], false};
    return true;
  }
  if (shape.rank() != 3 || heads < 1 || shape[2] % heads != 0) return false;
  out = {shape[0], heads, shape[1], shape[2] / heads, true};
  return true;
}

// ---- Attention: Q, K, V, mask, past key, past value, lengths of K without padding

struct Geometry {
  Heads q, k, v;
  std::int64_t past = 0;
  std::int64_t keys() const noexcept { return past + k.rows; }
};

inline bool geometry_of(const PlainNode& node, Geometry& g) noexcept {
  if (!heads_of(node.in(0).shape, node.integer(2), g.q) || !heads_of(node.in(1).shape, node.integer(1), g.k) ||
      !heads_of(node.in(2).shape, node.integer(1), g.v))
    return false;
  if (g.k.size != g.q.size || g.k.rows != g.v.rows || g.k.heads != g.v.heads || g.q.heads % g.k.heads != 0) return false;
  if (g.k.batches != g.q.batches || g.v.batches != g.q.batches || node.has(4) != node.has(5)) return false;
  if (!node.has(4)) return true;
  const Shape &key = node.in(4).shape, &value = node.in(5).shape;
  if (key.rank() != 4) return false;
  g.past = key[2];
  return key == Shape{g.k.batches, g.k.heads, g.past, g.k.size} && value == Shape{g.v.batches, g.v.heads, g.past, g.v.size};
}

// ---- LinearAttention: query, key, value, past state, decay, beta; the state [B, heads, dk, dv] is a running sum of key x value

enum Rule : std::int64_t { kLinear = 1, kGated = 2, kDelta = 3, kGatedDelta = 0 };

struct LinearGeometry {
  Heads q, k, v;
};

inline bool linear_geometry(const PlainNode& node, LinearGeometry& g) noexcept {
  if (!heads_of(node.in(0).shape, node.integer(0), g.q) || !heads_of(node.in(1).shape, node.integer(1), g.k) ||
      !heads_of(node.in(2).shape, node.integer(1), g.v))
    return false;
  return g.q.flat && g.k.flat && g.v.flat && g.q.rows == g.k.rows && g.q.rows == g.v.rows && g.q.batches == g.k.batches &&
         g.q.batches == g.v.batches && g.q.size == g.k.size && g.q.heads % g.k.heads == 0;
}

inline bool decays(const PlainNode& node) noexcept { return node.integer(2) == kGated || node.integer(2) == kGatedDelta; }

inline bool corrects(const PlainNode& node) noexcept { return node.integer(2) == kDelta || node.integer(2) == kGatedDelta; }

}  // namespace sluice::operators::generic::attention

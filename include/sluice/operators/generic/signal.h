// Fourier transforms, frames of a signal, and windows: their extents and terms, from a node's arguments.
//
// Read by the definitions (src/operators/generic/signal.cc), which refuse what does not fit, and by the generic kernels
// (src/kernels/plain/signal.cc). The definition of a window has its terms as `detail`.
//
// Invariant: after a function here has refused nothing, lengths are at least 1 and every frame lies within the signal.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::signal {

// ---- DFT: [..., n, ..., 1 or 2]; the last axis is real, or real and imaginary

struct Transform {
  int axis = 0;
  std::int64_t taken = 0, length = 0, made = 0;  // values read, length of the transform, values written
  bool inverse = false, onesided = false, real_result = false;
};

inline bool transform_of(const PlainNode& node, Transform& t) noexcept {
  const Shape& in = node.in(0).shape;
  const std::int64_t opset = node.integer(4);
  const int rank = in.rank();
  if (rank < 2 || in.back() < 1 || in.back() > 2) return false;
  // The axis was an attribute (default 1) before opset 20 and is an input (default -2) since.
  const std::int64_t axis = opset < 20 ? (node.given(3) ? node.integer(3) : 1) : node.given(1) ? node.integer(1) : -2;
  t.axis = axis_of(axis, rank);
  if (t.axis < 0 || t.axis == rank - 1) return false;
  t.inverse = node.integer(2) != 0;
  t.onesided = node.integer(5) != 0;
  t.real_result = t.inverse && t.onesided;
  t.taken = in[t.axis];
  const std::int64_t whole = t.real_result ? 2 * (t.taken - 1) : t.taken;
  t.length = node.given(0) ? node.integer(0) : whole;
  if (t.length < 1 || t.length > (std::int64_t{1} << 24)) return false;
  t.made = t.onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  return true;
}

// ---- STFT: signal [batch, length, 1 or 2], window; frame step and length are constants

struct Frames {
  std::int64_t step = 0, length = 0, count = 0, bins = 0;
};

inline bool frames_of(const PlainNode& node, Frames& f) noexcept {
  const Shape& in = node.in(0).shape;
  if (in.rank() < 2 || in.rank() > 3 || (in.rank() == 3 && in[2] != 1 && in[2] != 2)) return false;
  f.step = node.integer(0);
  f.length = node.given(1) ? node.integer(1) : node.has(2) ? node.in(2).count() : 0;
  if (f.step < 1 || f.length < 1 || f.length > in[1]) return false;
  f.count = (in[1] - f.length) / f.step + 1;
  f.bins = node.integer(2) != 0 ? f.length / 2 + 1 : f.length;
  return true;
}

// ---- windows: a0 - a1 cos + a2 cos of the doubled angle

struct WindowTerms {
  double a0, a1, a2;
};

}  // namespace sluice::operators::generic::signal

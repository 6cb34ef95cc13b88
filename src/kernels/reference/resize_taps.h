// Which source elements an output element of Resize is made of, along one axis. Shared by the reference and the SIMD kernel.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "sluice/core/shape.h"
#include "sluice/core/window.h"
#include "sluice/operators/parameters/movement.h"

namespace sluice::kernels {

/// `count` sources with their weights; sources outside the axis are moved to its edge.
struct ResizeTaps {
  int count = 1;
  std::array<std::int64_t, 4> source{};
  std::array<float, 4> weight{1.0f, 0.0f, 0.0f, 0.0f};
};

inline bool keeps_extent(const operators::ResizeParameters& a, const Shape& in, const Shape& out, int axis) noexcept {
  return in[axis] == out[axis] && a.scale[static_cast<std::size_t>(axis)] == 1.0f;
}

/// The source coordinate of output index `i`, in single precision: a scale such as 7/3 is itself rounded, and only a rounded quotient
/// lands on the whole numbers that the exact ratio has.
inline float resize_coordinate(ResizeCoordinates rule, std::int64_t i, std::int64_t in, std::int64_t out, float scale) noexcept {
  const auto x = static_cast<float>(i);
  switch (rule) {
    case ResizeCoordinates::kAsymmetric:
      return x / scale;
    case ResizeCoordinates::kAlignCorners:
      return out <= 1 ? 0.0f : x * static_cast<float>(in - 1) / static_cast<float>(out - 1);
    case ResizeCoordinates::kPytorchHalfPixel:
      return out <= 1 ? 0.0f : (x + 0.5f) / scale - 0.5f;
    case ResizeCoordinates::kHalfPixel:
      break;
  }
  return (x + 0.5f) / scale - 0.5f;
}

/// As std::floor and std::ceil, of values that fit: no call, which for long axes would take longer than the values.
inline std::int64_t floor_of(float x) noexcept {
  const auto whole = static_cast<std::int64_t>(x);
  return whole - (x < static_cast<float>(whole) ? 1 : 0);
}
inline std::int64_t ceil_of(float x) noexcept {
  const auto whole = static_cast<std::int64_t>(x);
  return whole + (x > static_cast<float>(whole) ? 1 : 0);
}

inline std::int64_t resize_nearest(ResizeRounding rounding, float x) noexcept {
  switch (rounding) {
    case ResizeRounding::kRoundPreferFloor:
      return ceil_of(x - 0.5f);
    case ResizeRounding::kRoundPreferCeil:
      return floor_of(x + 0.5f);
    case ResizeRounding::kFloor:
      return floor_of(x);
    case ResizeRounding::kCeil:
      break;
  }
  return ceil_of(x);
}

/// Keys' cubic convolution for the four neighbours of a point `t` behind the second.
inline std::array<float, 4> cubic_weights(float a, float t) noexcept {
  const auto near = [a](float d) { return ((a + 2.0f) * d - (a + 3.0f)) * d * d + 1.0f; };
  const auto far = [a](float d) { return ((a * d - 5.0f * a) * d + 8.0f * a) * d - 4.0f * a; };
  return {far(t + 1.0f), near(t), near(1.0f - t), far(2.0f - t)};
}

inline ResizeTaps resize_taps(const operators::ResizeParameters& a, const Shape& in, const Shape& out, int axis, std::int64_t i) noexcept {
  ResizeTaps taps;
  taps.source[0] = i;
  if (keeps_extent(a, in, out, axis)) return taps;
  const std::int64_t last = in[axis] - 1;
  const auto edge = [last](std::int64_t s) { return std::clamp<std::int64_t>(s, 0, last); };
  const float coordinate = resize_coordinate(a.coordinates, i, in[axis], out[axis], a.scale[static_cast<std::size_t>(axis)]);
  // Also keeps the conversions below defined when a model's scale contradicts its shapes.
  const float behind = static_cast<float>(last) + 1.0f, from = coordinate > -1.0f ? coordinate : -1.0f;
  const float x = from < behind ? from : behind;
  if (a.mode == ResizeMode::kNearest) {
    taps.source[0] = edge(resize_nearest(a.rounding, x));
    return taps;
  }
  const std::int64_t first = floor_of(x);
  const float t = x - static_cast<float>(first);
  if (a.mode == ResizeMode::kLinear) {
    taps.count = 2;
    taps.source = {edge(first), edge(first + 1), 0, 0};
    taps.weight = {1.0f - t, t, 0.0f, 0.0f};
    return taps;
  }
  taps.count = 4;
  taps.source = {edge(first - 1), edge(first), edge(first + 1), edge(first + 2)};
  taps.weight = cubic_weights(a.cubic_a, t);
  return taps;
}

/// The two sources of an output index where bytes are resized linearly, and their weights: the distances to the other one. Both are a half
/// where the sources are one, on the last element of an axis; so an axis that keeps its extent has two as well.
struct LinearTaps {
  std::array<std::int64_t, 2> source{};
  std::array<float, 2> weight{};
};

inline LinearTaps linear_taps(const operators::ResizeParameters& a, const Shape& in, const Shape& out, int axis, std::int64_t i) noexcept {
  const float scale = a.scale[static_cast<std::size_t>(axis)];
  const float x = scale == 1.0f ? static_cast<float>(i) : resize_coordinate(a.coordinates, i, in[axis], out[axis], scale);
  const std::int64_t last = in[axis] - 1;
  const float place = std::fmax(0.0f, std::fmin(x, static_cast<float>(last)));
  const std::int64_t first = std::min(static_cast<std::int64_t>(place), last), second = std::min(first + 1, last);
  if (first == second) return {{first, second}, {0.5f, 0.5f}};
  return {{first, second}, {std::fabs(place - static_cast<float>(second)), std::fabs(place - static_cast<float>(first))}};
}

}  // namespace sluice::kernels

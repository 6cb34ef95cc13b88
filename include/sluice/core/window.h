// The inputs of which an output is made: the window of convolutions and pools, and the sources of padding and resizing. The attributes
// of a graph (model/attributes.h) and the parameters of kernels (operators/parameters) share these words.
//
// The numbers are stored in model files: append only.
#pragma once

#include <cstdint>

namespace sluice {

/// Kernel geometry of convolutions and pools. Input [N, in_h, in_w, C], output [N, out_h, out_w, C'].
struct Window {
  std::int64_t in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  std::int64_t taps() const noexcept { return kernel_h * kernel_w; }
  friend bool operator==(const Window&, const Window&) = default;
};

enum class PoolingKind : std::uint8_t { kMax = 0, kAverage = 1 };

enum class PadMode : std::uint8_t { kConstant = 0, kReflect = 1, kEdge = 2 };

enum class ResizeMode : std::uint8_t { kNearest = 0, kLinear = 1, kCubic = 2 };
/// How an output index becomes a source coordinate (ONNX Resize, coordinate_transformation_mode).
enum class ResizeCoordinates : std::uint8_t { kHalfPixel = 0, kAsymmetric = 1, kAlignCorners = 2, kPytorchHalfPixel = 3 };
enum class ResizeRounding : std::uint8_t { kRoundPreferFloor = 0, kRoundPreferCeil = 1, kFloor = 2, kCeil = 3 };

}  // namespace sluice

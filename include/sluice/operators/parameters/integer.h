// Parameters of the numeric class int8: what computes with u8 tensors of one scale and zero point each (docs/quantisation.md).
//
// The rule of rounding, wherever an f32 value becomes u8:
//
//     y = zero + round_half_even(min(max(value, low - zero), high - zero))      low and high: 0 and 255, narrowed by relu or clip
//
// Each operation before it is rounded to f32, nothing contracted but where fma says so; a value that is no number gives `low`. Below, u8(value)
// is that rule; v8(value) rounds the value with the zero point in it, which gives the even byte of halves:
//
//     y = round_half_even(min(max(value + zero, low), high))
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/core/activation.h"
#include "sluice/core/window.h"
#include "sluice/operators/parameters/elementwise.h"
#include "sluice/operators/parameters/movement.h"
#include "sluice/operators/parameters/parameters.h"
#include "sluice/operators/parameters/weighted.h"

namespace sluice::operators {

/// Taps of an average at most: the sum of so many bytes holds in 32 bits.
inline constexpr std::int64_t kMostAveragedBytes = INT32_MAX / 255;

/// The u8 values that an output takes.
struct IntegerRange {
  std::uint8_t zero = 0;
  std::uint8_t low = 0;
  std::uint8_t high = 255;
};

/// How two u8 tensors are added, with the roundings of ONNX Runtime's QLinearAdd: `offset` is 128 where the ONNX file has i8, else 0, and
/// `constant` what both zero points come to:
///
///     y = round_half_even(min(max(fma(a - offset, ratio_a, fma(b - offset, ratio_b, constant)), low - offset), high - offset)) + offset
struct IntegerSum {
  float ratio_a = 1.0f;  // of the scales by the output's
  float ratio_b = 1.0f;
  float constant = 0.0f;
  std::uint8_t offset = 0;
};

/// What becomes of the 32-bit sums of a convolution or dense layer. Outputs of u8 are rounded to `range`; of f32 multiplied and activated;
/// of i32 the sums themselves. With a residual, sums are first rounded to u8 with scale and zero point of their own:
///
///     t = u8(float(sum) * multiplier, sum_zero)
///     y = t and the residual as `addition` has it      the residual is its first operand, a, with `residual_first`, else its second
///
/// Where zero point and scale come at run time they are inputs behind the values, a u8 and one f32 or one a channel:
///
///     sum = sum of (x - zero) * w                   i32, where no scale comes
///     y   = float(sum) * scale + bias
struct IntegerEpilogue {
  std::uint8_t zero_in = 0;   // what padding reads
  std::uint8_t run_time = 0;  // inputs that come at run time: none, the zero point, or the zero point and the scale
  IntegerRange range;
  bool has_residual = false;
  bool residual_first = false;
  std::uint8_t sum_zero = 0;
  IntegerSum addition;
  Activation activation;  // of f32 outputs
};

/// Weights are i8 panels; weights[1] has the bias as i32, the input's zero point in it, weights[2] the multipliers, both by channel. With a
/// zero point of the run time they are the sums of each channel's weights and the f32 bias.
struct IntegerWeightedParameters {
  PanelGeometry panels;
  IntegerEpilogue epilogue;
};

struct IntegerConvolutionParameters {
  IntegerWeightedParameters weighted;
  Window window;
  std::int64_t groups = 1;
  std::int64_t in_channels = 0;   // of the whole tensor
  std::int64_t out_channels = 0;  // of the whole tensor

  std::int64_t group_depth() const noexcept { return in_channels / groups; }
  std::int64_t group_outputs() const noexcept { return out_channels / groups; }
  /// One input and one output channel a group.
  bool depthwise() const noexcept { return groups > 1 && groups == in_channels && groups == out_channels; }
};

/// So many values of a lane, taps times inputs of its group, have a kernel that runs lane by lane.
inline constexpr std::int64_t kMostLaneTaps = 256;
/// Whether groups of so many outputs, with so many values each, run lane by lane. Others that fill no panel are put together, or slow.
constexpr bool runs_by_lanes(std::int64_t outputs, std::int64_t values) noexcept {
  return outputs < kPanelLanes && values <= kMostLaneTaps;
}

struct IntegerDenseParameters {
  IntegerWeightedParameters weighted;
  std::int64_t in_features = 0;   // K
  std::int64_t out_features = 0;  // N
};

/// Products of two activations, [..., M, K] x [..., K, N] with leading axes broadcast: i32 sums of (a - zero_a) * (b - zero_b), or times
/// the multiplier f32, or rounded to u8. Zero points of the run time are inputs 2 and 3, u8; input 4 is their scale, one f32 or one a
/// column.
struct IntegerMatMulParameters {
  std::int64_t depth = 0;    // K
  std::int64_t columns = 0;  // N
  IntegerRange range;
  std::uint8_t zero_a = 0;
  std::uint8_t zero_b = 0;
  std::uint8_t run_time = 0;  // inputs that come at run time
  float multiplier = 1.0f;
};

/// The largest of a window, or its mean. A window that is the whole image, without padding:
///
///     y = u8(float(sum of x - zero_in) * (scale_in / (scale * count)))
///
/// Any other adds what the bytes stand for, one after the other in the order of rows, and rounds with the zero point in the value, that of
/// i8 where the ONNX file has i8 (`offset` less than that of u8):
///
///     y = v8((sum of (x - zero_in) * scale_in) / count / scale)        with zero - offset, to which `offset` is added when it is rounded
struct IntegerPoolParameters {
  PoolParameters pool;
  IntegerRange range;
  std::uint8_t zero_in = 0;
  std::uint8_t offset = 0;  // 128 for i8, else 0
  float scale_in = 1.0f;
  float scale = 1.0f;  // of the output

  bool whole() const noexcept {
    const Window& w = pool.window;
    return w.kernel_h == w.in_h && w.kernel_w == w.in_w && w.pad_top + w.pad_left + w.pad_bottom + w.pad_right == 0;
  }
};

/// A sum is what `addition` says, a product
/// v8(float((a - zero_a) * (b - zero_b)) * ((scale_a * scale_b) / scale)), any other function
/// u8(f((a - zero_a) * scale_a, (b - zero_b) * scale_b) / scale); numpy broadcasting of the two input shapes.
struct IntegerBinaryParameters {
  BinaryFunction function = BinaryFunction::kAdd;
  IntegerRange range;
  std::uint8_t zero_a = 0;
  std::uint8_t zero_b = 0;
  float scale_a = 1.0f;
  float scale_b = 1.0f;
  float scale = 1.0f;
  IntegerSum addition;
};

/// Softmax of a line whose largest byte is `most`, with the table of 256 floats that is the weight:
///
///     e_i = table[255 - most + x_i]           exp((x_i - most) * scale), times a factor that is the same for all
///     y_i = u8(e_i * steps / sum of e)        one chain of additions, in the order of the line
struct IntegerSoftmaxParameters {
  IntegerRange range;
  float steps = 1.0f;  // of the output that make 1, a whole number
};

/// Nearest: bytes as they are. Linear, of images: what the four neighbours stand for, each times its weight (kernels/reference/resize_taps.h),
/// added one after the other, then u8(sum / scale).
struct IntegerResizeParameters {
  ResizeParameters resize;
  IntegerRange range;
  std::uint8_t zero_in = 0;
  float scale_in = 1.0f;
  float scale = 1.0f;
};

/// A table follows from the weight: out = table[in].
struct IntegerTableParameters {};

/// The borders of the quantised part: u8(x / scale) where it begins, (x - zero) * scale where it ends.
struct IntegerBorderParameters {
  float scale = 1.0f;
  std::uint8_t zero = 0;
};

static_assert(kIsParameters<IntegerConvolutionParameters> && offsetof(IntegerConvolutionParameters, weighted) == 0);
static_assert(kIsParameters<IntegerDenseParameters> && offsetof(IntegerDenseParameters, weighted) == 0);
static_assert(kIsParameters<IntegerMatMulParameters>);
static_assert(kIsParameters<IntegerPoolParameters> && kIsParameters<IntegerBinaryParameters>);
static_assert(kIsParameters<IntegerSoftmaxParameters> && kIsParameters<IntegerResizeParameters>);
static_assert(kIsParameters<IntegerTableParameters> && kIsParameters<IntegerBorderParameters>);

}  // namespace sluice::operators

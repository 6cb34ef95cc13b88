// The border between the walk over memory (plain C++, one copy) and the inner loops (one copy an instruction set).
//
// A *run* is channels that lie next to each other: those of a pixel, or of a whole row where the views have no gaps. Each function below
// does one run and gives the same bits on every instruction set. `out` may be one of the inputs.
#pragma once

#include <cstdint>
#include <limits>

#include "sluice/core/activation.h"
#include "sluice/core/cpu.h"
#include "sluice/core/tensor.h"
#include "src/kernels/reference/pool_window.h"

namespace sluice::kernels::elementwise {

/// Values of an operand along a run: step 1, or 0 for one value repeated.
struct Stream {
  const float* values = nullptr;
  int step = 1;
  Stream later(std::int64_t elements) const { return {values + elements * step, step}; }
};

/// What results are kept within, while they are in registers: the ends of a Relu or a clip. What is no number stays so.
struct Bounds {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

/// Channels [first, first + count) of one output pixel of a pool.
struct PoolRun {
  const RowView* in = nullptr;
  PoolWindow window;
  std::int64_t first = 0;
  std::int64_t count = 0;
  Bounds bounds = {};
};

/// All channels of neighbouring output pixels of a pool whose windows have one form: the taps of each row that lie inside, one behind the other.
struct PoolPixels {
  static constexpr int kMostRows = 16;

  const float* const* rows = nullptr;  // the first tap of each row of the first window
  int row_count = 0;
  std::int64_t taps = 0;        // of a row
  std::int64_t tap_step = 0;    // floats, as the two that follow
  std::int64_t pixel_step = 0;  // from window to window
  std::int64_t out_step = 0;
  std::int64_t channels = 0;
  std::int64_t pixels = 0;
  float divisor = 1.0f;  // of a mean
  Bounds bounds = {};
};

/// What a fold adds to values that lie side by side: `taps` of them each, `step` floats apart.
struct FoldTaps {
  const float* from = nullptr;
  std::int64_t step = 0;
  std::int64_t taps = 1;
};

/// Channels that fit a run of pixels as lanes.
inline constexpr std::int64_t kFewChannels = 16;
/// Channels that `copy_pixels` moves at once.
inline constexpr std::int64_t kMostCopied = 4;

/// A blend whose sources differ from value to value: where few channels make a run too short.
struct PlaceRun {
  const float* const* rows = nullptr;
  const float* row_weights = nullptr;
  int row_count = 0;
  int columns = 0;
  const std::int32_t* const* places = nullptr;  // [column][value]: floats from the row's begin
  const float* const* weights = nullptr;        // [column][value]
};

/// Normalisation by neighbouring channels: x / (bias + scale * sum of squares of `before` + 1 + `after` channels) ^ beta
struct LrnRun {
  std::int64_t before = 0, after = 0;
  float scale = 0, beta = 0, bias = 0;
};

/// Channels of a pixel and the zeros around them, of which a local response normalisation makes a copy.
inline constexpr std::int64_t kMostLrnFloats = 4096;

struct RunTable {
  /// out[i] = f(in[i])
  void (*unary)(const Activation& f, const float* in, float* out, std::int64_t n) noexcept = nullptr;
  /// out[i] = in[i] * scale[i] + shift[i], rounded once, within bounds
  void (*affine)(const float* in, const float* scale, const float* shift, Bounds bounds, float* out, std::int64_t n) noexcept = nullptr;
  /// out[i] = a[i] op b[i], within bounds
  void (*binary)(BinaryFunction op, Stream a, Stream b, Bounds bounds, float* out, std::int64_t n) noexcept = nullptr;
  /// The whole last axis: exp(x - max) / sum, or x - max - log(sum); summed as reference/normalize.cc says.
  void (*softmax)(bool log, const float* in, float* out, std::int64_t n) noexcept = nullptr;
  /// The same of `count` rows that lie behind each other.
  void (*softmax_rows)(bool log, const float* in, float* out, std::int64_t n, std::int64_t count) noexcept = nullptr;
  /// out[0, count); summed as reference/pool.cc says.
  void (*pool)(PoolingKind kind, const PoolRun& run, float* out) noexcept = nullptr;
  /// out[i] = sum over t < taps of weights[t] * from[t][i], a chain of fused multiply-adds from 0
  void (*blend)(const float* const* from, const float* weights, int taps, float* out, std::int64_t n) noexcept = nullptr;
  /// As `softmax`, of `count` pixels of n <= kFewChannels channels that lie behind each other: pixels are the lanes.
  void (*softmax_pixels)(bool log, const float* in, float* out, std::int64_t n, std::int64_t count) noexcept = nullptr;
  /// out[i] = sum over t of run.row_weights[r] * run.weights[c][i] * run.rows[r][run.places[c][i]], t = r * columns + c: a chain as `blend`
  void (*blend_places)(const PlaceRun& run, float* out, std::int64_t n) noexcept = nullptr;
  /// out[i] = from[places[i * channels] + c] + 0 for the `channels` <= kMostCopied of each pixel: what `blend_places` says of one tap
  void (*copy_pixels)(const float* from, const std::int32_t* places, std::int64_t channels, float* out,
                      std::int64_t pixels) noexcept = nullptr;
  /// As `pool`, but for means that are summed in lanes (reference/pool_window.h); it reads values behind a pixel's channels, fewer than kReadTail.
  void (*pool_pixels)(PoolingKind kind, const PoolPixels& run, float* out) noexcept = nullptr;
  /// The n channels of a pixel; n + before + after <= kMostLrnFloats. As reference/normalize.cc says.
  void (*lrn)(const LrnRun& run, const float* in, float* out, std::int64_t n) noexcept = nullptr;
  /// to[i]: the greatest of it and taps.from[i + t * taps.step], t < taps.taps, or their sum, tap after tap
  void (*fold)(PoolingKind kind, const FoldTaps& taps, float* to, std::int64_t n) noexcept = nullptr;
  /// out[r] = the mean of from[r * row_floats + i], i < n, for r < rows: summed in lanes (reference/lane_sum.h)
  void (*row_means)(const float* from, std::int64_t row_floats, std::int64_t n, std::int64_t rows, float* out) noexcept = nullptr;
};

/// The table for an instruction set, or for the nearest lower one this build has. `isa` must be one that the CPU has.
const RunTable& run_table(Isa isa) noexcept;

}  // namespace sluice::kernels::elementwise

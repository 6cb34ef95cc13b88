// Turns trained values, in whatever order a file has them, into panels (core/panels.h). Used by the importer, one run of panels at a time,
// and by tests. Nothing at run time packs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/core/dtype.h"
#include "sluice/core/interval.h"
#include "sluice/core/units.h"
#include "sluice/model/attributes.h"
#include "sluice/model/weight.h"

namespace sluice::kernels {

/// What panels hold of values that are floats: these, or others near them (docs/quantisation.md).
enum class PanelStorage : std::uint8_t {
  kF32,
  kBf16,  // rounded to nearest
  kF16,   // the same; values beyond 65504 become infinite
  kInt8,  // whole numbers from -127 to 127 times one scale for each output
  kInt4,  // from -8 to 7 times one f16 scale for each 32 values of an output, in the order of its panel: that of the least squared error
};
inline constexpr std::size_t kPanelStorages = 5;

/// As `convert --weights` has it: "f32", "bf16" and so on; empty behind the last.
std::string_view name_of(PanelStorage storage) noexcept;

/// Strided access to values that it does not own (a mapped ONNX file). Strides count elements; 0 repeats one value.
///
///     value(n, tap, k) = data[(n / outputs_per_group) * group_stride + (n % outputs_per_group) * output_stride
///                             + tap * tap_stride + (k / k_inner) * k_outer_stride + (k % k_inner) * k_inner_stride] * scale[n]
///
/// A convolution OIHW: output_stride = I*KH*KW, tap_stride = 1, k_inner = 1, k_outer_stride = KH*KW. A dense layer behind a flattened
/// NCHW tensor that is NHWC here: k_inner = C, k_inner_stride = H*W, k_outer_stride = 1.
struct PackSource {
  const std::byte* data = nullptr;  // need not be aligned
  DType dtype = DType::kF32;        // f32, f16 or f64; widened or narrowed to f32
  std::int64_t outputs = 0;
  std::int64_t taps = 1;
  std::int64_t depth = 1;  // K: input channels of one group
  std::int64_t outputs_per_group = 0;
  std::int64_t group_stride = 0;
  std::int64_t output_stride = 0;
  std::int64_t tap_stride = 0;
  std::int64_t k_inner = 1;
  std::int64_t k_outer_stride = 0;
  std::int64_t k_inner_stride = 0;
  /// Not empty: outputs come in runs of `run`, and packed run i is run run_order[i] of the source (the gates of an LSTM).
  std::span<const std::int32_t> run_order = {};
  std::int64_t run = 0;
  std::span<const float> scale = {};             // of outputs, or empty: a folded batch-norm
  std::span<const std::int32_t> tap_order = {};  // packed tap i is source tap tap_order[i]; empty: as they are
  PanelStorage storage = PanelStorage::kF32;     // of panels; of depthwise ones f32

  /// The source's output that is packed as output `n`.
  std::int64_t source_output(std::int64_t n) const noexcept {
    return run_order.empty() ? n : run_order[static_cast<std::size_t>(n / run)] * run + n % run;
  }
};

/// Fills name-independent fields of `weight` (panel_layout, shape, panels, panel_bytes) for a kPanels weight of these extents.
void describe_panels(const PackSource& source, std::span<const std::int64_t> logical_shape, model::Weight& weight) noexcept;
/// The same for kDepthwise: depth = 1, outputs = channels.
void describe_depthwise(const PackSource& source, std::span<const std::int64_t> logical_shape, model::Weight& weight) noexcept;

/// Writes panels [p.begin, p.end) to `out` (p.size() * panel_bytes). Unused lanes are zero.
void pack_panels(const PackSource& source, PanelRange p, std::span<std::byte> out) noexcept;
void pack_depthwise(const PackSource& source, PanelRange p, std::span<std::byte> out) noexcept;

/// The layout of panels of this storage.
model::PanelLayout layout_of(PanelStorage storage) noexcept;
/// `storage`, or one of more bits that takes no more bytes: scales and half-filled blocks of few values do not pay.
PanelStorage smallest_from(PanelStorage storage, std::int64_t values_of_lane) noexcept;
/// The largest magnitude of the values; infinite or NaN where one of them is.
float largest_magnitude(const PackSource& source) noexcept;

/// Which scale and zero an element of a dense quantised tensor has: one for all (extent 1), one for each place of an axis (block 0), or one
/// for each `block` places of it and each place of the other axes.
struct ScaleOrder {
  std::int64_t inner = 1;   // elements of the axes after it
  std::int64_t extent = 1;  // places of the axis
  std::int64_t block = 0;

  std::int64_t of(std::int64_t element) const noexcept {
    const std::int64_t place = element / inner % extent;
    if (block == 0) return place;
    return (element / (inner * extent) * ceil_div(extent, block) + place / block) * inner + element % inner;
  }
};

/// Quantised values: element e, which `where` counts from `values` on, is (values[e] - zeros[s]) * scales[s], s = order.of(first + e).
struct QuantisedSource {
  PackSource where;                     // `data` and `dtype` do not matter
  const std::int8_t* values = nullptr;  // of 4 and 2 bits: from 0 on
  int bits = 8;
  std::span<const float> scales = {};
  std::span<const float> zeros = {};
  std::int64_t first = 0;
  ScaleOrder order;
  std::int64_t group = 0;  // see fit_groups
};

/// Sets `group` to how many values of a lane share a scale in the panels, 0 for all. False: panels cannot hold these scales and zeros.
bool fit_groups(QuantisedSource& source) noexcept;

/// Fills the fields of a quantised weight whose groups fit, as describe_panels does.
void describe_quantised(const QuantisedSource& source, std::span<const std::int64_t> logical_shape, model::Weight& weight) noexcept;
void pack_quantised(const QuantisedSource& source, PanelRange p, std::span<std::byte> out) noexcept;

/// Packs integers unchanged, for nodes of the class int8: panels [tap][K / 4][16][4], or depthwise [tap][16]. `where` counts elements from
/// `values` on.
struct IntegerSource {
  PackSource where;  // `data`, `dtype` and `scale` do not matter
  const std::int8_t* values = nullptr;
  bool depthwise = false;
  /// So many groups of `where` are merged into one in the panels, in which an output has zeros for the inputs of the other groups. They
  /// fill a panel, or are all.
  std::int64_t merged = 1;
};
void describe_integers(const IntegerSource& source, std::span<const std::int64_t> logical_shape, model::Weight& weight) noexcept;
void pack_integers(const IntegerSource& source, PanelRange p, std::span<std::byte> out) noexcept;

/// Order of a transposed convolution's taps in its panels: by output phase ((ky * dilation - pad) mod stride, rows first), then row-major.
/// Each phase is a run of taps and an ordinary convolution of its own.
std::vector<std::int32_t> transposed_tap_order(const model::Window& window);

}  // namespace sluice::kernels

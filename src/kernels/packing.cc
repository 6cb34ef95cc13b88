#include "sluice/kernels/packing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <tuple>

#include "sluice/core/check.h"
#include "sluice/core/half.h"
#include "sluice/core/units.h"
#include "src/kernels/rounding.h"

namespace sluice::kernels {
namespace {

using model::kPanelLanes;

std::int64_t group_size(const PackSource& source) noexcept {
  return source.outputs_per_group > 0 ? source.outputs_per_group : source.outputs;
}

/// Bits of an f16 and of a bf16.
enum class Half : std::uint16_t {};
enum class Brain : std::uint16_t {};

template <class T>
float load_as_float(const std::byte* data, std::int64_t index) noexcept {
  T value;
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof value), sizeof value);
  if constexpr (std::is_same_v<T, Half>) {
    return float_of_f16(static_cast<std::uint16_t>(value));
  } else if constexpr (std::is_same_v<T, Brain>) {
    return float_of_bf16(static_cast<std::uint16_t>(value));
  } else {
    return static_cast<float>(value);
  }
}

/// From the first value of an output to that of a tap and k, in elements.
std::int64_t offset_of(const PackSource& source, std::int64_t tap, std::int64_t k) noexcept {
  return tap * source.tap_stride + k / source.k_inner * source.k_outer_stride + k % source.k_inner * source.k_inner_stride;
}

/// The outputs that are the lanes of one panel.
struct Lanes {
  int count = 0;
  std::array<std::int64_t, kPanelLanes> base{};  // element of (tap 0, k 0)
  std::array<float, kPanelLanes> scale{};
};

Lanes lanes_of(const PackSource& source, std::int64_t first, std::int64_t end) noexcept {
  Lanes lanes;
  for (std::int64_t n = first; n < end; ++n) {
    const auto lane = static_cast<std::size_t>(lanes.count++);
    const std::int64_t per_group = group_size(source);
    const std::int64_t at = source.source_output(n);
    lanes.base[lane] = at / per_group * source.group_stride + at % per_group * source.output_stride;
    lanes.scale[lane] = source.scale.empty() ? 1.0f : source.scale[static_cast<std::size_t>(n)];
  }
  return lanes;
}

template <class T>
std::byte* pack_one(const PackSource& source, const Lanes& lanes, std::byte* out) noexcept {
  for (std::int64_t packed_tap = 0; packed_tap < source.taps; ++packed_tap) {
    const std::int64_t tap = source.tap_order.empty() ? packed_tap : source.tap_order[static_cast<std::size_t>(packed_tap)];
    for (std::int64_t k = 0; k < source.depth; ++k) {
      const std::int64_t offset = offset_of(source, tap, k);
      std::array<float, kPanelLanes> row{};
      for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes.count); ++lane) {
        const float value = load_as_float<T>(source.data, lanes.base[lane] + offset);
        row[lane] = source.scale.empty() ? value : value * lanes.scale[lane];
      }
      std::memcpy(out, row.data(), sizeof row);
      out += sizeof row;
    }
  }
  return out;
}

std::byte* pack_lanes(const PackSource& source, const Lanes& lanes, std::byte* out) noexcept {
  switch (source.dtype) {
    case DType::kF16:
      return pack_one<Half>(source, lanes, out);
    case DType::kBF16:
      return pack_one<Brain>(source, lanes, out);
    case DType::kF64:
      return pack_one<double>(source, lanes, out);
    default:
      SLUICE_DCHECK(source.dtype == DType::kF32, "weights are f32, f16, bf16 or f64");
      return pack_one<float>(source, lanes, out);
  }
}

std::int64_t values_of(const PackSource& source) noexcept { return source.taps * source.depth; }

/// Bytes of a panel of so many values.
std::uint64_t panel_size(const PackSource& source) noexcept {
  return panel_bytes_of(layout_of(source.storage), static_cast<std::uint64_t>(values_of(source))).value_or(Bytes()).count();
}

/// Lanes as panels of the source's storage hold them, from what an f32 panel does.
void put_panel(PanelStorage storage, std::span<const float> values, std::byte* out) noexcept {
  switch (storage) {
    case PanelStorage::kF32:
      std::memcpy(out, values.data(), values.size_bytes());
      break;
    case PanelStorage::kBf16:
    case PanelStorage::kF16:
      for (const float value : values) {
        const std::uint16_t half = storage == PanelStorage::kBf16 ? bf16_of_float(value) : f16_of_float(value);
        std::memcpy(out, &half, sizeof half);
        out += sizeof half;
      }
      break;
    case PanelStorage::kInt8:
      return round_to_eight_bits(values, out);
    case PanelStorage::kInt4:
      return round_to_four_bits(values, out);
  }
}

void describe(const PackSource& source, std::span<const std::int64_t> shape, model::WeightLayout layout, std::int64_t panels,
              model::Weight& weight) noexcept {
  weight.panel_layout = layout_of(source.storage);
  weight.panel_layout.layout = layout;
  weight.shape = Shape::make(shape).value_or(Shape{});
  weight.panels = panels;
  weight.panel_bytes = Bytes(panel_size(source));
  weight.bytes = weight.panel_bytes * static_cast<std::uint64_t>(panels);
}

}  // namespace

void describe_panels(const PackSource& source, std::span<const std::int64_t> logical_shape, model::Weight& weight) noexcept {
  describe(source, logical_shape, model::WeightLayout::kPanels, model::panel_count(source.outputs, group_size(source)), weight);
}

void describe_depthwise(const PackSource& source, std::span<const std::int64_t> logical_shape, model::Weight& weight) noexcept {
  SLUICE_DCHECK(source.depth == 1, "a depthwise channel reads one input channel");
  describe(source, logical_shape, model::WeightLayout::kDepthwise, ceil_div(source.outputs, kPanelLanes), weight);
}

void pack_panels(const PackSource& source, PanelRange p, std::span<std::byte> out) noexcept {
  SLUICE_DCHECK(out.size() >= static_cast<std::uint64_t>(p.size()) * panel_size(source), "the run of panels fits the buffer");
  std::vector<float> values(source.storage == PanelStorage::kF32 ? 0 : static_cast<std::size_t>(values_of(source) * kPanelLanes));
  std::byte* to = out.data();
  for (std::int64_t panel = p.begin; panel < p.end; ++panel) {
    const ChannelRange c = model::channels_of_panels({panel, panel + 1}, group_size(source), source.outputs);
    std::byte* const end = to + panel_size(source);
    if (source.storage == PanelStorage::kF32) {
      to = pack_lanes(source, lanes_of(source, c.begin, c.end), to);
    } else {
      pack_lanes(source, lanes_of(source, c.begin, c.end), reinterpret_cast<std::byte*>(values.data()));
      std::fill(to, end, std::byte{0});
      put_panel(source.storage, values, to);
    }
    to = end;
  }
}

std::string_view name_of(PanelStorage storage) noexcept {
  constexpr std::array<std::string_view, kPanelStorages> kNames{"f32", "bf16", "f16", "int8", "int4"};
  const auto i = static_cast<std::size_t>(storage);
  return i < kNames.size() ? kNames[i] : std::string_view();
}

model::PanelLayout layout_of(PanelStorage storage) noexcept {
  model::PanelLayout layout{.layout = model::WeightLayout::kPanels};
  switch (storage) {
    case PanelStorage::kF32:
      break;
    case PanelStorage::kBf16:
      layout.dtype = DType::kBF16;
      break;
    case PanelStorage::kF16:
      layout.dtype = DType::kF16;
      break;
    case PanelStorage::kInt8:
      layout.dtype = DType::kI8;
      layout.scale = model::PanelScale::kF32;
      break;
    case PanelStorage::kInt4:
      layout.dtype = DType::kU8;
      layout.k_block = 2;
      layout.k_group = kFourBitGroup;
      layout.scale = model::PanelScale::kF16;
      break;
  }
  return layout;
}

PanelStorage smallest_from(PanelStorage storage, std::int64_t values_of_lane) noexcept {
  const auto bytes = [&](PanelStorage each) {
    return panel_bytes_of(layout_of(each), static_cast<std::uint64_t>(values_of_lane)).value_or(Bytes());
  };
  const auto wider = [](PanelStorage each) {
    return each == PanelStorage::kInt4 ? PanelStorage::kInt8 : each == PanelStorage::kInt8 ? PanelStorage::kBf16 : PanelStorage::kF32;
  };
  while (storage != PanelStorage::kF32 && bytes(wider(storage)) <= bytes(storage)) storage = wider(storage);
  return storage;
}

float largest_magnitude(const PackSource& source) noexcept {
  PackSource floats = source;
  floats.storage = PanelStorage::kF32;
  std::vector<float> values(static_cast<std::size_t>(values_of(source) * kPanelLanes));
  float largest = 0.0f;
  const std::int64_t panels = model::panel_count(source.outputs, group_size(source));
  for (std::int64_t p = 0; p < panels; ++p) {
    pack_panels(floats, {p, p + 1}, std::as_writable_bytes(std::span(values)));
    for (const float value : values) largest = std::fabs(value) <= largest ? largest : std::fabs(value);  // a NaN stays
  }
  return largest;
}

void pack_depthwise(const PackSource& source, PanelRange p, std::span<std::byte> out) noexcept {
  SLUICE_DCHECK(out.size() >= static_cast<std::uint64_t>(p.size()) * panel_size(source), "the run of panels fits the buffer");
  std::byte* to = out.data();
  for (std::int64_t panel = p.begin; panel < p.end; ++panel) {
    const std::int64_t end = std::min((panel + 1) * kPanelLanes, source.outputs);
    to = pack_lanes(source, lanes_of(source, panel * kPanelLanes, end), to);
  }
}

namespace {

float scale_of_lane(const PackSource& source, std::int64_t n) noexcept {
  return source.scale.empty() ? 1.0f : source.scale[static_cast<std::size_t>(n)];
}

template <class T>
void put(std::byte* to, T value) noexcept {
  std::memcpy(to, &value, sizeof value);
}

model::PanelLayout quantised_layout(const QuantisedSource& source) noexcept {
  model::PanelLayout layout;
  layout.layout = model::WeightLayout::kPanels;
  layout.dtype = source.bits == 8 ? DType::kI8 : DType::kU8;
  layout.k_block = static_cast<std::uint8_t>(8 / source.bits);
  layout.k_group = static_cast<std::uint16_t>(source.group);
  layout.scale = model::PanelScale::kF32;
  return layout;
}

/// Calls visit(i, element) for the values of a lane, in the order of its panel.
template <class Visit>
void for_each_value(const PackSource& where, std::int64_t base, Visit&& visit) noexcept {
  std::int64_t i = 0;
  for (std::int64_t packed_tap = 0; packed_tap < where.taps; ++packed_tap) {
    const std::int64_t tap = where.tap_order.empty() ? packed_tap : where.tap_order[static_cast<std::size_t>(packed_tap)];
    for (std::int64_t k = 0; k < where.depth; ++k) visit(i++, base + offset_of(where, tap, k));
  }
}

void pack_quantised_lanes(const QuantisedSource& source, std::int64_t first, const Lanes& lanes, std::byte* out) noexcept {
  const model::PanelLayout layout = quantised_layout(source);
  const std::int64_t head_bytes = model::quantised_head_bytes(layout), group_bytes = model::quantised_group_bytes(layout);
  const std::int64_t group = source.group == 0 ? source.where.taps * source.where.depth : source.group;
  for (int lane = 0; lane < lanes.count; ++lane)
    for_each_value(source.where, lanes.base[static_cast<std::size_t>(lane)], [&](std::int64_t i, std::int64_t element) {
      std::byte* const head = out + i / group * group_bytes;
      const std::int64_t within = i % group;
      if (within == 0) {
        const auto s = static_cast<std::size_t>(source.order.of(source.first + element));
        put(head + lane * 4, source.scales[s] * scale_of_lane(source.where, first + lane));
        std::byte* const zero = head + model::kPanelLanes * 4;
        if (source.group == 0)
          put(zero + lane * 4, source.zeros[s]);
        else
          zero[lane] = static_cast<std::byte>(static_cast<int>(source.zeros[s]));
      }
      const auto q = static_cast<std::byte>(source.values[element]);
      head[head_bytes + within / layout.k_block * model::kPanelLanes + lane] |= q << (within % layout.k_block * source.bits);
    });
}

/// Do the values of each lane have one scale a group?
bool groups_share_scales(const QuantisedSource& source, std::int64_t group) noexcept {
  const PackSource& where = source.where;
  for (std::int64_t n = 0; n < where.outputs; ++n) {
    bool shared = true;
    std::int64_t scale = 0;
    for_each_value(where, lanes_of(where, n, n + 1).base[0], [&](std::int64_t i, std::int64_t element) {
      const std::int64_t s = source.order.of(source.first + element);
      if (i % group == 0) scale = s;
      shared = shared && s == scale;
    });
    if (!shared) return false;
  }
  return true;
}

}  // namespace

bool fit_groups(QuantisedSource& source) noexcept {
  constexpr std::int64_t kMostOfGroup = std::int64_t{1} << 15;
  const std::int64_t values = source.where.taps * source.where.depth, k_block = 8 / source.bits;
  const bool one_scale = source.order.extent == 1 || groups_share_scales(source, values);
  source.group = 0;
  if (one_scale && source.bits == 8) return true;
  // Groups of one scale may as well be several.
  source.group = one_scale ? std::min(ceil_div(values, k_block) * k_block, kMostOfGroup) : source.order.block;
  while (source.group > kMostOfGroup && source.group % 2 == 0) source.group /= 2;
  if (source.group < 1 || source.group > kMostOfGroup || source.group % k_block != 0) return false;
  const float least = source.bits == 8 ? -128.0f : 0.0f;
  const auto fits = [&](float zero) { return zero == std::floor(zero) && zero >= least && zero < least + 256; };
  if (!std::all_of(source.zeros.begin(), source.zeros.end(), fits)) return false;
  return one_scale || groups_share_scales(source, source.group);
}

void describe_quantised(const QuantisedSource& source, std::span<const std::int64_t> logical_shape, model::Weight& weight) noexcept {
  describe_panels(source.where, logical_shape, weight);
  weight.panel_layout = quantised_layout(source);
  weight.panel_bytes = model::panel_bytes_of(weight.panel_layout, model::values_of_lane(weight)).value_or(Bytes());
  weight.bytes = weight.panel_bytes * static_cast<std::uint64_t>(weight.panels);
}

void pack_quantised(const QuantisedSource& source, PanelRange p, std::span<std::byte> out) noexcept {
  std::fill(out.begin(), out.end(), std::byte{0});
  const auto panel_bytes = static_cast<std::int64_t>(out.size()) / std::max<std::int64_t>(1, p.size());
  for (std::int64_t panel = p.begin; panel < p.end; ++panel) {
    const ChannelRange c = model::channels_of_panels({panel, panel + 1}, group_size(source.where), source.where.outputs);
    const Lanes lanes = lanes_of(source.where, c.begin, c.end);
    std::byte* to = out.data() + (panel - p.begin) * panel_bytes;
    pack_quantised_lanes(source, c.begin, lanes, to);
  }
}

void describe_integers(const IntegerSource& source, std::span<const std::int64_t> logical_shape, model::Weight& weight) noexcept {
  PackSource where = source.where;
  where.outputs_per_group = group_size(where) * source.merged;
  source.depthwise ? describe_depthwise(where, logical_shape, weight) : describe_panels(where, logical_shape, weight);
  weight.panel_layout.dtype = DType::kI8;
  weight.panel_layout.k_interleave = source.depthwise ? 1 : 4;
  weight.panel_bytes = model::panel_bytes_of(weight.panel_layout, model::values_of_lane(weight)).value_or(Bytes());
  weight.bytes = weight.panel_bytes * static_cast<std::uint64_t>(weight.panels);
}

void pack_integers(const IntegerSource& source, PanelRange p, std::span<std::byte> out) noexcept {
  std::fill(out.begin(), out.end(), std::byte{0});
  const auto panel_bytes = static_cast<std::int64_t>(out.size()) / std::max<std::int64_t>(1, p.size());
  const PackSource& where = source.where;
  const std::int64_t interleave = source.depthwise ? 1 : 4, depth = ceil_div(where.depth * source.merged, interleave) * interleave;
  const std::int64_t each = source.depthwise ? where.outputs : group_size(where) * source.merged;
  for (std::int64_t panel = p.begin; panel < p.end; ++panel) {
    const ChannelRange c = model::channels_of_panels({panel, panel + 1}, each, where.outputs);
    const Lanes lanes = lanes_of(where, c.begin, c.end);
    std::byte* const to = out.data() + (panel - p.begin) * panel_bytes;
    for (int lane = 0; lane < lanes.count; ++lane) {
      const std::int64_t first = (c.begin + lane) / group_size(where) % source.merged * where.depth;  // of the inputs of its own group
      for_each_value(where, lanes.base[static_cast<std::size_t>(lane)], [&](std::int64_t i, std::int64_t element) {
        const std::int64_t k = i / where.depth * depth + first + i % where.depth;  // padded in each tap
        to[(k / interleave * kPanelLanes + lane) * interleave + k % interleave] = static_cast<std::byte>(source.values[element]);
      });
    }
  }
}

std::vector<std::int32_t> transposed_tap_order(const model::Window& window) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(window.taps()));
  std::iota(order.begin(), order.end(), 0);
  const auto phase = [](std::int64_t k, std::int64_t dilation, std::int64_t pad, std::int64_t stride) {
    return ((k * dilation - pad) % stride + stride) % stride;
  };
  const auto key = [&](std::int32_t tap) {
    return std::tuple(phase(tap / window.kernel_w, window.dilation_h, window.pad_top, window.stride_h),
                      phase(tap % window.kernel_w, window.dilation_w, window.pad_left, window.stride_w), tap);
  };
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return key(a) < key(b); });
  return order;
}

}  // namespace sluice::kernels

#include "sluice/kernels/packing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <tuple>

#include "sluice/core/check.h"
#include "sluice/core/units.h"

namespace sluice::kernels {
namespace {

using model::kPanelLanes;

std::int64_t group_size(const PackSource& source) noexcept {
  return source.outputs_per_group > 0 ? source.outputs_per_group : source.outputs;
}

// Exact: every half is a float. A subnormal half is its fraction times 2^-24.
float widen_half(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide_exponent = exponent == 0x1fu ? 0xffu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

template <class T>
float load_as_float(const std::byte* data, std::int64_t index) noexcept {
  T value;
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof value), sizeof value);
  if constexpr (std::is_same_v<T, std::uint16_t>) {
    return widen_half(value);
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
    const std::int64_t at =
        source.run_order.empty() ? n : source.run_order[static_cast<std::size_t>(n / source.run)] * source.run + n % source.run;
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
      return pack_one<std::uint16_t>(source, lanes, out);
    case DType::kF64:
      return pack_one<double>(source, lanes, out);
    default:
      SLUICE_DCHECK(source.dtype == DType::kF32, "weights are f32, f16 or f64");
      return pack_one<float>(source, lanes, out);
  }
}

std::uint64_t panel_size(const PackSource& source) noexcept {
  return static_cast<std::uint64_t>(source.taps * source.depth * kPanelLanes) * sizeof(float);
}

void describe(const PackSource& source, std::span<const std::int64_t> shape, model::WeightLayout layout, std::int64_t panels,
              model::Weight& weight) noexcept {
  weight.panel_layout = {.layout = layout, .dtype = DType::kF32};
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
  std::byte* to = out.data();
  for (std::int64_t panel = p.begin; panel < p.end; ++panel) {
    const ChannelRange c = model::channels_of_panels({panel, panel + 1}, group_size(source), source.outputs);
    to = pack_lanes(source, lanes_of(source, c.begin, c.end), to);
  }
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

void pack_eight_bits(const QuantisedSource& source, std::int64_t first, const Lanes& lanes, std::byte* out) noexcept {
  const PackSource& where = source.where;
  for (int lane = 0; lane < lanes.count; ++lane) {
    const std::int64_t base = lanes.base[static_cast<std::size_t>(lane)];
    const auto s = static_cast<std::size_t>((source.first + base) / source.inner % source.extent);
    put(out + lane * 4, source.scales[s] * scale_of_lane(where, first + lane));
    put(out + (model::kPanelLanes + lane) * 4, source.zeros[s]);
    std::byte* to = out + 2 * model::kPanelLanes * 4 + lane;
    for (std::int64_t tap = 0; tap < where.taps; ++tap)
      for (std::int64_t k = 0; k < where.depth; ++k, to += model::kPanelLanes)
        *to = static_cast<std::byte>(source.values[base + offset_of(where, tap, k)]);
  }
}

void pack_four_bits(const QuantisedSource& source, std::int64_t first, const Lanes& lanes, std::byte* out) noexcept {
  const PackSource& where = source.where;
  const std::int64_t group_bytes = model::kPanelLanes * 5 + source.group * model::kPanelLanes / 2;
  for (int lane = 0; lane < lanes.count; ++lane)
    for (std::int64_t k = 0; k < where.depth; ++k) {
      std::byte* group = out + k / source.group * group_bytes;
      const auto s = static_cast<std::size_t>((first + lane) * source.groups() + k / source.group);
      if (k % source.group == 0) {
        put(group + lane * 4, source.scales[s] * scale_of_lane(where, first + lane));
        group[model::kPanelLanes * 4 + lane] = static_cast<std::byte>(source.zeros[s]);
      }
      const auto q = static_cast<std::byte>(source.values[lanes.base[static_cast<std::size_t>(lane)] + offset_of(where, 0, k)]);
      group[model::kPanelLanes * 5 + k % source.group / 2 * model::kPanelLanes + lane] |= k % 2 == 0 ? q : q << 4;
    }
}

}  // namespace

void describe_quantised(const QuantisedSource& source, std::span<const std::int64_t> logical_shape, model::Weight& weight) noexcept {
  describe_panels(source.where, logical_shape, weight);
  weight.panel_layout.dtype = source.group == 0 ? DType::kI8 : DType::kU8;
  weight.panel_layout.k_block = source.group == 0 ? 1 : 2;
  weight.panel_layout.k_group = static_cast<std::uint16_t>(source.group);
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
    source.group == 0 ? pack_eight_bits(source, c.begin, lanes, to) : pack_four_bits(source, c.begin, lanes, to);
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

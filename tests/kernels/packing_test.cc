#include "sluice/kernels/packing.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

namespace sluice::kernels {
namespace {

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values, std::size_t shift = 0) {
  std::vector<std::byte> bytes(values.size() * sizeof(T) + shift);
  std::memcpy(bytes.data() + shift, values.data(), values.size() * sizeof(T));
  return bytes;
}

std::vector<float> numbers(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return values;
}

std::vector<float> pack_all(const PackSource& source, const model::Weight& weight) {
  std::vector<float> packed(weight.bytes.count() / sizeof(float), -1.0f);
  const auto out = std::as_writable_bytes(std::span(packed));
  if (weight.panel_layout.layout == model::WeightLayout::kDepthwise) {
    pack_depthwise(source, {0, weight.panels}, out);
  } else {
    pack_panels(source, {0, weight.panels}, out);
  }
  return packed;
}

/// A convolution's OIHW values as a source.
PackSource oihw(const std::vector<std::byte>& data, std::int64_t outputs, std::int64_t depth, std::int64_t taps, std::int64_t groups) {
  return {.data = data.data(),
          .outputs = outputs,
          .taps = taps,
          .depth = depth,
          .outputs_per_group = outputs / groups,
          .group_stride = outputs / groups * depth * taps,
          .output_stride = depth * taps,
          .tap_stride = 1,
          .k_outer_stride = taps};
}

TEST_CASE("panels hold [panel][tap][k][lane] and zeros in unused lanes, each group padded to whole panels") {
  for (std::int64_t groups : {1, 2, 3}) {
    const std::int64_t outputs = 18 * groups, depth = 3, taps = 4;
    const auto values = numbers(outputs * depth * taps);
    const auto data = bytes_of(values);
    const PackSource source = oihw(data, outputs, depth, taps, groups);
    model::Weight weight;
    describe_panels(source, std::array<std::int64_t, 4>{outputs, 2, 2, depth}, weight);
    CHECK(weight.panels == 2 * groups);
    CHECK(weight.panel_bytes == Bytes(taps * depth * 64));
    CHECK(weight.shape == Shape{outputs, 2, 2, depth});
    const auto packed = pack_all(source, weight);
    for (std::int64_t panel = 0; panel < weight.panels; ++panel)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        for (std::int64_t k = 0; k < depth; ++k)
          for (std::int64_t lane = 0; lane < 16; ++lane) {
            const std::int64_t within = panel % 2 * 16 + lane;
            const std::int64_t n = panel / 2 * 18 + within;
            const float expected = within < 18 ? values[static_cast<std::size_t>((n * depth + k) * taps + tap)] : 0.0f;
            REQUIRE(packed[static_cast<std::size_t>(((panel * taps + tap) * depth + k) * 16 + lane)] == expected);
          }
  }
}

TEST_CASE("narrow groups share a panel, sixteen consecutive outputs each") {
  const std::int64_t outputs = 20, depth = 2, taps = 1;
  const auto values = numbers(outputs * depth);
  const auto data = bytes_of(values);
  const PackSource source = oihw(data, outputs, depth, taps, 5);
  model::Weight weight;
  describe_panels(source, std::array<std::int64_t, 4>{outputs, 1, 1, depth}, weight);
  REQUIRE(weight.panels == 2);
  const auto packed = pack_all(source, weight);
  for (std::int64_t panel = 0; panel < 2; ++panel)
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t lane = 0; lane < 16; ++lane) {
        const std::int64_t n = panel * 16 + lane;
        const float expected = n < outputs ? values[static_cast<std::size_t>(n * depth + k)] : 0.0f;
        CHECK(packed[static_cast<std::size_t>((panel * depth + k) * 16 + lane)] == expected);
      }
}

TEST_CASE("a run of panels packs as the same bytes that it has in the whole") {
  const auto data = bytes_of(numbers(50 * 6));
  const PackSource source = oihw(data, 50, 3, 2, 1);
  model::Weight weight;
  describe_panels(source, std::array<std::int64_t, 4>{50, 1, 2, 3}, weight);
  const auto whole = pack_all(source, weight);
  std::vector<float> part(2 * 96);
  pack_panels(source, {1, 3}, std::as_writable_bytes(std::span(part)));
  CHECK(std::memcmp(part.data(), whole.data() + 96, part.size() * sizeof(float)) == 0);
}

TEST_CASE("depthwise panels hold [panel][tap][lane]") {
  const std::int64_t channels = 17, taps = 9;
  const auto values = numbers(channels * taps);
  const auto data = bytes_of(values);
  const PackSource source{
      .data = data.data(), .outputs = channels, .taps = taps, .outputs_per_group = 1, .group_stride = taps, .tap_stride = 1};
  model::Weight weight;
  describe_depthwise(source, std::array<std::int64_t, 3>{channels, 3, 3}, weight);
  REQUIRE(weight.panels == 2);
  CHECK(weight.panel_bytes == Bytes(taps * 64));
  const auto packed = pack_all(source, weight);
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    CHECK(packed[static_cast<std::size_t>(tap * 16 + 5)] == values[static_cast<std::size_t>(5 * taps + tap)]);
    CHECK(packed[static_cast<std::size_t>((taps + tap) * 16)] == values[static_cast<std::size_t>(16 * taps + tap)]);
    CHECK(packed[static_cast<std::size_t>((taps + tap) * 16 + 1)] == 0.0f);
  }
}

TEST_CASE("a dense layer behind a flattened NCHW tensor is packed in NHWC order") {
  const std::int64_t channels = 3, pixels = 4, outputs = 2, depth = channels * pixels;
  const auto values = numbers(outputs * depth);  // [N][C][pixel]
  const auto data = bytes_of(values);
  const PackSource source{.data = data.data(),
                          .outputs = outputs,
                          .depth = depth,
                          .output_stride = depth,
                          .k_inner = channels,
                          .k_outer_stride = 1,
                          .k_inner_stride = pixels};
  model::Weight weight;
  describe_panels(source, std::array<std::int64_t, 2>{outputs, depth}, weight);
  const auto packed = pack_all(source, weight);
  for (std::int64_t n = 0; n < outputs; ++n)
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
      for (std::int64_t c = 0; c < channels; ++c)
        CHECK(packed[static_cast<std::size_t>((pixel * channels + c) * 16 + n)] ==
              values[static_cast<std::size_t>(n * depth + c * pixels + pixel)]);
}

TEST_CASE("halves widen exactly, doubles narrow, unaligned sources are read, scales multiply") {
  const std::vector<std::uint16_t> halves{0x3c00, 0xc000, 0x7bff, 0x0001, 0x8001, 0x0400, 0x7c00, 0xfc00, 0x8000};
  const std::vector<float> wide{1.0f, -2.0f, 65504.0f, 0x1p-24f, -0x1p-24f, 0x1p-14f, INFINITY, -INFINITY, -0.0f};
  const auto count = static_cast<std::int64_t>(halves.size());
  model::Weight weight;
  const auto data = bytes_of(halves, 1);
  PackSource source{.data = data.data() + 1, .dtype = DType::kF16, .outputs = count, .output_stride = 1};
  describe_panels(source, std::array<std::int64_t, 2>{count, 1}, weight);
  CHECK(std::memcmp(pack_all(source, weight).data(), wide.data(), wide.size() * sizeof(float)) == 0);

  const auto doubles = bytes_of(std::vector<double>{0.1, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0}, 3);
  const std::vector<float> scale{2.0f, 0.5f, 1, 1, 1, 1, 1, 1, 1};
  source.data = doubles.data() + 3;
  source.dtype = DType::kF64;
  source.scale = scale;
  const auto packed = pack_all(source, weight);
  CHECK(packed[0] == 0.1f * 2.0f);
  CHECK(packed[1] == 1.0f);
}

TEST_CASE("taps of a transposed convolution are ordered by output phase") {
  model::Window window;
  window.kernel_h = window.kernel_w = 3;
  window.stride_h = window.stride_w = 2;
  CHECK(transposed_tap_order(window) == std::vector<std::int32_t>{0, 2, 6, 8, 1, 7, 3, 5, 4});
  window.pad_top = window.pad_left = 1;
  CHECK(transposed_tap_order(window) == std::vector<std::int32_t>{4, 3, 5, 1, 7, 0, 2, 6, 8});
  window.stride_h = window.stride_w = 1;
  CHECK(transposed_tap_order(window) == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("a tap order decides which source tap lies where") {
  const auto data = bytes_of(numbers(4));
  const std::vector<std::int32_t> order{3, 1, 0, 2};
  PackSource source = oihw(data, 1, 1, 4, 1);
  source.tap_order = order;
  model::Weight weight;
  describe_panels(source, std::array<std::int64_t, 4>{1, 2, 2, 1}, weight);
  const auto packed = pack_all(source, weight);
  for (std::size_t tap = 0; tap < 4; ++tap) CHECK(packed[tap * 16] == static_cast<float>(order[tap] + 1));
}

/// A dense [8, 96] weight of `bits`, with scales in `order`.
struct Quantised {
  Quantised(int bits, const ScaleOrder& order, float zero) : values(8 * 96, 1), scales(8 * 96, 0.5f), zeros(8 * 96, zero) {
    source.where = {.outputs = 8, .depth = 96, .outputs_per_group = 8, .output_stride = 96, .k_outer_stride = 1};
    source.values = values.data();
    source.bits = bits;
    source.scales = scales;
    source.zeros = zeros;
    source.order = order;
  }
  std::vector<std::int8_t> values;
  std::vector<float> scales, zeros;
  QuantisedSource source;
};

TEST_CASE("panels hold scales that runs of an output's values share, and no others") {
  const ScaleOrder whole{}, outputs{.inner = 96, .extent = 8}, inputs{.inner = 1, .extent = 96},
      blocks{.inner = 1, .extent = 96, .block = 32}, across{.inner = 96, .extent = 8, .block = 4},
      odd{.inner = 1, .extent = 96, .block = 3};
  const auto group_of = [](int bits, const ScaleOrder& order, float zero) -> std::int64_t {
    Quantised q(bits, order, zero);
    return fit_groups(q.source) ? q.source.group : -1;
  };
  CHECK(group_of(8, whole, 0.25f) == 0);
  CHECK(group_of(8, outputs, 0.25f) == 0);
  CHECK(group_of(8, inputs, 0) == -1);
  CHECK(group_of(8, across, 0) == -1);
  CHECK(group_of(8, blocks, -128) == 32);
  CHECK(group_of(8, blocks, 128) == -1);
  CHECK(group_of(8, blocks, 0.5f) == -1);
  CHECK(group_of(8, odd, 0) == 3);
  CHECK(group_of(4, outputs, 7) == 96);
  CHECK(group_of(4, blocks, 15) == 32);
  CHECK(group_of(4, blocks, 7.5f) == -1);
  CHECK(group_of(4, odd, 0) == -1);
  CHECK(group_of(2, blocks, 3) == 32);
}

TEST_CASE("integers lie four inputs of a lane beside each other, each tap padded to four, depthwise ones tap by tap") {
  std::vector<std::int8_t> values;
  for (int i = 0; i < 36 * 6 * 3; ++i) values.push_back(static_cast<std::int8_t>(i * 37 % 256 - 128));
  const auto at = [&](std::int64_t n, std::int64_t tap, std::int64_t k) { return values[static_cast<std::size_t>((n * 6 + k) * 3 + tap)]; };
  const std::vector<std::byte> none;
  const IntegerSource source{oihw(none, 36, 6, 3, 2), values.data(), false};
  model::Weight weight;
  describe_integers(source, std::array<std::int64_t, 4>{36, 1, 3, 6}, weight);
  CHECK(weight.panel_layout == model::PanelLayout{.layout = model::WeightLayout::kPanels, .dtype = DType::kI8, .k_interleave = 4});
  CHECK(weight.panels == 4);
  CHECK(weight.panel_bytes == Bytes(3 * 8 * 16));
  std::vector<std::byte> packed(weight.bytes.count(), std::byte{77});
  pack_integers(source, {0, weight.panels}, packed);
  std::int64_t wrong = 0;
  for (std::int64_t panel = 0; panel < 4; ++panel)
    for (std::int64_t tap = 0; tap < 3; ++tap)
      for (std::int64_t k = 0; k < 8; ++k)
        for (std::int64_t lane = 0; lane < 16; ++lane) {
          const std::int64_t within = panel % 2 * 16 + lane, n = panel / 2 * 18 + within;
          const std::int8_t want = within < 18 && k < 6 ? at(n, tap, k) : std::int8_t{0};
          const std::int64_t place = panel * 384 + ((tap * 2 + k / 4) * 16 + lane) * 4 + k % 4;
          wrong += static_cast<std::int8_t>(packed[static_cast<std::size_t>(place)]) != want ? 1 : 0;
        }
  CHECK(wrong == 0);
  std::vector<std::byte> part(2 * 384);
  pack_integers(source, {1, 3}, part);
  CHECK(std::equal(part.begin(), part.end(), packed.begin() + 384));

  const IntegerSource alone{oihw(none, 20, 1, 3, 20), values.data(), true};
  describe_integers(alone, std::array<std::int64_t, 3>{20, 1, 3}, weight);
  CHECK(weight.panel_layout == model::PanelLayout{.layout = model::WeightLayout::kDepthwise, .dtype = DType::kI8});
  CHECK(weight.panels == 2);
  CHECK(weight.panel_bytes == Bytes(64));
  packed.assign(128, std::byte{77});
  pack_integers(alone, {0, 2}, packed);
  CHECK(static_cast<std::int8_t>(packed[2 * 16 + 5]) == values[5 * 3 + 2]);
  CHECK(static_cast<std::int8_t>(packed[64 + 1 * 16 + 3]) == values[19 * 3 + 1]);
  CHECK(packed[64 + 4] == std::byte{0});
}

TEST_CASE("merged groups lie beside each other, with zeros for each other's inputs") {
  std::vector<std::int8_t> values;
  for (int i = 0; i < 40 * 3 * 2; ++i) values.push_back(static_cast<std::int8_t>(i % 100 + 1));
  const std::vector<std::byte> none;
  const IntegerSource source{oihw(none, 40, 3, 2, 8), values.data(), false, 4};  // eight groups of five outputs become two of twenty
  model::Weight weight;
  describe_integers(source, std::array<std::int64_t, 4>{40, 1, 2, 12}, weight);
  CHECK(weight.panels == 4);
  CHECK(weight.panel_bytes == Bytes(2 * 12 * 16));
  std::vector<std::byte> packed(weight.bytes.count(), std::byte{77});
  pack_integers(source, {0, 4}, packed);
  std::int64_t wrong = 0;
  for (std::int64_t panel = 0; panel < 4; ++panel)
    for (std::int64_t tap = 0; tap < 2; ++tap)
      for (std::int64_t k = 0; k < 12; ++k)
        for (std::int64_t lane = 0; lane < 16; ++lane) {
          const std::int64_t within = panel % 2 * 16 + lane, n = panel / 2 * 20 + within;
          const bool own = within < 20 && k / 3 == within / 5;
          const std::int8_t want = own ? values[static_cast<std::size_t>((n * 3 + k % 3) * 2 + tap)] : std::int8_t{0};
          const std::int64_t place = panel * 384 + ((tap * 3 + k / 4) * 16 + lane) * 4 + k % 4;
          wrong += static_cast<std::int8_t>(packed[static_cast<std::size_t>(place)]) != want ? 1 : 0;
        }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace sluice::kernels

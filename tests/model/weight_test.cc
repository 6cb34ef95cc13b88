#include "sluice/model/weight.h"

#include <catch2/catch.hpp>

namespace sluice::model {

TEST_CASE("panels of channels and channels of panels are inverse") {
  // Groups of 16 and more fill whole panels each; narrower ones share them.
  for (const std::int64_t per_group : {1, 4, 12, 16, 20, 24, 32, 48}) {
    const std::int64_t groups = 4;
    const std::int64_t outputs = groups * per_group;
    const std::int64_t panels = panel_count(outputs, per_group);
    CHECK(channels_of_panels({0, panels}, per_group, outputs) == ChannelRange{0, outputs});
    std::int64_t next = 0;
    for (std::int64_t p = 0; p < panels; ++p) {
      const ChannelRange channels = channels_of_panels({p, p + 1}, per_group, outputs);
      CHECK(channels.begin == next);
      CHECK(channels.size() > 0);
      CHECK(channels.size() <= kPanelLanes);
      CHECK(panels_of_channels(channels, per_group) == PanelRange{p, p + 1});
      next = channels.end;
    }
    CHECK(next == outputs);
  }
}

TEST_CASE("a slice of a weight is the bytes of its panels") {
  Weight weight;
  weight.panels = 5;
  weight.panel_bytes = Bytes(192);
  weight.offset = Bytes(4096);
  weight.bytes = Bytes(5 * 192);
  CHECK(panel_range(weight, {0, 5}) == weight.range());
  CHECK(panel_range(weight, {2, 4}) == FileRange{Bytes(4096 + 2 * 192), Bytes(2 * 192)});
  CHECK(panel_range(weight, {3, 3}).size == Bytes(0));
}

TEST_CASE("panels of floats and of quantised values have these bytes, and other forms none") {
  const auto bytes = [](DType dtype, int k_block, int k_group, std::uint64_t values) -> std::uint64_t {
    const PanelLayout layout{.layout = WeightLayout::kPanels,
                             .dtype = dtype,
                             .k_block = static_cast<std::uint8_t>(k_block),
                             .k_group = static_cast<std::uint16_t>(k_group),
                             .scale = dtype == DType::kF32 ? PanelScale::kNone : PanelScale::kF32};
    return panel_bytes_of(layout, values).value_or(Bytes()).count();
  };
  CHECK(bytes(DType::kF32, 1, 0, 10) == 640);
  CHECK(bytes(DType::kI8, 1, 0, 100) == 128 + 1600);
  CHECK(bytes(DType::kI8, 1, 32, 64) == 2 * (80 + 512) + 32);  // up to the next 64
  CHECK(bytes(DType::kU8, 2, 32, 33) == 2 * (80 + 256) + 32);
  CHECK(bytes(DType::kU8, 4, 32, 32) == 80 + 128 + 48);
  CHECK(bytes(DType::kU8, 2, 0, 32) == 0);
  CHECK(bytes(DType::kU8, 2, 31, 32) == 0);
  CHECK(bytes(DType::kU8, 4, 30, 32) == 0);
  CHECK(bytes(DType::kU8, 0, 32, 32) == 0);
  CHECK(bytes(DType::kU8, 3, 33, 32) == 0);
  CHECK(bytes(DType::kI8, 2, 32, 32) == 0);
  CHECK(bytes(DType::kU8, 2, 32, ~std::uint64_t{0}) == 0);
}

TEST_CASE("panels of integers alone, of 16 bits and of half scales have the bytes that the format gives them") {
  const auto bytes = [](const PanelLayout& layout, std::uint64_t values) {
    return panel_bytes_of(layout, values).value_or(Bytes()).count();
  };
  constexpr WeightLayout kPanels = WeightLayout::kPanels;
  CHECK(bytes({.layout = kPanels, .dtype = DType::kF16}, 10) == 320);
  CHECK(bytes({.layout = kPanels, .dtype = DType::kBF16}, 11) == 384);  // 352, up to the next 64
  CHECK(bytes({.layout = kPanels, .dtype = DType::kI8, .k_interleave = 4}, 12) == 192);
  CHECK(bytes({.layout = kPanels, .dtype = DType::kI8, .k_interleave = 4}, 10) == 0);  // K is padded before
  CHECK(bytes({.layout = kPanels, .dtype = DType::kI8, .k_interleave = 2}, 12) == 0);
  CHECK(bytes({.layout = WeightLayout::kDepthwise, .dtype = DType::kI8}, 9) == 192);
  CHECK(bytes({.layout = WeightLayout::kDepthwise, .dtype = DType::kI8, .k_interleave = 4}, 12) == 0);
  CHECK(bytes({.layout = kPanels, .dtype = DType::kI8}, 12) == 0);  // neither scales nor interleaved
  CHECK(bytes({.layout = kPanels, .dtype = DType::kF32, .k_interleave = 4}, 12) == 0);
  // Blocks of 32 of four bits: 4.5 bits a value.
  CHECK(bytes({.layout = kPanels, .dtype = DType::kU8, .k_block = 2, .k_group = 32, .scale = PanelScale::kF16}, 64) == 64 * 16 * 9 / 16);
  CHECK(bytes({.layout = kPanels, .dtype = DType::kI8, .k_group = 32, .scale = PanelScale::kF16}, 64) == 2 * (32 + 512));
  CHECK(bytes({.layout = kPanels, .dtype = DType::kI8, .scale = PanelScale::kF16}, 64) == 0);
  CHECK(bytes({.layout = kPanels, .dtype = DType::kF32, .side = PanelSide::kInputs}, 10) == 640);
  // The bitmap of 100 blocks, and the blocks.
  CHECK(bytes({.layout = WeightLayout::kSparse, .dtype = DType::kF32}, 100) == 64 + 6400);
  CHECK(bytes({.layout = WeightLayout::kSparse, .dtype = DType::kI8, .k_interleave = 4}, 100) == 64 + 1600);
  CHECK(bytes({.layout = WeightLayout::kSparse, .dtype = DType::kF32, .side = PanelSide::kInputs}, 100) == 0);
}

TEST_CASE("interleaved panels pad each tap's inputs") {
  Weight weight;
  weight.shape = {32, 3, 3, 10};
  weight.panel_layout = {.layout = WeightLayout::kPanels, .dtype = DType::kI8, .k_interleave = 4};
  CHECK(values_of_lane(weight) == 9 * 12);
  weight.panel_layout = {.layout = WeightLayout::kPanels};
  CHECK(values_of_lane(weight) == 9 * 10);
}

TEST_CASE("a slice of a sparse weight lies between the ends of its panels") {
  Weight weight;
  weight.panel_layout.layout = WeightLayout::kSparse;
  weight.panels = 3;
  weight.panel_bytes = Bytes(1024);
  weight.offset = Bytes(4096);
  weight.panel_ends = {2, 10, 11};
  weight.bytes = Bytes(11 * 64);
  CHECK(panel_range(weight, {0, 3}) == weight.range());
  CHECK(panel_range(weight, {0, 1}) == FileRange{Bytes(4096), Bytes(128)});
  CHECK(panel_range(weight, {1, 3}) == FileRange{Bytes(4096 + 128), Bytes(9 * 64)});
}

}  // namespace sluice::model

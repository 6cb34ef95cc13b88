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
    const PanelLayout layout{WeightLayout::kPanels, dtype, 16, static_cast<std::uint8_t>(k_block), static_cast<std::uint16_t>(k_group)};
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

}  // namespace sluice::model

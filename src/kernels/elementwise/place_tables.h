// Where the values of a resized row come from, where channels are so few that a call a pixel takes longer than the pixel: for each tap of
// the columns a place and a weight for each value of the row, the same for all rows, in the workspace behind the columns' taps.
#pragma once

#include <array>
#include <cstdint>

#include "sluice/core/tensor.h"
#include "sluice/core/units.h"
#include "src/kernels/elementwise/runs.h"
#include "src/kernels/reference/resize_taps.h"

namespace sluice::kernels::elementwise {

class PlaceTables {
 public:
  static constexpr std::int64_t kMostChannels = 8;

  static bool fits(std::int64_t channels) noexcept { return channels <= kMostChannels; }
  /// Bytes for rows of so many values.
  static std::uint64_t bytes(std::int64_t values) noexcept { return kMostTaps * (sizeof(std::int32_t) + sizeof(float)) * padded(values); }

  /// `taps`: of each pixel of an output row. `memory`: 64-byte aligned.
  PlaceTables(const ResizeTaps* taps, const RowView& in, const RowView& out, std::byte* memory) noexcept : columns_(taps[0].count) {
    const std::uint64_t values = padded(out.pixels * out.channels);
    for (std::size_t t = 0; t < static_cast<std::size_t>(columns_); ++t) {
      auto* places = reinterpret_cast<std::int32_t*>(memory) + t * values;
      auto* weights = reinterpret_cast<float*>(memory) + (kMostTaps + t) * values;
      places_[t] = places;
      weights_[t] = weights;
      const std::int64_t pitch = in.pixel_pitch / static_cast<std::int64_t>(sizeof(float));
      for (std::int64_t x = 0; x < out.pixels; ++x)
        for (std::int64_t c = 0; c < out.channels; ++c) {
          *places++ = static_cast<std::int32_t>(taps[x].source[t] * pitch + c);
          *weights++ = taps[x].weight[t];
        }
      // A vector may be read beyond the last value: of places that are there.
      for (std::uint64_t rest = static_cast<std::uint64_t>(out.pixels * out.channels); rest < values; ++rest)
        *places++ = 0, *weights++ = 0.0f;
    }
  }
  /// Have all pixels as many taps, and do places fit their type?
  static bool even(const ResizeTaps* taps, const RowView& in, const RowView& out) noexcept {
    for (std::int64_t x = 0; x < out.pixels; ++x)
      if (taps[x].count != taps[0].count) return false;
    return out.pixels > 0 && in.pixels * in.pixel_pitch <= INT32_MAX;
  }

  /// One output row, of which all pixels lie behind each other, made of `count` rows with their weights.
  PlaceRun run(const float* const* rows, const float* weights, int count) const noexcept {
    return {rows, weights, count, columns_, places_.data(), weights_.data()};
  }
  /// Of the first tap.
  const std::int32_t* places() const noexcept { return places_[0]; }

 private:
  static constexpr std::size_t kMostTaps = 4;
  static std::uint64_t padded(std::int64_t values) noexcept { return align_up(static_cast<std::uint64_t>(values) + 16, 16); }

  int columns_;
  std::array<const std::int32_t*, kMostTaps> places_{};
  std::array<const float*, kMostTaps> weights_{};
};

}  // namespace sluice::kernels::elementwise

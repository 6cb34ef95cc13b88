// Parameters of operators that move elements: concatenation, slices, padding, transposition, reshaping, resizing.
#pragma once

#include <array>
#include <cstdint>

#include "sluice/core/shape.h"
#include "sluice/core/window.h"
#include "sluice/operators/parameters/parameters.h"

namespace sluice::operators {

struct ConcatParameters {
  int axis = 0;
};

struct SliceParameters {  // out[i] = in[start + i * step], per axis; rank of the input
  std::array<std::int64_t, Shape::kMaxRank> start{};
  std::array<std::int64_t, Shape::kMaxRank> step{};
};

struct PadParameters {  // negative amounts crop
  PadMode mode = PadMode::kConstant;
  float value = 0.0f;
  std::array<std::int64_t, Shape::kMaxRank> before{};
};

struct ResizeParameters {  // one scale an axis; axes that keep their extent have scale 1
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kRoundPreferFloor;
  float cubic_a = -0.75f;
  std::array<float, Shape::kMaxRank> scale{};
  std::int64_t out_columns = 1;   // pixels of an output row
  std::int64_t out_channels = 1;  // of an output pixel
};

struct TransposeParameters {  // out axis i is in axis perm[i]
  std::array<std::int8_t, Shape::kMaxRank> perm{};
};

/// The same elements in the same order.
struct ReshapeParameters {};

static_assert(kIsParameters<ConcatParameters> && kIsParameters<SliceParameters> && kIsParameters<PadParameters>);
static_assert(kIsParameters<ResizeParameters> && kIsParameters<TransposeParameters> && kIsParameters<ReshapeParameters>);

}  // namespace sluice::operators

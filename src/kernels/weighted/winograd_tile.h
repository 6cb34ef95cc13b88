// The inner loops of Winograd convolutions, one copy an instruction set. Offsets and steps count floats.
#pragma once

#include <cstdint>

#include "src/kernels/weighted/narrow.h"
#include "src/kernels/weighted/tile.h"
#include "src/kernels/weighted/winograd_points.h"

namespace sluice::kernels::weighted {

/// Panels multiplied at a time, and what they take of m for each square.
inline constexpr std::int64_t kPairPanels = 2;
inline constexpr std::int64_t kSquareFloats = kPairPanels * 16;

/// A run of channels of raw panels that follow each other: 9 taps each, `tap` apart, of depth x 16 lanes.
struct RawPanels {
  const float* data = nullptr;
  std::int64_t tap = 0;
  std::int64_t depth = 0;
};

/// m = v u, or m += v u, for all points of a block of squares, at most a pair of panels and a run of channels.
struct Products {
  const float* v = nullptr;
  std::int64_t v_point = 0;
  std::int64_t v_square = 0;
  std::int64_t squares = 0;
  const float* u = nullptr;
  std::int64_t u_point = 0;
  std::int64_t u_panel = 0;
  int panels = 0;
  std::int64_t depth = 0;
  float* m = nullptr;
  std::int64_t m_point = 0;
  bool first = true;  // m holds nothing yet
  RawPanels next;     // as many and as deep, for the tiles to fetch into L2 while they multiply; no data: none
};

/// The inner loops of one instruction set.
struct WinogradTable {
  /// B' d B of one square: `pixels` are its 36 inputs, row by row, of `depth` channels each. Writes whole vectors of v.
  void (*input)(const float* const* pixels, std::int64_t depth, float* v, std::int64_t point) noexcept = nullptr;
  /// G g G' of a panel: 36 points of depth x 16 lanes.
  void (*weights)(const RawPanels& panel, float* u, std::int64_t point) noexcept = nullptr;
  void (*multiply)(const Products& job) noexcept = nullptr;
  Widen widen = nullptr;  // of narrow panels, before `weights` transforms them; null: of f32
  /// A' m A and the epilogue of one square: rows.out[4 * y + x] gets output (y, x), of job.panel_count panels.
  void (*output)(const float* m, std::int64_t point, const TileRows& rows, const TileJob& job) noexcept = nullptr;
};

/// The table for an instruction set, or for the nearest lower one this build has. `isa` must be one that the CPU has.
const WinogradTable& winograd_table(Isa isa) noexcept;
/// The same for narrow panels.
const WinogradTable& narrow_winograd_table(Isa isa, NarrowForm form) noexcept;

}  // namespace sluice::kernels::weighted

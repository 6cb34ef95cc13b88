// Narrow panels: values of fewer bits than the floats that they stand for (core/panels.h, is_narrow). A part of a block of panels becomes
// floats in the workspace, once for a run of tiles, which then multiply by them as by panels of f32:
//
//     narrow panels  --widen--> [count][16] floats of a pair of panels --> tile 0, tile 1, ... tile 15     (unfinished sums wait in
//     between) the next part  --widen--> the same room                          --> tile 0, tile 1, ... tile 15
//
// So each output is the chain of fused multiply-adds that it would be over a panel of those floats, bit for bit, and tiles take as long.
#pragma once

#include <cstddef>

#include "sluice/core/panels.h"
#include "sluice/kernels/call.h"
#include "src/kernels/weighted/tile.h"

namespace sluice::kernels::weighted {

enum class NarrowForm : std::uint8_t { kEightBits, kFourBits, kTwoBits, kBf16, kF16, kFourBitsOfHalfScales };

inline constexpr std::size_t kNarrowForms = 6;

Widen widen_of(Isa isa, NarrowForm form) noexcept;

/// The tiles of f32 panels, and `widen` before them. TileJob::panels points at bytes, panel_floats counts 4 of them.
const TileTable& narrow_tile_table(Isa isa, NarrowForm form) noexcept;

/// Tiles that share what is widened: enough that widening takes a fiftieth of their time, and few enough for their sums to stay near.
inline constexpr int kHeldTiles = 16;
/// Floats that are widened at one time: of a pair of panels 256 values, so that tiles go back to their sums rarely; half of L1 or all of
/// it.
inline constexpr std::int64_t kWidenedFloats = 256 * 32;

/// A thread's part of the workspace.
struct alignas(64) NarrowRoom {
  float widened[kWidenedFloats];
  float sums[kHeldTiles * kTileSums];
  TileRows held[kHeldTiles];
};
/// What the rooms of a step take: none where its panels are of f32.
Bytes narrow_rooms(const PanelLayout& layout, int threads) noexcept;

/// Runs the tiles of a unit: those over f32 panels at once, others in runs.
class TileRunner {
 public:
  /// `rooms`: narrow_rooms in the workspace, where there are any.
  TileRunner(const TileTable& tiles, std::byte* rooms, int thread) noexcept
      : tiles_(tiles), room_(tiles.widen == nullptr ? nullptr : reinterpret_cast<NarrowRoom*>(rooms) + thread) {}

  void run(const TileRows& rows, const TileJob& job) noexcept {
    if (room_ == nullptr) return tiles_.panels(rows, job);
    room_->held[count_++] = rows;
    if (count_ == kHeldTiles) finish(job);
  }
  bool widens() const noexcept { return room_ != nullptr; }
  /// The tiles that wait. To be called before the job's panels or inputs change, and at the end.
  void finish(const TileJob& job) noexcept;

 private:
  void run_panels(const TileJob& job, int first, int count) noexcept;
  void run_part(const TileJob& job, TileJob part, int first, std::int64_t value) noexcept;

  const TileTable& tiles_;
  NarrowRoom* room_;
  int count_ = 0;
};

}  // namespace sluice::kernels::weighted

// Narrow panels: values of fewer bits than the floats that they stand for (core/panels.h, is_narrow). A part of a block of panels becomes
// floats in the workspace, once for a run of tiles, which then multiply by them as by panels of f32:
//
//     narrow panels  --widen--> [count][16] floats of a pair of panels --> tile 0, tile 1, ... tile 15
//     the next part  --widen--> the same room                          --> tile 0, tile 1, ... tile 15
//
// Sums that are not finished wait between the parts.
//
// A step of so few pixels that each weight is used but once or a few times is bound by memory: there values become floats in registers, in
// the loop that multiplies by them.
//
// So each output is the chain of fused multiply-adds that it would be over a panel of those floats, bit for bit, and tiles take as long.
#pragma once

#include <cstddef>

#include "sluice/core/panels.h"
#include "sluice/core/work.h"
#include "sluice/kernels/call.h"
#include "sluice/kernels/kernel_ids.h"
#include "sluice/operators/parameters/weighted.h"
#include "src/core/build_list.h"
#include "src/kernels/weighted/tile.h"

namespace sluice::kernels::weighted {

using operators::PanelGeometry;

/// Does this build have a kernel of narrow panels? One that was trimmed to models without them (core/build_list.h) widens nothing.
inline constexpr bool kHasNarrow = has_any_kernel(kernel_id::kDenseEightBits, kernel_id::kConvDirectEightBits) ||
                                   has_any_kernel(kernel_id::kDenseBf16, kernel_id::kConvWinogradFourBitsHalfScales) ||
                                   has_any_kernel(kernel_id::kDenseTwoBits, kernel_id::kConvTransposedFourBits) ||
                                   has_any_kernel(kernel_id::kRecurrentEightBits, kernel_id::kConvDepthwiseFourBitsHalfScales) ||
                                   has_any_kernel(kernel_id::kConvGroupedLanesEightBits, kernel_id::kConvGroupedLanesFourBitsHalfScales);

enum class NarrowForm : std::uint8_t { kEightBits, kFourBits, kTwoBits, kBf16, kF16, kFourBitsOfHalfScales };

inline constexpr std::size_t kNarrowForms = 6;

Widen widen_of(Isa isa, NarrowForm form) noexcept;

/// The tiles of f32 panels, and `widen` before them. TileJob::panels points at bytes, panel_floats counts 4 of them.
const TileTable& narrow_tile_table(Isa isa, NarrowForm form) noexcept;

/// Panels of a block that are widened whole, if their floats are no more than these: they are read from L2 as panels of f32 are. What is
/// longer goes in parts, and each part costs its tiles their sums in and out (of 576 x 32 floats, ViT-B/16 took 1.04 of the time with f32
/// where it takes 1.00; of 128 x 32 GPT-2 took 1.09, now 1.01).
inline constexpr std::int64_t kWidenedFloats = 1024 * 32;
/// Where they are more, tiles that share a part: enough that widening takes a fiftieth of their time, and few enough for their sums to stay
/// near.
inline constexpr int kHeldTiles = 16;

/// Panels that stay together in a block of a node without groups, at most.
inline constexpr std::int64_t kMostGranule = 4;

/// A thread's part of the workspace: this, then `floats` widened ones, then unfinished sums, then tiles.
struct alignas(64) NarrowRoom {
  std::int64_t held_panel;  // what `widened` holds: the first panel, how many, and the first value; -1: nothing
  std::int64_t held_panels;
  std::int64_t held_value;
  std::int64_t floats;
  bool stored;  // tiles multiply by panels as they lie, and nothing is widened
  float* widened;
  float* sums;  // of all tiles that wait; none of these where panels are widened whole
  TileRows* tiles;
  int most_tiles;
};

/// What a step says of its rooms.
struct NarrowStep {
  PanelGeometry geometry;
  std::int64_t pixels = 0;        // of all of its rows
  std::int64_t block_panels = 0;  // at most: a granule, or, of a grouped node, the panels of a group
  int threads = 1;
};

/// The rooms of a step's threads.
class NarrowRooms {
 public:
  /// What they take of the workspace: nothing where panels are of f32.
  static Bytes bytes(const NarrowStep& step) noexcept { return kHasNarrow ? bytes_if_narrow(step) : Bytes(); }

  NarrowRooms(const TileTable& tiles, const NarrowStep& step, std::byte* memory) noexcept
      : memory_(!kHasNarrow || tiles.widen == nullptr ? nullptr : memory) {
    if (kHasNarrow && memory_ != nullptr) make(tiles, step);
  }
  NarrowRoom* room(int thread) const noexcept {
    return !kHasNarrow || memory_ == nullptr ? nullptr
                                             : reinterpret_cast<NarrowRoom*>(memory_ + static_cast<std::uint64_t>(thread) * each_);
  }

 private:
  static Bytes bytes_if_narrow(const NarrowStep& step) noexcept;
  void make(const TileTable& tiles, const NarrowStep& step) noexcept;

  std::byte* memory_;  // null: of f32
  std::uint64_t each_ = 0;
};

inline NarrowStep narrow_step(const operators::WeightedParameters& weighted, std::int64_t groups, const StepExtent& extent) noexcept {
  const std::int64_t of_a_group = ceil_div(weighted.panels.outputs_per_group, std::int64_t{kPanelLanes});
  return {weighted.panels, extent.rows.size() * weighted.out_pixels, groups == 1 ? kMostGranule : of_a_group, extent.threads};
}

/// Runs the tiles of a unit. Over f32 panels that is all. Narrow ones are widened first, whole if there is room, and kept for the next unit
/// of this block; else tiles are collected, and each part of the panels is widened for all of them.
class TileRunner {
 public:
  TileRunner(const TileTable& tiles, const NarrowRooms& rooms, int thread) noexcept : tiles_(tiles), room_(rooms.room(thread)) {}

  /// Before the first tile of a job, and whenever its panels change. `first_panel`: of the whole weight.
  void begin(TileJob& job, std::int64_t first_panel) noexcept {
    if (widens()) widen_whole(job, first_panel);
  }
  void run(const TileRows& rows, const TileJob& job) noexcept {
    if (!widens()) return tiles_.panels(rows, job);
    run_narrow(rows, job);
  }
  /// The tiles that wait. To be called before the job's panels or inputs change, and at the end.
  void finish(const TileJob& job) noexcept {
    if (kHasNarrow && count_ > 0) run_held(job);
  }
  bool widens() const noexcept { return kHasNarrow && room_ != nullptr; }

 private:
  void widen_whole(TileJob& job, std::int64_t first_panel) noexcept;
  void run_narrow(const TileRows& rows, const TileJob& job) noexcept;
  void run_held(const TileJob& job) noexcept;
  void run_panels(const TileJob& job, int first, int count) noexcept;
  void run_part(const TileJob& job, TileJob part, int first, std::int64_t value) noexcept;
  const TileTable& tiles_;
  NarrowRoom* room_;
  int shift_ = 0;  // stored panels are shorter than widened ones by this power of two, at least
  bool whole_ = false;
  int count_ = 0;
};

}  // namespace sluice::kernels::weighted

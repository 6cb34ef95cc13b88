// Movement as one engine: whatever moves elements and computes nothing is a list of strided copies.
//
//     transpose, slice, split, concatenation, expansion, depth to space: one copy, or one an operand
//     pad, crop, tile: one copy for each region whose sources lie evenly (regions.h)
//
// Way to here: `steps.cc` (operators of views) and the plain operators describe what is to move; `run` brings a copy into its normal form,
// finds what of it is contiguous, and hands the rest to the loops of `loops.h`.
//
//     element 4, axes { {784, 464, 464}, {58, 4, 8}, {2, 232, 4} }      a channel shuffle of two groups: the third axis is the target's
//                                                                       innermost, the second the source's, so pairs are interleaved
//
// Invariants: target elements do not overlap each other, steps of the target are positive, those of the source may be negative or 0 (a
// value repeated). Source and target are the same bytes (nothing is done then) or do not overlap. Nothing is allocated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/core/cpu.h"
#include "sluice/core/threads.h"

namespace sluice::kernels::movement {

/// Twice the rank of a tensor: an axis may be cut in two (blocks of depth to space, repeats of a tile).
inline constexpr int kMaxAxes = 16;

/// Neighbours along an axis lie `from` bytes apart in the source and `to` bytes in the target.
struct CopyAxis {
  std::int64_t extent = 1;
  std::int64_t from = 0;
  std::int64_t to = 0;
  friend bool operator==(const CopyAxis&, const CopyAxis&) = default;
};

struct StridedCopy {
  std::int64_t element = 1;  // bytes that stay together
  int rank = 0;
  std::array<CopyAxis, kMaxAxes> axes;  // in any order
  const std::byte* from = nullptr;
  std::byte* to = nullptr;

  void add(std::int64_t extent, std::int64_t from_step, std::int64_t to_step) noexcept {
    axes[static_cast<std::size_t>(rank++)] = {extent, from_step, to_step};
  }
  std::int64_t bytes() const noexcept;
};

/// The same copy with as few axes as possible: those of one place left out, ordered by falling step of the target, and neighbours merged
/// that lie behind each other in source and target. Elements that do so became one.
StridedCopy normalised(const StridedCopy& copy) noexcept;

/// Part `part` of `parts` of a copy; all of them together are the copy, and none overlaps another.
StridedCopy part_of(const StridedCopy& copy, std::int64_t part, std::int64_t parts) noexcept;

/// Copies. `isa` must be one that the CPU has.
void run(const StridedCopy& copy, Isa isa) noexcept;

/// Copies all of them, shared among threads where that pays; `pool` may be null.
void run(std::span<const StridedCopy> copies, ThreadPool* pool, Isa isa) noexcept;
inline void run(const StridedCopy& copy, ThreadPool* pool, Isa isa) noexcept { run(std::span(&copy, 1), pool, isa); }

}  // namespace sluice::kernels::movement

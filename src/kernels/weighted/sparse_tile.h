// The inner loops over sparse panels, one copy an instruction set. As in tile.h, a tile is a few pixels times the panels of a block, and
// each output is one chain of fused multiply-adds from 0, in the order of k; blocks that are zero are no part of it:
//
//     acc[row][lane] = sum over blocks b of rows.a[row][places[b]] * value(b, lane)
//
// Tiles of columns form the same sums with pixels in the lanes of a vector and an output's weight in all of them. Each input is loaded once
// for several outputs then, and each weight once for several vectors of pixels, while a tile of rows loads an input for each multiply-add.
// Their inputs are turned first, once for all panels:
//
//     strip:  value 0 of pixels 0, 1, ... | value 1 of pixels 0, 1, ... | ...
//
// Packed tiles have weights in the lanes, as tiles of rows, of many pixels. Their inputs are copied first, which takes half as long as
// turning them, and the end of their sums does not turn them back:
//
//     strip:  values 0-15 of pixels 0, 2, ... | of pixels 1, 3, ..., half a line further | values 16-31 of pixels 0, 2, ... | ...
//
// Tiles of rows whose pixels lie evenly, as those of neighbours do, take two panels at once (sparse_sums-inl.h).
//
// Where inputs are finite, a product with zero changes no sum, so that these are the sums of a panel with the zeros in it, but for the sign
// of a zero that a sum underflowed to (docs/quantisation.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/kernels/weighted/sparse_panels.h"
#include "src/kernels/weighted/tile.h"

namespace sluice::kernels::weighted {

/// The blocks of one panel that a tile multiplies by.
struct BlockList {
  const std::uint32_t* places = nullptr;  // where a row's input of each block lies, in floats
  const std::byte* values = nullptr;
  std::int64_t count = 0;
};

enum class SparseForm : std::uint8_t { kF32, kBf16, kF16 };
inline constexpr int kSparseForms = 3;

/// Panels that a tile takes at once, at most: with few rows the chains of one are too few to hide the latency of an FMA.
inline constexpr int kMostSparsePanels = 4;

/// Places that `list` may write behind the last one: a vector of them at a time.
inline constexpr std::int64_t kPlacesBehind = 16;

/// Vectors of pixels of a tile of columns, at most.
inline constexpr int kMostColumnVectors = 3;

/// Pixels of a packed strip, in tiles of so many; those that are missing to a multiple of kPackedStep are filled up.
inline constexpr int kPackedRows = 28;
inline constexpr int kPackedTileRows = 14;
inline constexpr int kPackedStep = 7;
/// Floats from 16 inputs of a packed pixel to the next 16.
inline constexpr int kPackedPitch = (kPackedRows + 1) * 16;

/// Inputs of the pixels behind those of a job, to be fetched into L2 while it runs. Empty: none.
struct NextInputs {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  bool before_weights = false;  // or the weights behind those in use come first
};

struct SparseTiles {
  int rows = 1;          // of a full tile
  int rows_of_part = 1;  // of one whose sums another step began or ends: the same where pixels lie evenly and where they do not
  /// Writes the places of the blocks of `values`, of which value i lies at `place` + i + i / 16 * `skip`; returns how many. `before`:
  /// blocks before them.
  std::int64_t (*list)(const SparsePanel& panel, Interval<std::int64_t> values, std::int64_t before, std::int64_t place, std::int64_t skip,
                       std::uint32_t* places) noexcept = nullptr;
  /// Uses of the job what concerns sums and epilogue; `lists` are of its panels. `next`: inputs that tiles of pixels that lie evenly fetch.
  void (*run)(const TileRows& rows, const TileJob& job, const BlockList* lists, const NextInputs& next) noexcept = nullptr;
  /// Turns `values` inputs of the pixels of `vectors` tiles of 16 rows each; null where vectors are shorter or registers too few.
  void (*turn)(const TileRows* tiles, int vectors, std::int64_t values, float* strip) noexcept = nullptr;
  /// As `run`, for pixels that were turned, and, beside kMostColumnVectors of them, for `lone`: one pixel, read where it lies, or none.
  /// Sums begin and end here; places are numbers of values.
  void (*run_columns)(const TileRows* tiles, int vectors, const TileRows& lone, const TileJob& job, const BlockList* lists,
                      const float* strip, const NextInputs& next) noexcept = nullptr;
  /// Copies `values` inputs of `count` pixels, kPackedTileRows a tile; null where there are no packed tiles.
  void (*pack)(const TileRows* tiles, int count, std::int64_t values, float* strip) noexcept = nullptr;
  /// As `run`, for so many pixels that were copied: a multiple of kPackedStep. Sums begin and end here.
  void (*run_packed)(const TileRows* tiles, int count, const TileJob& job, const BlockList* lists, const float* strip) noexcept = nullptr;
};

/// For an instruction set that the CPU has.
const SparseTiles& sparse_tiles(Isa isa, SparseForm form) noexcept;

}  // namespace sluice::kernels::weighted

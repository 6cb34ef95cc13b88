// How many rows and panels a tile of each instruction set has. Included once for each.
#if defined(SLUICE_WEIGHTED_TILE_SHAPE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_TILE_SHAPE_INL_H_
#undef SLUICE_WEIGHTED_TILE_SHAPE_INL_H_
#else
#define SLUICE_WEIGHTED_TILE_SHAPE_INL_H_
#endif

#include "hwy/highway.h"
#include "src/core/build_list.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

// Accumulators fill the registers and leave room for the weights of one k and one broadcast input: 28 of 32 (AVX-512), 12 of 16 (AVX2),
// 20 of 32 (NEON, where g++ spills at 24). Tiles of few rows take twice the panels, or more: as many chains. The scalar tile is small
// because its accumulators live in memory anyway.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kTileRows = 14;
inline constexpr int kTilePanels = 2;
inline constexpr int kFewRows = 7;
inline constexpr int kRowsOfThree = kSmallCode ? 0 : 9;
inline constexpr int kShortRows = 8;
inline constexpr int kMostLaneRows = 8;
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kTileRows = 6;
inline constexpr int kTilePanels = 1;
inline constexpr int kFewRows = 1;
inline constexpr int kRowsOfThree = 0;
inline constexpr int kShortRows = 0;
inline constexpr int kMostLaneRows = 4;
#elif HWY_TARGET == HWY_NEON
inline constexpr int kTileRows = 5;
inline constexpr int kTilePanels = 1;
inline constexpr int kFewRows = 1;
inline constexpr int kRowsOfThree = 0;
inline constexpr int kShortRows = 0;
inline constexpr int kMostLaneRows = 4;
#else
inline constexpr int kTileRows = 2;
inline constexpr int kTilePanels = 1;
inline constexpr int kFewRows = 0;
inline constexpr int kRowsOfThree = 0;
inline constexpr int kShortRows = 0;
inline constexpr int kMostLaneRows = 2;
#endif

// Where code is to be small and all windows slide (slide_tile-inl.h), these tiles take what is rare.
inline constexpr int kLaneRows = kSmallCode && kWindowsSlide ? 1 : kMostLaneRows;

// Of short sums, where a 512-bit FMA takes two passes: beyond it tiles of two panels are as fast, or faster.
inline constexpr int kMostShortProducts = 256;

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_TILE_SHAPE_INL_H_

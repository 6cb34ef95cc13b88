// The tables of the instruction sets, each in a file of its own.
#pragma once

#include "sluice/core/panels.h"
#include "src/kernels/integer/tile.h"

// clang 14 declares SDOT only where all code may use it.
#if defined(__aarch64__) && (!defined(__clang__) || defined(__ARM_FEATURE_DOTPROD))
#define SLUICE_HAS_NEON_DOT 1
#else
#define SLUICE_HAS_NEON_DOT 0
#endif

namespace sluice::kernels::integer {

extern const TileTable kScalarTable;
#if defined(__x86_64__)
extern const TileTable kAvx2Table, kAvx2VnniTable, kAvx512Table, kAvx512VnniTable;
/// The table for CPUs that have VBMI in addition to AVX-512.
void look_up_with_vbmi(const std::uint8_t* table, const std::uint8_t* in, std::uint8_t* out, std::int64_t n) noexcept;
#elif defined(__aarch64__)
extern const TileTable kNeonTable, kNeonDotTable;
#endif

}  // namespace sluice::kernels::integer

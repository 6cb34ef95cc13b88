#include "src/kernels/integer/tables.h"

namespace sluice::kernels::integer {

const TileTable& tile_table(DotIsa isa) noexcept {
  switch (isa) {
#if defined(__x86_64__)
    case DotIsa::kAvx2:
      return kAvx2Table;
    case DotIsa::kAvx2Vnni:
      return kAvx2VnniTable;
    case DotIsa::kAvx512:
      return kAvx512Table;
    case DotIsa::kAvx512Vnni:
      return kAvx512VnniTable;
#elif defined(__aarch64__)
    case DotIsa::kNeon:
      return kNeonTable;
    case DotIsa::kNeonDot:
#if SLUICE_HAS_NEON_DOT
      return kNeonDotTable;
#else
      return kNeonTable;
#endif
#endif
    default:
      return kScalarTable;
  }
}

const TileTable& table_of(Isa isa) noexcept { return tile_table(dot_isa_of(isa)); }

}  // namespace sluice::kernels::integer

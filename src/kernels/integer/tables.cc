#include "src/kernels/integer/tables.h"

namespace sluice::kernels::integer {
namespace {

#if defined(__x86_64__)
TileTable with_vbmi(TileTable table) noexcept {
  if (__builtin_cpu_supports("avx512vbmi")) table.look_up = look_up_with_vbmi;
  return table;
}
#endif

}  // namespace

const TileTable& tile_table(DotIsa isa) noexcept {
  switch (isa) {
#if defined(__x86_64__)
    case DotIsa::kAvx2:
      return kAvx2Table;
    case DotIsa::kAvx2Vnni:
      return kAvx2VnniTable;
    case DotIsa::kAvx512: {
      static const TileTable table = with_vbmi(kAvx512Table);
      return table;
    }
    case DotIsa::kAvx512Vnni: {
      static const TileTable table = with_vbmi(kAvx512VnniTable);
      return table;
    }
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

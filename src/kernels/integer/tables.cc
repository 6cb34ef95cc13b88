#include "src/kernels/integer/tables.h"

#include "src/core/build_list.h"

namespace sluice::kernels::integer {
namespace {

#if defined(__x86_64__)
TileTable with_vbmi(TileTable table) noexcept {
  if (__builtin_cpu_supports("avx512vbmi")) table.look_up = look_up_with_vbmi;
  return table;
}

const TileTable& avx2_table(DotIsa isa) noexcept {
  if constexpr (has_code_for(Isa::kAvx2)) return isa == DotIsa::kAvx2Vnni ? kAvx2VnniTable : kAvx2Table;
  return static_cast<void>(isa), kScalarTable;
}

const TileTable& avx512_table(DotIsa isa) noexcept {
  if constexpr (has_code_for(Isa::kAvx512)) {
    static const TileTable plain = with_vbmi(kAvx512Table), vnni = with_vbmi(kAvx512VnniTable);
    return isa == DotIsa::kAvx512Vnni ? vnni : plain;
  }
  return static_cast<void>(isa), kScalarTable;
}
#endif

}  // namespace

const TileTable& tile_table(DotIsa isa) noexcept {
  switch (isa) {
#if defined(__x86_64__)
    case DotIsa::kAvx2:
    case DotIsa::kAvx2Vnni:
      return avx2_table(isa);
    case DotIsa::kAvx512:
    case DotIsa::kAvx512Vnni:
      return avx512_table(isa);
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

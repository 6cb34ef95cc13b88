#include "src/kernels/integer/tables.h"

namespace sluice::kernels::integer {

const TileTable& tile_table(DotIsa isa) noexcept {
  switch (isa) {
#if defined(__x86_64__)
    case DotIsa::kAvx512Vnni:
      return kAvx512VnniTable;
#elif defined(__aarch64__)
#endif
    default:
      return kScalarTable;
  }
}

const TileTable& table_of(Isa isa) noexcept { return tile_table(dot_isa_of(isa)); }

}  // namespace sluice::kernels::integer

// NEON with SDOT: four products and their sum an instruction.
#include "src/kernels/integer/tables.h"
#if SLUICE_HAS_NEON_DOT
#include <arm_neon.h>

#include "src/kernels/integer/target.h"

SLUICE_BEGIN_TARGET("arch=armv8.2-a+dotprod")
namespace sluice::kernels::integer {
namespace {

#include "src/kernels/integer/neon-inl.h"
struct V : Neon {
  static constexpr int kRows = 5;  // 20 registers of sums, 4 of weights, 4 of their sums, 1 of values

  static SLUICE_INLINE Sums dot(Sums sums, Values values, Weights weights) {
    return reinterpret_cast<Sums>(vdotq_s32(reinterpret_cast<int32x4_t>(sums), values, weights));
  }

  using Correction = int32x4_t;  // the sum of the weights
  static SLUICE_INLINE Correction no_correction() { return vdupq_n_s32(0); }
  static SLUICE_INLINE void correct(Correction& correction, Weights weights) { correction = vdotq_s32(correction, vdupq_n_s8(1), weights); }
  static SLUICE_INLINE Sums corrected(Sums sums, Correction correction) {
    return reinterpret_cast<Sums>(vaddq_s32(reinterpret_cast<int32x4_t>(sums), vshlq_n_s32(correction, 7)));
  }
  static SLUICE_INLINE Sums dot_exact(Sums sums, Values values, Weights weights) {
    Correction correction = no_correction();
    correct(correction, weights);
    return corrected(dot(sums, values, weights), correction);
  }
};

#include "src/kernels/integer/inner-inl.h"

}  // namespace

extern const TileTable kNeonDotTable = table_for(DotIsa::kNeonDot);

}  // namespace sluice::kernels::integer
SLUICE_END_TARGET
#endif

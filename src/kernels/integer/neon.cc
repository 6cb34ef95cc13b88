// NEON: products of bytes are 16 bits wide, and added pair by pair.
#if defined(__aarch64__)
#include <arm_neon.h>

#include "src/kernels/integer/tables.h"
#include "src/kernels/integer/target.h"

namespace sluice::kernels::integer {
namespace {

#include "src/kernels/integer/neon-inl.h"
struct V : Neon {
  static constexpr int kRows = 4;

  /// Of four lanes. A product is at most 2^14, their sums fit 32 bits.
  static SLUICE_INLINE int32x4_t sum_of_four(Values values, Weights weights) {
    const int16x8_t low = vmull_s8(vget_low_s8(values), vget_low_s8(weights)), high = vmull_high_s8(values, weights);
    return vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
  }
  static SLUICE_INLINE Sums dot(Sums sums, Values values, Weights weights) {
    return reinterpret_cast<Sums>(vaddq_s32(reinterpret_cast<int32x4_t>(sums), sum_of_four(values, weights)));
  }

  using Correction = int32x4_t;  // the sum of the weights
  static SLUICE_INLINE Correction no_correction() { return vdupq_n_s32(0); }
  static SLUICE_INLINE void correct(Correction& correction, Weights weights) {
    correction = vaddq_s32(correction, vpaddlq_s16(vpaddlq_s8(weights)));
  }
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

extern const TileTable kNeonTable = table_for(DotIsa::kNeon);

}  // namespace sluice::kernels::integer
#endif

// AVX2 with AVX-VNNI: four products and their sum an instruction.
#if defined(__x86_64__)
#include <immintrin.h>

#include "src/kernels/integer/tables.h"
#include "src/kernels/integer/target.h"

SLUICE_BEGIN_TARGET("avx2,fma,f16c,avxvnni")
namespace sluice::kernels::integer {
namespace {

#include "src/kernels/integer/avx2-inl.h"

struct V : Avx2 {
  static constexpr int kRows = 6;  // 12 registers of sums, 2 of weights, 1 of values
  static constexpr int kFewRows = 0;

  using Weights = __m256i;
  using Values = __m256i;
  static SLUICE_INLINE Weights weights(const std::int8_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
  static SLUICE_INLINE Values values_of(ByteVector fours) { return fours; }
  static SLUICE_INLINE Values values(const std::uint8_t* from) {
    int word;
    __builtin_memcpy(&word, from, sizeof word);
    return _mm256_set1_epi32(word);
  }
  static SLUICE_INLINE Sums dot(Sums sums, Values values, Weights weights) { return _mm256_dpbusd_avx_epi32(sums, values, weights); }
  static SLUICE_INLINE Sums dot_exact(Sums sums, Values values, Weights weights) { return dot(sums, values, weights); }
};

#include "src/kernels/integer/inner-inl.h"

}  // namespace

extern const TileTable kAvx2VnniTable = table_for(DotIsa::kAvx2Vnni);

}  // namespace sluice::kernels::integer
SLUICE_END_TARGET
#endif

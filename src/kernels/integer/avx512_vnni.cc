// AVX-512 with VNNI: four products and their sum an instruction.
#if defined(__x86_64__)
#include <immintrin.h>

#include "src/kernels/integer/tables.h"
#include "src/kernels/integer/target.h"

SLUICE_BEGIN_TARGET("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq,avx512cd,avx512vnni")
namespace sluice::kernels::integer {
namespace {

#include "src/kernels/integer/avx512-inl.h"

struct V : Avx512 {
  using Weights = __m512i;
  using Values = __m512i;
  static SLUICE_INLINE Weights weights(const std::int8_t* from) { return _mm512_loadu_si512(from); }
  static SLUICE_INLINE Values values(const std::uint8_t* from) {
    int word;
    __builtin_memcpy(&word, from, sizeof word);
    return _mm512_set1_epi32(word);
  }
  static SLUICE_INLINE Sums dot(Sums sums, Values values, Weights weights) { return _mm512_dpbusd_epi32(sums, values, weights); }
  static SLUICE_INLINE Values values_of(ByteVector fours) { return fours; }
  static SLUICE_INLINE Sums dot_exact(Sums sums, Values values, Weights weights) { return dot(sums, values, weights); }
};

#include "src/kernels/integer/inner-inl.h"

}  // namespace

extern const TileTable kAvx512VnniTable = table_for(DotIsa::kAvx512Vnni);

}  // namespace sluice::kernels::integer
SLUICE_END_TARGET
#endif

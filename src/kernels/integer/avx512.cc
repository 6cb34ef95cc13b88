// AVX-512 without VNNI: products of values and weights of 16 bits, of which vpmaddwd adds two and two. Even and odd bytes of a group of
// four are pairs: nothing is shuffled, and no product is near the bounds of 32 bits.
#if defined(__x86_64__)
#include <immintrin.h>

#include "src/kernels/integer/tables.h"
#include "src/kernels/integer/target.h"

SLUICE_BEGIN_TARGET("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq,avx512cd")
namespace sluice::kernels::integer {
namespace {

#include "src/kernels/integer/avx512-inl.h"

struct V : Avx512 {
  struct Weights {
    __m512i even, odd;
  };
  using Values = Weights;
  static SLUICE_INLINE Weights weights(const std::int8_t* from) {
    const __m512i fours = _mm512_loadu_si512(from);
    return {_mm512_srai_epi16(_mm512_slli_epi16(fours, 8), 8), _mm512_srai_epi16(fours, 8)};
  }
  static SLUICE_INLINE Values values_of(ByteVector fours) {
    return {_mm512_and_si512(fours, _mm512_set1_epi16(0xff)), _mm512_srli_epi16(fours, 8)};
  }
  static SLUICE_INLINE Values values(const std::uint8_t* from) {
    int word;
    __builtin_memcpy(&word, from, sizeof word);
    return values_of(_mm512_set1_epi32(word));
  }
  static SLUICE_INLINE Sums dot(Sums sums, Values values, Weights weights) {
    const Sums even = _mm512_add_epi32(sums, _mm512_madd_epi16(values.even, weights.even));
    return _mm512_add_epi32(even, _mm512_madd_epi16(values.odd, weights.odd));
  }
  static SLUICE_INLINE Sums dot_exact(Sums sums, Values values, Weights weights) { return dot(sums, values, weights); }
};

#include "src/kernels/integer/inner-inl.h"

}  // namespace

extern const TileTable kAvx512Table = table_for(DotIsa::kAvx512);

}  // namespace sluice::kernels::integer
SLUICE_END_TARGET
#endif

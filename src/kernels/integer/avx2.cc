// AVX2: products of values and weights of 16 bits, of which vpmaddwd adds two and two; see avx512.cc. vpmaddubsw would saturate.
#if defined(__x86_64__)
#include <immintrin.h>

#include "src/kernels/integer/tables.h"
#include "src/kernels/integer/target.h"

SLUICE_BEGIN_TARGET("avx2,fma,f16c")
namespace sluice::kernels::integer {
namespace {

#include "src/kernels/integer/avx2-inl.h"

struct V : Avx2 {
  static constexpr int kRows = 4;  // 8 registers of sums, 4 of weights, 2 of values
  static constexpr int kFewRows = 0;

  struct Weights {
    __m256i even, odd;
  };
  using Values = Weights;
  static SLUICE_INLINE Weights weights(const std::int8_t* from) {
    const __m256i fours = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return {_mm256_srai_epi16(_mm256_slli_epi16(fours, 8), 8), _mm256_srai_epi16(fours, 8)};
  }
  static SLUICE_INLINE Values values_of(ByteVector fours) {
    return {_mm256_and_si256(fours, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(fours, 8)};
  }
  static SLUICE_INLINE Values values(const std::uint8_t* from) {
    int word;
    __builtin_memcpy(&word, from, sizeof word);
    return values_of(_mm256_set1_epi32(word));
  }
  static SLUICE_INLINE Sums dot(Sums sums, Values values, Weights weights) {
    const Sums even = _mm256_add_epi32(sums, _mm256_madd_epi16(values.even, weights.even));
    return _mm256_add_epi32(even, _mm256_madd_epi16(values.odd, weights.odd));
  }
  static SLUICE_INLINE Sums dot_exact(Sums sums, Values values, Weights weights) { return dot(sums, values, weights); }
};

#include "src/kernels/integer/inner-inl.h"

}  // namespace

extern const TileTable kAvx2Table = table_for(DotIsa::kAvx2);

}  // namespace sluice::kernels::integer
SLUICE_END_TARGET
#endif

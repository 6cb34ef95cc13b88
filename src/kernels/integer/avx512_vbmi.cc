// Tables of 256 bytes in four registers: what AVX-512 has byte permutations of two registers for.
#if defined(__x86_64__)
#include <immintrin.h>

#include "src/kernels/integer/tables.h"
#include "src/kernels/integer/target.h"

SLUICE_BEGIN_TARGET("avx512f,avx512vl,avx512bw,avx512dq,avx512cd,avx512vbmi")
namespace sluice::kernels::integer {

void look_up_with_vbmi(const std::uint8_t* table, const std::uint8_t* in, std::uint8_t* out, std::int64_t n) noexcept {
  const __m512i first = _mm512_loadu_si512(table), second = _mm512_loadu_si512(table + 64);
  const __m512i third = _mm512_loadu_si512(table + 128), fourth = _mm512_loadu_si512(table + 192);
  constexpr std::int64_t kBytes = 64;
  for (std::int64_t i = 0; i < n; i += kBytes) {
    const __mmask64 live = n - i >= kBytes ? ~__mmask64{0} : (__mmask64{1} << (n - i)) - 1;
    const __m512i from = _mm512_maskz_loadu_epi8(live, in + i);
    const __m512i low = _mm512_permutex2var_epi8(first, from, second), high = _mm512_permutex2var_epi8(third, from, fourth);
    _mm512_mask_storeu_epi8(out + i, live, _mm512_mask_blend_epi8(_mm512_movepi8_mask(from), low, high));
  }
}

}  // namespace sluice::kernels::integer
SLUICE_END_TARGET
#endif

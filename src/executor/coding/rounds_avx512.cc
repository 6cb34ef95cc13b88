// Two vectors of 16 states. Table entries are gathered; words are expanded into the lanes that want them.
#if defined(__x86_64__)
#include <immintrin.h>

#include "src/executor/coding/rounds.h"

#define SLUICE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,popcnt")))
#define SLUICE_AVX512_INLINE static inline __attribute__((always_inline, target("avx512f,avx512bw,avx512vl,avx512dq,popcnt")))

namespace sluice::executor::coding {
namespace {

/// The table's entries of 16 slots, into a register of zeros, with a mask that the compiler does not know (rounds_avx2.cc says why).
SLUICE_AVX512_INLINE __m512i entries_of(const std::uint32_t* table, __m512i slots) {
  unsigned all = 0xffff;
  asm("" : "+r"(all));
  return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), static_cast<__mmask16>(all), slots, table, 4);
}

/// Entries of 16 lanes, and their states one step on.
SLUICE_AVX512_INLINE __m512i take_steps(const std::uint32_t* table, __m512i& x, const std::uint8_t*& words) {
  const __m512i entries = entries_of(table, _mm512_and_si512(x, _mm512_set1_epi32(4095)));
  const __m512i offset = _mm512_and_si512(_mm512_srli_epi32(entries, kOffsetShift), _mm512_set1_epi32(4095));
  const __m512i stepped =
      _mm512_add_epi32(_mm512_mullo_epi32(_mm512_srli_epi32(entries, kFrequencyShift), _mm512_srli_epi32(x, 12)), offset);
  const __mmask16 low = _mm512_cmplt_epu32_mask(stepped, _mm512_set1_epi32(1 << 16));
  const __m512i next = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)));
  x = _mm512_mask_or_epi32(stepped, low, _mm512_slli_epi32(stepped, 16), _mm512_maskz_expand_epi32(low, next));
  words += 2 * static_cast<unsigned>(_mm_popcnt_u32(low));
  return entries;
}

struct PutBytes {
  static constexpr std::size_t kOther = 0, kOut = 32;
  SLUICE_AVX512_INLINE void put(__m512i first, __m512i second, const std::uint8_t*, std::uint8_t* out) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(first));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16), _mm512_cvtepi32_epi8(second));
  }
};

struct PutRotated16 {
  static constexpr std::size_t kOther = 32, kOut = 64;
  SLUICE_AVX512_INLINE void put(__m512i first, __m512i second, const std::uint8_t* other, std::uint8_t* out) {
    const __m512i symbols = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(first)), _mm512_cvtepi32_epi16(second), 1);
    const __m512i low = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(other)));
    const __m512i value = _mm512_or_si512(_mm512_slli_epi16(symbols, 8), low);
    _mm512_storeu_si512(out, _mm512_or_si512(_mm512_srli_epi16(value, 1), _mm512_slli_epi16(value, 15)));
  }
};

struct PutRotated32 {
  static constexpr std::size_t kOther = 96, kOut = 128;
  SLUICE_AVX512_INLINE void put_half(__m512i entries, const std::uint8_t* other, std::uint8_t* out) {
    const __m512i apart = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11, 0),
                                                   _mm512_loadu_si512(other));  // 12 bytes in each quarter
    const __m512i low =
        _mm512_shuffle_epi8(apart, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1)));
    _mm512_storeu_si512(out, _mm512_ror_epi32(_mm512_or_si512(_mm512_slli_epi32(entries, 24), low), 1));
  }
  SLUICE_AVX512_INLINE void put(__m512i first, __m512i second, const std::uint8_t* other, std::uint8_t* out) {
    put_half(first, other, out);
    put_half(second, other + 48, out + 64);
  }
};

template <class Put>
SLUICE_AVX512 const std::uint8_t* run(const Rounds& rounds) noexcept {
  const std::uint8_t* words = rounds.words;
  const std::uint8_t* other = rounds.other;
  std::uint8_t* out = rounds.out;
  __m512i x = _mm512_loadu_si512(rounds.states), y = _mm512_loadu_si512(rounds.states + 16);
  for (std::size_t round = 0; round < rounds.count; ++round, other += Put::kOther, out += Put::kOut) {
    const __m512i first = take_steps(rounds.table, x, words);
    const __m512i second = take_steps(rounds.table, y, words);
    Put::put(first, second, other, out);
    if (words > rounds.words_end) return nullptr;
  }
  _mm512_storeu_si512(rounds.states, x);
  _mm512_storeu_si512(rounds.states + 16, y);
  return words;
}

}  // namespace

extern const RoundsTable kAvx512Rounds = {&run<PutBytes>, &run<PutRotated16>, &run<PutRotated32>};

}  // namespace sluice::executor::coding
#endif

// Four vectors of 8 states. Table entries are gathered; a table of permutations brings words into the lanes that want them.
#if defined(__x86_64__)
#include <immintrin.h>

#include <array>

#include "src/executor/coding/rounds.h"

#define SLUICE_AVX2 __attribute__((target("avx2,popcnt")))
#define SLUICE_AVX2_INLINE static inline __attribute__((always_inline, target("avx2,popcnt")))

namespace sluice::executor::coding {
namespace {

/// For each set of lanes, which of the next words each lane takes.
constexpr auto kTaken = [] {
  std::array<std::array<std::uint8_t, 8>, 256> table{};
  for (unsigned lanes = 0; lanes < 256; ++lanes) {
    std::uint8_t next = 0;
    for (unsigned lane = 0; lane < 8; ++lane)
      if ((lanes >> lane & 1) != 0) table[lanes][lane] = next++;
  }
  return table;
}();

/// The table's entries of 8 slots. A gather keeps lanes that its mask leaves out, so it waits for the register that it writes: given one of
/// zeros it waits for nothing. g++ gives it any register if it can see that the mask has all lanes, and then the first gather of a round
/// waits for the last results of the round before, which halved the rate.
SLUICE_AVX2_INLINE __m256i entries_of(const std::uint32_t* table, __m256i slots) {
  __m256i all = _mm256_set1_epi32(-1);
  asm("" : "+x"(all));  // now it cannot see it
  return _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), reinterpret_cast<const int*>(table), slots, all, 4);
}

/// Entries of 8 lanes, and their states one step on.
SLUICE_AVX2_INLINE __m256i take_steps(const std::uint32_t* table, __m256i& x, const std::uint8_t*& words) {
  const __m256i entries = entries_of(table, _mm256_and_si256(x, _mm256_set1_epi32(4095)));
  const __m256i offset = _mm256_and_si256(_mm256_srli_epi32(entries, kOffsetShift), _mm256_set1_epi32(4095));
  const __m256i stepped =
      _mm256_add_epi32(_mm256_mullo_epi32(_mm256_srli_epi32(entries, kFrequencyShift), _mm256_srli_epi32(x, 12)), offset);
  const __m256i low = _mm256_cmpeq_epi32(_mm256_srli_epi32(stepped, 16), _mm256_setzero_si256());
  const auto lanes = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(low)));
  const __m256i next = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words)));
  const __m256i taken = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kTaken[lanes].data())));
  const __m256i refilled = _mm256_or_si256(_mm256_slli_epi32(stepped, 16), _mm256_permutevar8x32_epi32(next, taken));
  x = _mm256_blendv_epi8(stepped, refilled, low);
  words += 2 * static_cast<unsigned>(_mm_popcnt_u32(lanes));
  return entries;
}

/// The symbols of 16 lanes, 16 bits each.
SLUICE_AVX2_INLINE __m256i symbols_of(__m256i first, __m256i second) {
  const __m256i byte = _mm256_set1_epi32(255);
  const __m256i packed = _mm256_packus_epi32(_mm256_and_si256(first, byte), _mm256_and_si256(second, byte));
  return _mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0));
}

struct PutBytes {
  static constexpr std::size_t kOther = 0, kOut = 32;
  SLUICE_AVX2_INLINE void put(const __m256i* entries, const std::uint8_t*, std::uint8_t* out) {
    const __m256i packed = _mm256_packus_epi16(symbols_of(entries[0], entries[1]), symbols_of(entries[2], entries[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0)));
  }
};

struct PutRotated16 {
  static constexpr std::size_t kOther = 32, kOut = 64;
  SLUICE_AVX2_INLINE void put(const __m256i* entries, const std::uint8_t* other, std::uint8_t* out) {
    for (int half = 0; half < 2; ++half) {
      const __m256i symbols = symbols_of(entries[2 * half], entries[2 * half + 1]);
      const __m256i low = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(other + 16 * half)));
      const __m256i value = _mm256_or_si256(_mm256_slli_epi16(symbols, 8), low);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32 * half),
                          _mm256_or_si256(_mm256_srli_epi16(value, 1), _mm256_slli_epi16(value, 15)));
    }
  }
};

struct PutRotated32 {
  static constexpr std::size_t kOther = 96, kOut = 128;
  SLUICE_AVX2_INLINE void put(const __m256i* entries, const std::uint8_t* other, std::uint8_t* out) {
    const __m256i apart = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
    for (int quarter = 0; quarter < 4; ++quarter) {
      const auto* const from = reinterpret_cast<const __m128i*>(other + 24 * quarter);
      const auto* const behind = reinterpret_cast<const __m128i*>(other + 24 * quarter + 12);
      const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(from)), _mm_loadu_si128(behind), 1);
      const __m256i value = _mm256_or_si256(_mm256_slli_epi32(entries[quarter], 24), _mm256_shuffle_epi8(bytes, apart));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32 * quarter),
                          _mm256_or_si256(_mm256_srli_epi32(value, 1), _mm256_slli_epi32(value, 31)));
    }
  }
};

template <class Put>
SLUICE_AVX2 const std::uint8_t* run(const Rounds& rounds) noexcept {
  const std::uint8_t* words = rounds.words;
  const std::uint8_t* other = rounds.other;
  std::uint8_t* out = rounds.out;
  auto* const states = reinterpret_cast<__m256i*>(rounds.states);
  __m256i x0 = _mm256_loadu_si256(states), x1 = _mm256_loadu_si256(states + 1);
  __m256i x2 = _mm256_loadu_si256(states + 2), x3 = _mm256_loadu_si256(states + 3);
  for (std::size_t round = 0; round < rounds.count; ++round, other += Put::kOther, out += Put::kOut) {
    __m256i entries[4];
    entries[0] = take_steps(rounds.table, x0, words);
    entries[1] = take_steps(rounds.table, x1, words);
    entries[2] = take_steps(rounds.table, x2, words);
    entries[3] = take_steps(rounds.table, x3, words);
    Put::put(entries, other, out);
    if (words > rounds.words_end) return nullptr;
  }
  _mm256_storeu_si256(states, x0);
  _mm256_storeu_si256(states + 1, x1);
  _mm256_storeu_si256(states + 2, x2);
  _mm256_storeu_si256(states + 3, x3);
  return words;
}

}  // namespace

extern const RoundsTable kAvx2Rounds = {&run<PutBytes>, &run<PutRotated16>, &run<PutRotated32>};

}  // namespace sluice::executor::coding
#endif

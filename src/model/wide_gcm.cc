#include "src/model/wide_gcm.h"

#include "src/core/wipe.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "sluice/core/cpu.h"

#define SLUICE_WIDE_AES __attribute__((target("aes,pclmul,avx512f,avx512bw,avx512vl,avx512dq,vaes,vpclmulqdq")))
#define SLUICE_WIDE_AES_INLINE \
  static inline __attribute__((always_inline, target("aes,pclmul,avx512f,avx512bw,avx512vl,avx512dq,vaes,vpclmulqdq")))

namespace sluice::model {
namespace {

bool has_wide_aes() noexcept {
  constexpr unsigned kAesAndProducts = 1u << 9 | 1u << 10;  // VAES, VPCLMULQDQ
  constexpr unsigned kNarrowOnes = 1u << 1 | 1u << 25;      // PCLMULQDQ, AES
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kNarrowOnes) != kNarrowOnes) return false;
  return active_isa() == Isa::kAvx512 && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ecx & kAesAndProducts) == kAesAndProducts;
}

/// Blocks as numbers: GCM's first byte holds the highest powers.
SLUICE_WIDE_AES_INLINE __m512i reversed(__m512i blocks) {
  return _mm512_shuffle_epi8(blocks, _mm512_broadcast_i32x4(_mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)));
}
SLUICE_WIDE_AES_INLINE __m128i reversed(__m128i block) {
  return _mm_shuffle_epi8(block, _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
}

/// Sums of products of 128 bits each, by halves: low x low, low x high and high x low, high x high.
struct Products {
  __m512i low, middle, high;
};

SLUICE_WIDE_AES_INLINE void add_products(Products& sums, __m512i a, __m512i b) {
  sums.low = _mm512_xor_si512(sums.low, _mm512_clmulepi64_epi128(a, b, 0x00));
  sums.middle = _mm512_ternarylogic_epi64(sums.middle, _mm512_clmulepi64_epi128(a, b, 0x01), _mm512_clmulepi64_epi128(a, b, 0x10), 0x96);
  sums.high = _mm512_xor_si512(sums.high, _mm512_clmulepi64_epi128(a, b, 0x11));
}

/// The sum of all lanes modulo x^128 + x^7 + x^2 + x + 1. Bits are reversed, so the low halves are what is too high; each step folds the
/// lower 64 bits of what is left into the 128 above them.
SLUICE_WIDE_AES_INLINE __m128i reduce(const Products& sums) {
  const __m512i polynomial = _mm512_broadcast_i32x4(_mm_set_epi64x(static_cast<long long>(0xc200000000000000), 1));
  const __m512i middle = _mm512_ternarylogic_epi64(sums.middle, _mm512_clmulepi64_epi128(polynomial, sums.low, 0x01),
                                                   _mm512_shuffle_epi32(sums.low, _MM_PERM_BADC), 0x96);
  const __m512i four = _mm512_ternarylogic_epi64(sums.high, _mm512_clmulepi64_epi128(polynomial, middle, 0x01),
                                                 _mm512_shuffle_epi32(middle, _MM_PERM_BADC), 0x96);
  const __m256i two = _mm256_xor_si256(_mm512_castsi512_si256(four), _mm512_extracti64x4_epi64(four, 1));
  return _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
}

/// Of a factor that was divided by x and another.
SLUICE_WIDE_AES_INLINE __m128i multiply(__m128i a, __m128i b) {
  Products sums{};
  add_products(sums, _mm512_zextsi128_si512(a), _mm512_zextsi128_si512(b));
  return reduce(sums);
}

/// `block` / x. A product of reversed numbers lacks a factor x, which the powers of H thus bring along.
SLUICE_WIDE_AES_INLINE __m128i divided_by_x(__m128i block) {
  std::uint64_t low = static_cast<std::uint64_t>(_mm_cvtsi128_si64(block)), high = static_cast<std::uint64_t>(_mm_extract_epi64(block, 1));
  const std::uint64_t fold = 0 - (high >> 63);
  high = (high << 1 | low >> 63) ^ (fold & 0xc200000000000000);
  low = low << 1 ^ (fold & 1);
  return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}

/// The round key two after `before`, by the one after it: `assist` has its substituted word in all places.
SLUICE_WIDE_AES_INLINE __m128i next_round_key(__m128i before, __m128i assist) {
  for (int i = 0; i < 3; ++i) before = _mm_xor_si128(before, _mm_slli_si128(before, 4));
  return _mm_xor_si128(before, assist);
}

}  // namespace

struct WideGcmWork {
  static constexpr std::size_t kVector = 64, kVectors = 4;

  SLUICE_WIDE_AES_INLINE __m512i round(const WideGcm& gcm, std::size_t i) {
    return _mm512_load_si512(gcm.schedule_.rounds.data() + i * kVector);
  }

  SLUICE_WIDE_AES_INLINE __m512i powers(const WideGcm& gcm, std::size_t first) {
    return _mm512_loadu_si512(gcm.schedule_.powers.data() + first * WideGcm::kBlock);
  }

  /// `y` goes into the first block.
  SLUICE_WIDE_AES_INLINE __m512i with(__m512i blocks, __m128i y) { return _mm512_xor_si512(blocks, _mm512_zextsi128_si512(y)); }

  /// Numbers of blocks, the counter lowest; the first data block has number 2.
  SLUICE_WIDE_AES_INLINE __m512i first_counters(__m128i nonce) {
    return _mm512_add_epi32(_mm512_broadcast_i32x4(reversed(nonce)), _mm512_setr_epi32(2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0));
  }
  SLUICE_WIDE_AES_INLINE __m512i next(__m512i counters) {
    return _mm512_add_epi32(counters, _mm512_setr_epi32(4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0));
  }

  /// Four blocks; `last` is xored with what comes out: zero, or what is to be decrypted.
  SLUICE_WIDE_AES_INLINE __m512i encrypt(const WideGcm& gcm, __m512i blocks, __m512i last) {
    blocks = _mm512_xor_si512(blocks, round(gcm, 0));
    for (std::size_t i = 1; i < WideGcm::kRounds; ++i) blocks = _mm512_aesenc_epi128(blocks, round(gcm, i));
    return _mm512_aesenclast_epi128(blocks, _mm512_xor_si512(round(gcm, WideGcm::kRounds), last));
  }
  SLUICE_WIDE_AES_INLINE __m128i encrypt(const WideGcm& gcm, __m128i block) {
    return _mm512_castsi512_si128(encrypt(gcm, _mm512_zextsi128_si512(block), _mm512_setzero_si512()));
  }

  /// Sixteen blocks. Named registers, for an array of them is memory where loops are not unrolled.
  struct Sixteen {
    __m512i a, b, c, d;
  };
  SLUICE_WIDE_AES_INLINE Sixteen load(const std::byte* at) {
    return {_mm512_loadu_si512(at), _mm512_loadu_si512(at + kVector), _mm512_loadu_si512(at + 2 * kVector),
            _mm512_loadu_si512(at + 3 * kVector)};
  }
  SLUICE_WIDE_AES_INLINE void store(const Sixteen& blocks, std::byte* at) {
    _mm512_storeu_si512(at, blocks.a);
    _mm512_storeu_si512(at + kVector, blocks.b);
    _mm512_storeu_si512(at + 2 * kVector, blocks.c);
    _mm512_storeu_si512(at + 3 * kVector, blocks.d);
  }
  SLUICE_WIDE_AES_INLINE Sixteen sixteen(__m512i& counters) {
    const __m512i b = next(counters), c = next(b), d = next(c);
    const Sixteen blocks{reversed(counters), reversed(b), reversed(c), reversed(d)};
    counters = next(d);
    return blocks;
  }
  SLUICE_WIDE_AES_INLINE void encrypt(const WideGcm& gcm, Sixteen& blocks, const Sixteen& last) {
    const __m512i first_key = round(gcm, 0), last_key = round(gcm, WideGcm::kRounds);
    blocks = {_mm512_xor_si512(blocks.a, first_key), _mm512_xor_si512(blocks.b, first_key), _mm512_xor_si512(blocks.c, first_key),
              _mm512_xor_si512(blocks.d, first_key)};
    for (std::size_t i = 1; i < WideGcm::kRounds; ++i) {
      const __m512i key = round(gcm, i);
      blocks = {_mm512_aesenc_epi128(blocks.a, key), _mm512_aesenc_epi128(blocks.b, key), _mm512_aesenc_epi128(blocks.c, key),
                _mm512_aesenc_epi128(blocks.d, key)};
    }
    blocks = {_mm512_aesenclast_epi128(blocks.a, _mm512_xor_si512(last_key, last.a)),
              _mm512_aesenclast_epi128(blocks.b, _mm512_xor_si512(last_key, last.b)),
              _mm512_aesenclast_epi128(blocks.c, _mm512_xor_si512(last_key, last.c)),
              _mm512_aesenclast_epi128(blocks.d, _mm512_xor_si512(last_key, last.d))};
  }
  SLUICE_WIDE_AES_INLINE __m128i hash(const WideGcm& gcm, __m128i y, const Sixteen& blocks) {
    Products sums{};
    add_products(sums, with(reversed(blocks.a), y), powers(gcm, 0));
    add_products(sums, reversed(blocks.b), powers(gcm, WideGcm::kLanes));
    add_products(sums, reversed(blocks.c), powers(gcm, 2 * WideGcm::kLanes));
    add_products(sums, reversed(blocks.d), powers(gcm, 3 * WideGcm::kLanes));
    return reduce(sums);
  }

  /// Bytes [at, at + 64) of `bytes`, zeros where there are none.
  SLUICE_WIDE_AES_INLINE __mmask64 mask(std::size_t left) { return left >= kVector ? ~__mmask64{0} : (__mmask64{1} << left) - 1; }

  /// The hash goes on over up to 256 bytes, which end with a block that zeros fill.
  SLUICE_WIDE_AES static __m128i hash(const WideGcm& gcm, __m128i y, std::span<const std::byte> bytes) noexcept {
    if (bytes.empty()) return y;
    const std::size_t blocks = (bytes.size() + WideGcm::kBlock - 1) / WideGcm::kBlock;
    Products sums{};
    for (std::size_t at = 0; at < bytes.size(); at += kVector) {
      __m512i now = reversed(_mm512_maskz_loadu_epi8(mask(bytes.size() - at), bytes.data() + at));
      if (at == 0) now = with(now, y);
      add_products(sums, now, powers(gcm, WideGcm::kPowers - blocks + at / WideGcm::kBlock));
    }
    return reduce(sums);
  }

  SLUICE_WIDE_AES static bool open(const WideGcm& gcm, const WideGcm::Nonce& nonce, std::span<const std::byte> associated,
                                   std::span<std::byte> bytes, const StretchTag& tag) noexcept {
    alignas(16) std::array<std::byte, 16> padded{};
    std::memcpy(padded.data(), nonce.data(), nonce.size());
    const __m128i start = _mm_load_si128(reinterpret_cast<const __m128i*>(padded.data()));
    __m512i counters = first_counters(start);
    __m128i y = hash(gcm, _mm_setzero_si128(), associated);
    std::byte* at = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= kVectors * kVector; left -= kVectors * kVector, at += kVectors * kVector) {
      const Sixteen stored = load(at);
      Sixteen blocks = sixteen(counters);
      encrypt(gcm, blocks, stored);
      y = hash(gcm, y, stored);
      store(blocks, at);
    }
    y = hash(gcm, y, {at, left});
    for (std::size_t done = 0; done < left; done += kVector) {
      const __mmask64 some = mask(left - done);
      const __m512i stored = _mm512_maskz_loadu_epi8(some, at + done);
      _mm512_mask_storeu_epi8(at + done, some, encrypt(gcm, reversed(counters), stored));
      counters = next(counters);
    }
    const __m128i sizes = _mm_set_epi64x(static_cast<long long>(associated.size() * 8), static_cast<long long>(bytes.size() * 8));
    y = multiply(_mm_xor_si128(y, sizes), _mm512_castsi512_si128(powers(gcm, WideGcm::kPowers - 1)));
    const __m128i first = encrypt(gcm, reversed(_mm_add_epi32(reversed(start), _mm_setr_epi32(1, 0, 0, 0))));
    const __m128i wrong = _mm_xor_si128(_mm_xor_si128(reversed(y), first), _mm_loadu_si128(reinterpret_cast<const __m128i*>(tag.data())));
    return _mm_testz_si128(wrong, wrong) != 0;
  }

  SLUICE_WIDE_AES static void expand(WideGcm& gcm, std::span<const std::byte, kKeyBytes> key) noexcept {
    __m128i even = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key.data()));
    __m128i odd = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key.data() + 16));
    const auto put = [&](std::size_t i, __m128i value)
                         SLUICE_WIDE_AES { _mm512_store_si512(gcm.schedule_.rounds.data() + i * kVector, _mm512_broadcast_i32x4(value)); };
    put(0, even);
    put(1, odd);
    __m128i constant = _mm_set1_epi32(1);
    for (std::size_t i = 2; i <= WideGcm::kRounds; i += 2) {
      // Words 1 and 3 substituted; the rotated one takes the round's constant.
      even = next_round_key(even, _mm_xor_si128(_mm_shuffle_epi32(_mm_aeskeygenassist_si128(odd, 0), 0xff), constant));
      put(i, even);
      constant = _mm_slli_epi32(constant, 1);
      if (i == WideGcm::kRounds) break;
      odd = next_round_key(odd, _mm_shuffle_epi32(_mm_aeskeygenassist_si128(even, 0), 0xaa));
      put(i + 1, odd);
    }
    const __m128i h = divided_by_x(reversed(encrypt(gcm, _mm_setzero_si128())));
    __m128i power = h;
    for (std::size_t i = WideGcm::kPowers; i-- > 0; power = multiply(power, h))
      _mm_storeu_si128(reinterpret_cast<__m128i*>(gcm.schedule_.powers.data() + i * WideGcm::kBlock), power);
  }
};

std::unique_ptr<WideGcm> WideGcm::make(std::span<const std::byte, kKeyBytes> key) noexcept {
  if (!has_wide_aes()) return nullptr;
  std::unique_ptr<WideGcm> gcm(new (std::nothrow) WideGcm);
  if (gcm) WideGcmWork::expand(*gcm, key);
  return gcm;
}

bool WideGcm::open(const Nonce& nonce, std::span<const std::byte> associated, std::span<std::byte> bytes,
                   const StretchTag& tag) const noexcept {
  constexpr std::uint64_t kMostBytes = (std::uint64_t{1} << 36) - 32;  // then the counter comes round
  return associated.size() <= kMostAssociated && bytes.size() <= kMostBytes && WideGcmWork::open(*this, nonce, associated, bytes, tag);
}

}  // namespace sluice::model

#else

namespace sluice::model {
std::unique_ptr<WideGcm> WideGcm::make(std::span<const std::byte, kKeyBytes>) noexcept { return nullptr; }
bool WideGcm::open(const Nonce&, std::span<const std::byte>, std::span<std::byte>, const StretchTag&) const noexcept { return false; }
}  // namespace sluice::model

#endif

namespace sluice::model {
WideGcm::~WideGcm() { wipe(std::as_writable_bytes(std::span(&schedule_, 1))); }
}  // namespace sluice::model

// Vectors of AVX2 without the sums of four products. See tile-inl.h.

struct Avx2 {
  static constexpr int kLanes = 8;
  static constexpr int kBytes = 32;
  static constexpr bool kPairs = false;
  static constexpr bool kReadsPointers = false;
  static constexpr bool kFetches = false;

  using Sums = __m256i;
  using Reals = __m256;
  using ByteVector = __m256i;

  static SLUICE_INLINE __m256i first(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static SLUICE_INLINE Sums load(const std::int32_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
  static SLUICE_INLINE Reals load(const float* from) { return _mm256_loadu_ps(from); }
  static SLUICE_INLINE Sums set_sum(int value) { return _mm256_set1_epi32(value); }
  static SLUICE_INLINE Reals set(float value) { return _mm256_set1_ps(value); }
  static SLUICE_INLINE Sums plus(Sums a, Sums b) { return _mm256_add_epi32(a, b); }
  static SLUICE_INLINE Sums minus(Sums a, Sums b) { return _mm256_sub_epi32(a, b); }
  static SLUICE_INLINE Reals add(Reals a, Reals b) { return _mm256_add_ps(a, b); }
  static SLUICE_INLINE Reals minus(Reals a, Reals b) { return _mm256_sub_ps(a, b); }
  static SLUICE_INLINE Reals times(Reals a, Reals b) { return _mm256_mul_ps(a, b); }
  static SLUICE_INLINE Reals fused(Reals a, Reals b, Reals c) { return _mm256_fmadd_ps(a, b, c); }
  static SLUICE_INLINE Reals divide(Reals a, Reals b) { return _mm256_div_ps(a, b); }
  static SLUICE_INLINE Reals quotient(Reals a, Reals by, Reals inverse) {
    const Reals near = _mm256_mul_ps(a, inverse);
    return _mm256_fmadd_ps(_mm256_fnmadd_ps(near, by, a), inverse, near);
  }
  static SLUICE_INLINE Reals at_least(Reals a, Reals b) { return _mm256_max_ps(a, b); }
  static SLUICE_INLINE Reals at_most(Reals a, Reals b) { return _mm256_min_ps(a, b); }
  static SLUICE_INLINE Reals reals(Sums a) { return _mm256_cvtepi32_ps(a); }
  static SLUICE_INLINE void store_reals(Reals a, float* to) { _mm256_storeu_ps(to, a); }
  static SLUICE_INLINE Sums bits(Reals a) { return _mm256_castps_si256(a); }
  static SLUICE_INLINE Reals rounded(Reals a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static SLUICE_INLINE Sums rounded_integers(Reals a) { return _mm256_cvtps_epi32(rounded(a)); }
  static SLUICE_INLINE __m128i load_eight(const std::uint8_t* from, int count) {
    std::uint64_t bytes = 0;
    if (count >= 8) {
      __builtin_memcpy(&bytes, from, 8);
    } else if (count > 0) {
      __builtin_memcpy(&bytes, from, static_cast<std::size_t>(count));
    }
    return _mm_cvtsi64_si128(static_cast<long long>(bytes));
  }
  static SLUICE_INLINE Sums load_bytes(const std::uint8_t* from, int count) { return _mm256_cvtepu8_epi32(load_eight(from, count)); }
  static SLUICE_INLINE Sums load_bytes(const std::uint8_t* from) { return load_bytes(from, kLanes); }
  static SLUICE_INLINE void store_eight(__m128i bytes, std::uint8_t* to, std::int64_t count) {
    const long long all = _mm_cvtsi128_si64(bytes);
    if (count >= 8) {
      __builtin_memcpy(to, &all, 8);
    } else if (count > 0) {
      __builtin_memcpy(to, &all, static_cast<std::size_t>(count));
    }
  }
  /// Of integers that are u8.
  static SLUICE_INLINE void store_bytes(Sums a, std::uint8_t* to, int count) {
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    store_eight(_mm_packus_epi16(words, words), to, count);
  }
  static SLUICE_INLINE void store(Sums a, std::int32_t* to, int count) { _mm256_maskstore_epi32(to, first(count), a); }

  /// Integers as packing takes them, which bounds them to 16 bits and then to u8. NaN becomes the least value.
  static SLUICE_INLINE Sums packable(Reals value) { return rounded_integers(_mm256_min_ps(_mm256_set1_ps(0x1p24f), value)); }
  static SLUICE_INLINE Sums packable(Sums sums, Reals multiplier) { return packable(times(reals(sums), multiplier)); }

  struct PackedRange {
    __m256i zero, low, high;
  };
  static SLUICE_INLINE PackedRange packed_range(const IntegerRange& range) {
    return {_mm256_set1_epi16(range.zero), _mm256_set1_epi8(static_cast<char>(range.low)), _mm256_set1_epi8(static_cast<char>(range.high))};
  }
  /// Bytes of four vectors: 128-bit block b has theirs in turn.
  static SLUICE_INLINE ByteVector pack_in_blocks(Sums a, Sums b, Sums c, Sums d, const PackedRange& range) {
    const __m256i ab = _mm256_adds_epi16(_mm256_packs_epi32(a, b), range.zero),
                  cd = _mm256_adds_epi16(_mm256_packs_epi32(c, d), range.zero);
    return _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(ab, cd), range.low), range.high);
  }
  /// The same in their order.
  static SLUICE_INLINE ByteVector pack(Sums a, Sums b, Sums c, Sums d, const PackedRange& range) {
    return _mm256_permutevar8x32_epi32(pack_in_blocks(a, b, c, d, range), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
  static SLUICE_INLINE void store_sixteen(__m128i bytes, std::uint8_t* to, std::int64_t count) {
    if (count >= 16) return _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    store_eight(bytes, to, count);
    store_eight(_mm_srli_si128(bytes, 8), to + 8, count - 8);
  }
  static SLUICE_INLINE Sums packable_small(Sums sums, Reals multiplier) { return packable(sums, multiplier); }
  template <int kVectors>
  static SLUICE_INLINE bool small(const float*) {
    return true;  // `packable` takes any
  }
  template <int kRowCount, int kVectors, class Vector>
  static SLUICE_INLINE bool pack_whole(const Vector&, const TileRows&, const IntegerRange&, std::int64_t) {
    return false;  // vectors are stored one by one
  }
  /// Two rows of a panel a time.
  template <int kRowCount, int kVectors>
  static SLUICE_INLINE void pack_rows(const Sums (&sums)[kRowCount][kVectors], const TileRows& rows, const Finish& job,
                                      std::int64_t first_channel, std::int64_t left) {
    static_assert(kVectors == 2);
    const PackedRange range = packed_range(job.epilogue->range);
    const Reals low = load(job.multipliers + first_channel), high = load(job.multipliers + first_channel + kLanes);
    const auto out = [&](int m) __attribute__((always_inline)) { return reinterpret_cast<std::uint8_t*>(rows.out[m]) + first_channel; };
    SLUICE_UNROLL
    for (int m = 0; m < kRowCount; m += 2) {
      const int next = m + 1 < kRowCount ? m + 1 : m;
      const ByteVector bytes =
          pack(packable(sums[m][0], low), packable(sums[m][1], high), packable(sums[next][0], low), packable(sums[next][1], high), range);
      store_sixteen(_mm256_castsi256_si128(bytes), out(m), left);
      if (m + 1 < kRowCount) store_sixteen(_mm256_extracti128_si256(bytes, 1), out(m + 1), left);
    }
  }

  static SLUICE_INLINE ByteVector load_vector(const std::uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static SLUICE_INLINE void store_vector(ByteVector a, std::uint8_t* to, std::int64_t count) {
    if (count >= 32) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a);
    store_sixteen(_mm256_castsi256_si128(a), to, count);
    if (count > 16) store_sixteen(_mm256_extracti128_si256(a, 1), to + 16, count - 16);
  }
  static SLUICE_INLINE ByteVector set_bytes(std::uint8_t value) { return _mm256_set1_epi8(static_cast<char>(value)); }
  static SLUICE_INLINE ByteVector larger(ByteVector a, ByteVector b) { return _mm256_max_epu8(a, b); }
  static SLUICE_INLINE ByteVector smaller(ByteVector a, ByteVector b) { return _mm256_min_epu8(a, b); }
  static SLUICE_INLINE ByteVector low_bytes(ByteVector a, ByteVector b) { return _mm256_unpacklo_epi8(a, b); }
  static SLUICE_INLINE ByteVector high_bytes(ByteVector a, ByteVector b) { return _mm256_unpackhi_epi8(a, b); }
  static SLUICE_INLINE ByteVector low_pairs(ByteVector a, ByteVector b) { return _mm256_unpacklo_epi16(a, b); }
  static SLUICE_INLINE ByteVector high_pairs(ByteVector a, ByteVector b) { return _mm256_unpackhi_epi16(a, b); }

  // No sum needs correcting: values stay u8.
  struct Correction {};
  static SLUICE_INLINE Correction no_correction() { return {}; }
  template <class W>
  static SLUICE_INLINE void correct(Correction&, const W&) {}
  static SLUICE_INLINE Sums corrected(Sums a, Correction) { return a; }
};

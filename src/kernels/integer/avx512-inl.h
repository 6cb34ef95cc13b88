// Vectors of AVX-512 without the sums of four products, which VNNI and plain AVX-512 form each in its own way. See tile-inl.h.

struct Avx512 {
  static constexpr int kLanes = 16;
  static constexpr int kBytes = 64;
  static constexpr int kRows = 12;  // and two panels: 24 registers of sums, 2 of weights (4 without VNNI), the rest for values
  static constexpr int kFewRows = 3;
  // Pointers of rows are read from memory: those that find no general register compilers keep in vectors', from where they take their way
  // through the ports that multiply.
  static constexpr bool kReadsPointers = true;
  static constexpr bool kFetches = true;
  static constexpr bool kPairs = true;

  using Sums = __m512i;
  using Reals = __m512;

  static SLUICE_INLINE __mmask16 first(int count) {
    return count >= 16 ? __mmask16{0xffff} : static_cast<__mmask16>(count <= 0 ? 0 : (1u << count) - 1u);
  }
  static SLUICE_INLINE Sums load(const std::int32_t* from) { return _mm512_loadu_si512(from); }
  static SLUICE_INLINE Reals load(const float* from) { return _mm512_loadu_ps(from); }
  static SLUICE_INLINE Reals load(const float* from, int count) { return _mm512_maskz_loadu_ps(first(count), from); }
  static SLUICE_INLINE Sums set_sum(int value) { return _mm512_set1_epi32(value); }
  static SLUICE_INLINE Reals set(float value) { return _mm512_set1_ps(value); }
  static SLUICE_INLINE Sums plus(Sums a, Sums b) { return _mm512_add_epi32(a, b); }
  static SLUICE_INLINE Sums minus(Sums a, Sums b) { return _mm512_sub_epi32(a, b); }
  static SLUICE_INLINE Reals add(Reals a, Reals b) { return _mm512_add_ps(a, b); }
  static SLUICE_INLINE Reals minus(Reals a, Reals b) { return _mm512_sub_ps(a, b); }
  static SLUICE_INLINE Reals times(Reals a, Reals b) { return _mm512_mul_ps(a, b); }
  static SLUICE_INLINE Reals fused(Reals a, Reals b, Reals c) { return _mm512_fmadd_ps(a, b, c); }
  static SLUICE_INLINE Reals divide(Reals a, Reals b) { return _mm512_div_ps(a, b); }
  static SLUICE_INLINE Reals quotient(Reals a, Reals by, Reals inverse) {
    const Reals near = _mm512_mul_ps(a, inverse);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(near, by, a), inverse, near);
  }
  static SLUICE_INLINE Reals at_least(Reals a, Reals b) { return _mm512_max_ps(a, b); }
  static SLUICE_INLINE Reals at_most(Reals a, Reals b) { return _mm512_min_ps(a, b); }
  static SLUICE_INLINE Reals reals(Sums a) { return _mm512_cvtepi32_ps(a); }
  static SLUICE_INLINE void store_reals(Reals a, float* to) { _mm512_storeu_ps(to, a); }
  static SLUICE_INLINE Sums bits(Reals a) { return _mm512_castps_si512(a); }
  static SLUICE_INLINE Sums rounded_integers(Reals a) { return _mm512_cvt_roundps_epi32(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static SLUICE_INLINE Reals rounded(Reals a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static SLUICE_INLINE Sums load_bytes(const std::uint8_t* from, int count) {
    return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first(count), from));
  }
  static SLUICE_INLINE Sums load_bytes(const std::uint8_t* from) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static SLUICE_INLINE void store_bytes(Sums a, std::uint8_t* to, int count) {
    _mm_mask_storeu_epi8(to, first(count), _mm512_cvtepi32_epi8(a));
  }
  static SLUICE_INLINE void store(Sums a, std::int32_t* to, int count) { _mm512_mask_storeu_epi32(to, first(count), a); }

  // No sum needs correcting: values stay u8.
  struct Correction {};
  static SLUICE_INLINE Correction no_correction() { return {}; }
  template <class W>
  static SLUICE_INLINE void correct(Correction&, const W&) {}
  static SLUICE_INLINE Sums corrected(Sums a, Correction) { return a; }

  /// Integers as packing takes them, which bounds them to 16 bits and then to u8. NaN becomes the least value.
  static SLUICE_INLINE Sums packable(Reals value) {
    return _mm512_cvt_roundps_epi32(_mm512_min_ps(_mm512_set1_ps(0x1p24f), value), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static SLUICE_INLINE Sums packable(Sums sums, Reals multiplier) { return packable(times(reals(sums), multiplier)); }

  struct PackedRange {
    __m512i zero, low, high, order;
  };
  static SLUICE_INLINE PackedRange packed_range(const IntegerRange& range) {
    // Four vectors of two rows, packed twice within 128 bits, give the dwords of row 0 as 0 1 4 5 8 9 12 13 (of two vectors a row).
    return {_mm512_set1_epi16(range.zero), _mm512_set1_epi8(static_cast<char>(range.low)), _mm512_set1_epi8(static_cast<char>(range.high)),
            _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)};
  }
  /// Bytes of four vectors: 128-bit block b has theirs in turn.
  static SLUICE_INLINE __m512i pack_in_blocks(Sums a, Sums b, Sums c, Sums d, const PackedRange& range) {
    const __m512i ab = _mm512_adds_epi16(_mm512_packs_epi32(a, b), range.zero),
                  cd = _mm512_adds_epi16(_mm512_packs_epi32(c, d), range.zero);
    return _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(ab, cd), range.low), range.high);
  }
  /// The same in their order.
  static SLUICE_INLINE __m512i pack(Sums a, Sums b, Sums c, Sums d, const PackedRange& range) {
    return _mm512_permutexvar_epi32(range.order, pack_in_blocks(a, b, c, d, range));
  }
  static SLUICE_INLINE __mmask64 first_bytes(std::int64_t count) {
    return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << (count < 0 ? 0 : count)) - 1;
  }

  using ByteVector = __m512i;
  /// In a register: what is used twice is not to be loaded twice, which compilers like to do and loads have no time for.
  static SLUICE_INLINE ByteVector load_vector(const std::uint8_t* from) {
    ByteVector loaded = _mm512_loadu_si512(from);
    asm("" : "+v"(loaded));
    return loaded;
  }
  // Stores under a mask take many cycles on some processors, even where the mask is full.
  static SLUICE_INLINE void store_sixteen(__m128i a, void* to, std::int64_t count) {
    if (count >= 16) return _mm_storeu_si128(static_cast<__m128i*>(to), a);
    if (count == 8) return _mm_storel_epi64(static_cast<__m128i*>(to), a);
    _mm_mask_storeu_epi8(to, static_cast<__mmask16>(first_bytes(count)), a);
  }
  static SLUICE_INLINE void store_half(__m256i a, std::byte* to, std::int64_t count) {
    if (count >= 32) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a);
    store_sixteen(_mm256_castsi256_si128(a), to, count);
    if (count > 16) store_sixteen(_mm256_extracti128_si256(a, 1), to + 16, count - 16);
  }
  static SLUICE_INLINE void store_vector(ByteVector a, void* to, std::int64_t count) {
    if (count >= 64) return _mm512_storeu_si512(to, a);
    auto* const bytes = static_cast<std::byte*>(to);
    store_half(_mm512_castsi512_si256(a), bytes, count);
    if (count > 32) store_half(_mm512_extracti64x4_epi64(a, 1), bytes + 32, count - 32);
  }
  static SLUICE_INLINE ByteVector set_bytes(std::uint8_t value) { return _mm512_set1_epi8(static_cast<char>(value)); }
  static SLUICE_INLINE ByteVector larger(ByteVector a, ByteVector b) { return _mm512_max_epu8(a, b); }
  static SLUICE_INLINE ByteVector smaller(ByteVector a, ByteVector b) { return _mm512_min_epu8(a, b); }
  static SLUICE_INLINE ByteVector low_bytes(ByteVector a, ByteVector b) { return _mm512_unpacklo_epi8(a, b); }
  static SLUICE_INLINE ByteVector high_bytes(ByteVector a, ByteVector b) { return _mm512_unpackhi_epi8(a, b); }
  static SLUICE_INLINE ByteVector low_pairs(ByteVector a, ByteVector b) { return _mm512_unpacklo_epi16(a, b); }
  static SLUICE_INLINE ByteVector high_pairs(ByteVector a, ByteVector b) { return _mm512_unpackhi_epi16(a, b); }

  /// Are they so small that no sum times one of them leaves 32 bits?
  template <int kVectors>
  static SLUICE_INLINE bool small(const float* multipliers) {
    __mmask16 large = 0;
    SLUICE_UNROLL
    for (int v = 0; v < kVectors; ++v)
      large = static_cast<__mmask16>(
          large | _mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_loadu_ps(multipliers + v * 16)), _mm512_set1_ps(1.0f), _CMP_NLT_UQ));
    return large == 0;
  }
  /// As `packable`, of sums and multipliers that are `small`.
  static SLUICE_INLINE Sums packable_small(Sums sums, Reals multiplier) { return rounded_integers(times(reals(sums), multiplier)); }

  /// Bytes of as many rows as fill a vector, from row `m` on.
  template <bool kWhole, int kVectors>
  static SLUICE_INLINE void store_rows(__m512i bytes, const TileRows& rows, int m, int count, std::int64_t channel, std::int64_t left) {
    const std::int64_t live = kWhole ? kVectors * kLanes : left;
    const auto out = [&](int i) __attribute__((always_inline)) { return rows.out[m + i] + channel; };
    if constexpr (kVectors == 4) {
      store_vector(bytes, out(0), live);
    } else if constexpr (kVectors == 2) {
      store_half(_mm512_castsi512_si256(bytes), out(0), live);
      if (count > 1) store_half(_mm512_extracti64x4_epi64(bytes, 1), out(1), live);
    } else {
      store_sixteen(_mm512_castsi512_si128(bytes), out(0), live);
      if (count > 1) store_sixteen(_mm512_extracti32x4_epi32(bytes, 1), out(1), live);
      if (count > 2) store_sixteen(_mm512_extracti32x4_epi32(bytes, 2), out(2), live);
      if (count > 3) store_sixteen(_mm512_extracti32x4_epi32(bytes, 3), out(3), live);
    }
  }

  /// Packs integers as `packable` gives them, vector v of row m from vector(m, v), and stores them.
  template <bool kWhole, int kRowCount, int kVectors, class Vector>
  static SLUICE_INLINE void pack_vectors(const Vector& vector, const TileRows& rows, const IntegerRange& bounds, std::int64_t first_channel,
                                         std::int64_t left) {
    const PackedRange range = packed_range(bounds);
    constexpr int kTogether = 4 / kVectors;  // rows
    // Vector i of a run of four, over rows that follow each other.
    const auto of_run = [&](int m, int i) __attribute__((always_inline)) {
      const int row = m + i / kVectors;
      return row < kRowCount ? vector(row < kRowCount ? row : 0, i % kVectors) : _mm512_setzero_si512();
    };
    SLUICE_UNROLL
    for (int m = 0; m < kRowCount; m += kTogether) {
      const __m512i bytes = pack(of_run(m, 0), of_run(m, 1), of_run(m, 2), of_run(m, 3), range);
      store_rows<kWhole, kVectors>(bytes, rows, m, kRowCount - m, first_channel, left);
    }
  }

  /// Stores u8 of sums whose multipliers are `small`.
  template <int kRowCount, int kVectors>
  static SLUICE_INLINE void pack_rows(const Sums (&sums)[kRowCount][kVectors], const TileRows& rows, const Finish& job,
                                      std::int64_t first_channel, std::int64_t left) {
    Reals multipliers[kVectors];
    SLUICE_UNROLL
    for (int v = 0; v < kVectors; ++v) multipliers[v] = load(job.multipliers + first_channel + v * kLanes);
    const auto vector = [&](int m, int v) __attribute__((always_inline)) { return packable_small(sums[m][v], multipliers[v]); };
    if (left >= kVectors * kLanes) return pack_vectors<true, kRowCount, kVectors>(vector, rows, job.epilogue->range, first_channel, left);
    pack_vectors<false, kRowCount, kVectors>(vector, rows, job.epilogue->range, first_channel, left);
  }
  /// The same of whole panels by any rule; false: this instruction set does not.
  template <int kRowCount, int kVectors, class Vector>
  static SLUICE_INLINE bool pack_whole(const Vector& vector, const TileRows& rows, const IntegerRange& range, std::int64_t first_channel) {
    pack_vectors<true, kRowCount, kVectors>(vector, rows, range, first_channel, kVectors * kLanes);
    return true;
  }
};

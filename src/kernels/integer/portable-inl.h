// Vectors of 128 bits as compilers know them, for any processor, without the sums of four products. See tile-inl.h.

typedef std::uint8_t U8x16 __attribute__((vector_size(16)));
typedef std::int8_t I8x16 __attribute__((vector_size(16)));
typedef std::uint16_t U16x8 __attribute__((vector_size(16)));
typedef std::int32_t I32x4 __attribute__((vector_size(16)));
typedef float F32x4 __attribute__((vector_size(16)));

struct Portable {
  static constexpr int kLanes = 4;
  static constexpr int kBytes = 16;
  static constexpr int kFewRows = 0;
  static constexpr bool kPairs = false;
  static constexpr bool kReadsPointers = false;
  static constexpr bool kFetches = false;

  using Sums = I32x4;
  using Reals = F32x4;
  using ByteVector = U8x16;

  template <class T>
  static SLUICE_INLINE T load_as(const void* from) {
    T value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
  }
  static SLUICE_INLINE Sums load(const std::int32_t* from) { return load_as<Sums>(from); }
  static SLUICE_INLINE Reals load(const float* from) { return load_as<Reals>(from); }
  static SLUICE_INLINE Reals load(const float* from, int count) {
    Reals value{};
    for (int i = 0; i < 4 && i < count; ++i) value[i] = from[i];
    return value;
  }
  static SLUICE_INLINE Sums set_sum(int value) { return Sums{value, value, value, value}; }
  static SLUICE_INLINE Reals set(float value) { return Reals{value, value, value, value}; }
  static SLUICE_INLINE Sums plus(Sums a, Sums b) { return a + b; }
  static SLUICE_INLINE Sums minus(Sums a, Sums b) { return a - b; }
  static SLUICE_INLINE Reals add(Reals a, Reals b) { return a + b; }
  static SLUICE_INLINE Reals minus(Reals a, Reals b) { return a - b; }
  static SLUICE_INLINE Reals times(Reals a, Reals b) { return a * b; }
  /// a * b + c, rounded once.
  static SLUICE_INLINE Reals fused(Reals a, Reals b, Reals c) {
    for (int i = 0; i < kLanes; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
  }
  static SLUICE_INLINE Reals divide(Reals a, Reals b) { return a / b; }
  static SLUICE_INLINE Reals quotient(Reals a, Reals by, Reals) { return a / by; }
  static SLUICE_INLINE Reals at_least(Reals a, Reals b) { return a > b ? a : b; }
  static SLUICE_INLINE Reals at_most(Reals a, Reals b) { return a < b ? a : b; }
  static SLUICE_INLINE Reals reals(Sums a) { return __builtin_convertvector(a, Reals); }
  static SLUICE_INLINE void store_reals(Reals a, float* to) { __builtin_memcpy(to, &a, sizeof a); }
  static SLUICE_INLINE Sums bits(Reals a) { return reinterpret_cast<Sums>(a); }
  /// Of values below 2^22: above 3 * 2^22, neighbouring floats are integers apart.
  static SLUICE_INLINE Reals rounded(Reals a) {
    const Reals magic = set(0x1.8p23f);
    return (a + magic) - magic;
  }
  static SLUICE_INLINE Sums rounded_integers(Reals a) { return __builtin_convertvector(rounded(a), Sums); }
  static SLUICE_INLINE Sums load_bytes(const std::uint8_t* from, int count) {
    Sums value{};
    for (int i = 0; i < 4 && i < count; ++i) value[i] = from[i];
    return value;
  }
  static SLUICE_INLINE Sums load_bytes(const std::uint8_t* from) { return load_bytes(from, kLanes); }
  static SLUICE_INLINE void store_bytes(Sums a, std::uint8_t* to, int count) {
    for (int i = 0; i < 4 && i < count; ++i) to[i] = static_cast<std::uint8_t>(a[i]);
  }
  static SLUICE_INLINE void store(Sums a, std::int32_t* to, int count) {
    for (int i = 0; i < 4 && i < count; ++i) to[i] = a[i];
  }

  struct PackedRange {
    Sums zero, low, high;
  };
  static SLUICE_INLINE PackedRange packed_range(const IntegerRange& range) {
    return {set_sum(range.zero), set_sum(range.low), set_sum(range.high)};
  }
  /// Integers far enough from u8 that packing bounds them. NaN becomes the least value.
  static SLUICE_INLINE Sums packable(Reals value) { return rounded_integers(at_most(at_least(value, set(-0x1p20f)), set(0x1p20f))); }
  static SLUICE_INLINE Sums packable(Sums sums, Reals multiplier) { return packable(reals(sums) * multiplier); }
  static SLUICE_INLINE Sums in_range(Sums sum, const PackedRange& range) {
    sum += range.zero;
    sum = sum > range.low ? sum : range.low;
    return sum < range.high ? sum : range.high;
  }
  static SLUICE_INLINE ByteVector pack_in_blocks(Sums a, Sums b, Sums c, Sums d, const PackedRange& range) {
    const Sums all[4] = {in_range(a, range), in_range(b, range), in_range(c, range), in_range(d, range)};
    ByteVector bytes{};
    SLUICE_UNROLL
    for (int i = 0; i < 16; ++i) bytes[i] = static_cast<std::uint8_t>(all[i / 4][i % 4]);
    return bytes;
  }
  static SLUICE_INLINE ByteVector pack(Sums a, Sums b, Sums c, Sums d, const PackedRange& range) {
    return pack_in_blocks(a, b, c, d, range);
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
  template <int kRowCount, int kVectors>
  static SLUICE_INLINE void pack_rows(const Sums (&sums)[kRowCount][kVectors], const TileRows& rows, const Finish& job, std::int64_t first,
                                      std::int64_t left) {
    const PackedRange range = packed_range(job.epilogue->range);
    SLUICE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const Reals multiplier = load(job.multipliers + first + v * kLanes);
      SLUICE_UNROLL
      for (int m = 0; m < kRowCount; ++m)
        store_bytes(in_range(packable(sums[m][v], multiplier), range), reinterpret_cast<std::uint8_t*>(rows.out[m]) + first + v * kLanes,
                    static_cast<int>(left - v * kLanes));
    }
  }

  static SLUICE_INLINE ByteVector load_vector(const std::uint8_t* from) { return load_as<ByteVector>(from); }
  static SLUICE_INLINE void store_vector(ByteVector a, std::uint8_t* to, std::int64_t count) {
    if (count >= kBytes) {
      __builtin_memcpy(to, &a, sizeof a);
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = a[i];
    }
  }
  static SLUICE_INLINE ByteVector set_bytes(std::uint8_t value) { return ByteVector{} + value; }
  static SLUICE_INLINE ByteVector larger(ByteVector a, ByteVector b) { return a > b ? a : b; }
  static SLUICE_INLINE ByteVector smaller(ByteVector a, ByteVector b) { return a < b ? a : b; }
  static SLUICE_INLINE ByteVector low_bytes(ByteVector a, ByteVector b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
  static SLUICE_INLINE ByteVector high_bytes(ByteVector a, ByteVector b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
  static SLUICE_INLINE ByteVector low_pairs(ByteVector a, ByteVector b) {
    return reinterpret_cast<ByteVector>(
        __builtin_shufflevector(reinterpret_cast<U16x8>(a), reinterpret_cast<U16x8>(b), 0, 8, 1, 9, 2, 10, 3, 11));
  }
  static SLUICE_INLINE ByteVector high_pairs(ByteVector a, ByteVector b) {
    return reinterpret_cast<ByteVector>(
        __builtin_shufflevector(reinterpret_cast<U16x8>(a), reinterpret_cast<U16x8>(b), 4, 12, 5, 13, 6, 14, 7, 15));
  }

  // No sum needs correcting where values stay u8.
  struct Correction {};
  static SLUICE_INLINE Correction no_correction() { return {}; }
  template <class W>
  static SLUICE_INLINE void correct(Correction&, const W&) {}
  template <class C>
  static SLUICE_INLINE Sums corrected(Sums a, const C&) {
    return a;
  }
};

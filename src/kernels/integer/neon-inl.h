// NEON over portable vectors. Its products take signed bytes on both sides, so values are made such: less 128, for which each sum is
// corrected by 128 times the sum of its weights. See tile-inl.h.

#include "src/kernels/integer/portable-inl.h"

struct Neon : Portable {
  using Weights = int8x16_t;
  using Values = int8x16_t;

  static SLUICE_INLINE Reals fused(Reals a, Reals b, Reals c) {
    return reinterpret_cast<Reals>(
        vfmaq_f32(reinterpret_cast<float32x4_t>(c), reinterpret_cast<float32x4_t>(a), reinterpret_cast<float32x4_t>(b)));
  }
  static SLUICE_INLINE Weights weights(const std::int8_t* from) { return vld1q_s8(from); }
  static SLUICE_INLINE Values less_128(uint8x16_t fours) { return vreinterpretq_s8_u8(veorq_u8(fours, vdupq_n_u8(0x80))); }
  static SLUICE_INLINE Values values_of(ByteVector fours) { return less_128(reinterpret_cast<uint8x16_t>(fours)); }
  static SLUICE_INLINE Values values(const std::uint8_t* from) {
    std::uint32_t word;
    __builtin_memcpy(&word, from, sizeof word);
    return less_128(vreinterpretq_u8_u32(vdupq_n_u32(word)));
  }
};

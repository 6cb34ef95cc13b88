/* From an exact sum to a byte: the rule of rounding (docs/quantisation.md). */
#ifndef SLUICE_PORTABLE_FINISH_U8_H
#define SLUICE_PORTABLE_FINISH_U8_H

#include "sluice/portable/base.h"

typedef struct sluice_range {
  uint8_t zero, low, high;
} sluice_range;

/* Above 1.5 * 2^23, neighbouring floats are integers apart: the sum rounds to the nearest one, halves to the even. */
SLUICE_FN uint8_t sluice_to_u8(float value, const sluice_range* range) {
  const float least = (float)(range->low - range->zero), most = (float)(range->high - range->zero);
  value = value > least ? value : least; /* what is no number becomes `least` */
  value = value < most ? value : most;
  value = (value + 12582912.0f) - 12582912.0f;
  return (uint8_t)((int32_t)value + range->zero);
}

/* The same with the zero point, less `offset`, in the value that is rounded. */
SLUICE_FN uint8_t sluice_to_u8_with_zero(float value, const sluice_range* range, uint8_t offset) {
  sluice_range shifted = *range;
  shifted.zero = offset;
  return sluice_to_u8(value + (float)(range->zero - offset), &shifted);
}

SLUICE_FN float sluice_to_real(uint8_t value, uint8_t zero, float scale) { return (float)(value - zero) * scale; }

/* What becomes of a layer's sums. */
typedef struct sluice_finish_u8 {
  const int32_t* bias;
  const float* multipliers;
  sluice_range range;
  uint8_t has_residual;
  sluice_range sum_range; /* of the sum before the residual is added */
  uint8_t residual_zero;
  float sum_ratio, residual_ratio; /* of the scales by the output's */
} sluice_finish_u8;

SLUICE_FN uint8_t sluice_finish_to_u8(const sluice_finish_u8* f, int32_t sum, uint32_t n, const uint8_t* residual) {
  float value = (float)sum * f->multipliers[n];
  if (f->has_residual) {
    const float rounded = sluice_to_real(sluice_to_u8(value, &f->sum_range), f->sum_range.zero, f->sum_ratio);
    value = rounded + sluice_to_real(residual[n], f->residual_zero, f->residual_ratio);
    return sluice_to_u8_with_zero(value, &f->range, 0);
  }
  return sluice_to_u8(value, &f->range);
}

#endif

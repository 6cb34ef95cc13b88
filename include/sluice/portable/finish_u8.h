/* From an exact sum to a byte: the rule of rounding (docs/quantisation.md). */
#ifndef SLUICE_PORTABLE_FINISH_U8_H
#define SLUICE_PORTABLE_FINISH_U8_H

#include "sluice/portable/base.h"
#include "sluice/portable/fma.h"

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

/* How two tensors are added: the ratios are of the scales by the output's, the constant is what the zero points come to. */
typedef struct sluice_sum_u8 {
  float ratio_a, ratio_b, constant;
  uint8_t offset; /* 128 for bytes that are i8 in the ONNX file */
} sluice_sum_u8;

SLUICE_FN uint8_t sluice_add_u8(const sluice_sum_u8* sum, uint8_t a, uint8_t b, const sluice_range* range) {
  const float left = (float)(a - sum->offset), right = (float)(b - sum->offset);
  sluice_range shifted = *range;
  shifted.zero = sum->offset;
  return sluice_to_u8(sluice_fma(left, sum->ratio_a, sluice_fma(right, sum->ratio_b, sum->constant)), &shifted);
}

SLUICE_FN float sluice_to_real(uint8_t value, uint8_t zero, float scale) { return (float)(value - zero) * scale; }

/* What becomes of a layer's sums. */
typedef struct sluice_finish_u8 {
  const int32_t* bias;
  const float* multipliers;
  sluice_range range;
  uint8_t has_residual;
  sluice_range sum_range; /* of the sum before the residual is added */
  uint8_t residual_first; /* of the two that are added */
  sluice_sum_u8 addition;
} sluice_finish_u8;

SLUICE_FN uint8_t sluice_finish_to_u8(const sluice_finish_u8* f, int32_t sum, uint32_t n, const uint8_t* residual) {
  float value = (float)sum * f->multipliers[n];
  if (f->has_residual) {
    const uint8_t rounded = sluice_to_u8(value, &f->sum_range);
    return f->residual_first ? sluice_add_u8(&f->addition, residual[n], rounded, &f->range)
                             : sluice_add_u8(&f->addition, rounded, residual[n], &f->range);
  }
  return sluice_to_u8(value, &f->range);
}

#endif

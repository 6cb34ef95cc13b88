/* Convolutions and dense layers of bytes, any groups: sums of u8 x i8 are exact, so every order gives the same.
 *
 * Weights lie [output][tap][input]. A window of more than one tap is gathered into `scratch` first. Where the compiler says that the CPU
 * has Helium, eight products go at a time, with the DSP extension two: the sums wrap alike, so the bits are the same. */
#ifndef SLUICE_PORTABLE_CONV_U8_H
#define SLUICE_PORTABLE_CONV_U8_H

#include "sluice/portable/finish_u8.h"
#include "sluice/portable/functions.h"
#include "sluice/portable/window.h"

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#define SLUICE_HAS_HELIUM 1
#elif defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32)
#include <arm_acle.h>
#define SLUICE_HAS_SMLAD 1
#endif

/* What the sums become: bytes, floats or the sums themselves. */
enum { SLUICE_OUT_U8 = 0, SLUICE_OUT_F32 = 1, SLUICE_OUT_I32 = 2 };

typedef struct sluice_conv_u8 {
  sluice_window window;
  const int8_t *weights;
  sluice_finish_u8 finish;
  uint32_t scratch; /* in the arena */
  uint16_t groups, depth, outputs; /* of a group */
  uint8_t zero_in;
  uint8_t direct; /* one tap, no padding, one group: nothing to gather */
  uint8_t out;
  float (*apply)(const sluice_function *function, float value); /* of floats that come out */
  sluice_function activation;
} sluice_conv_u8;

SLUICE_FN uint32_t sluice_products_u8(const uint8_t *x, const int8_t *w, uint32_t depth, uint32_t sum) {
  uint32_t k = 0;
#if defined(SLUICE_HAS_HELIUM)
  int32_t signed_sum = (int32_t)sum;
  for (; k + 8 <= depth; k += 8)
    signed_sum = vmladavaq_s16(signed_sum, vreinterpretq_s16_u16(vldrbq_u16(x + k)), vldrbq_s16(w + k));
  if (k < depth) {
    const mve_pred16_t left = vctp16q(depth - k); /* lanes behind the end load nothing and add nothing */
    signed_sum = vmladavaq_s16(signed_sum, vreinterpretq_s16_u16(vldrbq_z_u16(x + k, left)), vldrbq_z_s16(w + k, left));
  }
  return (uint32_t)signed_sum;
#else
#if defined(SLUICE_HAS_SMLAD)
  for (; k + 4 <= depth; k += 4) {
    uint32_t x4, w4;
    memcpy(&x4, x + k, 4);
    memcpy(&w4, w + k, 4);
    sum = (uint32_t)__smlad((int16x2_t)__uxtb16(x4), __sxtb16((int8x4_t)w4), (int32_t)sum);
    sum = (uint32_t)__smlad((int16x2_t)__uxtb16(x4 >> 8), __sxtb16((int8x4_t)(w4 >> 8)), (int32_t)sum);
  }
#else
  for (; k + 4 <= depth; k += 4)
    sum += (uint32_t)(x[k] * w[k] + x[k + 1] * w[k + 1] + x[k + 2] * w[k + 2] + x[k + 3] * w[k + 3]);
#endif
  for (; k < depth; ++k) sum += (uint32_t)(x[k] * w[k]);
  return sum;
#endif
}

SLUICE_FN void sluice_store_u8(const sluice_conv_u8 *p, uint32_t products, uint32_t n, uint8_t *out, const uint8_t *residual) {
  const int32_t sum = (int32_t)(products + (uint32_t)p->finish.bias[n]);
  float value;
  if (p->out == SLUICE_OUT_U8) {
    out[n] = sluice_finish_to_u8(&p->finish, sum, n, residual);
  } else if (p->out == SLUICE_OUT_F32) {
    value = p->apply(&p->activation, (float)sum * p->finish.multipliers[n]);
    memcpy(out + (size_t)n * 4, &value, sizeof value);
  } else {
    memcpy(out + (size_t)n * 4, &sum, sizeof sum);
  }
}

/* Without a residual this is the first input, and nobody reads it. */
SLUICE_FN const uint8_t *sluice_residual_u8(const sluice_task *task, const sluice_conv_u8 *p, uint32_t pixel) {
  return sluice_at(task->arena, &task->stage->inputs[p->finish.has_residual].view, task->row, pixel);
}

SLUICE_FN void sluice_run_conv_u8(const sluice_task *task) {
  const sluice_stage *stage = task->stage;
  const sluice_conv_u8 *p = (const sluice_conv_u8 *)stage->parameters;
  const uint32_t values = (uint32_t)(p->window.kernel_h * p->window.kernel_w) * p->depth;
  uint32_t pixel, group, n;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    uint8_t *out = sluice_at(task->arena, &stage->out, task->row, pixel);
    const uint8_t *residual = sluice_residual_u8(task, p, pixel);
    const int8_t *w = p->weights;
    for (group = 0; group < p->groups; ++group) {
      const uint8_t *x = task->arena + p->scratch;
      if (p->direct)
        x = sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel);
      else
        sluice_gather(task, &p->window, pixel, group * p->depth, p->depth, p->zero_in, task->arena + p->scratch);
      for (n = group * p->outputs; n < (group + 1u) * p->outputs; ++n, w += values)
        sluice_store_u8(p, sluice_products_u8(x, w, values, 0), n, out, residual);
    }
  }
}

#endif

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
  const int8_t* weights;
  sluice_finish_u8 finish;
  uint32_t scratch;                /* in the arena */
  uint16_t groups, depth, outputs; /* of a group */
  uint8_t zero_in;
  uint8_t direct; /* one tap, no padding, one group: nothing to gather */
  uint8_t out;
  float (*apply)(const sluice_function* function, float value); /* of floats that come out */
  sluice_function activation;
} sluice_conv_u8;

/* The sums of one window with the weights of two outputs, so that what is read of the window serves both. */
SLUICE_LOOP void sluice_products_u8(const uint8_t* x, const int8_t* w, const int8_t* v, uint32_t depth, uint32_t* sums) {
#if defined(SLUICE_HAS_HELIUM)
  int32_t first = 0, second = 0;
  uint32_t k;
  for (k = 0; k < depth; k += 8) {
    const mve_pred16_t left = vctp16q(depth - k); /* lanes behind the end load nothing and add nothing */
    const int16x8_t values = vreinterpretq_s16_u16(vldrbq_z_u16(x + k, left));
    first = vmladavaq_s16(first, values, vldrbq_z_s16(w + k, left));
    second = vmladavaq_s16(second, values, vldrbq_z_s16(v + k, left));
  }
  sums[0] = (uint32_t)first;
  sums[1] = (uint32_t)second;
#else
  uint32_t first = 0, second = 0;
#if defined(SLUICE_HAS_SMLAD)
  for (; depth >= 4; depth -= 4, x += 4, w += 4, v += 4) {
    uint32_t x4, w4, v4;
    int16x2_t even, odd;
    memcpy(&x4, x, 4);
    memcpy(&w4, w, 4);
    memcpy(&v4, v, 4);
    even = (int16x2_t)(x4 & 0x00ff00ffu);
    odd = (int16x2_t)(x4 >> 8 & 0x00ff00ffu);
    first = (uint32_t)__smlad(even, __sxtb16((int8x4_t)w4), (int32_t)first);
    first = (uint32_t)__smlad(odd, __sxtb16((int8x4_t)(w4 >> 8)), (int32_t)first);
    second = (uint32_t)__smlad(even, __sxtb16((int8x4_t)v4), (int32_t)second);
    second = (uint32_t)__smlad(odd, __sxtb16((int8x4_t)(v4 >> 8)), (int32_t)second);
  }
#endif
  for (; depth > 0; --depth, ++x, ++w, ++v) {
    first += (uint32_t)(*x * *w);
    second += (uint32_t)(*x * *v);
  }
  sums[0] = first;
  sums[1] = second;
#endif
}

SLUICE_FN void sluice_store_u8(const sluice_conv_u8* p, uint32_t products, uint32_t n, uint8_t* out, const uint8_t* residual) {
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

/* What is added to an output pixel: the second input, if there is one. */
SLUICE_FN const uint8_t* sluice_residual_u8(const sluice_task* task, const sluice_conv_u8* p, uint32_t pixel) {
  if (!p->finish.has_residual) return NULL;
  return sluice_at(task->arena, &task->stage->inputs[1].view, task->row, pixel);
}

SLUICE_FN void sluice_run_conv_u8(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_conv_u8* p = (const sluice_conv_u8*)stage->parameters;
  const uint32_t values = (uint32_t)(p->window.kernel_h * p->window.kernel_w) * p->depth;
  uint32_t pixel, group, n, sums[2];
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    const uint8_t* residual = sluice_residual_u8(task, p, pixel);
    const int8_t* w = p->weights;
    for (group = 0; group < p->groups; ++group) {
      const uint8_t* x = task->arena + p->scratch;
      if (p->direct)
        x = sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel);
      else
        sluice_gather(task, &p->window, pixel, group * p->depth, p->depth, p->zero_in, task->arena + p->scratch);
      for (n = 0; n < p->outputs; n += 2, w += values) {
        const uint32_t first = group * p->outputs + n;
        const int both = n + 1u < p->outputs;
        sluice_products_u8(x, w, both ? w + values : w, values, sums);
        sluice_store_u8(p, sums[0], first, out, residual);
        if (!both) continue;
        sluice_store_u8(p, sums[1], first + 1, out, residual);
        w += values;
      }
    }
  }
}

#endif

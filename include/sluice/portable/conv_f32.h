/* Convolutions and dense layers of floats, any groups, depthwise too: each output is one chain of fused multiply-adds from 0, taps in
 * order, inputs rising within a tap; bias, residual and activation follow. Weights lie [output][tap][input], depthwise [tap][channel]. */
#ifndef SLUICE_PORTABLE_CONV_F32_H
#define SLUICE_PORTABLE_CONV_F32_H

#include "sluice/portable/functions.h"
#include "sluice/portable/window.h"

typedef struct sluice_conv_f32 {
  sluice_window window;
  const float *weights;
  const float *bias; /* NULL: none */
  float (*apply)(const sluice_function *function, float value);
  sluice_function activation;
  uint32_t scratch; /* in the arena */
  uint16_t groups, depth, outputs; /* of a group */
  uint8_t direct, has_residual;
} sluice_conv_f32;

SLUICE_FN float sluice_finish_f32(const sluice_conv_f32 *p, float sum, uint32_t n, const float *residual) {
  if (p->bias != NULL) sum += p->bias[n];
  if (p->has_residual) sum += residual[n];
  return p->apply(&p->activation, sum);
}

/* Without a residual this is the first input, and nobody reads it. */
SLUICE_FN const float *sluice_residual_f32(const sluice_task *task, const sluice_conv_f32 *p, uint32_t pixel) {
  return (const float *)(const void *)sluice_at(task->arena, &task->stage->inputs[p->has_residual].view, task->row, pixel);
}

SLUICE_FN void sluice_run_conv_f32(const sluice_task *task) {
  const sluice_stage *stage = task->stage;
  const sluice_conv_f32 *p = (const sluice_conv_f32 *)stage->parameters;
  const uint32_t values = (uint32_t)(p->window.kernel_h * p->window.kernel_w) * p->depth;
  uint32_t pixel, group, n, k;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    float *out = (float *)(void *)sluice_at(task->arena, &stage->out, task->row, pixel);
    const float *residual = sluice_residual_f32(task, p, pixel);
    const float *w = p->weights;
    for (group = 0; group < p->groups; ++group) {
      const float *x = (const float *)(const void *)(task->arena + p->scratch);
      if (p->direct)
        x = (const float *)(const void *)sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel);
      else
        sluice_gather(task, &p->window, pixel, group * p->depth * 4u, p->depth * 4u, 0, task->arena + p->scratch);
      for (n = group * p->outputs; n < (group + 1u) * p->outputs; ++n, w += values) {
        float sum = 0.0f;
        for (k = 0; k < values; ++k) sum = sluice_fma(x[k], w[k], sum);
        out[n] = sluice_finish_f32(p, sum, n, residual);
      }
    }
  }
}

/* Taps in the padding are left out of the chain. */
SLUICE_FN void sluice_run_depthwise_f32(const sluice_task *task) {
  const sluice_stage *stage = task->stage;
  const sluice_conv_f32 *p = (const sluice_conv_f32 *)stage->parameters;
  const uint32_t channels = p->groups;
  uint32_t pixel, n;
  int32_t ky, kx;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    float *out = (float *)(void *)sluice_at(task->arena, &stage->out, task->row, pixel);
    const float *residual = sluice_residual_f32(task, p, pixel);
    for (n = 0; n < channels; ++n) {
      const float *w = p->weights + n;
      float sum = 0.0f;
      for (ky = 0; ky < p->window.kernel_h; ++ky)
        for (kx = 0; kx < p->window.kernel_w; ++kx, w += channels) {
          const uint8_t *x = (const uint8_t *)out;
          if (sluice_find_tap(task, &p->window, pixel, ky, kx, &x)) sum = sluice_fma(((const float *)(const void *)x)[n], *w, sum);
        }
      out[n] = sluice_finish_f32(p, sum, n, residual);
    }
  }
}

#endif

/* Convolutions and dense layers of floats, any groups, depthwise too: each output is one chain of fused multiply-adds from 0, taps in
 * order, inputs rising within a tap; bias, residual and activation follow. Weights lie [output][tap][input], depthwise [tap][channel]. */
#ifndef SLUICE_PORTABLE_CONV_F32_H
#define SLUICE_PORTABLE_CONV_F32_H

#include "sluice/portable/functions.h"
#include "sluice/portable/window.h"

typedef struct sluice_conv_f32 {
  sluice_window window;
  const float* weights;
  const float* bias; /* NULL: none */
  float (*apply)(const sluice_function* function, float value);
  sluice_function activation;
  uint32_t scratch;                /* in the arena */
  uint16_t groups, depth, outputs; /* of a group */
  uint8_t direct, has_residual;    /* direct, of a transposed convolution: its sums go by taps */
} sluice_conv_f32;

SLUICE_FN float sluice_finish_f32(const sluice_conv_f32* p, float sum, uint32_t n, const float* residual) {
  if (p->bias != NULL) sum += p->bias[n];
  if (p->has_residual) sum += residual[n];
  return p->apply(&p->activation, sum);
}

/* What is added to an output pixel: the second input, if there is one. */
SLUICE_FN const float* sluice_residual_f32(const sluice_task* task, const sluice_conv_f32* p, uint32_t pixel) {
  if (!p->has_residual) return NULL;
  return (const float*)(const void*)sluice_at(task->arena, &task->stage->inputs[1].view, task->row, pixel);
}

/* The sums of one window with the weights of two outputs, so that what is read of the window serves both. */
SLUICE_LOOP void sluice_products_f32(const float* x, const float* w, const float* v, uint32_t depth, float* sums) {
  float first = 0.0f, second = 0.0f;
  for (; depth > 0; --depth, ++x, ++w, ++v) {
    first = sluice_fma(*x, *w, first);
    second = sluice_fma(*x, *v, second);
  }
  sums[0] = first;
  sums[1] = second;
}

SLUICE_FN void sluice_run_conv_f32(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_conv_f32* p = (const sluice_conv_f32*)stage->parameters;
  const uint32_t values = (uint32_t)(p->window.kernel_h * p->window.kernel_w) * p->depth;
  uint32_t pixel, group, n;
  float sums[2];
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    float* out = (float*)(void*)sluice_at(task->arena, &stage->out, task->row, pixel);
    const float* residual = sluice_residual_f32(task, p, pixel);
    const float* w = p->weights;
    for (group = 0; group < p->groups; ++group) {
      const float* x = (const float*)(const void*)(task->arena + p->scratch);
      if (p->direct)
        x = (const float*)(const void*)sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel);
      else
        sluice_gather(task, &p->window, pixel, group * p->depth * 4u, p->depth * 4u, 0, task->arena + p->scratch);
      for (n = 0; n < p->outputs; n += 2, w += values) {
        const uint32_t first = group * p->outputs + n;
        const int both = n + 1u < p->outputs;
        sluice_products_f32(x, w, both ? w + values : w, values, sums);
        out[first] = sluice_finish_f32(p, sums[0], first, residual);
        if (!both) continue;
        out[first + 1] = sluice_finish_f32(p, sums[1], first + 1, residual);
        w += values;
      }
    }
  }
}

/* Channels whose sums are kept at a time. */
#define SLUICE_SUMS_F32 8u

SLUICE_LOOP void sluice_add_tap_f32(float* sums, const float* x, const float* w, uint32_t count) {
  for (; count > 0; --count, ++sums, ++x, ++w) *sums = sluice_fma(*x, *w, *sums);
}

/* Taps in the padding are left out of the chain. */
SLUICE_FN void sluice_run_depthwise_f32(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_conv_f32* p = (const sluice_conv_f32*)stage->parameters;
  const uint32_t channels = p->groups;
  float sums[SLUICE_SUMS_F32];
  uint32_t pixel, first, c;
  int32_t ky, kx;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    float* out = (float*)(void*)sluice_at(task->arena, &stage->out, task->row, pixel);
    const float* residual = sluice_residual_f32(task, p, pixel);
    for (first = 0; first < channels; first += SLUICE_SUMS_F32) {
      const uint32_t count = channels - first < SLUICE_SUMS_F32 ? channels - first : SLUICE_SUMS_F32;
      const float* w = p->weights + first;
      for (c = 0; c < count; ++c) sums[c] = 0.0f;
      for (ky = 0; ky < p->window.kernel_h; ++ky)
        for (kx = 0; kx < p->window.kernel_w; ++kx, w += channels) {
          const uint8_t* x = (const uint8_t*)out;
          if (sluice_find_tap(task, &p->window, pixel, ky, kx, &x))
            sluice_add_tap_f32(sums, (const float*)(const void*)x + first, w, count);
        }
      for (c = 0; c < count; ++c) out[first + c] = sluice_finish_f32(p, sums[c], first + c, residual);
    }
  }
}

#endif

/* Transposed convolutions of floats, any groups: each output is one chain of fused multiply-adds from 0 over the taps that meet an input,
 * in order, inputs rising within a tap, or the sum of such a chain for each tap (p->direct); bias, residual and activation follow. Weights
 * lie [output][tap][input]. */
#ifndef SLUICE_PORTABLE_TRANSPOSED_F32_H
#define SLUICE_PORTABLE_TRANSPOSED_F32_H

#include "sluice/portable/conv_f32.h"

/* Outputs whose sums are kept at a time. */
#define SLUICE_SUMS_TRANSPOSED 8u

/* Whether a tap that lies at `position` between the inputs, `stride` apart, meets one, and which. */
SLUICE_FN int sluice_meets(int32_t position, int32_t stride, int32_t extent, uint32_t* input) {
  if (position < 0 || position % stride != 0 || position / stride >= extent) return 0;
  *input = (uint32_t)(position / stride);
  return 1;
}

/* One tap's products, for `count` outputs whose weights are `step` apart. */
SLUICE_LOOP void sluice_add_products_f32(float* sums, const float* x, const float* w, uint32_t depth, uint32_t step, uint32_t count,
                                         int by_taps) {
  uint32_t k;
  for (; count > 0; --count, ++sums, w += step) {
    float sum = by_taps ? 0.0f : *sums;
    for (k = 0; k < depth; ++k) sum = sluice_fma(x[k], w[k], sum);
    *sums = by_taps ? *sums + sum : sum;
  }
}

/* `count` outputs from `first` on, of one pixel; they are of one group. */
SLUICE_FN void sluice_transposed_sums(const sluice_task* task, const sluice_conv_f32* p, uint32_t pixel, uint32_t first, uint32_t count,
                                      float* sums) {
  const sluice_window* window = &p->window;
  const uint32_t taps = (uint32_t)(window->kernel_h * window->kernel_w);
  const float* w = p->weights + (size_t)first * taps * p->depth;
  uint32_t y = 0, x = 0;
  int32_t ky, kx;
  memset(sums, 0, count * sizeof *sums);
  for (ky = 0; ky < window->kernel_h; ++ky) {
    if (!sluice_meets((int32_t)task->row + window->pad_top - ky * window->dilation_h, window->stride_h, window->in_h, &y)) continue;
    for (kx = 0; kx < window->kernel_w; ++kx)
      if (sluice_meets((int32_t)pixel + window->pad_left - kx * window->dilation_w, window->stride_w, window->in_w, &x))
        sluice_add_products_f32(
            sums,
            (const float*)(const void*)sluice_at(task->arena, &task->stage->inputs[0].view, y, x) + (size_t)(first / p->outputs) * p->depth,
            w + (size_t)(uint32_t)(ky * window->kernel_w + kx) * p->depth, p->depth, taps * p->depth, count, p->direct);
  }
}

SLUICE_FN void sluice_run_transposed_f32(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_conv_f32* p = (const sluice_conv_f32*)stage->parameters;
  float sums[SLUICE_SUMS_TRANSPOSED];
  uint32_t pixel, group, n, c;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    float* out = (float*)(void*)sluice_at(task->arena, &stage->out, task->row, pixel);
    const float* residual = sluice_residual_f32(task, p, pixel);
    for (group = 0; group < p->groups; ++group)
      for (n = 0; n < p->outputs; n += SLUICE_SUMS_TRANSPOSED) {
        const uint32_t first = group * p->outputs + n, left = p->outputs - n;
        const uint32_t count = left < SLUICE_SUMS_TRANSPOSED ? left : SLUICE_SUMS_TRANSPOSED;
        sluice_transposed_sums(task, p, pixel, first, count, sums);
        for (c = 0; c < count; ++c) out[first + c] = sluice_finish_f32(p, sums[c], first + c, residual);
      }
  }
}

#endif

/* Images of floats resized by interpolation: a value is the weighted sum of its neighbours, one chain of fused multiply-adds from 0, columns
 * fastest. Which neighbours, and their weights, are tables: one, two or four of each row and each column. */
#ifndef SLUICE_PORTABLE_RESIZE_F32_H
#define SLUICE_PORTABLE_RESIZE_F32_H

#include "sluice/portable/fma.h"
#include "sluice/portable/resize_taps.h"
#include "sluice/portable/rows.h"

typedef struct sluice_resize_f32 {
  sluice_taps rows, pixels;
  uint16_t channels;
} sluice_resize_f32;

SLUICE_LOOP void sluice_add_weighted(float* out, const float* in, float weight, uint32_t count) {
  for (; count > 0; --count, ++out, ++in) *out = sluice_fma(weight, *in, *out);
}

SLUICE_FN void sluice_run_resize_f32(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_resize_f32* p = (const sluice_resize_f32*)stage->parameters;
  const uint32_t first_row = task->row * p->rows.count;
  uint32_t pixel, c, y, x;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    float* out = (float*)(void*)sluice_at(task->arena, &stage->out, task->row, pixel);
    const uint32_t first_pixel = pixel * p->pixels.count;
    for (c = 0; c < p->channels; ++c) out[c] = 0.0f;
    for (y = first_row; y < first_row + p->rows.count; ++y)
      for (x = first_pixel; x < first_pixel + p->pixels.count; ++x)
        sluice_add_weighted(
            out, (const float*)(const void*)sluice_at(task->arena, &stage->inputs[0].view, p->rows.places[y], p->pixels.places[x]),
            p->rows.weights[y] * p->pixels.weights[x], p->channels);
  }
}

#endif

/* Images of bytes resized linearly: what the four neighbours stand for, each times its weight, added one after the other. Nothing is fused. */
#ifndef SLUICE_PORTABLE_RESIZE_U8_H
#define SLUICE_PORTABLE_RESIZE_U8_H

#include "sluice/portable/finish_u8.h"
#include "sluice/portable/resize_taps.h"
#include "sluice/portable/rows.h"

typedef struct sluice_resize_u8 {
  sluice_taps rows, pixels; /* two of each */
  uint16_t channels;
  sluice_range range;
  uint8_t zero_in;
  float scale_in, scale;
} sluice_resize_u8;

SLUICE_FN void sluice_run_resize_u8(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_resize_u8* p = (const sluice_resize_u8*)stage->parameters;
  uint32_t pixel, c, i;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const uint8_t* in[4];
    float weights[4];
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    for (i = 0; i < 4; ++i) {
      const uint32_t y = 2 * task->row + i / 2, x = 2 * pixel + i % 2;
      in[i] = sluice_at(task->arena, &stage->inputs[0].view, p->rows.places[y], p->pixels.places[x]);
      weights[i] = p->pixels.weights[x] * p->rows.weights[y];
    }
    for (c = 0; c < p->channels; ++c) {
      float sum = weights[0] * sluice_to_real(in[0][c], p->zero_in, p->scale_in);
      for (i = 1; i < 4; ++i) sum += weights[i] * sluice_to_real(in[i][c], p->zero_in, p->scale_in);
      out[c] = sluice_to_u8(sum / p->scale, &p->range);
    }
  }
}

#endif

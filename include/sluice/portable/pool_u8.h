/* The largest byte of a window, or its mean: of a whole image the sum of whole numbers, else of what they stand for. A window that is the
   whole image may be folded pixel by pixel, as its input is made. */
#ifndef SLUICE_PORTABLE_POOL_U8_H
#define SLUICE_PORTABLE_POOL_U8_H

#include "sluice/portable/finish_u8.h"
#include "sluice/portable/pool_window.h"

typedef struct sluice_pool_u8 {
  sluice_window window;
  sluice_range range;
  uint8_t zero_in, is_max, count_include_pad;
  uint16_t channels;
  uint8_t whole, offset; /* of a mean: the window is the image; 128 less is added as the zero point where bytes stand for i8 */
  float scale_in, scale; /* of the output */
  uint32_t scratch;      /* the sums of a fold */
} sluice_pool_u8;

SLUICE_FN uint8_t sluice_pooled_u8(const sluice_pool_u8* p, int32_t sum, uint8_t most, int32_t divisor) {
  if (p->is_max) return most < p->range.low ? p->range.low : most > p->range.high ? p->range.high : most;
  return sluice_to_u8((float)sum * (p->scale_in / (p->scale * (float)divisor)), &p->range);
}

SLUICE_FN uint8_t sluice_mean_of_reals_u8(const sluice_pool_u8* p, float sum, int32_t divisor) {
  return sluice_to_u8_with_zero(sum / (float)divisor / p->scale, &p->range, p->offset);
}

SLUICE_FN void sluice_run_pool_u8(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_pool_u8* p = (const sluice_pool_u8*)stage->parameters;
  uint32_t pixel, c;
  int32_t ky, kx;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    const int32_t divisor = sluice_pool_divisor(&p->window, task->row, pixel, p->count_include_pad);
    for (c = 0; c < p->channels; ++c) {
      int32_t sum = 0;
      uint8_t most = 0;
      float reals = 0.0f;
      for (ky = 0; ky < p->window.kernel_h; ++ky)
        for (kx = 0; kx < p->window.kernel_w; ++kx) {
          const uint8_t* x = out;
          if (!sluice_find_tap(task, &p->window, pixel, ky, kx, &x)) continue;
          sum += x[c] - p->zero_in;
          if (x[c] > most) most = x[c];
          if (!p->whole) reals = reals + sluice_to_real(x[c], p->zero_in, p->scale_in);
        }
      out[c] = p->is_max || p->whole ? sluice_pooled_u8(p, sum, most, divisor) : sluice_mean_of_reals_u8(p, reals, divisor);
    }
  }
}

/* Stage that folds: walks the input; for the largest value the sums hold that. */
SLUICE_FN void sluice_run_fold_u8(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_pool_u8* p = (const sluice_pool_u8*)stage->parameters;
  int32_t* sums = (int32_t*)(void*)(task->arena + p->scratch);
  uint32_t pixel, c;
  if (task->row == 0 && task->pixel == 0) memset(sums, 0, p->channels * sizeof *sums);
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const uint8_t* x = sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel);
    for (c = 0; c < p->channels; ++c) {
      if (!p->is_max)
        sums[c] += x[c] - p->zero_in;
      else if (x[c] > sums[c])
        sums[c] = x[c];
    }
  }
  if (task->row + 1u == stage->rows && task->pixel + task->count == stage->pixels) {
    uint8_t* out = sluice_at(task->arena, &stage->out, 0, 0);
    const int32_t divisor = sluice_pool_divisor(&p->window, 0, 0, p->count_include_pad);
    for (c = 0; c < p->channels; ++c) out[c] = sluice_pooled_u8(p, sums[c], (uint8_t)sums[c], divisor);
  }
}

#endif

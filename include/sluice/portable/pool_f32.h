/* The largest float of a window, or its mean: the sum of each row of the window, then the sum of the rows. A window that is the whole
 * image may be folded pixel by pixel. */
#ifndef SLUICE_PORTABLE_POOL_F32_H
#define SLUICE_PORTABLE_POOL_F32_H

#include "sluice/portable/functions.h"
#include "sluice/portable/lane_sum.h"
#include "sluice/portable/pool_window.h"

typedef struct sluice_pool_f32 {
  sluice_window window;
  float (*apply)(const sluice_function* function, float value);
  sluice_function activation;
  uint8_t is_max, count_include_pad;
  uint16_t channels;
  uint32_t scratch; /* of a fold: a value for each channel, then the sum of the row that is under way */
} sluice_pool_f32;

SLUICE_FN float sluice_least_float(void) { return sluice_float(0xff800000u); }

SLUICE_FN float sluice_pooled_f32(const sluice_task* task, const sluice_pool_f32* p, uint32_t pixel, uint32_t c, int32_t divisor) {
  float greatest = sluice_least_float(), sum = 0.0f;
  int32_t ky, kx;
  for (ky = 0; ky < p->window.kernel_h; ++ky) {
    sluice_lanes lanes;
    float row = 0.0f;
    uint32_t count = 0;
    sluice_clear_lanes(&lanes);
    for (kx = 0; kx < p->window.kernel_w; ++kx) {
      const uint8_t* tap = task->arena;
      float value;
      if (!sluice_find_tap(task, &p->window, pixel, ky, kx, &tap)) continue;
      value = ((const float*)(const void*)tap)[c];
      greatest = greatest < value ? value : greatest;
      row += value;
      if (p->channels == 1) lanes.sums[count % 16] += value;
      ++count;
    }
    /* Long rows of one channel are summed in sixteen lanes, as the engine does. A window row in the padding adds nothing. */
    if (count > 0) sum += p->channels == 1 && p->window.dilation_w == 1 && count >= 16 ? sluice_lanes_total(&lanes) : row;
  }
  return p->is_max ? greatest : sum / (float)divisor;
}

SLUICE_FN void sluice_run_pool_f32(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_pool_f32* p = (const sluice_pool_f32*)stage->parameters;
  uint32_t pixel, c;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    float* out = (float*)(void*)sluice_at(task->arena, &stage->out, task->row, pixel);
    const int32_t divisor = sluice_pool_divisor(&p->window, task->row, pixel, p->count_include_pad);
    for (c = 0; c < p->channels; ++c) out[c] = p->apply(&p->activation, sluice_pooled_f32(task, p, pixel, c, divisor));
  }
}

/* Stage that folds: walks the input. */
SLUICE_FN void sluice_run_fold_f32(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_pool_f32* p = (const sluice_pool_f32*)stage->parameters;
  float *values = (float*)(void*)(task->arena + p->scratch), *rows = values + p->channels;
  uint32_t pixel, c;
  const int ends_row = task->pixel + task->count == stage->pixels;
  if (task->row == 0 && task->pixel == 0)
    for (c = 0; c < p->channels; ++c) {
      values[c] = p->is_max ? sluice_least_float() : 0.0f;
      rows[c] = 0.0f;
    }
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const float* x = (const float*)(const void*)sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel);
    for (c = 0; c < p->channels; ++c) {
      if (!p->is_max)
        rows[c] += x[c];
      else
        values[c] = values[c] < x[c] ? x[c] : values[c];
    }
  }
  if (!ends_row) return;
  if (!p->is_max)
    for (c = 0; c < p->channels; ++c) {
      values[c] += rows[c];
      rows[c] = 0.0f;
    }
  if (task->row + 1u == stage->rows) {
    float* out = (float*)(void*)sluice_at(task->arena, &stage->out, 0, 0);
    const int32_t divisor = sluice_pool_divisor(&p->window, 0, 0, p->count_include_pad);
    for (c = 0; c < p->channels; ++c) out[c] = p->apply(&p->activation, p->is_max ? values[c] : values[c] / (float)divisor);
  }
}

#endif

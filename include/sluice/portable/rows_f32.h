/* Softmax and layer normalisation of a pixel's channels, and products of two tensors. */
#ifndef SLUICE_PORTABLE_ROWS_F32_H
#define SLUICE_PORTABLE_ROWS_F32_H

#include "sluice/portable/functions.h"
#include "sluice/portable/lane_sum.h"
#include "sluice/portable/rows.h"

typedef struct sluice_softmax {
  uint32_t channels;
  uint8_t log;
} sluice_softmax;

SLUICE_FN void sluice_softmax_row(const float* in, float* out, uint32_t count, int log) {
  sluice_lanes lanes;
  float greatest = sluice_float(0xff800000u), total, log_total;
  uint32_t i;
  sluice_clear_lanes(&lanes);
  for (i = 0; i < count; ++i) greatest = greatest < in[i] ? in[i] : greatest;
  for (i = 0; i < count; ++i) {
    const float shifted = in[i] - greatest, e = sluice_exp(shifted);
    lanes.sums[i % 16] += e;
    out[i] = log ? shifted : e;
  }
  total = sluice_lanes_total(&lanes);
  log_total = log ? sluice_log(total) : 0.0f;
  for (i = 0; i < count; ++i) out[i] = log ? out[i] - log_total : out[i] / total;
}

SLUICE_FN void sluice_run_softmax(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_softmax* p = (const sluice_softmax*)stage->parameters;
  uint32_t pixel;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel)
    sluice_softmax_row((const float*)(const void*)sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel),
                       (float*)(void*)sluice_at(task->arena, &stage->out, task->row, pixel), p->channels, p->log);
}

typedef struct sluice_layer_norm {
  uint32_t channels;
  const float *scale, *shift;
  float epsilon;
} sluice_layer_norm;

SLUICE_FN void sluice_layer_norm_row(const sluice_layer_norm* p, const float* in, float* out) {
  sluice_lanes sum, squares;
  float mean, factor;
  uint32_t i;
  sluice_clear_lanes(&sum);
  sluice_clear_lanes(&squares);
  for (i = 0; i < p->channels; ++i) sum.sums[i % 16] += in[i];
  mean = sluice_lanes_total(&sum) / (float)p->channels;
  for (i = 0; i < p->channels; ++i) {
    const float d = in[i] - mean;
    squares.sums[i % 16] = sluice_fma(d, d, squares.sums[i % 16]);
  }
  factor = 1.0f / sluice_sqrt(sluice_lanes_total(&squares) / (float)p->channels + p->epsilon);
  for (i = 0; i < p->channels; ++i) out[i] = sluice_fma((in[i] - mean) * factor, p->scale[i], p->shift[i]);
}

SLUICE_FN void sluice_run_layer_norm(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_layer_norm* p = (const sluice_layer_norm*)stage->parameters;
  uint32_t pixel;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel)
    sluice_layer_norm_row(p, (const float*)(const void*)sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel),
                          (float*)(void*)sluice_at(task->arena, &stage->out, task->row, pixel));
}

#endif

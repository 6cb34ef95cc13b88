/* The product of two tensors of floats, batch by batch: each output is one chain of fused multiply-adds from 0. */
#ifndef SLUICE_PORTABLE_MATMUL_H
#define SLUICE_PORTABLE_MATMUL_H

#include "sluice/portable/copies.h"
#include "sluice/portable/fma.h"

typedef struct sluice_matmul {
  const uint32_t* extents;          /* of the output, all axes but the last */
  const int32_t *a_steps, *b_steps; /* bytes; 0: repeated */
  uint32_t depth, columns;
  uint8_t axes;
} sluice_matmul;

SLUICE_FN void sluice_run_matmul(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_matmul* p = (const sluice_matmul*)stage->parameters;
  uint32_t pixel, n, k;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const uint32_t index = task->row * stage->pixels + pixel;
    const float* a = (const float*)(const void*)sluice_strided(task, &stage->inputs[0].view, 0, index, p->axes, p->extents, p->a_steps);
    const float* b = (const float*)(const void*)sluice_strided(task, &stage->inputs[1].view, 0, index, p->axes, p->extents, p->b_steps);
    float* out = (float*)(void*)sluice_at(task->arena, &stage->out, task->row, pixel);
    for (n = 0; n < p->columns; ++n) {
      float sum = 0.0f;
      for (k = 0; k < p->depth; ++k) sum = sluice_fma(a[k], b[(size_t)k * p->columns + n], sum);
      out[n] = sum;
    }
  }
}

#endif

/* The product of two tensors of bytes, batch by batch: sums of integers, which are exact, then one factor. */
#ifndef SLUICE_PORTABLE_MATMUL_U8_H
#define SLUICE_PORTABLE_MATMUL_U8_H

#include "sluice/portable/copies.h"
#include "sluice/portable/finish_u8.h"

typedef struct sluice_matmul_u8 {
  const uint32_t* extents;          /* of the output, all axes but the last */
  const int32_t *a_steps, *b_steps; /* bytes; 0: repeated */
  uint32_t depth, columns;
  float factor;
  sluice_range range;
  uint8_t axes, zero_a, zero_b, size; /* of an output: 1 byte, or 4 of a float */
} sluice_matmul_u8;

/* One row by one column, whose values lie `columns` apart. */
SLUICE_LOOP int32_t sluice_byte_products(const sluice_matmul_u8* p, const uint8_t* a, const uint8_t* b) {
  uint32_t sum = 0, k;
  for (k = 0; k < p->depth; ++k, b += p->columns) sum += (uint32_t)((a[k] - p->zero_a) * (*b - p->zero_b));
  return (int32_t)sum;
}

SLUICE_FN void sluice_run_matmul_u8(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_matmul_u8* p = (const sluice_matmul_u8*)stage->parameters;
  uint32_t pixel, n;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const uint32_t index = task->row * stage->pixels + pixel;
    const uint8_t* a = sluice_strided(task, &stage->inputs[0].view, 0, index, p->axes, p->extents, p->a_steps);
    const uint8_t* b = sluice_strided(task, &stage->inputs[1].view, 0, index, p->axes, p->extents, p->b_steps);
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    for (n = 0; n < p->columns; ++n, out += p->size) {
      const float value = (float)sluice_byte_products(p, a, b + n) * p->factor;
      if (p->size == 1)
        *out = sluice_to_u8(value, &p->range);
      else
        memcpy(out, &value, sizeof value);
    }
  }
}

#endif

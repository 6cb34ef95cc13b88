/* Bytes one by one: tables, arithmetic of two tensors, and where integers begin and end. */
#ifndef SLUICE_PORTABLE_VALUES_U8_H
#define SLUICE_PORTABLE_VALUES_U8_H

#include "sluice/portable/finish_u8.h"
#include "sluice/portable/operand.h"

typedef struct sluice_table_u8 {
  const uint8_t* table;
  uint32_t channels;
} sluice_table_u8;

SLUICE_FN void sluice_run_table_u8(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_table_u8* p = (const sluice_table_u8*)stage->parameters;
  uint32_t pixel, c;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const uint8_t* in = sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel);
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    for (c = 0; c < p->channels; ++c) out[c] = p->table[in[c]];
  }
}

typedef struct sluice_binary_u8 {
  sluice_operand a, b;
  uint32_t channels;
  sluice_range range;
  uint8_t function, zero_a, zero_b;
  float scale_a, scale_b; /* of products: the first is that of both by the output's */
  float scale;
  sluice_sum_u8 addition;
} sluice_binary_u8;

/* Comparisons are those of the engine's vectors. */
SLUICE_FN float sluice_combine_u8(uint8_t function, float a, float b) {
  switch (function) {
    case SLUICE_DIV:
      return a / b;
    case SLUICE_MAX:
      return a > b ? a : b;
    case SLUICE_MIN:
      return a < b ? a : b;
    default:
      return a - b;
  }
}

SLUICE_FN uint8_t sluice_join_u8(const sluice_binary_u8* p, uint8_t a, uint8_t b) {
  const float left = sluice_to_real(a, p->zero_a, p->scale_a), right = sluice_to_real(b, p->zero_b, p->scale_b);
  if (p->function == SLUICE_ADD) return sluice_add_u8(&p->addition, a, b, &p->range);
  if (p->function == SLUICE_MUL) return sluice_to_u8_with_zero((float)((a - p->zero_a) * (b - p->zero_b)) * p->scale_a, &p->range, 0);
  return sluice_to_u8(sluice_combine_u8(p->function, left, right) / p->scale, &p->range);
}

SLUICE_FN void sluice_run_binary_u8(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_binary_u8* p = (const sluice_binary_u8*)stage->parameters;
  uint32_t pixel, c;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const uint8_t* a = sluice_operand_at(task, &p->a, pixel);
    const uint8_t* b = sluice_operand_at(task, &p->b, pixel);
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    for (c = 0; c < p->channels; ++c) out[c] = sluice_join_u8(p, a[(size_t)c * p->a.step], b[(size_t)c * p->b.step]);
  }
}

typedef struct sluice_border {
  uint32_t channels;
  sluice_range range;
  float scale;
} sluice_border;

SLUICE_FN void sluice_run_quantize(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_border* p = (const sluice_border*)stage->parameters;
  uint32_t pixel, c;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const float* in = (const float*)(const void*)sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel);
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    for (c = 0; c < p->channels; ++c) out[c] = sluice_to_u8(in[c] / p->scale, &p->range);
  }
}

SLUICE_FN void sluice_run_dequantize(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_border* p = (const sluice_border*)stage->parameters;
  uint32_t pixel, c;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const uint8_t* in = sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel);
    float* out = (float*)(void*)sluice_at(task->arena, &stage->out, task->row, pixel);
    for (c = 0; c < p->channels; ++c) out[c] = sluice_to_real(in[c], p->range.zero, p->scale);
  }
}

#endif

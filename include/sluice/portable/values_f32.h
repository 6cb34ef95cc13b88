/* Floats one by one: functions, arithmetic of two tensors, scale and shift. */
#ifndef SLUICE_PORTABLE_VALUES_F32_H
#define SLUICE_PORTABLE_VALUES_F32_H

#include "sluice/portable/functions.h"
#include "sluice/portable/operand.h"

typedef struct sluice_unary_f32 {
  sluice_function function;
  uint32_t channels;
  const float *scale, *shift; /* NULL: none */
} sluice_unary_f32;

SLUICE_FN void sluice_run_unary_f32(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_unary_f32* p = (const sluice_unary_f32*)stage->parameters;
  uint32_t pixel, c;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const float* in = (const float*)(const void*)sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel);
    float* out = (float*)(void*)sluice_at(task->arena, &stage->out, task->row, pixel);
    for (c = 0; c < p->channels; ++c)
      out[c] = sluice_apply(&p->function, p->scale == NULL ? in[c] : sluice_fma(in[c], p->scale[c], p->shift[c]));
  }
}

typedef struct sluice_binary_f32 {
  sluice_operand a, b;
  uint32_t channels;
  uint8_t function;
  sluice_function activation;
} sluice_binary_f32;

SLUICE_FN float sluice_combine_f32(uint8_t function, float a, float b) {
  switch (function) {
    case SLUICE_SUB:
      return a - b;
    case SLUICE_MUL:
      return a * b;
    case SLUICE_DIV:
      return a / b;
    case SLUICE_PRELU:
      return a < 0.0f ? a * b : a;
    case SLUICE_MAX:
      return a < b ? b : a;
    case SLUICE_MIN:
      return b < a ? b : a;
    default:
      return a + b;
  }
}

SLUICE_FN void sluice_run_binary_f32(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_binary_f32* p = (const sluice_binary_f32*)stage->parameters;
  uint32_t pixel, c;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const float* a = (const float*)(const void*)sluice_operand_at(task, &p->a, pixel);
    const float* b = (const float*)(const void*)sluice_operand_at(task, &p->b, pixel);
    float* out = (float*)(void*)sluice_at(task->arena, &stage->out, task->row, pixel);
    for (c = 0; c < p->channels; ++c)
      out[c] = sluice_apply(&p->activation, sluice_combine_f32(p->function, a[(size_t)c * p->a.step], b[(size_t)c * p->b.step]));
  }
}

#endif

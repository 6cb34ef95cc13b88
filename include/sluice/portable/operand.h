/* An operand of two: the same pixel of a tensor, or values that repeat for each pixel. */
#ifndef SLUICE_PORTABLE_OPERAND_H
#define SLUICE_PORTABLE_OPERAND_H

#include "sluice/portable/rows.h"

enum { SLUICE_ADD = 0, SLUICE_SUB = 1, SLUICE_MUL = 2, SLUICE_DIV = 3, SLUICE_PRELU = 4, SLUICE_MAX = 5, SLUICE_MIN = 6 };

typedef struct sluice_operand {
  const void* constant;          /* NULL: of a tensor */
  uint32_t row_step, pixel_step; /* of a constant, bytes; 0: repeated */
  uint8_t input;                 /* of the stage */
  uint8_t repeats;               /* the tensor has one pixel */
  uint8_t step;                  /* 0: it has one channel */
} sluice_operand;

SLUICE_FN const uint8_t* sluice_operand_at(const sluice_task* task, const sluice_operand* operand, uint32_t pixel) {
  if (operand->constant != NULL)
    return (const uint8_t*)operand->constant + (size_t)task->row * operand->row_step + (size_t)pixel * operand->pixel_step;
  if (operand->repeats) return sluice_at(task->arena, &task->stage->inputs[operand->input].view, 0, 0);
  return sluice_at(task->arena, &task->stage->inputs[operand->input].view, task->row, pixel);
}

#endif

/* Softmax of a pixel's bytes, with a table of exponentials. */
#ifndef SLUICE_PORTABLE_SOFTMAX_U8_H
#define SLUICE_PORTABLE_SOFTMAX_U8_H

#include "sluice/portable/finish_u8.h"
#include "sluice/portable/rows.h"

typedef struct sluice_softmax_u8 {
  const float* exponentials; /* of bytes, less the largest, from -255 to 0 */
  uint32_t channels;
  sluice_range range;
  float steps; /* of the output that make 1 */
} sluice_softmax_u8;

SLUICE_FN void sluice_run_softmax_u8(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_softmax_u8* p = (const sluice_softmax_u8*)stage->parameters;
  uint32_t pixel, c;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const uint8_t* in = sluice_at(task->arena, &stage->inputs[0].view, task->row, pixel);
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    const float* exponentials;
    uint8_t most = 0;
    float sum = 0.0f;
    for (c = 0; c < p->channels; ++c) most = in[c] > most ? in[c] : most;
    exponentials = p->exponentials + (255 - most);
    for (c = 0; c < p->channels; ++c) sum += exponentials[in[c]];
    for (c = 0; c < p->channels; ++c) out[c] = sluice_to_u8(exponentials[in[c]] * p->steps / sum, &p->range);
  }
}

#endif

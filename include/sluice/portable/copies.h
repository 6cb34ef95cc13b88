/* What moves values and computes nothing: channels side by side, tensors one behind the other, the nearest pixel, borders, slices and
 * transpositions. */
#ifndef SLUICE_PORTABLE_COPIES_H
#define SLUICE_PORTABLE_COPIES_H

#include "sluice/portable/rows.h"

typedef struct sluice_concat {
  const uint32_t* bytes; /* of a pixel, by input */
} sluice_concat;

SLUICE_FN void sluice_run_concat(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_concat* p = (const sluice_concat*)stage->parameters;
  uint32_t pixel, k;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    for (k = 0; k < stage->inputs_count; ++k) {
      memcpy(out, sluice_at(task->arena, &stage->inputs[k].view, task->row, pixel), p->bytes[k]);
      out += p->bytes[k];
    }
  }
}

typedef struct sluice_join {
  const uint32_t* lengths; /* pixels of each input until all of them begin again */
  uint32_t turn;           /* their sum */
} sluice_join;

/* Along any axis but the channels: a pixel of the output is one of an input. */
SLUICE_FN void sluice_run_join(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_join* p = (const sluice_join*)stage->parameters;
  uint32_t pixel;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const uint32_t index = task->row * stage->pixels + pixel;
    uint32_t place = index % p->turn, k = 0;
    while (place >= p->lengths[k]) place -= p->lengths[k++];
    memcpy(sluice_at(task->arena, &stage->out, task->row, pixel),
           sluice_at(task->arena, &stage->inputs[k].view, 0, index / p->turn * p->lengths[k] + place), stage->out.pixel_bytes);
  }
}

typedef struct sluice_resize {
  const uint16_t *rows, *pixels; /* of the input, by those of the output */
  uint32_t bytes;
  uint8_t floats; /* a sum with zero, as the engine forms it: -0 becomes 0 */
} sluice_resize;

SLUICE_FN void sluice_run_resize(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_resize* p = (const sluice_resize*)stage->parameters;
  uint32_t pixel, c;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    memcpy(out, sluice_at(task->arena, &stage->inputs[0].view, p->rows[task->row], p->pixels[pixel]), p->bytes);
    for (c = 0; p->floats && c < p->bytes / 4; ++c) ((float*)(void*)out)[c] += 0.0f;
  }
}

typedef struct sluice_pad {
  const int16_t *rows, *pixels; /* of the input, by those of the output; below zero: in the border */
  const int16_t* channels;      /* the same; NULL: they are the input's */
  const uint8_t* border;        /* a pixel of it */
  uint16_t count;               /* of channels */
  uint8_t size;                 /* of an element */
} sluice_pad;

SLUICE_FN void sluice_run_pad(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_pad* p = (const sluice_pad*)stage->parameters;
  const int32_t row = p->rows[task->row];
  uint32_t pixel, c;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const int32_t from = p->pixels[pixel];
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    const uint8_t* in = p->border;
    if (row >= 0 && from >= 0) in = sluice_at(task->arena, &stage->inputs[0].view, (uint32_t)row, (uint32_t)from);
    if (p->channels == NULL || in == p->border) {
      memcpy(out, in, (size_t)p->count * p->size);
      continue;
    }
    for (c = 0; c < p->count; ++c, out += p->size)
      memcpy(out, p->channels[c] < 0 ? p->border : in + (size_t)p->channels[c] * p->size, p->size);
  }
}

/* Where the pixel `index` of a tensor finds another one, by axes: all but the last, outermost first, and steps in bytes. */
SLUICE_FN const uint8_t* sluice_strided(const sluice_task* task, const sluice_view* view, int32_t start, uint32_t index, uint32_t axes,
                                        const uint32_t* extents, const int32_t* steps) {
  int32_t offset = start;
  while (axes-- > 0) {
    offset += (int32_t)(index % extents[axes]) * steps[axes];
    index /= extents[axes];
  }
  return task->arena + view->offset + (uint32_t)offset % view->ring;
}

typedef struct sluice_copy {
  const uint32_t* extents;
  const int32_t* steps;
  int32_t start, last_step;
  uint32_t channels;
  uint8_t axes, size; /* of an element */
} sluice_copy;

SLUICE_FN void sluice_run_copy(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_copy* p = (const sluice_copy*)stage->parameters;
  uint32_t pixel, c;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    const uint8_t* in =
        sluice_strided(task, &stage->inputs[0].view, p->start, task->row * stage->pixels + pixel, p->axes, p->extents, p->steps);
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    for (c = 0; c < p->channels; ++c, in += p->last_step, out += p->size) memcpy(out, in, p->size);
  }
}

#endif

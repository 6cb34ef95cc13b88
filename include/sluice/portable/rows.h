/* The walk of a region: stages that run a few pixels at a time, each as late as the stages behind it allow.
 *
 *     stage 0  input     rows -> |ring|
 *     stage 1  conv              |ring| -> |ring|            the last stage asks for its next pixels; what it lacks, its makers are
 *     stage 2  depthwise                   |ring| -> |whole| asked for, and so on; nothing is computed twice in a walk
 *
 * A region may be walked several times, each time for some columns of its stages, so that its rings are narrow: strips.
 *
 * A tensor is bytes of the arena: all of it, or a ring that holds its newest pixels. How large each ring must be was found when the code
 * was emitted, by the same walk (emit/walk.h), so nothing is checked here. Invariant: each turn of the loop runs a stage or moves to
 * another one that is not finished, so the loop ends. */
#ifndef SLUICE_PORTABLE_ROWS_H
#define SLUICE_PORTABLE_ROWS_H

#include "sluice/portable/base.h"

/* Output position o reads up to (o * stride + ahead) / divisor. */
typedef struct sluice_along {
  int16_t stride, ahead, divisor, extent;
} sluice_along;
typedef struct sluice_reach {
  sluice_along row, pixel;
} sluice_reach;

typedef struct sluice_view {
  uint32_t offset;      /* in the arena */
  uint32_t ring;        /* bytes behind which it begins again */
  uint32_t row_bytes;   /* of the tensor */
  uint32_t pixel_bytes; /* divide `ring` */
} sluice_view;

typedef struct sluice_input {
  sluice_view view;
  const sluice_reach* reach; /* NULL: the pixels that are made, no more */
  int16_t maker;             /* stage of this region; -1: it was made before */
} sluice_input;

struct sluice_stage;

/* Rows of the network's input come from outside. */
typedef struct sluice_source {
  void (*read)(void* user, uint32_t row, void* to);
  void* user;
} sluice_source;

/* `count` pixels of one row, from `pixel` on. */
typedef struct sluice_task {
  const struct sluice_stage* stage;
  const sluice_source* source;
  uint8_t* arena;
  uint32_t row, pixel, count;
} sluice_task;

typedef struct sluice_stage {
  void (*run)(const sluice_task* task);
  const void* parameters;
  const sluice_input* inputs;
  sluice_view out;
  uint16_t rows, pixels; /* that it walks */
  uint16_t granule;      /* pixels at a time */
  uint8_t inputs_count;
  uint8_t folds; /* walks its input; its output is there at the end */
  uint8_t kept;  /* read behind the region: all of it is made */
} sluice_stage;

/* Where a stage stands. */
typedef struct sluice_place {
  uint16_t row, pixel;
} sluice_place;

/* The pixels of a row that a stage makes in a strip. */
typedef struct sluice_columns {
  uint16_t begin, end;
} sluice_columns;

SLUICE_FN uint8_t* sluice_at(uint8_t* arena, const sluice_view* view, uint32_t row, uint32_t pixel) {
  return arena + view->offset + (row * view->row_bytes + pixel * view->pixel_bytes) % view->ring;
}

SLUICE_FN uint32_t sluice_last_read(const sluice_along* along, uint32_t at) {
  const int32_t last = ((int32_t)at * along->stride + along->ahead) / along->divisor;
  if (last <= 0) return 0;
  return (uint32_t)(last < along->extent ? last : along->extent - 1);
}

/* Bytes of its tensor that a stage has made. */
SLUICE_FN uint32_t sluice_made(const sluice_stage* stage, const sluice_place* place) {
  return place->row * stage->out.row_bytes + place->pixel * stage->out.pixel_bytes;
}

/* The stage that must run before stage `i` can, and how much it must have made then; or -1. */
SLUICE_LOOP int32_t sluice_lacks(const sluice_stage* stages, const sluice_place* places, uint32_t i, uint32_t count, uint32_t* wanted) {
  const sluice_stage* stage = &stages[i];
  const sluice_input *input = stage->inputs, *end = input + stage->inputs_count;
  for (; input < end; ++input) {
    const sluice_stage* maker;
    const sluice_place* place;
    uint32_t row, pixel, made;
    if (input->maker < 0) continue;
    maker = &stages[input->maker];
    place = &places[input->maker];
    if (place->row == maker->rows) continue;
    if (maker->folds) {
      *wanted = UINT32_MAX;
      return input->maker;
    }
    made = sluice_made(maker, place);
    row = places[i].row;
    pixel = places[i].pixel + count - 1;
    if (input->reach != NULL) {
      row = sluice_last_read(&input->reach->row, row);
      pixel = sluice_last_read(&input->reach->pixel, pixel);
    }
    *wanted = row * input->view.row_bytes + (pixel + 1) * input->view.pixel_bytes;
    if (*wanted > made) return input->maker;
  }
  return -1;
}

/* `columns`, by stage; NULL: all of them. */
SLUICE_FN void sluice_run_region(const sluice_stage* stages, uint32_t count, const sluice_columns* columns, sluice_place* places,
                                 uint8_t* arena, const sluice_source* source) {
  uint32_t target;
  sluice_task task;
  task.source = source;
  task.arena = arena;
  memset(places, 0, count * sizeof *places);
  if (columns != NULL)
    for (target = 0; target < count; ++target) places[target].pixel = columns[target].begin;
  for (target = count; target-- > 0;) {
    uint32_t i = target, wanted = 0; /* of stage `i`, by the one behind it, which looks again no sooner */
    if (target + 1 != count && !stages[target].kept) continue;
    while (places[target].row < stages[target].rows) {
      const sluice_stage* stage = &stages[i];
      sluice_place* place = &places[i];
      const uint32_t left = (uint32_t)(columns != NULL ? columns[i].end : stage->pixels) - place->pixel;
      const uint32_t pixels = left < stage->granule ? left : stage->granule;
      uint32_t lacking;
      const int32_t maker = sluice_lacks(stages, places, i, pixels, &lacking);
      if (maker >= 0) {
        wanted = (uint32_t)maker + 1 == i ? lacking : 0;
        i = (uint32_t)maker;
        continue;
      }
      task.stage = stage;
      task.row = place->row;
      task.pixel = place->pixel;
      task.count = pixels;
      stage->run(&task);
      place->pixel = (uint16_t)(place->pixel + pixels);
      if (pixels == left) {
        place->pixel = columns != NULL ? columns[i].begin : 0;
        place->row = (uint16_t)(place->row + 1);
      }
      if (place->row < stage->rows && sluice_made(stage, place) < wanted) continue;
      wanted = 0;
      while (i < target)
        if (++i == target || places[i].row < stages[i].rows) break;
    }
  }
}

/* Stage: the next row of the network's input, from outside. */
SLUICE_FN void sluice_read_row(const sluice_task* task) {
  task->source->read(task->source->user, task->row, sluice_at(task->arena, &task->stage->out, task->row, 0));
}

/* Signed bytes as unsigned ones, 128 more, or the reverse. */
SLUICE_FN void sluice_flip_signs(uint8_t* bytes, uint32_t count) {
  for (; count > 0; --count, ++bytes) *bytes = (uint8_t)(*bytes ^ 0x80u);
}

/* Stage: the same of signed bytes, which the network reads as unsigned ones. */
SLUICE_FN void sluice_read_signed_row(const sluice_task* task) {
  sluice_read_row(task);
  sluice_flip_signs(sluice_at(task->arena, &task->stage->out, task->row, 0), task->stage->out.row_bytes);
}

#endif

/* Times stages one by one on the device that they are compiled for: what `sluice emit --measure` writes is made of this.
 *
 * A clock and a way out are all that it wants of the device. Each has a default, which a function of the same name replaces:
 *
 *     uint32_t sluice_ticks(void)              a counter that rises and wraps at 2^32
 *     uint32_t sluice_ticks_per_second(void)
 *     void sluice_print(const char *text)
 *
 * On Cortex-M the counter is the cycle counter of DWT or, where there is none, SysTick, and SLUICE_CLOCK_HZ says how fast it is. Elsewhere
 * it is clock(). */
#ifndef SLUICE_PORTABLE_MEASURE_H
#define SLUICE_PORTABLE_MEASURE_H

#include <stdio.h>
#include <time.h>

#include "sluice/portable/rows.h"

#if defined(__GNUC__)
#define SLUICE_DEFAULT __attribute__((weak))
#else
#define SLUICE_DEFAULT
#endif

uint32_t sluice_ticks(void);
uint32_t sluice_ticks_per_second(void);
void sluice_print(const char* text);

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#if !defined(SLUICE_CLOCK_HZ)
#define SLUICE_CLOCK_HZ 0
#endif
#define SLUICE_REGISTER(address) (*(volatile uint32_t*)(uintptr_t)(address))

/* The 24 bits of SysTick, which falls, as a counter of 32 bits that rises: right if it is asked more often than every 2^24 ticks. */
SLUICE_FN uint32_t sluice_systick(void) {
  static uint32_t total, last;
  uint32_t now;
  if ((SLUICE_REGISTER(0xe000e010u) & 1u) == 0) {
    SLUICE_REGISTER(0xe000e014u) = 0xffffffu;
    SLUICE_REGISTER(0xe000e018u) = 0;
    SLUICE_REGISTER(0xe000e010u) = 5u; /* on, from the processor's clock */
    last = 0xffffffu;
  }
  now = SLUICE_REGISTER(0xe000e018u);
  total += (last - now) & 0xffffffu;
  last = now;
  return total;
}

SLUICE_DEFAULT uint32_t sluice_ticks(void) {
  static int8_t cycles; /* 0: not known yet, 1: DWT counts, -1: it does not */
  if (cycles == 0) {
    uint32_t before;
    SLUICE_REGISTER(0xe000edfcu) |= (uint32_t)1 << 24; /* trace is on */
    SLUICE_REGISTER(0xe0001000u) |= 1u;
    before = SLUICE_REGISTER(0xe0001004u);
    cycles = SLUICE_REGISTER(0xe0001004u) != before ? 1 : -1;
  }
  return cycles > 0 ? SLUICE_REGISTER(0xe0001004u) : sluice_systick();
}
SLUICE_DEFAULT uint32_t sluice_ticks_per_second(void) { return SLUICE_CLOCK_HZ; }
SLUICE_DEFAULT void sluice_print(const char* text) { puts(text); }
#else
SLUICE_DEFAULT uint32_t sluice_ticks(void) { return (uint32_t)clock(); }
SLUICE_DEFAULT uint32_t sluice_ticks_per_second(void) { return (uint32_t)CLOCKS_PER_SEC; }
SLUICE_DEFAULT void sluice_print(const char* text) { puts(text); }
#endif

/* What a layer reads or makes. Wide ones: where there are more than 128 of them, or pixels of 64 KiB and more. */
#if defined(SLUICE_WIDE_LAYERS)
typedef uint16_t sluice_port; /* which extents; the mark says that they are of the output, the last one of a layer */
typedef uint32_t sluice_pixel_bytes;
#define SLUICE_MADE 0x8000u
#else
typedef uint8_t sluice_port;
typedef uint16_t sluice_pixel_bytes;
#define SLUICE_MADE 0x80u
#endif
typedef struct sluice_extents {
  uint16_t rows, pixels;
  sluice_pixel_bytes bytes; /* of a pixel */
} sluice_extents;

/* How the least RAM cuts a layer: the pixels that it makes at a time, and those of whoever makes its first input, which it asks for as it
 * does in the network. 0: whole rows, and a maker that is done before. */
typedef struct sluice_cut {
  sluice_reach reach; /* of the first input */
  uint16_t granule, maker_granule;
  uint8_t reaches;
} sluice_cut;

/* The layer that is timed next. */
typedef struct sluice_layer {
  const sluice_extents *in, *out;
  uint32_t behind; /* in the arena: what comes behind its tensors */
  uint32_t number; /* in its group */
} sluice_layer;

/* Layers of one kernel: `set` makes the parameters those of a layer. */
typedef struct sluice_layers {
  void (*run)(const sluice_task* task);
  const void* parameters;
  const sluice_cut* cut;                  /* NULL: none of them is cut */
  void (*set)(const sluice_layer* layer); /* NULL: all is as it is for the one that there is */
  uint16_t count, whole;                  /* how many; how many of them, the first, have room for whole tensors */
  uint8_t folds;
} sluice_layers;

/* A tensor at `at`, whole or with all pixels in one, and what comes behind it. */
SLUICE_FN uint32_t sluice_place_tensor(sluice_view* view, const sluice_extents* extents, int whole, uint32_t at) {
  view->offset = at;
  view->pixel_bytes = extents->bytes;
  view->row_bytes = view->pixel_bytes * extents->pixels;
  view->ring = whole ? view->row_bytes * extents->rows : view->pixel_bytes;
  return (at + view->ring + 3u) & ~(uint32_t)3;
}

SLUICE_FN void sluice_make_nothing(const sluice_task* task) { (void)task; }

/* Makes the second stage that layer, and the first one of its first input's maker; `inputs` have room for what it reads. Gives the ports of
 * the next layer. */
SLUICE_FN const sluice_port* sluice_set_layer(sluice_stage* stages, sluice_input* inputs, const sluice_layers* group, uint32_t number,
                                              const sluice_extents* extents, const sluice_port* port) {
  const int whole = number < group->whole;
  sluice_stage *maker = stages, *stage = stages + 1;
  const sluice_extents* walked;
  sluice_layer layer;
  uint32_t at = 2 * sizeof(sluice_place);
  layer.number = number;
  layer.in = extents + *port;
  stage->inputs_count = 0;
  for (; (*port & SLUICE_MADE) == 0; ++port) {
    inputs[stage->inputs_count].maker = -1;
    at = sluice_place_tensor(&inputs[stage->inputs_count++].view, extents + *port, whole, at);
  }
  layer.out = extents + (*port++ ^ SLUICE_MADE);
  layer.behind = sluice_place_tensor(&stage->out, layer.out, whole, at);
  walked = group->folds ? layer.in : layer.out;
  stage->run = group->run;
  stage->parameters = group->parameters;
  stage->inputs = inputs;
  stage->rows = walked->rows;
  stage->pixels = stage->granule = walked->pixels;
  if (group->set != NULL) group->set(&layer);
  if (group->cut == NULL) return port;
  if (group->cut->granule != 0) stage->granule = group->cut->granule;
  if (group->cut->maker_granule == 0) return port;
  inputs->maker = 0;
  inputs->reach = group->cut->reaches ? &group->cut->reach : NULL;
  maker->run = sluice_make_nothing;
  maker->inputs = inputs; /* none of them */
  maker->out = inputs->view;
  maker->rows = layer.in->rows;
  maker->pixels = layer.in->pixels;
  maker->granule = group->cut->maker_granule;
  return port;
}

SLUICE_FN uint32_t sluice_ticks_of(const sluice_stage* stages, uint32_t count, uint8_t* arena, uint32_t repeats) {
  const uint32_t start = sluice_ticks();
  uint32_t i;
  for (i = 0; i < repeats; ++i) sluice_run_region(stages, count, NULL, (sluice_place*)(void*)arena, arena, NULL);
  return sluice_ticks() - start;
}

/* What one walk of stages takes, in seconds: the least of three tries, each of ten milliseconds or more. */
SLUICE_LOOP float sluice_time_of(const sluice_stage* stages, uint32_t count, uint8_t* arena) {
  const uint32_t rate = sluice_ticks_per_second();
  uint32_t repeats = 1, least = sluice_ticks_of(stages, count, arena, repeats), i;
  while (least < rate / 100u && repeats < ((uint32_t)1 << 24)) {
    repeats *= 2;
    least = sluice_ticks_of(stages, count, arena, repeats);
  }
  for (i = 0; i < 2; ++i) {
    const uint32_t ticks = sluice_ticks_of(stages, count, arena, repeats);
    least = ticks < least ? ticks : least;
  }
  return (float)least / (float)rate / (float)repeats;
}

/* What a layer takes: beside its maker, that is what both take without what the maker takes alone. */
SLUICE_FN float sluice_time_of_layer(const sluice_stage* stages, uint8_t* arena) {
  float seconds;
  if (stages[1].inputs[0].maker < 0) return sluice_time_of(stages + 1, 1, arena);
  seconds = sluice_time_of(stages, 2, arena) - sluice_time_of(stages, 1, arena);
  return seconds > 0.0f ? seconds : 0.0f;
}

/* A time as JSON has it: a whole number of some power of ten, five digits of it or more, and never 0. */
SLUICE_FN void sluice_print_time(float seconds) {
  char text[16];
  char* at = text + sizeof text;
  uint32_t exponent = 5, number;
  for (; seconds < 1.0f && exponent < 14u; ++exponent) seconds *= 10.0f;
  number = seconds < 1e4f ? (uint32_t)(seconds * 1e5f) + 1u : 1000000000u;
  *--at = '\0';
  *--at = (char)('0' + exponent % 10u);
  *--at = (char)('0' + exponent / 10u);
  *--at = '-';
  *--at = 'e';
  do *--at = (char)('0' + number % 10u);
  while ((number /= 10u) != 0);
  sluice_print(at);
}

/* Text in byte pairs: a byte from 96 on stands for two of `pairs`, each of which may be such a byte again; others are characters from the
 * space, 1, on. `waiting` and `line` have room
 * for as many as wait, and for the longest piece. Prints the piece at `text`, which ends with a zero, and gives what follows. */
SLUICE_FN const uint8_t* sluice_print_packed(const uint8_t* text, const uint8_t* pairs, uint8_t* waiting, char* line) {
  uint32_t count = 0, length = 0;
  do {
    uint8_t code = count > 0 ? waiting[--count] : *text++;
    while (code >= 96u) {
      waiting[count++] = pairs[2u * (code - 96u) + 1u];
      code = pairs[2u * (code - 96u)];
    }
    line[length++] = (char)(code != 0 ? code + 31 : 0);
  } while (line[length - 1] != '\0');
  sluice_print(line);
  return text;
}

#endif

/* Where the positions of a resized axis lie in the input, and with what weight: as tables. */
#ifndef SLUICE_PORTABLE_RESIZE_TAPS_H
#define SLUICE_PORTABLE_RESIZE_TAPS_H

#include "sluice/portable/base.h"

typedef struct sluice_taps {
  const uint16_t* places; /* of the input, `count` for each position of the output */
  const float* weights;
  uint8_t count;
} sluice_taps;

#endif

/* The order in which sums over a row are formed: sixteen partial sums, value i to sum i mod 16, then folded in halves. */
#ifndef SLUICE_PORTABLE_LANE_SUM_H
#define SLUICE_PORTABLE_LANE_SUM_H

#include "sluice/portable/base.h"

typedef struct sluice_lanes {
  float sums[16];
} sluice_lanes;

SLUICE_FN void sluice_clear_lanes(sluice_lanes* lanes) {
  uint32_t i;
  for (i = 0; i < 16; ++i) lanes->sums[i] = 0.0f;
}

SLUICE_FN float sluice_lanes_total(sluice_lanes* lanes) {
  uint32_t half, lane;
  for (half = 8; half >= 1; half /= 2)
    for (lane = 0; lane < half; ++lane) lanes->sums[lane] += lanes->sums[lane + half];
  return lanes->sums[0];
}

#endif

/* How many taps of a pool's window count. */
#ifndef SLUICE_PORTABLE_POOL_WINDOW_H
#define SLUICE_PORTABLE_POOL_WINDOW_H

#include "sluice/portable/window.h"

/* Taps from `start` on, `dilation` apart, that lie below `limit`. */
SLUICE_FN int32_t sluice_taps_below(int32_t limit, int32_t start, int32_t kernel, int32_t dilation) {
  const int32_t distance = limit - start;
  const int32_t taps = distance <= 0 ? 0 : (distance + dilation - 1) / dilation;
  return taps < kernel ? taps : kernel;
}

SLUICE_FN int32_t sluice_pool_divisor(const sluice_window* w, uint32_t row, uint32_t pixel, int with_padding) {
  const int32_t y = sluice_window_row(w, row, 0), x = sluice_window_pixel(w, pixel, 0);
  int32_t rows, pixels;
  if (with_padding) {
    rows = sluice_taps_below(w->in_h + w->pad_bottom, y, w->kernel_h, w->dilation_h);
    pixels = sluice_taps_below(w->in_w + w->pad_right, x, w->kernel_w, w->dilation_w);
  } else {
    rows = sluice_taps_below(w->in_h, y, w->kernel_h, w->dilation_h) - sluice_taps_below(0, y, w->kernel_h, w->dilation_h);
    pixels = sluice_taps_below(w->in_w, x, w->kernel_w, w->dilation_w) - sluice_taps_below(0, x, w->kernel_w, w->dilation_w);
  }
  return rows * pixels > 1 ? rows * pixels : 1;
}

#endif

/* The inputs that a window covers, brought together. */
#ifndef SLUICE_PORTABLE_WINDOW_H
#define SLUICE_PORTABLE_WINDOW_H

#include "sluice/portable/rows.h"

typedef struct sluice_window {
  int16_t in_h, in_w, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left, pad_bottom, pad_right;
} sluice_window;

SLUICE_FN int32_t sluice_window_row(const sluice_window* w, uint32_t row, int32_t ky) {
  return (int32_t)row * w->stride_h - w->pad_top + ky * w->dilation_h;
}
SLUICE_FN int32_t sluice_window_pixel(const sluice_window* w, uint32_t pixel, int32_t kx) {
  return (int32_t)pixel * w->stride_w - w->pad_left + kx * w->dilation_w;
}

/* Whether tap (ky, kx) of an output pixel lies in the image, and where; in the padding `tap` stays as it is. */
SLUICE_FN int sluice_find_tap(const sluice_task* task, const sluice_window* w, uint32_t pixel, int32_t ky, int32_t kx,
                              const uint8_t** tap) {
  const int32_t y = sluice_window_row(w, task->row, ky), x = sluice_window_pixel(w, pixel, kx);
  if (y < 0 || y >= w->in_h || x < 0 || x >= w->in_w) return 0;
  *tap = sluice_at(task->arena, &task->stage->inputs[0].view, (uint32_t)y, (uint32_t)x);
  return 1;
}

/* `bytes` of each tap from byte `first` on, tap after tap; padding is `zero`. */
SLUICE_FN void sluice_gather(const sluice_task* task, const sluice_window* w, uint32_t pixel, uint32_t first, uint32_t bytes, int zero,
                             uint8_t* patch) {
  int32_t ky, kx;
  for (ky = 0; ky < w->kernel_h; ++ky)
    for (kx = 0; kx < w->kernel_w; ++kx) {
      const uint8_t* tap = patch;
      if (sluice_find_tap(task, w, pixel, ky, kx, &tap))
        memcpy(patch, tap + first, bytes);
      else
        memset(patch, zero, bytes);
      patch += bytes;
    }
}

#endif

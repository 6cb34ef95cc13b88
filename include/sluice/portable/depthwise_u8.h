/* Depthwise convolutions of bytes: each channel its own window. Weights lie [tap][channel]. */
#ifndef SLUICE_PORTABLE_DEPTHWISE_U8_H
#define SLUICE_PORTABLE_DEPTHWISE_U8_H

#include "sluice/portable/conv_u8.h"

/* Channels whose sums are kept at a time. */
#define SLUICE_SUMS 16u

#if defined(SLUICE_HAS_HELIUM)
SLUICE_LOOP void sluice_add_tap_u8(uint32_t* sums, const uint8_t* x, const int8_t* w, uint32_t count) {
  uint32_t c;
  for (c = 0; c + 4 <= count; c += 4) {
    const int32x4_t values = vreinterpretq_s32_u32(vldrbq_u32(x + c));
    vst1q_u32(sums + c, vaddq_u32(vld1q_u32(sums + c), vreinterpretq_u32_s32(vmulq_s32(values, vldrbq_s32(w + c)))));
  }
  for (; c < count; ++c) sums[c] += (uint32_t)(x[c] * w[c]);
}
#else
SLUICE_LOOP void sluice_add_tap_u8(uint32_t* sums, const uint8_t* x, const int8_t* w, uint32_t count) {
  uint32_t c = 0;
#if defined(SLUICE_HAS_SMLAD)
  for (; c + 4 <= count; c += 4) {
    uint32_t x4, w4;
    int32_t even, odd, even_w, odd_w;
    memcpy(&x4, x + c, 4);
    memcpy(&w4, w + c, 4);
    even = (int32_t)(x4 & 0x00ff00ffu);
    odd = (int32_t)(x4 >> 8 & 0x00ff00ffu);
    even_w = (int32_t)__sxtb16((int8x4_t)w4);
    odd_w = (int32_t)__sxtb16((int8x4_t)(w4 >> 8));
    sums[c] = (uint32_t)__smlabb(even, even_w, (int32_t)sums[c]);
    sums[c + 1] = (uint32_t)__smlabb(odd, odd_w, (int32_t)sums[c + 1]);
    sums[c + 2] = (uint32_t)__smlatt(even, even_w, (int32_t)sums[c + 2]);
    sums[c + 3] = (uint32_t)__smlatt(odd, odd_w, (int32_t)sums[c + 3]);
  }
#endif
  for (; c < count; ++c) sums[c] += (uint32_t)(x[c] * w[c]);
}
#endif

SLUICE_FN void sluice_add_padding_u8(uint32_t* sums, uint8_t zero, const int8_t* w, uint32_t count) {
  uint32_t c;
  for (c = 0; c < count; ++c) sums[c] += (uint32_t)(zero * w[c]);
}

SLUICE_FN void sluice_run_depthwise_u8(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_conv_u8* p = (const sluice_conv_u8*)stage->parameters;
  const uint32_t channels = p->groups;
  uint32_t sums[SLUICE_SUMS];
  uint32_t pixel, first, c;
  int32_t ky, kx;
  for (pixel = task->pixel; pixel < task->pixel + task->count; ++pixel) {
    uint8_t* out = sluice_at(task->arena, &stage->out, task->row, pixel);
    const uint8_t* residual = sluice_residual_u8(task, p, pixel);
    for (first = 0; first < channels; first += SLUICE_SUMS) {
      const uint32_t count = channels - first < SLUICE_SUMS ? channels - first : SLUICE_SUMS;
      const int8_t* w = p->weights + first;
      memset(sums, 0, sizeof sums);
      for (ky = 0; ky < p->window.kernel_h; ++ky)
        for (kx = 0; kx < p->window.kernel_w; ++kx, w += channels) {
          const uint8_t* x = out;
          if (sluice_find_tap(task, &p->window, pixel, ky, kx, &x))
            sluice_add_tap_u8(sums, x + first, w, count);
          else
            sluice_add_padding_u8(sums, p->zero_in, w, count);
        }
      for (c = 0; c < count; ++c) sluice_store_u8(p, sums[c], first + c, out, residual);
    }
  }
}

#endif

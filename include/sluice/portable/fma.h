/* One fused multiply-add, rounded once, where the CPU has none too.
 *
 * The product of two floats is exact in double. The sum is rounded to odd there, after which rounding to float rounds the exact value
 * (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd"). */
#ifndef SLUICE_PORTABLE_FMA_H
#define SLUICE_PORTABLE_FMA_H

#include "sluice/portable/base.h"

#if defined(__FP_FAST_FMAF) || defined(FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA) || defined(__FMA__)
SLUICE_FN float sluice_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
SLUICE_FN float sluice_fma(float a, float b, float c) {
  const double product = (double)a * (double)b, addend = (double)c;
  double sum = product + addend;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);
  uint64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  /* An error that is no number belongs to a sum that is none, or infinite. */
  if ((error < 0.0 || error > 0.0) && (bits & 1u) == 0) {
    bits += (error > 0.0) == (sum > 0.0) ? 1u : UINT64_MAX;
    memcpy(&sum, &bits, sizeof sum);
  }
  return (float)sum;
}
#endif

#endif

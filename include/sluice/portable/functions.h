/* Functions of one value, each a fixed sequence of correctly rounded operations: src/kernels/reference/functions.h in C. Conditions are
 * written so that what is no number passes. */
#ifndef SLUICE_PORTABLE_FUNCTIONS_H
#define SLUICE_PORTABLE_FUNCTIONS_H

#include "sluice/portable/fma.h"

/* The numbers of sluice::Function. */
typedef struct sluice_function {
  uint8_t function;
  float a, b;
} sluice_function;

SLUICE_FN float sluice_at_least(float x, float low) { return x < low ? low : x; }
SLUICE_FN float sluice_at_most(float x, float high) { return high < x ? high : x; }
SLUICE_FN float sluice_absolute(float x) { return sluice_float(sluice_bits(x) & 0x7fffffffu); }
SLUICE_FN float sluice_with_sign(float x, float sign) {
  return sluice_float((sluice_bits(x) & 0x7fffffffu) | (sluice_bits(sign) & 0x80000000u));
}

SLUICE_FN float sluice_polynomial(float x, const float* coefficients, uint32_t count) {
  float sum = coefficients[--count];
  while (count-- > 0) sum = sluice_fma(sum, x, coefficients[count]);
  return sum;
}

/* x = n ln 2 + r; gives exp(r) - 1. */
SLUICE_FN float sluice_exp_parts(float x, int32_t* n) {
  static const float expm1[] = {0x1p-1f, 0x1.5554aep-3f, 0x1.555486p-5f, 0x1.12288p-7f, 0x1.6d99bep-10f};
  const float shifted = sluice_fma(x, 1.44269504f, 12582912.0f);
  const float whole = shifted - 12582912.0f;
  const float r = sluice_fma(whole, 1.90465421e-9f, sluice_fma(whole, -0.693147182f, x));
  *n = (int32_t)(sluice_bits(shifted) - sluice_bits(12582912.0f));
  return sluice_fma(r * r, sluice_polynomial(r, expm1, 5), r);
}

SLUICE_FN float sluice_power_of_two(int32_t n) { return sluice_float(((uint32_t)n + 127u) << 23); }

SLUICE_FN float sluice_exp(float x) {
  int32_t n;
  const float part = sluice_exp_parts(sluice_at_most(sluice_at_least(x, -104.0f), 89.0f), &n);
  const int32_t half = n >= 0 ? n / 2 : -((1 - n) / 2);
  return (1.0f + part) * sluice_power_of_two(half) * sluice_power_of_two((int32_t)((uint32_t)n - (uint32_t)half));
}

/* exp(x) - 1 for x <= 0. */
SLUICE_FN float sluice_expm1_negative(float x) {
  int32_t n;
  const float part = sluice_exp_parts(sluice_at_most(sluice_at_least(x, -30.0f), 0.0f), &n);
  const float scale = sluice_power_of_two(n);
  return sluice_fma(scale, part, scale - 1.0f);
}

SLUICE_FN float sluice_log(float x) {
  static const float terms[] = {0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a008p-3f, -0x1.547244p-3f,
                                0x1.22da1cp-3f, -0x1.0d8542p-3f, 0x1.055b6ap-3f, -0x1.38b584p-4f};
  const int tiny = x < FLT_MIN;
  const uint32_t bits = sluice_bits(tiny ? x * 8388608.0f : x) - 0x3f3504f3u;
  const int32_t exponent = (int32_t)(bits >> 23) - (bits >= 0x80000000u ? 512 : 0);
  const float e = (float)exponent - (tiny ? 23.0f : 0.0f);
  const float f = sluice_float((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float f2 = f * f;
  const float tail = sluice_fma(f2 * f, sluice_polynomial(f, terms, 8), e * -1.90465421e-9f);
  const float result = sluice_fma(e, 0.693147182f, f + sluice_fma(f2, -0.5f, tail));
  if (x < 0.0f) return sluice_float(0x7fc00000u);
  if (!(x < 0.0f) && !(x > 0.0f) && sluice_absolute(x) < 1.0f) return sluice_float(0xff800000u);
  return x < sluice_float(0x7f800000u) ? result : x;
}

SLUICE_FN float sluice_tanh(float x) {
  static const float terms[] = {-0x1.55553ap-2f, 0x1.1107acp-3f, -0x1.b83a1p-5f, 0x1.51c5c2p-6f, -0x1.733f28p-8f};
  const float z = x * x, magnitude = sluice_absolute(x);
  const float small = sluice_fma(x * z, sluice_polynomial(z, terms, 5), x);
  const float large = 1.0f - 2.0f / (1.0f + sluice_exp(magnitude + magnitude));
  return magnitude < 0.625f ? small : sluice_with_sign(large, x);
}

SLUICE_FN float sluice_erf(float x) {
  static const float near_terms[] = {0x1.06eba8p-3f, -0x1.81273ep-2f,  0x1.ce2cf8p-4f, -0x1.b7f90cp-6f,
                                     0x1.5405bp-8f,  -0x1.a3f6f6p-11f, 0x1.496a18p-14f};
  static const float far_terms[] = {0x1.65e3d6p-12f, 0x1.2088f8p+0f, 0x1.46babep-1f, 0x1.a65472p-4f,
                                    -0x1.65cda6p-6f, 0x1.825f2ep-9f, -0x1.86e42p-13f};
  const float magnitude = sluice_absolute(x);
  const float small = sluice_fma(x, sluice_polynomial(x * x, near_terms, 7), x);
  const float large = 1.0f - sluice_exp(-sluice_polynomial(sluice_at_most(magnitude, 4.0f), far_terms, 7));
  return magnitude < 1.0f ? small : sluice_with_sign(large, x);
}

SLUICE_FN float sluice_softplus(float x) {
  const float y = sluice_exp(-sluice_absolute(x));
  const float u = 1.0f + y;
  return sluice_at_least(x, 0.0f) + (sluice_log(u) + (y - (u - 1.0f)) / u);
}

/* The square root, rounded as IEEE 754 asks: digit by digit, from integers, so that no library is called. */
SLUICE_FN float sluice_sqrt(float x) {
  uint32_t bits = sluice_bits(x), root = 0, bit = (uint32_t)1 << 24;
  uint64_t rest;
  int32_t exponent = (int32_t)(bits >> 23);
  uint32_t mantissa = bits & 0x7fffffu;
  if (!(x > 0.0f) || exponent == 255) return x < 0.0f ? sluice_float(0x7fc00000u) : x;
  if (exponent == 0) {
    ++exponent;
    while (mantissa < 0x800000u) {
      mantissa <<= 1;
      --exponent;
    }
  } else {
    mantissa |= 0x800000u;
  }
  /* 25 bits of root from 49 or 50 of the mantissa, so that the exponent is even. The last of them decides the rounding, because no root
   * lies half way between two floats. */
  exponent -= 127;
  rest = (uint64_t)mantissa << (exponent & 1 ? 26 : 25);
  for (; bit > 0; bit >>= 1) {
    const uint64_t tried = (uint64_t)(root | bit) * (root | bit);
    if (tried <= rest) root |= bit;
  }
  exponent = exponent >= 0 ? exponent / 2 : -((1 - exponent) / 2);
  root = (root + 1u) >> 1;
  return sluice_float(((uint32_t)(exponent + 126) << 23) + root);
}

/* Whole numbers, from where a float has no fraction on as it is. */
SLUICE_FN float sluice_floor(float x) {
  float whole;
  if (!(sluice_absolute(x) < 8388608.0f)) return x;
  whole = (float)(int32_t)x;
  return sluice_with_sign(whole > x ? whole - 1.0f : whole, x);
}
SLUICE_FN float sluice_ceil(float x) { return -sluice_floor(-x); }

enum {
  SLUICE_NONE = 0,
  SLUICE_RELU = 1,
  SLUICE_CLIP = 2,
  SLUICE_LEAKY_RELU = 3,
  SLUICE_SIGMOID = 4,
  SLUICE_HARD_SIGMOID = 5,
  SLUICE_HARD_SWISH = 6,
  SLUICE_SILU = 7,
  SLUICE_TANH = 8,
  SLUICE_EXP = 9,
  SLUICE_SQRT = 10,
  SLUICE_ERF = 11,
  SLUICE_GELU = 12,
  SLUICE_NEG = 13,
  SLUICE_ABS = 14,
  SLUICE_LOG = 15,
  SLUICE_RECIPROCAL = 16,
  SLUICE_ELU = 17,
  SLUICE_SOFTPLUS = 18,
  SLUICE_FLOOR = 19,
  SLUICE_CEIL = 20,
  SLUICE_GELU_TANH = 21
};

SLUICE_FN float sluice_apply(const sluice_function* f, float x) {
  switch (f->function) {
    case SLUICE_RELU:
      return sluice_at_least(x, 0.0f);
    case SLUICE_CLIP:
      return sluice_at_most(sluice_at_least(x, f->a), f->b);
    case SLUICE_LEAKY_RELU:
      return x < 0.0f ? f->a * x : x;
    case SLUICE_SIGMOID:
      return 1.0f / (1.0f + sluice_exp(-x));
    case SLUICE_HARD_SIGMOID:
      return sluice_at_least(sluice_at_most(sluice_fma(f->a, x, f->b), 1.0f), 0.0f);
    case SLUICE_HARD_SWISH:
      return x * sluice_at_least(sluice_at_most(sluice_fma(x, 1.0f / 6.0f, 0.5f), 1.0f), 0.0f);
    case SLUICE_SILU:
      return x / (1.0f + sluice_exp(-x));
    case SLUICE_TANH:
      return sluice_tanh(x);
    case SLUICE_EXP:
      return sluice_exp(x);
    case SLUICE_ERF:
      return sluice_erf(x);
    case SLUICE_GELU:
      return 0.5f * x * (1.0f + sluice_erf(x * 0.707106769f));
    case SLUICE_NEG:
      return -x;
    case SLUICE_ABS:
      return sluice_absolute(x);
    case SLUICE_LOG:
      return sluice_log(x);
    case SLUICE_RECIPROCAL:
      return 1.0f / x;
    case SLUICE_ELU:
      return x < 0.0f ? f->a * sluice_expm1_negative(x) : x;
    case SLUICE_SOFTPLUS:
      return sluice_softplus(x);
    case SLUICE_SQRT:
      return sluice_sqrt(x);
    case SLUICE_FLOOR:
      return sluice_floor(x);
    case SLUICE_CEIL:
      return sluice_ceil(x);
    case SLUICE_GELU_TANH:
      return x / (1.0f + sluice_exp(x * sluice_fma(x * x, -0.0713548163f, -1.59576912f)));
    default:
      return x;
  }
}

/* Networks with nothing but these need no exponential in their code. */
SLUICE_FN float sluice_apply_simple(const sluice_function* f, float x) {
  if (f->function == SLUICE_RELU) return sluice_at_least(x, 0.0f);
  if (f->function == SLUICE_CLIP) return sluice_at_most(sluice_at_least(x, f->a), f->b);
  return x;
}

#endif

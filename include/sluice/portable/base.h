/* What every emitted file begins with: C99, and no function of a library but memcpy and memset.
 *
 * The kernels of this folder are copied into the code that `sluice emit` writes, those that a network uses. They compute what the engine's
 * generic kernels compute, bit by bit (src/kernels/integer/generic.cc, src/kernels/reference), so floats must be rounded after each
 * operation: not kept wider, not contracted, not reordered. What the compiler says of itself is checked here.
 *
 * Also valid C++, so that the tests can call them. */
#ifndef SLUICE_PORTABLE_BASE_H
#define SLUICE_PORTABLE_BASE_H

#include <float.h>
#include <math.h> /* INFINITY and NAN among constants; none of its functions */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "floats must be rounded as written: compile without -ffast-math"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "floats must be rounded after each operation: compile for SSE2, or with -ffloat-store"
#endif
#if FLT_RADIX != 2 || FLT_MANT_DIG != 24 || FLT_MAX_EXP != 128
#error "float must be IEEE 754 binary32"
#endif

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

/* A network rarely uses all functions of a header. */
#if defined(__GNUC__)
#define SLUICE_FN static __attribute__((unused))
#else
#define SLUICE_FN static
#endif

/* An inner loop is a function of its own, so that it has all registers, with -Os too. */
#if defined(__GNUC__)
#define SLUICE_LOOP static __attribute__((unused, noinline))
#else
#define SLUICE_LOOP static
#endif

/* The bits of a float, and back. */
SLUICE_FN uint32_t sluice_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
SLUICE_FN float sluice_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

#endif

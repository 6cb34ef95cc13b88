// The instruction sets for which the float kernels are compiled: scalar, AVX2, AVX-512 (AVX3) on x86-64; scalar and NEON on ARM.
//
// To be included before the first Highway header. The scalar target is Highway's one-lane target, not the emulated vectors, so that all
// compilers run the same scalar code. Highway always compiles it last on x86-64, where it is what every CPU has; a build for another
// instruction set alone never calls it, so SLUICE_BUILDS_TARGET is false there and a source's kernels are left out. (Not where the compiler's own flags
// allow more, such as -march=native: then it is not compiled last, and headers that are read once for each target count on it.)
//
//     ...                              // Highway includes the source for each target
//     #if SLUICE_BUILDS_TARGET
//     ...                              // the kernels, from the first -inl.h on
//     #endif  // SLUICE_BUILDS_TARGET
//     #if HWY_ONCE                     // the table of this instruction set (for_isa.h)
#pragma once

// A build for one instruction set has no code for the others.
#if defined(SLUICE_ONLY_AVX512)
#define SLUICE_LEFT_OUT_TARGETS HWY_AVX2
#define SLUICE_BUILDS_TARGET (HWY_TARGET == HWY_AVX3 || HWY_STATIC_TARGET != HWY_SCALAR)
#elif defined(SLUICE_ONLY_AVX2)
#define SLUICE_LEFT_OUT_TARGETS HWY_AVX3
#define SLUICE_BUILDS_TARGET (HWY_TARGET == HWY_AVX2 || HWY_STATIC_TARGET != HWY_SCALAR)
#elif defined(SLUICE_ONLY_SCALAR)
#define SLUICE_LEFT_OUT_TARGETS (HWY_AVX2 | HWY_AVX3)
#else
#define SLUICE_LEFT_OUT_TARGETS 0
#endif
#ifndef SLUICE_BUILDS_TARGET
#define SLUICE_BUILDS_TARGET 1
#endif

#define HWY_COMPILE_ALL_ATTAINABLE
#define HWY_BROKEN_EMU128 1
// SSE has no fused multiply-add; arrays of SVE vectors do not compile; AVX3_DL adds nothing for floats.
#define HWY_DISABLED_TARGETS                                                                                                             \
  (SLUICE_LEFT_OUT_TARGETS | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_WASM | \
   HWY_PPC8)

// From an Isa to what was compiled for it: the one place that knows which Highway namespace belongs to which instruction set.
//
// To be included once the targets are known, under `#if HWY_ONCE`; `name` is looked up in N_AVX3, N_AVX2, N_NEON or N_SCALAR:
//
//     const Table& table(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, kTable) }
//
// Invariant: an instruction set that this build has no code for runs the scalar code, which targets.h always keeps.
#pragma once

#include "hwy/highway.h"
#include "sluice/core/cpu.h"

#if HWY_TARGETS & HWY_AVX3
#define SLUICE_IF_AVX512(text) text
#else
#define SLUICE_IF_AVX512(text)
#endif
#if HWY_TARGETS & HWY_AVX2
#define SLUICE_IF_AVX2(text) text
#else
#define SLUICE_IF_AVX2(text)
#endif
#if HWY_TARGETS & HWY_NEON
#define SLUICE_IF_NEON(text) text
#else
#define SLUICE_IF_NEON(text)
#endif

#define SLUICE_RETURN_FOR_ISA(isa, name)                       \
  switch (isa) {                                               \
    SLUICE_IF_AVX512(case Isa::kAvx512 : return N_AVX3::name;) \
    SLUICE_IF_AVX2(case Isa::kAvx2 : return N_AVX2::name;)     \
    SLUICE_IF_NEON(case Isa::kNeon : return N_NEON::name;)     \
    default:                                                   \
      return N_SCALAR::name;                                   \
  }

// A build for one instruction set (src/core/build_list.h) refers to that one alone, and the linker leaves the others out.
#if defined(SLUICE_ONLY_SCALAR)
#undef SLUICE_RETURN_FOR_ISA
#define SLUICE_RETURN_FOR_ISA(isa, name) return static_cast<void>(isa), N_SCALAR::name;
#elif defined(SLUICE_ONLY_AVX2)
#undef SLUICE_RETURN_FOR_ISA
#define SLUICE_RETURN_FOR_ISA(isa, name) return static_cast<void>(isa), N_AVX2::name;
#elif defined(SLUICE_ONLY_AVX512)
#undef SLUICE_RETURN_FOR_ISA
#define SLUICE_RETURN_FOR_ISA(isa, name) return static_cast<void>(isa), N_AVX3::name;
#elif defined(SLUICE_ONLY_NEON)
#undef SLUICE_RETURN_FOR_ISA
#define SLUICE_RETURN_FOR_ISA(isa, name) return static_cast<void>(isa), N_NEON::name;
#endif

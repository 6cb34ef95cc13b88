// What the compiler keeps in registers. Included once for each target.
//
// Where g++ runs short of general registers it keeps addresses in vector or mask registers. What is computed from these waits behind all
// the FMAs before it, which it should overlap: short sums took a tenth longer, 7x7 maps a thirtieth.
#if defined(SLUICE_WEIGHTED_REGISTERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_REGISTERS_INL_H_
#undef SLUICE_WEIGHTED_REGISTERS_INL_H_
#else
#define SLUICE_WEIGHTED_REGISTERS_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

/// In a general register.
template <class T>
HWY_INLINE T* in_general(T* address) {
#if HWY_COMPILER_GCC_ACTUAL
  asm("" : "+r"(address));
#endif
  return address;
}

/// In a vector register, not an operand of what uses it.
template <class Vector>
HWY_INLINE Vector in_vector(Vector v) {
#if HWY_COMPILER_GCC_ACTUAL && HWY_TARGET == HWY_AVX3
  asm("" : "+v"(v.raw));
#endif
  return v;
}

/// What is in memory is read again, and takes no register meanwhile.
HWY_INLINE void forget() {
#if HWY_COMPILER_GCC_ACTUAL
  asm volatile("" ::: "memory");
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_REGISTERS_INL_H_

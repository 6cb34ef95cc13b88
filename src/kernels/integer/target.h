// Code for an instruction set that this file's flags do not allow: everything between BEGIN and END is compiled for it.
//
// The files that use it keep their code in a namespace of its own without external names, but for one table, so that the linker never
// takes one instruction set's copy of an inline function for another's. System headers come before BEGIN.
#pragma once

#define SLUICE_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define SLUICE_BEGIN_TARGET(flags) SLUICE_PRAGMA(clang attribute push(__attribute__((target(flags))), apply_to = function))
#define SLUICE_END_TARGET SLUICE_PRAGMA(clang attribute pop)
#define SLUICE_UNROLL SLUICE_PRAGMA(clang loop unroll(full))
#else
#define SLUICE_BEGIN_TARGET(flags) SLUICE_PRAGMA(GCC push_options) SLUICE_PRAGMA(GCC target(flags))
#define SLUICE_END_TARGET SLUICE_PRAGMA(GCC pop_options)
#define SLUICE_UNROLL SLUICE_PRAGMA(GCC unroll 32)
#endif
#define SLUICE_INLINE inline __attribute__((always_inline))

// What this build has code for: everything, or, configured with -DSLUICE_TRIM (`sluice trim` writes the list), what some models need.
//
//     models --sluice trim--> list --SluiceTrim of cmake/--> constants of namespace trim --here--> the tables of operators and kernels
//
// Tables ask at compile time. What is not on the list is named by no table: nothing refers to its code, and the linker leaves it out.
// A table keeps the line itself where it says by name what a model misses.
#pragma once

#include <cstdint>
#include <string_view>

#include "sluice/core/cpu.h"
#include "sluice/core/ids.h"

#ifdef SLUICE_TRIM_LISTS
#include SLUICE_TRIM_LISTS
#endif

namespace sluice {

#ifdef SLUICE_TRIM_LISTS

inline constexpr bool kTrimmed = true;

constexpr bool has_operator(int kind) {
  for (const int listed : trim::kOperators)
    if (listed == kind) return true;
  return false;
}
constexpr bool has_kernel(KernelId id) {
  for (const int listed : trim::kKernels)
    if (listed == static_cast<int>(id)) return true;
  return false;
}
/// A family of plain operators, by its name in operators/generic.h.
constexpr bool has_family(std::string_view family) {
  for (const std::string_view listed : trim::kFamilies)
    if (listed == family) return true;
  return false;
}
inline constexpr bool kHasFamilies = !trim::kFamilies[0].empty();
/// Features that files may need (model::Feature, by its number).
constexpr bool has_feature(int feature) { return (trim::kFeatures >> feature & 1) != 0; }
/// Inner loops that are only faster than others which do the same: depthwise windows of so many taps along a row, by their stride, and
/// moves of elements of so many bytes.
constexpr bool has_window(int taps, int stride) {
  for (const int listed : trim::kWindows)
    if (listed < 0 || listed == taps * 10 + stride) return true;
  return false;
}
constexpr bool has_element_bytes(int bytes) {
  for (const int listed : trim::kElementBytes)
    if (listed < 0 || listed == bytes) return true;
  return false;
}
/// Have all depthwise windows loops of their own, by which neighbouring outputs share their inputs?
inline constexpr bool kWindowsSlide = [] {
  for (const int listed : trim::kWindows)
    if (listed != 0 && listed != 31 && listed != 32 && listed != 51 && listed != 52 && listed != 71) return false;
  return true;
}();
/// Loops for pools of more than one output, by their taps along a row; 0: for any at all. Others go output by output, with the same bits.
constexpr bool has_pool(int taps) {
  for (const int listed : trim::kPools)
    if (listed < 0 || (listed != 0 && (taps == 0 || listed == taps))) return true;
  return false;
}
/// Functions of one value (core/activation.h), fused or of a node of their own.
constexpr bool has_function(int function) {
  for (const int listed : trim::kFunctions)
    if (listed < 0 || listed == function) return true;
  return false;
}
/// Are there models whose extents are chosen when they are opened?
inline constexpr bool kHasOpenExtents = trim::kOpenExtents;
/// Does anybody ask which kernel a node takes? In a build without a planner the plan reports what is missing.
inline constexpr bool kLooksForKernels = trim::kLooksForKernels;
/// Does an arena serve several sessions, or one with several budgets? They are planned anew when another comes. And are there profiles?
inline constexpr bool kSharesArenas = trim::kLooksForKernels;
inline constexpr bool kUsesProfiles = trim::kLooksForKernels;
/// What plans need beyond steps and loads (plan::Need, by its number).
constexpr bool has_plan_need(int need) { return (trim::kPlans >> need & 1) != 0; }

#else

inline constexpr bool kTrimmed = false;
constexpr bool has_operator(int) { return true; }
constexpr bool has_kernel(KernelId) { return true; }
constexpr bool has_family(std::string_view) { return true; }
inline constexpr bool kHasFamilies = true;
constexpr bool has_feature(int) { return true; }
constexpr bool has_window(int, int) { return true; }
inline constexpr bool kWindowsSlide = false;
constexpr bool has_pool(int) { return true; }
constexpr bool has_element_bytes(int) { return true; }
constexpr bool has_function(int) { return true; }
inline constexpr bool kHasOpenExtents = true;
inline constexpr bool kLooksForKernels = true;
inline constexpr bool kSharesArenas = true;
inline constexpr bool kUsesProfiles = true;
constexpr bool has_plan_need(int) { return true; }

#endif

/// Plans that cut the sums of a layer, which its kernel then adds up part by part.
inline constexpr bool kHasSums = has_plan_need(1);

// Inner loops that are there a second time because they are a little faster so are left out where small code was asked for: trimmed, in the
// preset minsize. The others give the same bits.
#ifdef SLUICE_SMALL_CODE
inline constexpr bool kSmallCode = true;
#if defined(__GNUC__) && !defined(__clang__)
#define SLUICE_ONE_COPY __attribute__((noclone))  // for each constant that it is called with g++ would make another
#endif
#else
inline constexpr bool kSmallCode = false;
#endif
#ifndef SLUICE_ONE_COPY
#define SLUICE_ONE_COPY
#endif
/// Do tiles keep sums that are unfinished? Long sums of one step are faster so, too.
inline constexpr bool kKeepsSums = kHasSums || !kSmallCode;

// One instruction set alone, where that was asked for.
#if defined(SLUICE_ONLY_SCALAR)
inline constexpr bool kOneIsa = true;
inline constexpr Isa kOnlyIsa = Isa::kScalar;
#elif defined(SLUICE_ONLY_NEON)
inline constexpr bool kOneIsa = true;
inline constexpr Isa kOnlyIsa = Isa::kNeon;
#elif defined(SLUICE_ONLY_AVX2)
inline constexpr bool kOneIsa = true;
inline constexpr Isa kOnlyIsa = Isa::kAvx2;
#elif defined(SLUICE_ONLY_AVX512)
inline constexpr bool kOneIsa = true;
inline constexpr Isa kOnlyIsa = Isa::kAvx512;
#else
inline constexpr bool kOneIsa = false;
inline constexpr Isa kOnlyIsa = Isa::kScalar;  // means nothing
#endif

/// Does this build have code for `isa`?
constexpr bool has_code_for(Isa isa) noexcept { return !kOneIsa || isa == kOnlyIsa || isa == Isa::kScalar; }

/// Does this CPU have what the kernels of this build need? Always true, unless the build is for one instruction set.
inline bool runs_here() noexcept {
  const Isa best = best_isa();
  return !kOneIsa || kOnlyIsa == Isa::kScalar || (best >= kOnlyIsa && (best == Isa::kNeon) == (kOnlyIsa == Isa::kNeon));
}

/// Has this build any of the kernels numbered from `first` to `last`?
constexpr bool has_any_kernel(KernelId first, KernelId last) {
  for (int id = static_cast<int>(first); id <= static_cast<int>(last); ++id)
    if (has_kernel(static_cast<KernelId>(id))) return true;
  return false;
}

}  // namespace sluice

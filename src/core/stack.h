// How much of its stack the calling thread has left, before something is called that wants much of it.
//
// A thread of 32 KiB (some runtimes start such) would end by SIGSEGV in the middle of a run, where a tile's sums alone take 36. So
// the entry points ask first. Nothing says portably where a stack ends, and pthread_getattr_np allocates: instead the system is asked
// whether the pages below are there, once for a thread; a page that guards the stack is not.
#pragma once

#include <cstddef>

#include "sluice/core/error.h"
#include "sluice/core/units.h"

namespace sluice {

/// Are the `bytes` below this frame there? Allocates nothing. `otherwise`: what is said where the system cannot be asked, or a sandbox
/// answers in its place. A caller that would write there passes no; one that only asks whether a call is wise passes yes.
bool stack_has(std::size_t bytes, bool otherwise = true) noexcept;

/// Errors: kInvalidArgument, with what is needed.
inline Status check_stack(Bytes needed) noexcept {
  if (stack_has(needed.count())) return {};
  return fail(make_error(ErrorCode::kInvalidArgument, "stack", "the calling thread has less of its stack left than a call may take",
                         needed.count(), 0));
}

}  // namespace sluice

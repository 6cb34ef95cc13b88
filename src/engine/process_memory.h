// The kernel's figures for this process's memory. They are read without allocating, so that a run may read them.
#pragma once

#include "sluice/core/units.h"

namespace sluice::engine {

struct ProcessMemory {
  Bytes resident;       // VmRSS: now
  Bytes peak_resident;  // VmHWM: the most so far
};

/// Zeros where /proc is not there.
ProcessMemory read_process_memory() noexcept;

/// Gives the heap's free pages back, so that what is resident is what is in use.
void release_free_heap() noexcept;

/// Gives back the pages of code and constants that this process has mapped from files: the system fetches from its cache what is used
/// again, so that what stays resident is the code of a run and not that of planning. Pages that the process has written are left alone, and
/// all where the system does not tell which those are.
void release_code_pages() noexcept;

/// The same, and what the process holds beside them. How much code comes back at once depends on which threads run and on the pieces in
/// which the system caches the files, up to 2 MiB each, so it is not counted; what is locked is. Pages are counted one by one where the
/// system does so (smaps_rollup): VmRSS may be wrong by 256 KiB for each kind of page on two processors.
Bytes release_code_and_measure() noexcept;

/// Gives code back before planning and before a run in a tight budget: code that is needed again then comes back 16 KiB at a time, so that
/// a run holds what it uses and not the code around it. Each 16 KiB becomes a mapping of its own, which costs the system some 200 bytes,
/// and a page fault of 0.5 us where it is used.
void release_code_pages_in_pieces() noexcept;

}  // namespace sluice::engine

// What the kernel says about this process's memory. Read without allocating, so that it may be asked during a run.
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

}  // namespace sluice::engine

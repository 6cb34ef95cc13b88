// What a program does when the system gives it no more memory: one line on stderr, and the exit status of kOutOfMemory.
//
// The library tells it as an error, and what the commands themselves want comes to `main` as std::bad_alloc; both unwind. Where
// nothing can unwind, the process ends at once: in another library's destructor that allocates, and in a build without SLUICE_EXCEPTIONS,
// whose frames would keep their locks. Files that were being written have no names yet (sluice/core/file.h says where
// they do, and then they stay, as after a signal).
#pragma once

namespace sluice::cli {

/// Once, at the start of main. `program` is kept: how it calls itself. What ends before, in static initialisers, says so as `sluice`.
void end_where_memory_ends(const char* program) noexcept;

/// "<program>: out of memory: the system gave no more to this process, which holds 12345 KiB". Allocates nothing.
void say_out_of_memory() noexcept;

}  // namespace sluice::cli

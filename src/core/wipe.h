// Overwrites secrets before their memory is given back: keys, and what was decrypted with them.
//
// A compiler may leave out a plain memset before memory is freed, but not these calls.
#pragma once

#include <cstddef>
#include <span>

namespace sluice {

void wipe(std::span<std::byte> bytes) noexcept;

/// Overwrites what calls that have returned may have left on this thread's stack, 64 KiB deep. Takes no memory that it has not already.
void wipe_stack() noexcept;

}  // namespace sluice

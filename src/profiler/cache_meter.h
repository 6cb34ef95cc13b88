// How fast others fill the caches that processors share. What a run comes back to is still there unless too many bytes have passed since; other
// programs, and other machines of a host, let bytes pass all the time, so that after some milliseconds nothing is left, however small the net.
//
//     seconds   |            ........ from memory
//     a byte    |        ...
//               |........ from a shared cache
//               +--------------------
//                 bytes that are read again and again, or milliseconds between two times
#pragma once

#include <cstddef>
#include <span>

namespace sluice::profiler {

/// Bytes per second that others bring in: as many bytes as lose the cache half of what it held, over the time in which it loses that with nothing
/// read. `memory`: 64 MiB or more, not written meanwhile. 0: no cache is shared, or it keeps what it holds. Takes some 2 s.
double measure_others(std::span<const std::byte> memory);

}  // namespace sluice::profiler

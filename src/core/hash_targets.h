// XXH3 once more for each instruction set of x86-64 that makes it faster: 8 to 11 GB/s from memory, 15 to 50 from cache.
//
// Each is a file of its own, compiled for its set. Such a file includes nothing whose inline functions another file could share: the linker
// keeps one copy, and an older CPU would meet it.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace sluice {

uint64_t xxh3_64_avx2(const void* bytes, size_t size) noexcept;
uint64_t xxh3_64_avx512(const void* bytes, size_t size) noexcept;

}  // namespace sluice

#include "src/core/hash_targets.h"

// Without optimisation the compiler refuses the library's forced inlining.
#ifndef NDEBUG
#define XXH_NO_INLINE_HINTS 1
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sluice {

uint64_t xxh3_64_avx2(const void* bytes, size_t size) noexcept { return XXH3_64bits(bytes, size); }

}  // namespace sluice

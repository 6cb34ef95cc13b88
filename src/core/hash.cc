#include "sluice/core/hash.h"

// Without optimisation the compiler refuses the library's forced inlining.
#ifndef NDEBUG
#define XXH_NO_INLINE_HINTS 1
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <new>

#include "sluice/core/cpu.h"
#include "src/core/build_list.h"
#include "src/core/hash_targets.h"

namespace sluice {
namespace {

XXH3_state_t* state_of(std::byte* bytes) noexcept { return std::launder(reinterpret_cast<XXH3_state_t*>(bytes)); }
const XXH3_state_t* state_of(const std::byte* bytes) noexcept { return std::launder(reinterpret_cast<const XXH3_state_t*>(bytes)); }

}  // namespace

std::uint64_t xxh3_64(std::span<const std::byte> bytes) noexcept {
#if defined(__x86_64__)
  const Isa isa = kOneIsa ? kOnlyIsa : active_isa();
  if (isa == Isa::kAvx512) return xxh3_64_avx512(bytes.data(), bytes.size());
  if (isa == Isa::kAvx2) return xxh3_64_avx2(bytes.data(), bytes.size());
#endif
  return XXH3_64bits(bytes.data(), bytes.size());
}

void Xxh3::reset() noexcept {
  static_assert(sizeof(state_) == sizeof(XXH3_state_t) && alignof(XXH3_state_t) <= 64, "the header reserves room for the state");
  XXH3_64bits_reset(new (state_) XXH3_state_t);
}

void Xxh3::update(std::span<const std::byte> bytes) noexcept { XXH3_64bits_update(state_of(state_), bytes.data(), bytes.size()); }
std::uint64_t Xxh3::digest() const noexcept { return XXH3_64bits_digest(state_of(state_)); }

}  // namespace sluice

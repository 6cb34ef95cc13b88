// Which instruction sets the kernels may use on this machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

/// In rising order of preference on the architecture each belongs to.
enum class Isa : std::uint8_t { kScalar, kNeon, kAvx2, kAvx512 };

/// `scalar`, `neon`, `avx2`, `avx512`.
std::string_view name_of(Isa isa) noexcept;

/// The best set this CPU has.
Isa best_isa() noexcept;

/// The best set this CPU has, lowered by the environment variable SLUICE_ISA (`scalar`, `neon`, `avx2`, `avx512`) to emulate a slower
/// device. A value that is unknown or that this CPU lacks is ignored. Read once, at the first call. Thread-safe.
Isa active_isa() noexcept;

/// Does this CPU run a 512-bit operation as two of 256 bits (Zen 4)? Then it loads two inputs for each FMA; others, hardly one.
bool avx512_takes_two_passes() noexcept;

/// Processors this process may run on, at least 1.
int processor_count() noexcept;

}  // namespace sluice

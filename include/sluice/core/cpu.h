// Which instruction sets the kernels may use on this machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

/// The sets of each architecture are listed in rising order of preference.
enum class Isa : std::uint8_t { kScalar, kNeon, kAvx2, kAvx512 };

/// `scalar`, `neon`, `avx2`, `avx512`.
std::string_view name_of(Isa isa) noexcept;

/// The best set this CPU has.
Isa best_isa() noexcept;

/// The best set this CPU has, lowered by the environment variable SLUICE_ISA to emulate a slower device: `scalar`, `neon`, `avx2`,
/// `avx512`, or one of those with a say about sums of four products, which f32 kernels do not hear: `avx512-novnni`, `avx2-vnni`. A value
/// that is unknown or that this CPU lacks is ignored. Read once, at the first call. Thread-safe.
Isa active_isa() noexcept;

/// The value of SLUICE_ISA that is in force; without one, that of the best set.
std::string_view active_isa_name() noexcept;

/// How sums of four products of u8 and i8 are formed.
enum class DotIsa : std::uint8_t { kScalar, kNeon, kNeonDot, kAvx2, kAvx2Vnni, kAvx512, kAvx512Vnni };
inline constexpr int kDotIsaCount = 7;

/// `scalar`, `neon`, `neon-dot`, `avx2`, `avx2-vnni`, `avx512-novnni`, `avx512`.
std::string_view name_of(DotIsa isa) noexcept;

/// Does this CPU have it?
bool has_dot_isa(DotIsa isa) noexcept;

/// The best DotIsa of an instruction set on this CPU that SLUICE_ISA allows: `avx2` never uses VNNI.
DotIsa dot_isa_of(Isa isa) noexcept;

/// Does this CPU run a 512-bit operation as two of 256 bits (Zen 4)? Such a CPU loads two inputs for each FMA; others hardly one.
bool avx512_takes_two_passes() noexcept;

/// Does each load that runs beside FMAs slow those down, as on Intel's CPUs with AVX-512 (16 loads for 28 FMAs: 0.8 of their rate without
/// loads, 12 for 27: 0.86), while the first cache has room for the rows of a tile wherever they lie, and the second has 2 MiB?
bool avx512_prefers_few_loads() noexcept;

/// Does this CPU say that its data paths have 512 bits (AMD, from Zen 5 on)? There half a vector takes as long as a whole one, and one load for
/// each FMA is too much: tiles of one panel take a fifth longer than those of two.
bool avx512_has_whole_paths() noexcept;

/// Processors this process may run on, at least 1.
int processor_count() noexcept;

}  // namespace sluice

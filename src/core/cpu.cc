#include "sluice/core/cpu.h"

#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "src/core/build_list.h"

namespace sluice {

#if defined(__x86_64__)
namespace {

constexpr unsigned bits(std::initializer_list<int> set) noexcept {
  unsigned all = 0;
  for (const int bit : set) all |= 1u << bit;
  return all;
}

/// What CPU and system have, by the numbers of Intel's manual. The compiler's own question brings tables of all CPUs into small programs.
/// Asking takes some 20 us in a virtual machine, whose host answers, and steps ask which kernels to run: so it is done once.
struct Features {
  bool avx2 = false;  // and FMA
  bool avx2_vnni = false;
  bool avx512 = false;
  bool avx512_vnni = false;

  static const Features& of_this_cpu() noexcept {
    static const Features has;
    return has;
  }

 private:
  Features() noexcept {
    constexpr unsigned kFmaXsaveAvx = bits({12, 27, 28}), kAvx2 = bits({5}), kFDqCdBwVl = bits({16, 17, 28, 30, 31}), kVnni = bits({11}),
                       kAvxVnni = bits({4});
    constexpr unsigned kYmm = 0x06, kZmm = 0xe6;  // registers that the system saves
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kFmaXsaveAvx) != kFmaXsaveAvx) return;
    unsigned saved = 0, high = 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return;
    avx2 = (saved & kYmm) == kYmm && (ebx & kAvx2) != 0;
    avx512 = avx2 && (saved & kZmm) == kZmm && (ebx & kFDqCdBwVl) == kFDqCdBwVl;
    avx512_vnni = avx512 && (ecx & kVnni) != 0;
    avx2_vnni = avx2 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvxVnni) != 0;
  }
};

}  // namespace
#endif

Isa best_isa() noexcept {
#if defined(__x86_64__)
  const Features& has = Features::of_this_cpu();
  if (has.avx512) return Isa::kAvx512;
  return has.avx2 ? Isa::kAvx2 : Isa::kScalar;
#elif defined(__aarch64__)
  return Isa::kNeon;
#else
  return Isa::kScalar;
#endif
}

namespace {

bool is_amd_with_avx512() noexcept {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (best_isa() != Isa::kAvx512 || __get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return ebx == signature_AMD_ebx && ecx == signature_AMD_ecx && edx == signature_AMD_edx;
#else
  return false;
#endif
}

}  // namespace

bool avx512_takes_two_passes() noexcept {
#if defined(__x86_64__)
  constexpr unsigned kZen3And4 = 0x19;  // of which only Zen 4 has AVX-512
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!is_amd_with_avx512() || __get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (eax >> 8 & 0xf) + (eax >> 20 & 0xff) == kZen3And4;
#else
  return false;
#endif
}

bool avx512_has_whole_paths() noexcept {
#if defined(__x86_64__)
  constexpr unsigned kLeaf = 0x8000001a, kWholePaths = 1u << 3;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return is_amd_with_avx512() && __get_cpuid(kLeaf, &eax, &ebx, &ecx, &edx) != 0 && (eax & kWholePaths) != 0;
#else
  return false;
#endif
}

bool avx512_prefers_few_loads() noexcept {
#if defined(__x86_64__)
  constexpr unsigned kLeaf = 4, kLeastWays = 12, kSecond = 2, kLeastSecondBytes = 2u << 20;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (best_isa() != Isa::kAvx512 || __get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if (ebx != signature_INTEL_ebx || ecx != signature_INTEL_ecx || edx != signature_INTEL_edx) return false;
  const auto ways = [&] { return (ebx >> 22) + 1; };
  if (__get_cpuid_count(kLeaf, 0, &eax, &ebx, &ecx, &edx) == 0 || ways() < kLeastWays) return false;
  if (__get_cpuid_count(kLeaf, kSecond, &eax, &ebx, &ecx, &edx) == 0) return false;
  return ways() * ((ebx >> 12 & 0x3ff) + 1) * ((ebx & 0xfff) + 1) * (ecx + 1) >= kLeastSecondBytes;
#else
  return false;
#endif
}

namespace {

bool has_avx2_vnni() noexcept {
#if defined(__x86_64__)
  return Features::of_this_cpu().avx2_vnni;
#else
  return false;
#endif
}

bool has_avx512_vnni() noexcept {
#if defined(__x86_64__)
  return Features::of_this_cpu().avx512_vnni;
#else
  return false;
#endif
}

bool has_neon_dot() noexcept {
#if defined(__aarch64__)
  constexpr unsigned long kDotProduct = 1ul << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kDotProduct) != 0;
#else
  return false;
#endif
}

/// The values of SLUICE_ISA.
struct IsaOverride {
  std::string_view name;
  Isa isa = Isa::kScalar;
  DotIsa dot = DotIsa::kScalar;
};
constexpr IsaOverride kOverrides[] = {{"scalar", Isa::kScalar, DotIsa::kScalar},
                                      {"neon", Isa::kNeon, DotIsa::kNeonDot},
                                      {"avx2", Isa::kAvx2, DotIsa::kAvx2},
                                      {"avx2-vnni", Isa::kAvx2, DotIsa::kAvx2Vnni},
                                      {"avx512-novnni", Isa::kAvx512, DotIsa::kAvx512},
                                      {"avx512", Isa::kAvx512, DotIsa::kAvx512Vnni}};

/// The override in force; nullptr: none.
const IsaOverride* choose_override() noexcept {
  const Isa best = best_isa();
  const char* text = std::getenv("SLUICE_ISA");
  if (text == nullptr) return nullptr;
  for (const IsaOverride& chosen : kOverrides) {
    const bool same_family = chosen.isa == Isa::kScalar || (chosen.isa == Isa::kNeon) == (best == Isa::kNeon);
    const bool has_dot = chosen.dot != DotIsa::kAvx2Vnni || has_avx2_vnni();
    if (chosen.name == text && same_family && chosen.isa <= best && has_dot) return &chosen;
  }
  return nullptr;
}

const IsaOverride* override_in_force() noexcept {
  static const IsaOverride* const chosen = choose_override();
  return chosen;
}

}  // namespace

std::string_view name_of(Isa isa) noexcept {
  constexpr std::string_view kNames[] = {"scalar", "neon", "avx2", "avx512"};
  return kNames[static_cast<int>(isa)];
}

Isa active_isa() noexcept {
  if constexpr (kOneIsa) return kOnlyIsa;
  static const Isa isa = override_in_force() == nullptr ? best_isa() : override_in_force()->isa;
  return isa;
}

std::string_view active_isa_name() noexcept {
  if constexpr (kOneIsa) return name_of(kOnlyIsa);
  return override_in_force() == nullptr ? name_of(best_isa()) : override_in_force()->name;
}

std::string_view name_of(DotIsa isa) noexcept {
  constexpr std::string_view kNames[kDotIsaCount] = {"scalar", "neon", "neon-dot", "avx2", "avx2-vnni", "avx512-novnni", "avx512"};
  return kNames[static_cast<int>(isa)];
}

bool has_dot_isa(DotIsa isa) noexcept {
  switch (isa) {
    case DotIsa::kScalar:
      return true;
    case DotIsa::kNeon:
      return best_isa() == Isa::kNeon;
    case DotIsa::kNeonDot:
      return has_neon_dot();
    case DotIsa::kAvx2:
      return best_isa() >= Isa::kAvx2;
    case DotIsa::kAvx2Vnni:
      return has_avx2_vnni();
    case DotIsa::kAvx512:
      return best_isa() == Isa::kAvx512;
    case DotIsa::kAvx512Vnni:
      return has_avx512_vnni();
  }
  return false;
}

DotIsa dot_isa_of(Isa isa) noexcept {
  const auto allowed = [](DotIsa dot) { return override_in_force() == nullptr || override_in_force()->dot >= dot; };
  const auto best_of = [&](DotIsa better, DotIsa other) { return has_dot_isa(better) && allowed(better) ? better : other; };
  switch (isa) {
    case Isa::kAvx512:
      return best_of(DotIsa::kAvx512Vnni, DotIsa::kAvx512);
    case Isa::kAvx2:
      return best_of(DotIsa::kAvx2Vnni, DotIsa::kAvx2);
    case Isa::kNeon:
      return best_of(DotIsa::kNeonDot, DotIsa::kNeon);
    case Isa::kScalar:
      break;
  }
  return DotIsa::kScalar;
}

int processor_count() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace sluice

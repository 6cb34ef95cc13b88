#include "sluice/core/cpu.h"

#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdlib>

namespace sluice {

Isa best_isa() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
  if (avx512) return Isa::kAvx512;
  return avx2 ? Isa::kAvx2 : Isa::kScalar;
#elif defined(__aarch64__)
  return Isa::kNeon;
#else
  return Isa::kScalar;
#endif
}

bool avx512_takes_two_passes() noexcept {
#if defined(__x86_64__)
  constexpr unsigned kZen3And4 = 0x19;  // of which only Zen 4 has AVX-512
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (best_isa() != Isa::kAvx512 || __get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if (ebx != signature_AMD_ebx || ecx != signature_AMD_ecx || edx != signature_AMD_edx) return false;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (eax >> 8 & 0xf) + (eax >> 20 & 0xff) == kZen3And4;
#else
  return false;
#endif
}

namespace {

Isa choose_isa() noexcept {
  const Isa best = best_isa();
  const char* wish = std::getenv("SLUICE_ISA");
  if (wish == nullptr) return best;
  for (Isa isa : {Isa::kScalar, Isa::kNeon, Isa::kAvx2, Isa::kAvx512}) {
    const bool same_family = isa == Isa::kScalar || (isa == Isa::kNeon) == (best == Isa::kNeon);
    if (name_of(isa) == wish && same_family && isa <= best) return isa;
  }
  return best;
}

}  // namespace

std::string_view name_of(Isa isa) noexcept {
  constexpr std::string_view kNames[] = {"scalar", "neon", "avx2", "avx512"};
  return kNames[static_cast<int>(isa)];
}

Isa active_isa() noexcept {
  static const Isa isa = choose_isa();
  return isa;
}

int processor_count() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace sluice

// What the CPU has, asked for by ourselves, beside what the compiler's run-time library finds.
#include "sluice/core/cpu.h"

#include <catch2/catch.hpp>

namespace sluice {
namespace {

#if defined(__x86_64__)
TEST_CASE("the best instruction set is what the compiler finds, too") {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
  CHECK(best_isa() == (avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kScalar));
}
#else
TEST_CASE("another processor has no instruction set of x86") {
  CHECK(best_isa() != Isa::kAvx2);
  CHECK(best_isa() != Isa::kAvx512);
}
#endif

}  // namespace
}  // namespace sluice

#include "tests/bench/dot_peak.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>

#include "src/kernels/integer/target.h"
#include "tests/bench/peak.h"

namespace sluice::bench {
namespace {

constexpr int kChains = 12;  // more than two pipes with a latency of five need
constexpr int kSteps = 1000;

#if defined(__x86_64__)
SLUICE_BEGIN_TARGET("avx512f,avx512vnni")
void round512(__m512i (&memory)[kChains]) {
  __m512i sums[kChains];
  SLUICE_UNROLL
  for (int chain = 0; chain < kChains; ++chain) sums[chain] = memory[chain];
  const __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5);
  for (int i = 0; i < kSteps; ++i) {
    SLUICE_UNROLL
    for (int chain = 0; chain < kChains; ++chain) {
      sums[chain] = _mm512_dpbusd_epi32(sums[chain], a, b);
      asm volatile("" : "+v"(sums[chain]));
    }
  }
  SLUICE_UNROLL
  for (int chain = 0; chain < kChains; ++chain) memory[chain] = sums[chain];
}
SLUICE_END_TARGET
SLUICE_BEGIN_TARGET("avx2,avxvnni")
void round256(__m256i (&memory)[kChains]) {
  __m256i sums[kChains];
  SLUICE_UNROLL
  for (int chain = 0; chain < kChains; ++chain) sums[chain] = memory[chain];
  const __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
  for (int i = 0; i < kSteps; ++i) {
    SLUICE_UNROLL
    for (int chain = 0; chain < kChains; ++chain) {
      sums[chain] = _mm256_dpbusd_avx_epi32(sums[chain], a, b);
      asm volatile("" : "+x"(sums[chain]));
    }
  }
  SLUICE_UNROLL
  for (int chain = 0; chain < kChains; ++chain) memory[chain] = sums[chain];
}
SLUICE_END_TARGET

/// Operations a second of so many rounds on vectors of `Vector`.
template <class Vector>
double burst(void (*round)(Vector (&)[kChains])) noexcept {
  constexpr int kRounds = 40;
  Vector sums[kChains] = {};
  const double start = thread_seconds();
  for (int i = 0; i < kRounds; ++i) round(sums);
  return double{kRounds} * kSteps * kChains * sizeof(Vector) * 2 / (thread_seconds() - start);
}
#endif

}  // namespace

double dot_peak(DotIsa isa) noexcept {
  double best = 0;
#if defined(__x86_64__)
  for (int i = 0; i < 8; ++i) {
    if (isa == DotIsa::kAvx512Vnni) best = std::max(best, burst(round512));
    if (isa == DotIsa::kAvx2Vnni) best = std::max(best, burst(round256));
  }
#endif
  return best * 1e-9;
}

}  // namespace sluice::bench

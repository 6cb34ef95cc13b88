// Compiled once for each target of targets.h by including itself.
#include "tests/bench/peak.h"

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/peak.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Twelve chains hide a latency of four cycles on three pipes. Returns the floating-point operations done.
double burst(std::int64_t rounds, float& sink) noexcept {
  constexpr int kChains = 12;
  const hn::CappedTag<float, 16> d;
  using V = hn::Vec<hn::CappedTag<float, 16>>;
  V acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = hn::Set(d, static_cast<float>(i));
  const V factor = hn::Set(d, sink);
  const V addend = hn::Set(d, 0.25f);
  for (std::int64_t r = 0; r < rounds; ++r) {
    HWY_UNROLL(12)
    for (int i = 0; i < kChains; ++i) acc[i] = hn::MulAdd(acc[i], factor, addend);
  }
  V sum = acc[0];
  for (int i = 1; i < kChains; ++i) sum = hn::Add(sum, acc[i]);
  sink = std::min(0.5f, hn::GetLane(sum));
  return static_cast<double>(rounds) * kChains * static_cast<double>(hn::Lanes(d)) * 2;
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::bench {
namespace {

using Burst = double (*)(std::int64_t, float&) noexcept;

Burst burst_of(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, burst) }

}  // namespace

double thread_seconds() noexcept {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double fma_peak(Isa isa) noexcept {
  constexpr std::int64_t kRounds = 40'000;
  const Burst burst = burst_of(isa);
  float sink = 0.5f;
  double best = 0;
  for (int i = 0; i < 8; ++i) {
    const double start = thread_seconds();
    const double flops = burst(kRounds, sink);
    best = std::max(best, flops / (thread_seconds() - start) * 1e-9);
  }
  return best;
}

}  // namespace sluice::bench
#endif  // HWY_ONCE

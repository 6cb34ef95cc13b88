// Compiled once for each target of targets.h by including itself: the same loops, with that target's fused multiply-add.
#include "src/kernels/generic/chains.h"

#include "sluice/core/cpu.h"
#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/generic/chains.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::generic {
namespace HWY_NAMESPACE {

/// Chains side by side: two fused multiply-adds start in each cycle, and each takes four.
inline constexpr std::int64_t kTogether = 8;

HWY_ATTR void run_together(const Chains& c, std::int64_t first) noexcept {
  float sums[kTogether];
  for (std::int64_t j = 0; j < kTogether; ++j) sums[j] = c.sums[(first + j) * c.sum_step];
  const float* w = c.w.at + first * c.row_step;
  if (c.row_step == 1) {  // neighbours: a vector
    for (std::int64_t k = 0; k < c.depth; ++k) {
      const float x = c.x.at[k * c.x.step];
      for (std::int64_t j = 0; j < kTogether; ++j) sums[j] = std::fma(x, w[k * c.w.step + j], sums[j]);
    }
  } else {
    for (std::int64_t k = 0; k < c.depth; ++k) {
      const float x = c.x.at[k * c.x.step];
      for (std::int64_t j = 0; j < kTogether; ++j) sums[j] = std::fma(x, w[k * c.w.step + j * c.row_step], sums[j]);
    }
  }
  for (std::int64_t j = 0; j < kTogether; ++j) c.sums[(first + j) * c.sum_step] = sums[j];
}

HWY_ATTR void run_chains(const Chains& c) noexcept {
  std::int64_t j = 0;
  for (; j + kTogether <= c.count; j += kTogether) run_together(c, j);
  for (; j < c.count; ++j) {
    float sum = c.sums[j * c.sum_step];
    const float* w = c.w.at + j * c.row_step;
    for (std::int64_t k = 0; k < c.depth; ++k) sum = std::fma(c.x.at[k * c.x.step], w[k * c.w.step], sum);
    c.sums[j * c.sum_step] = sum;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::generic
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::generic {
namespace {

using Run = void (*)(const Chains&) noexcept;
Run run_for(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, run_chains) }

}  // namespace

void run(const Chains& chains) noexcept {
  static const Run on_this_cpu = run_for(active_isa());
  on_this_cpu(chains);
}

}  // namespace sluice::kernels::generic
#endif  // HWY_ONCE

// Which kernels do the same work over weights of several types.
#pragma once

#include <algorithm>
#include <iterator>

#include "sluice/core/ids.h"
#include "sluice/kernels/kernel_ids.h"

namespace sluice::profiler::detail {

inline bool is_depthwise(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kConvDepthwise || (kernel >= kConvDepthwiseEightBits && kernel <= kConvDepthwiseFourBitsHalfScales);
}
inline bool is_direct(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kConvDirect || kernel == kConvDirectBf16 || kernel == kConvDirectF16 || kernel == kConvDirectEightBits ||
         kernel == kConvDirectFourBits || kernel == kConvDirectFourBitsHalfScales;
}
inline bool is_recurrent(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kRecurrent || (kernel >= kRecurrentEightBits && kernel <= kRecurrentFourBitsHalfScales);
}

/// 1x1 convolutions, over weights of every type but sparse ones.
constexpr bool is_pointwise(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kConvPointwise || kernel == kConvPointwiseBf16 || kernel == kConvPointwiseF16 || kernel == kConvPointwiseEightBits ||
         kernel == kConvPointwiseFourBits || kernel == kConvPointwiseFourBitsHalfScales || kernel == kIntegerPointwise;
}
/// Dense layers, the same.
constexpr bool is_dense(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kDense || kernel == kDenseBf16 || kernel == kDenseF16 || kernel == kDenseEightBits || kernel == kDenseFourBits ||
         kernel == kDenseFourBitsHalfScales || kernel == kDenseTwoBits || kernel == kIntegerDense;
}
constexpr bool is_dense_or_pool(KernelId kernel) noexcept {
  return is_dense(kernel) || kernel == kernels::kernel_id::kPool || kernel == kernels::kernel_id::kIntegerPool;
}

/// The kernel of the same layers over f32 panels, of which the same terms are made; of others itself. Of integer kernels that is so where
/// panels are multiplied by rows alone.
inline KernelId f32_kernel_like(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  constexpr KernelId kWinograd[] = {kConvWinogradBf16, kConvWinogradF16, kConvWinogradEightBits, kConvWinogradFourBits,
                                    kConvWinogradFourBitsHalfScales};
  constexpr KernelId kTransposed[] = {kConvTransposedBf16, kConvTransposedF16, kConvTransposedEightBits, kConvTransposedFourBits,
                                      kConvTransposedFourBitsHalfScales};
  const auto is_one_of = [&](const auto& kernels) {
    return std::find(std::begin(kernels), std::end(kernels), kernel) != std::end(kernels);
  };
  if (is_pointwise(kernel)) return kConvPointwise;
  if (is_one_of(kWinograd)) return kConvWinograd;
  if (is_one_of(kTransposed)) return kConvTransposed;
  if (is_direct(kernel)) return kConvDirect;
  if (is_depthwise(kernel)) return kConvDepthwise;
  if (is_dense(kernel)) return kDense;
  if (is_recurrent(kernel)) return kRecurrent;
  const bool grouped = kernel >= kConvGroupedLanesEightBits && kernel <= kConvGroupedLanesFourBitsHalfScales;
  return grouped ? kConvGroupedLanes : kernel;
}

}  // namespace sluice::profiler::detail

// Which kernels do the same work over weights of several types.
#pragma once

#include "sluice/core/ids.h"
#include "sluice/kernels/kernel_ids.h"

namespace sluice::profiler::detail {

template <class... Kernels>
constexpr bool is_one_of(KernelId kernel, Kernels... kernels) noexcept {
  return ((kernel == kernels) || ...);
}

inline bool is_depthwise(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kConvDepthwise || (kernel >= kConvDepthwiseEightBits && kernel <= kConvDepthwiseFourBitsHalfScales);
}
constexpr bool is_direct(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return is_one_of(kernel, kConvDirect, kConvDirectBf16, kConvDirectF16, kConvDirectEightBits, kConvDirectFourBits,
                   kConvDirectFourBitsHalfScales);
}
inline bool is_recurrent(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kRecurrent || (kernel >= kRecurrentEightBits && kernel <= kRecurrentFourBitsHalfScales);
}

/// 1x1 convolutions, over weights of every type but sparse ones.
constexpr bool is_pointwise(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return is_one_of(kernel, kConvPointwise, kConvPointwiseBf16, kConvPointwiseF16, kConvPointwiseEightBits, kConvPointwiseFourBits,
                   kConvPointwiseFourBitsHalfScales, kIntegerPointwise);
}
/// Dense layers, the same.
constexpr bool is_dense(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return is_one_of(kernel, kDense, kDenseBf16, kDenseF16, kDenseEightBits, kDenseFourBits, kDenseFourBitsHalfScales, kDenseTwoBits,
                   kIntegerDense);
}
constexpr bool is_dense_or_pool(KernelId kernel) noexcept {
  return is_dense(kernel) || is_one_of(kernel, kernels::kernel_id::kPool, kernels::kernel_id::kIntegerPool);
}

/// The kernel of the same layers over f32 panels, of which the same terms are made; of others itself. Of integer kernels that is so where
/// panels are multiplied by rows alone.
inline KernelId f32_kernel_like(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  const bool winograd = is_one_of(kernel, kConvWinogradBf16, kConvWinogradF16, kConvWinogradEightBits, kConvWinogradFourBits,
                                  kConvWinogradFourBitsHalfScales);
  const bool transposed = is_one_of(kernel, kConvTransposedBf16, kConvTransposedF16, kConvTransposedEightBits, kConvTransposedFourBits,
                                    kConvTransposedFourBitsHalfScales);
  if (is_pointwise(kernel)) return kConvPointwise;
  if (winograd) return kConvWinograd;
  if (transposed) return kConvTransposed;
  if (is_direct(kernel)) return kConvDirect;
  if (is_depthwise(kernel)) return kConvDepthwise;
  if (is_dense(kernel)) return kDense;
  if (is_recurrent(kernel)) return kRecurrent;
  const bool grouped = kernel >= kConvGroupedLanesEightBits && kernel <= kConvGroupedLanesFourBitsHalfScales;
  return grouped ? kConvGroupedLanes : kernel;
}

}  // namespace sluice::profiler::detail

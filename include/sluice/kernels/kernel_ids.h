// The numbers of kernels, which plans store: append only. The registry (kernels/registry.h) has the kernel of each number; inner loops that
// a trimmed build may leave out use the numbers alone.
#pragma once

#include "sluice/core/ids.h"

namespace sluice::kernels {

/// 1-99 and 200-219: SIMD kernels; 100-149 and 190-199: the readable reference; 150-189: the generic integer kernels (150 + OpKind);
/// 220-299: reserved for adapters (docs/adr/0006-xnnpack.md).
namespace kernel_id {
inline constexpr KernelId kConvDirect{1};     // KxK, grouped with N/g >= 16: in place, or padded row strips
inline constexpr KernelId kConvPointwise{2};  // 1x1, any stride, rows read in place
inline constexpr KernelId kConvDepthwise{3};
inline constexpr KernelId kConvGroupedLanes{4};  // groups with N/g < 16
inline constexpr KernelId kDense{5};
inline constexpr KernelId kPool{6};
inline constexpr KernelId kBinary{7};
inline constexpr KernelId kUnary{8};
inline constexpr KernelId kAffine{9};
inline constexpr KernelId kSoftmax{10};
inline constexpr KernelId kResize{11};
inline constexpr KernelId kConvTransposed{12};  // by output phases, padded row strips
inline constexpr KernelId kMatMul{13};          // of two activations
inline constexpr KernelId kConvWinograd{14};
inline constexpr KernelId kLayerNorm{15};
inline constexpr KernelId kAttention{16};
inline constexpr KernelId kRecurrent{17};
inline constexpr KernelId kDenseEightBits{18};  // over quantised panels: 18 to 21, 200 to 205
inline constexpr KernelId kDenseFourBits{19};
inline constexpr KernelId kConvPointwiseEightBits{20};
inline constexpr KernelId kConvDirectEightBits{21};
inline constexpr KernelId kConcat{22};
inline constexpr KernelId kSlice{23};
inline constexpr KernelId kPad{24};
inline constexpr KernelId kTranspose{25};
inline constexpr KernelId kReshape{26};
inline constexpr KernelId kDenseBf16{30};  // over panels of 16-bit floats: 30 to 39
inline constexpr KernelId kDenseF16{31};
inline constexpr KernelId kConvPointwiseBf16{32};
inline constexpr KernelId kConvPointwiseF16{33};
inline constexpr KernelId kConvDirectBf16{34};
inline constexpr KernelId kConvDirectF16{35};
inline constexpr KernelId kConvTransposedBf16{36};
inline constexpr KernelId kConvTransposedF16{37};
inline constexpr KernelId kConvWinogradBf16{38};
inline constexpr KernelId kConvWinogradF16{39};
inline constexpr KernelId kDenseFourBitsHalfScales{40};  // 40 to 43
inline constexpr KernelId kConvPointwiseFourBitsHalfScales{41};
inline constexpr KernelId kConvDirectFourBitsHalfScales{42};
inline constexpr KernelId kConvTransposedFourBitsHalfScales{43};
inline constexpr KernelId kConvWinogradEightBits{44};  // 44 to 46
inline constexpr KernelId kConvWinogradFourBits{45};
inline constexpr KernelId kConvWinogradFourBitsHalfScales{46};
inline constexpr KernelId kLrn{47};
inline constexpr KernelId kRecurrentEightBits{48};  // over narrow panels: 48 to 52, 53 to 57, 70 to 74
inline constexpr KernelId kRecurrentFourBits{49};
inline constexpr KernelId kRecurrentBf16{50};
inline constexpr KernelId kRecurrentF16{51};
inline constexpr KernelId kRecurrentFourBitsHalfScales{52};
inline constexpr KernelId kConvDepthwiseEightBits{53};
inline constexpr KernelId kConvDepthwiseFourBits{54};
inline constexpr KernelId kConvDepthwiseBf16{55};
inline constexpr KernelId kConvDepthwiseF16{56};
inline constexpr KernelId kConvDepthwiseFourBitsHalfScales{57};
inline constexpr KernelId kConvPointwiseSparse{60};  // over sparse panels: 60 to 68
inline constexpr KernelId kConvDirectSparse{61};
inline constexpr KernelId kDenseSparse{62};
inline constexpr KernelId kConvPointwiseSparseBf16{63};
inline constexpr KernelId kConvDirectSparseBf16{64};
inline constexpr KernelId kDenseSparseBf16{65};
inline constexpr KernelId kConvPointwiseSparseF16{66};
inline constexpr KernelId kConvDirectSparseF16{67};
inline constexpr KernelId kDenseSparseF16{68};
inline constexpr KernelId kConvGroupedLanesEightBits{70};
inline constexpr KernelId kConvGroupedLanesFourBits{71};
inline constexpr KernelId kConvGroupedLanesBf16{72};
inline constexpr KernelId kConvGroupedLanesF16{73};
inline constexpr KernelId kConvGroupedLanesFourBitsHalfScales{74};
inline constexpr KernelId kReferenceBase{100};  // + OpKind
inline constexpr KernelId kIntegerBase{150};    // + OpKind: the generic kernels of the class int8
inline constexpr KernelId kReferenceWinograd{190};
inline constexpr KernelId kReferenceDenseQuantised{191};
inline constexpr KernelId kReferenceConvQuantised{192};
inline constexpr KernelId kReferenceConvTransposeQuantised{193};
inline constexpr KernelId kReferenceWinogradNarrow{194};
inline constexpr KernelId kReferenceDenseSparse{195};
inline constexpr KernelId kReferenceConvSparse{196};
inline constexpr KernelId kReferenceRecurrentQuantised{197};
inline constexpr KernelId kDenseTwoBits{200};
inline constexpr KernelId kConvPointwiseFourBits{201};
inline constexpr KernelId kConvDirectFourBits{202};
inline constexpr KernelId kConvTransposedEightBits{203};
inline constexpr KernelId kConvTransposedFourBits{204};
inline constexpr KernelId kEmbeddingQuantised{205};
inline constexpr KernelId kIntegerPointwise{206};  // the class int8: 206 to 219
inline constexpr KernelId kIntegerDirect{207};
inline constexpr KernelId kIntegerDepthwise{208};
inline constexpr KernelId kIntegerDense{209};
inline constexpr KernelId kIntegerPool{210};
inline constexpr KernelId kIntegerBinary{211};
inline constexpr KernelId kIntegerTable{212};
inline constexpr KernelId kIntegerQuantize{213};
inline constexpr KernelId kIntegerDequantize{214};
inline constexpr KernelId kIntegerMatMul{215};
inline constexpr KernelId kIntegerResize{216};
inline constexpr KernelId kIntegerGrouped{217};  // groups with N/g < 16
inline constexpr KernelId kIntegerSoftmax{218};
inline constexpr KernelId kIntegerResizeLinear{219};
}  // namespace kernel_id

constexpr KernelId offset_id(KernelId base, int n) noexcept { return static_cast<KernelId>(static_cast<int>(base) + n); }

}  // namespace sluice::kernels

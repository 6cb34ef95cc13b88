// Parameters of what multiplies by sparse panels (WeightLayout::kSparse): dense layers, and convolutions of one group.
//
// Panels of these differ in size. Where each ends follows from the header of the model file, which has been validated; the number of blocks
// in a panel's bitmap comes with the untrusted weights, so kernels never read beyond the panel's end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/operators/parameters/weighted.h"

namespace sluice::operators {

/// A convolution of one group: so `values` / taps are its input channels, `outputs_per_group` its output channels.
struct SparseConvolutionParameters {
  WeightedParameters weighted;
  Window window;
  const std::uint32_t* panel_ends = nullptr;  // model::Weight::panel_ends, of a graph that outlives this

  ConvolutionParameters dense() const noexcept {
    return {weighted, window, 1, weighted.panels.values / window.taps(), weighted.panels.outputs_per_group};
  }
};

struct SparseDenseParameters {
  DenseParameters dense;
  const std::uint32_t* panel_ends = nullptr;
};

static_assert(kIsParameters<SparseConvolutionParameters> && offsetof(SparseConvolutionParameters, weighted) == 0);
static_assert(kIsParameters<SparseDenseParameters> && offsetof(SparseDenseParameters, dense) == 0);

}  // namespace sluice::operators

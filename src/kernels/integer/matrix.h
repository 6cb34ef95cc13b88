// Products of u8 activations and i8 panels: dense layers, 1x1 convolutions, whose inputs are read where they lie, and all other
// convolutions of groups that fill panels, as an implicit product over padded strips (weighted/strip.h).
#pragma once

#include "src/kernels/integer/tile.h"
#include "src/kernels/integer/walk.h"

namespace sluice::kernels::integer {

/// One tap and no padding, so that an output pixel is made of one input pixel.
bool reads_in_place(const IntegerConvolutionParameters& conv) noexcept;
/// One group, or groups that fill whole panels each.
bool groups_fill_panels(const IntegerConvolutionParameters& conv) noexcept;

Bytes dense_workspace(const IntegerDenseParameters& dense, const StepExtent& extent) noexcept;
void run_dense(const KernelCall& call, const TileTable& table) noexcept;
Bytes pointwise_workspace(const IntegerConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_pointwise(const KernelCall& call, const TileTable& table) noexcept;

Bytes strips_workspace(const IntegerConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_strips(const KernelCall& call, const TileTable& table) noexcept;

}  // namespace sluice::kernels::integer

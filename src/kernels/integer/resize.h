// Resizing of images of bytes. Nearest: pixels are copied; no instruction set does that better than memcpy, so that there is one code for
// all. Linear: four pixels are blended.
#pragma once

#include "sluice/core/work.h"
#include "sluice/kernels/call.h"
#include "src/kernels/integer/tile.h"

namespace sluice::kernels::integer {

/// Are only rows and columns resized, of images [N,H,W,C]?
bool resizes_images(const operators::ResizeParameters& p, const Shape& in, const Shape& out) noexcept;

Bytes resize_workspace(const operators::IntegerResizeParameters& p, const StepExtent& extent) noexcept;
void run_resize_step(const KernelCall& call) noexcept;

Bytes resize_linear_workspace(const operators::IntegerResizeParameters& p, const StepExtent& extent) noexcept;
void run_resize_linear_step(const KernelCall& call, const TileTable& table) noexcept;

}  // namespace sluice::kernels::integer

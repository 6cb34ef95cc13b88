// Nearest resizing of images of bytes: pixels are copied. No instruction set does that better than memcpy, so that there is one code for
// all.
#pragma once

#include "sluice/core/work.h"
#include "sluice/kernels/call.h"
#include "sluice/operators/parameters/movement.h"

namespace sluice::kernels::integer {

/// Are only rows and columns resized, of images [N,H,W,C]?
bool resizes_images(const operators::ResizeParameters& p, const Shape& in, const Shape& out) noexcept;

Bytes resize_workspace(const operators::ResizeParameters& p, const StepExtent& extent) noexcept;
void run_resize_step(const KernelCall& call) noexcept;

}  // namespace sluice::kernels::integer

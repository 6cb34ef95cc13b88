// XNNPACK as a backend: convolutions (one group, or depthwise), dense layers, pools, binary functions, a few unary ones, softmax,
// concatenation and reshapes, all f32 with weights as they are. A module of its own: libsluice_xnnpack.so.
//
//     prepare   weights --read, verified, unpacked--> XNNPACK's own packed copies (counted); one operator, or copy, a step, set up for good
//     run       the steps in order, in the calling thread
//
// Its sums are formed in another order than ours: outputs agree within epsilon of their largest, not bit for bit.
#pragma once

#include "sluice/backends/backend.h"

namespace sluice::backends {

/// Null where XNNPACK does not support this CPU.
std::unique_ptr<Backend> make_xnnpack_backend();

}  // namespace sluice::backends

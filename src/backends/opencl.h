// An OpenCL device as a backend: convolutions (one group, or depthwise), dense layers, pools, unary and binary functions, softmax,
// concatenation and reshapes, all f32. A module of its own: libsluice_opencl.so.
//
//     prepare   weights --stretch by stretch, verified--> buffers of the device, as panels; a kernel, or copy, a step, arguments set for
//     good run       the steps in order through one queue; the host waits every few steps, so that a cancellation is seen
//
// Sums are formed in another order than ours: outputs agree within epsilon of their largest, not bit for bit. `bytes` counts the device's
// buffers; the driver's own memory (a compiler, for one) is not known and not in the budget.
#pragma once

#include <string>

#include "sluice/backends/backend.h"

namespace sluice::backends {

/// `cache`: the folder of compiled kernels; empty: compiled anew each time. Errors: kUnsupported: no device, or it does not compile them.
Result<std::unique_ptr<Backend>> make_opencl_backend(const std::string& cache);

}  // namespace sluice::backends

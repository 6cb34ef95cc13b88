// The same layer on XNNPACK, as a peer.
#pragma once

#include <memory>

#include "tests/kernels/weighted_harness.h"

namespace sluice::bench {

class XnnpackLayer {
 public:
  virtual ~XnnpackLayer() = default;
  virtual void run() noexcept = 0;
};

/// Null when this build has no XNNPACK or it refuses the layer. `in` and `out` must outlive it and may be read a vector past their end.
std::unique_ptr<XnnpackLayer> make_xnnpack_layer(const kernels::test::Problem& problem, const float* in, float* out);

}  // namespace sluice::bench

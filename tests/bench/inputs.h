// What the nets that benchmarks run are given to read.
#pragma once

#include <cstddef>
#include <vector>

#include "sluice/engine/engine.h"
#include "tests/bench/must.h"

namespace sluice::bench {

/// Floats from -1 to 1, which are the same each time; zeros of other types.
inline void fill_inputs(Session& session) {
  const model::Graph& graph = session.model().graph();
  for (std::size_t port = 0; port < graph.inputs.size(); ++port) {
    const DType dtype = graph.dtype_of(graph.inputs[port]);
    std::vector<std::byte> data(graph.inputs[port].onnx_shape.element_count() * size_of(dtype));
    unsigned state = 1;
    if (dtype == DType::kF32)
      for (std::size_t i = 0; i < data.size() / sizeof(float); ++i) {
        state = state * 1664525u + 1013904223u;
        reinterpret_cast<float*>(data.data())[i] = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
      }
    must(session.set_input(port, dtype, data));
  }
}

}  // namespace sluice::bench

// Bounds of what a model file may hold: far above real models, and low enough that nothing computed from them overflows or exhausts memory.
#pragma once

#include <cstddef>

namespace sluice::model {

/// Tensors, weights, nodes, ports, labels: each. Checked before room is made for them.
inline constexpr std::size_t kMaxItems = std::size_t{1} << 20;

}  // namespace sluice::model

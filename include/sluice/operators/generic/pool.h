// Pools: which fold a line of the table stands for, and the windows that its arguments describe.
//
// Read by the definitions (src/operators/generic/pool.cc), which refuse windows that do not fit, and by the generic kernels
// (src/kernels/plain/pool.cc). A definition's `detail` points to the fold.
//
// Invariant: windows that `windows_of` gives have at least one output on each axis.
#pragma once

#include "sluice/operators/generic/windows.h"

namespace sluice::operators::generic::pool {

enum class Pool : std::uint8_t { kMax, kAverage, kLp };

inline constexpr Pool kMax = Pool::kMax, kAverage = Pool::kAverage, kLp = Pool::kLp;

inline Pool kind_of(const PlainNode& node) noexcept { return *static_cast<const Pool*>(node.op().detail); }

// Argument 6: max: storage_order; average: count_include_pad; Lp: p.
inline bool windows_of(const PlainNode& node, Windows& w) noexcept { return read_windows(node, node.in(0).shape, {}, w) && slide(node, w); }

}  // namespace sluice::operators::generic::pool

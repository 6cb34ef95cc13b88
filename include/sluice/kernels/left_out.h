// What a trimmed build says of a node that it cannot run (docs/small-binaries.md).
//
// A kernel that was left out keeps its line in the registry, with its name, and has no `resolve`: `kernels_for` does not give it.
#pragma once

#include "sluice/core/error.h"
#include "sluice/model/graph.h"

namespace sluice::kernels {

inline constexpr const char* kLeftOut = "this build was trimmed to models that do without this kernel: trim it to this model too";

/// Why no kernel runs a node: kUnsupported with its name, and that of the kernel which would, had it not been left out.
Error no_kernel_for(const model::Graph& graph, const model::Node& node);

}  // namespace sluice::kernels

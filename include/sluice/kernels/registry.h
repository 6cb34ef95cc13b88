// All kernels, in order of preference: the planner takes the first that supports a node.
//
// Their numbers are in kernel_ids.h. The families of `src/kernels/families.h` are listed by name in
// `src/kernels/registry.cc`; nothing registers itself at load time.
#pragma once

#include <span>
#include <vector>

#include "sluice/kernels/kernel.h"
#include "sluice/kernels/kernel_ids.h"

namespace sluice::kernels {

/// The kernel of that number, or nullptr (a plan of another build).
const KernelDescriptor* find_kernel(KernelId id) noexcept;

/// The kernels that can run `node` here, most preferred first. Empty: the node cannot run (kUnsupported).
std::vector<const KernelDescriptor*> kernels_for(const model::Graph& graph, const model::Node& node);

}  // namespace sluice::kernels

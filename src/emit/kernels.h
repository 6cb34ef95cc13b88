// From a node to the portable kernel that computes it, or the reason why none does.
#pragma once

#include <string>

#include "sluice/emit/network.h"

namespace sluice::emit {

/// The stage of a node, without inputs and storage. Errors: kUnsupported naming node and operator.
Result<Stage> make_stage(const model::Graph& graph, NodeId id);

/// kUnsupported: "node `name` (operator): reason".
Error refusal(const model::Node& node, const char* reason);

/// What the emitted file must have for a kernel.
struct KernelCode {
  const char* run = "";           // the function
  const char* type = "";          // its parameters; empty: none
  const char* header = "";        // in sluice/portable; those it includes are copied before it
  std::uint64_t stack_bytes = 0;  // of its deepest call on a 32-bit ARM, as the compiler states it (-fstack-usage)
};
const KernelCode& code_of(Kernel kernel);

}  // namespace sluice::emit

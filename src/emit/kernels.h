// From a node to the portable kernel that computes it, or the reason why none does.
#pragma once

#include <string>

#include "sluice/emit/network.h"

namespace sluice::emit {

/// The stage of a node, without inputs and storage. Errors: kUnsupported naming node and operator.
Result<Stage> make_stage(const model::Graph& graph, NodeId id);

/// The window of a convolution or pool as the portable kernels see it: images of one row each are the rows of one image.
Window emitted_window(const model::Graph& graph, const model::Node& node);

/// kUnsupported: "node `name` (operator): reason".
Error refusal(const model::Node& node, const char* reason);

/// The largest stack that GCC gives the chain of calls at -O1, -O2, -O3 or -Os.
struct StackBytes {
  std::uint64_t narrow = 0;  // on 32-bit ARM: Cortex-M0+, M3, M4, M7 and M55
  std::uint64_t wide = 0;    // on 64-bit ARM, RISC-V and x86
};

/// What the emitted file must have for a kernel.
struct KernelCode {
  const char* run = "";     // the function
  const char* type = "";    // its parameters; empty: none
  const char* header = "";  // in sluice/portable; those it includes are copied before it
  StackBytes stack;         // of its deepest call, those through pointers apart
};
const KernelCode& code_of(Kernel kernel);

/// Networks of nothing but these functions have no exponential in their code.
bool is_simple(const Activation& activation);

/// The stack of NAME_run and all that it calls, without what the caller's own function takes that gives rows: the walk, the deepest kernel,
/// and the function that it calls through a pointer. No call is recursive, and no frame's size depends on values, so it is a bound;
/// scripts/emit-stack compares it with the compiler's own call graph.
StackBytes stack_bound(const model::Graph& graph, const Network& network);

}  // namespace sluice::emit

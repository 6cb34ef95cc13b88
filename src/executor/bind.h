// From a plan to calls: every step becomes a kernel call whose addresses are final, so that running is a loop over an array.
//
// A plan may come from a file that nobody trusts. `plan::verify` has proven what can be seen without kernels; here the rest is proven:
// that each kernel exists, supports its node, may be cut and run in place as the plan wants, and gets all the workspace and all the room
// for derived panels that it asks for.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sluice/core/arena.h"
#include "sluice/core/error.h"
#include "sluice/core/threads.h"
#include "sluice/kernels/kernel.h"
#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"
#include "src/executor/pass.h"

namespace sluice::executor {

/// What steps are bound to.
struct BindContext {
  const model::Graph& graph;
  const plan::Plan& plan;
  std::byte* arena;
  ThreadPool& pool;
  const kernels::KernelDescriptor* (*find_kernel)(KernelId) noexcept;
};

/// One step, ready. `loads_needed` is how many loads of a pass must have ended before it; the executor counts them, as what is held
/// changes.
struct BoundStep {
  void (*run)(const kernels::KernelCall&) noexcept = nullptr;  // of a prepare step: the kernel's `prepare`
  bool prologue_only = false;
  kernels::KernelCall call;
  std::span<std::byte> window;  // of a step that reads weights by itself: where to
  std::array<std::uint32_t, kPasses.size()> loads_needed{};
};

/// The calls of one run, and the operands that their spans point to. Steps of one node share its tensors: a table of a step must be small,
/// since a tight budget has many.
struct BoundPlan {
  std::vector<BoundStep> steps;
  std::vector<kernels::Operand> operands;
  std::vector<kernels::WeightOperand> weights;
  std::vector<Shape> extents;   // of this run, by bounded tensor in the order of their ids; steps write and read them (Operand::extents)
  std::vector<const Shape*> output_extents;  // by output port; null: those of the port
  std::vector<RowView> inputs;  // of the graph's input ports; no data when no step reads the port
  std::vector<RowView> outputs;
};

/// How many operands the steps of a plan take together.
struct OperandCount {
  std::size_t tensors = 0;
  std::size_t weights = 0;
};
OperandCount count_operands(const model::Graph& graph, const plan::Plan& plan);

/// `call.fault` is left to the caller. Errors: kInvalidPlan naming the node.
Result<BoundPlan> bind(const BindContext& context);

}  // namespace sluice::executor

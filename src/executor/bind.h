// From a plan to calls: every step becomes a kernel call whose addresses are final, so that running is a loop over an array.
//
// A plan may come from an untrusted file. `plan::verify` has proven what can be seen without kernels; here the rest is proven:
// that each kernel exists, supports its node, may be cut and run in place as the plan wants, and gets all the workspace and all the room
// for derived panels that it asks for.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/core/arena.h"
#include "sluice/core/error.h"
#include "sluice/core/threads.h"
#include "sluice/kernels/kernel.h"
#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"
#include "src/executor/bound_guards.h"
#include "src/executor/pass.h"

namespace sluice::executor {

/// Of a subgraph, what the step that runs it holds: by tensor, which of that step's inputs it is; by weight, where it lies.
struct BoundOutside {
  static constexpr std::size_t kInside = ~std::size_t{0};
  std::vector<std::size_t> tensors;
  std::vector<const std::byte*> weights;  // null: loads of this plan bring it
};

/// What steps are bound to.
struct BindContext {
  const model::Graph& graph;
  const plan::Plan& plan;
  std::byte* arena;
  ThreadPool& pool;
  kernels::FindKernel find_kernel;
  const BoundOutside* outside = nullptr;
};

class BodyStep;

/// One step, ready. `loads_needed` is how many loads of a pass must have ended before it; the executor counts them, as what is held
/// changes.
struct BoundStep {
  kernels::KernelEntry run = nullptr;  // of a prepare step: the entry that prepares
  kernels::KernelCall call;
  std::array<std::uint32_t, kPasses.size()> loads_needed{};
  std::uint32_t prologue_only : 1 = false;
  std::uint32_t alone : 1 = false;  // the caller's: plan::Step::alone
  std::uint32_t runs_bodies : 1 = false;
  std::uint32_t window : 29 = 0;  // of a step that reads weights by itself: where to, BoundPlan::windows[window - 1]; of one that runs
                                  // subgraphs: BoundPlan::bodies[window - 1]
};

/// What the budget counts for a step. Steps take less, and share operands that the budget counts for each: what nodes have as parameters is
/// taken from that.
inline constexpr std::size_t kStepTable = 208;
static_assert(sizeof(BoundStep) + 16 <= kStepTable, "a tight budget has thousands of steps: what grows here is taken from its arena");

/// A block of a passing tensor (plan::Plan::blocks, at the same index).
struct BoundBlock {
  RowView view;  // as the step's kernel sees it
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  Bytes file_offset;       // spilled: of its first row
  std::uint32_t port = 0;  // handed over: of the output
};

/// The calls of one run, and what their pointers point to. A table of a step must be small, since a tight budget has many: steps of one
/// node share its tensors and its parameters, nodes the operand of a tensor, and nodes with the same parameters these.
struct BoundPlan {
  std::vector<BoundStep> steps;
  std::vector<kernels::Operand> operands;
  std::vector<kernels::WeightOperand> weights;
  std::vector<std::byte> parameters;
  std::vector<std::span<std::byte>> windows;
  std::vector<BoundBlock> blocks;
  std::vector<kernels::SumsPart> parts;  // of the steps that take a part of their sums, in their order
  std::vector<Shape> extents;  // of this run, by bounded tensor in the order of their ids; steps write and read them (Operand::extents)
  std::vector<const Shape*> output_extents;  // by output port; null: those of the port
  std::vector<RowView> inputs;               // of the graph's input ports; no data when no step reads the port
  std::vector<RowView> outputs;
  BoundGuards guards;
  std::vector<std::shared_ptr<BodyStep>> bodies;  // of the steps that run subgraphs, which are theirs alone
  /// Of a subgraph: operands that are what it captures, and which input of the step that runs it each is.
  struct Captured {
    std::uint32_t operand = 0;
    std::uint32_t input = 0;
  };
  std::vector<Captured> captured;
};

/// How many operands the steps of a plan take together, where only steps of one node that follow each other share them: an estimate from
/// above.
struct OperandCount {
  std::size_t tensors = 0;
  std::size_t weights = 0;
};
OperandCount count_operands(const model::Graph& graph, const plan::Plan& plan);

/// `call.fault` is left to the caller. Errors: kInvalidPlan naming the node.
Result<BoundPlan> bind(const BindContext& context);

}  // namespace sluice::executor

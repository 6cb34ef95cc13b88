// A step that runs subgraphs: their plans, bound like any, in the workspace of the step. Each turn of a loop runs the steps of one of them.
//
//     workspace   | arena of the body's plan: inputs, activations, workspaces, targets of its loads |        of an If: one for both branches
//     turn        hand in -> step 0 -> step 1 -> ... -> take out                                           loads: turn_loader.h
//
// What a body captures it finds where the inputs of the step lie, which may be other places in each run; weights that the step holds, where
// its own loads bring them. Values are handed in and taken out by the step's kernel (kernels::BodyRunner).
//
// Invariants: what the plan's verifier has shown of the body's plan as a plan of its own holds in each turn; nothing of one run of the step
// is there in the next. Used by the thread that runs the step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/kernels/call.h"
#include "sluice/model/body.h"
#include "src/executor/bind.h"

namespace sluice::executor {

class StepRunner;

/// One subgraph, ready.
struct BoundBody {
  model::Body body;
  const plan::Plan* plan = nullptr;
  std::byte* arena = nullptr;
  BoundPlan bound;
  std::vector<kernels::Operand> inputs, outputs;
};

class BodyStep final : public kernels::BodyRunner {
 public:
  explicit BodyStep(ThreadPool& pool) noexcept : pool_(pool) {}
  BodyStep(const BodyStep&) = delete;
  BodyStep& operator=(const BodyStep&) = delete;

  /// Binds the next subgraph. Errors: those of `bind`.
  Status add(model::Body body, const plan::Plan& plan, std::byte* arena, kernels::FindKernel find_kernel, const BoundOutside& outside);

  /// Does a turn read weights?
  bool reads() const noexcept {
    return std::any_of(bodies_.begin(), bodies_.end(), [](const BoundBody& body) { return !body.plan->loads.empty(); });
  }

  /// Runs the step: its kernel, which asks for turns. `runner` runs the steps of the bodies. Returns the first error of their reads.
  Status run_step(const BoundStep& step, StepRunner& runner) noexcept;

  const kernels::Operand& input(std::size_t body, std::size_t i) const noexcept override { return bodies_[body].inputs[i]; }
  const kernels::Operand& output(std::size_t body, std::size_t i) const noexcept override { return bodies_[body].outputs[i]; }
  const char* run(std::size_t body) noexcept override;

 private:
  const char* run_steps(BoundBody& body) noexcept;

  ThreadPool& pool_;
  std::vector<BoundBody> bodies_;
  kernels::StepFault fault_;
  StepRunner* runner_ = nullptr;  // of the run under way
  std::size_t reading_ = kNone;   // the body whose loads are under way
  static constexpr std::size_t kNone = ~std::size_t{0};
};

}  // namespace sluice::executor

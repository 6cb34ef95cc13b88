// Pass: which kernel runs each node. It is the first that supports the node, in the registry's order of preference.
//
// Invariants: every node has a kernel, or the pass fails with kUnsupported naming the node. Nodes that later passes turn into views have
// one too: whether they become views is decided with the kernels known (`takes_pitches`). A node is resolved once, when it gets its kernel:
// later passes ask ten thousand times what a step of it takes.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/kernels/left_out.h"
#include "sluice/kernels/registry.h"
#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"
#include "sluice/planner/order/passing.h"
#include "sluice/profiler/step_work.h"

namespace sluice::planner {

/// What the subgraphs that a node runs need of its step (src/planner/planner.cc).
struct BodyNeed {
  std::uint64_t arena = 0;   // of the largest plan, where the step holds all their weights
  std::uint64_t window = 0;  // beyond it, where their plans read what may stream: at least; 0: nothing may
  double seconds = 0;        // computing in all turns
};

/// One kernel for each node of a graph, by node index, and what it says of the node's steps.
class KernelChoice {
 public:
  KernelChoice() = default;
  KernelChoice(const model::Graph& graph, std::vector<const kernels::KernelDescriptor*> kernels)
      : kernels_(std::move(kernels)), place_(kernels_.size(), 0), run_(profiler::run_work_of(graph)) {
    std::vector<operators::Parameters> parameters;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const kernels::KernelDescriptor& kernel = *kernels_[i];
      if (kernel.workspace == nullptr && kernel.derived_panel_bytes == nullptr) continue;
      place_[i] = static_cast<std::uint32_t>(parameters.size());
      parameters.push_back(kernel.resolve(graph, graph.nodes[i], active_isa()).parameters);
    }
    parameters_ = std::make_shared<const std::vector<operators::Parameters>>(std::move(parameters));
  }

  const kernels::KernelDescriptor* operator[](std::size_t node) const noexcept { return kernels_[node]; }

  /// The workspace of a step, with the blocks of passing tensors beside it.
  std::uint64_t workspace_bytes(NodeId id, const kernels::StepExtent& extent) const {
    const kernels::KernelDescriptor& kernel = *kernels_[id.index()];
    const std::uint64_t own = (kernel.workspace == nullptr ? 0 : kernel.workspace(parameters(id), extent).count()) + body(id).arena;
    if (passing_ == nullptr || passing_->touched(id) == 0) return own;
    return own + passing_->room(id, kernel.row_granule, extent.rows, extent.channels);
  }

  /// From now on these tensors pass.
  void pass(std::shared_ptr<const Passing> passing) { passing_ = std::move(passing); }
  /// Null: none does.
  const Passing* passing() const noexcept { return passing_.get(); }
  /// What the node's subgraphs need, of one that runs any.
  void run_bodies(std::vector<BodyNeed> needs) { bodies_ = std::make_shared<const std::vector<BodyNeed>>(std::move(needs)); }
  BodyNeed body(NodeId id) const noexcept { return bodies_ == nullptr ? BodyNeed() : (*bodies_)[id.index()]; }

  /// Of a subgraph: what the step that runs it holds, which outlives this. Null: this is none.
  void lie_in(const plan::Outside* outside) noexcept { outside_ = outside; }
  bool in_body() const noexcept { return outside_ != nullptr; }
  bool lies_outside(TensorId id) const noexcept { return outside_ != nullptr && outside_->tensors[id.index()]; }
  bool held_outside(WeightId id) const noexcept { return outside_ != nullptr && outside_->weights[id.index()]; }

  /// What one inference of the graph touches and computes.
  const profiler::RunWork& run() const noexcept { return run_; }
  /// A transformed panel, of a kernel that has them.
  std::uint64_t derived_panel_bytes(NodeId id) const noexcept { return kernels_[id.index()]->derived_panel_bytes(parameters(id)).count(); }

 private:
  const operators::Parameters& parameters(NodeId id) const noexcept { return (*parameters_)[place_[id.index()]]; }

  std::vector<const kernels::KernelDescriptor*> kernels_;
  std::vector<std::uint32_t> place_;                                      // of a node's parameters, where its kernel asks for them
  std::shared_ptr<const std::vector<operators::Parameters>> parameters_;  // the copies of a problem share them
  std::shared_ptr<const Passing> passing_;
  std::shared_ptr<const std::vector<BodyNeed>> bodies_;  // by node; null: none runs any
  const plan::Outside* outside_ = nullptr;
  profiler::RunWork run_;
};

/// Errors: kUnsupported with the node's name, and that of the kernel that a trimmed build lacks.
inline Result<KernelChoice> select_kernels(const model::Graph& graph) {
  std::vector<const kernels::KernelDescriptor*> choice;
  choice.reserve(graph.nodes.size());
  for (const model::Node& node : graph.nodes) {
    const std::vector<const kernels::KernelDescriptor*> candidates = kernels::kernels_for(graph, node);
    if (candidates.empty()) return fail(kernels::no_kernel_for(graph, node));
    choice.push_back(candidates.front());
  }
  return KernelChoice(graph, std::move(choice));
}

}  // namespace sluice::planner

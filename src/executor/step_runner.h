// Runs one step, of a plan or of the plan of a subgraph: with whoever reads for it while it runs.
#pragma once

#include <atomic>

#include "sluice/core/error.h"
#include "sluice/core/threads.h"
#include "src/executor/bind.h"
#include "src/executor/body_step.h"
#include "src/executor/step_reader.h"
#include "src/executor/turn_loader.h"
#include "src/model/built_features.h"
#include "src/plan/built_needs.h"

namespace sluice::executor {

inline constexpr bool kReadsInSteps = plan::is_built(plan::Need::kReads);

class StepRunner {
 public:
  StepRunner(ThreadPool& pool, StepReader& reader, TurnLoader& loader, const std::atomic<bool>& cancelled) noexcept
      : pool_(pool), reader_(reader), loader_(loader), cancelled_(cancelled) {}

  /// What a step could not read is a fault of its values too, and its error here.
  Status run(const BoundPlan& bound, const BoundStep& step, const model::Node& node) noexcept {
    pool_.keep_to_caller(step.alone);
    if (model::kRunsSubgraphs && step.runs_bodies) return bound.bodies[step.window - 1]->run_step(step, *this);
    if (!kReadsInSteps || step.window == 0) {
      step.run(step.call);
      return {};
    }
    reader_.begin(node.weights, step.call.weights, bound.windows[step.window - 1]);
    step.run(step.call);
    return reader_.end();
  }

  TurnLoader& loader() noexcept { return loader_; }
  StepReader& reader() noexcept { return reader_; }
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }

 private:
  ThreadPool& pool_;
  StepReader& reader_;
  TurnLoader& loader_;
  const std::atomic<bool>& cancelled_;
};

}  // namespace sluice::executor

// A session as its arena knows it: a model, what was asked for, a plan at its addresses, and that plan made ready to run.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sluice/engine/engine.h"
#include "sluice/executor/holding.h"
#include "src/engine/arena_layout.h"
#include "src/engine/port_copy.h"

namespace sluice::engine {

/// A plan at its addresses in an arena. Sessions of one model that ask for the same plan share it.
struct PlacedPlan {
  PlannedBudget planned;
  PlanParts parts;
  PlanPlace place;
  std::uint64_t origin = 0;                      // equal for copies of one plan that differ in their addresses only
  bool adopted = false;                          // given by the caller; never replaced
  std::optional<executor::Footprint> footprint;  // only where others use the arena too

  const plan::Plan& plan() const noexcept { return planned.plan; }
};

/// One input or output of a session.
struct BoundPort {
  PortCopy copy;
  DType dtype;  // that the caller sees
  RowView view;
  bool set = false;        // inputs: the arena holds the caller's values, or the next run finds them...
  bool elsewhere = false;  // ...with the caller; outputs: the next run makes them there
  bool left = false;       // outputs: the last run did
};

/// Data that follow from a plan.
struct BoundSession {
  std::unique_ptr<executor::ScratchFile> scratch;  // of a plan that spills; the executor uses it
  std::unique_ptr<executor::Executor> executor;
  std::vector<BoundPort> inputs;
  std::vector<BoundPort> outputs;
};

class Tenant {
 public:
  /// `options.plan` is the caller's, until it has joined.
  Tenant(std::shared_ptr<const Model> model, const SessionOptions& options);
  Tenant(const Tenant&) = delete;
  Tenant& operator=(const Tenant&) = delete;

  /// What a session has beside its plan: the model's own source of weights, or one of its own when it asks for another way of reading; and
  /// the processors that load.
  Status open(int threads, const std::vector<int>& compute_cpus);
  Result<BoundSession> bind(const PlacedPlan& plan, const executor::Holding& held, Arena& arena, ThreadPool& pool);
  /// The executor before ends here. A cancellation that no run has taken goes on to the next.
  void take(BoundSession next, std::shared_ptr<const PlacedPlan> next_plan) noexcept;
  /// What no step hands over, to whom the options say, when a run is over. Errors: the hook's.
  Status hand_over_rest() noexcept;
  /// Another session has the arena: inputs and outputs no longer hold.
  void end_turn() noexcept;
  /// Ports that lie with the caller are in the arena again.
  void bring_ports_back() noexcept;

  const model::Graph& graph() const noexcept { return model->graph(); }
  executor::Executor* executor() const noexcept { return bound.executor.get(); }
  const model::WeightSource& source() const noexcept { return *source_; }

  // Members are declared so that each uses only those before it.
  std::shared_ptr<const Model> model;
  SessionOptions options;
  std::shared_ptr<const PlacedPlan> plan;  // null before it has joined
  BoundSession bound;
  bool outputs_hold = false;
  bool weights_stay = false;          // what its plan keeps is in the arena for good (arena_window.h)
  std::uint64_t runs_in_turn = 0;     // since another session had the arena
  bool turn_lost = false;             // since the last input was set: for the words of an error
  mutable std::mutex executor_mutex;  // cancel() may come while another plan is taken

 private:
  Status hand_over(std::size_t port, const RowView& view, RowRange rows, ChannelRange channels) noexcept;

  std::optional<profiler::DeviceProfile> profile_;
  std::unique_ptr<model::WeightSource> own_source_;
  model::WeightSource* source_ = nullptr;
};

}  // namespace sluice::engine

// The guards of a plan's steps and loads (operators/guards.h), with the addresses of their conditions: the executor and the loader ask them
// before they do work that may not be needed.
//
// Invariants: a guard is asked only when as many steps are over as `decided` says; its condition then lies where it was written until the
// last step that it guards is over, because the Choose behind that step reads it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"

namespace sluice::executor {

class BoundGuards {
 public:
  BoundGuards() = default;
  /// `arena` may be null where nothing is asked but `bytes`.
  BoundGuards(const model::Graph& graph, const plan::Plan& plan, const std::byte* arena);

  /// Runs of steps with one guard, in order. Prepare steps have none.
  struct Run {
    std::uint32_t begin = 0, end = 0;
    std::uint32_t guard = 0;
  };
  const std::vector<Run>& runs() const noexcept { return runs_; }
  bool met(std::uint32_t guard) const noexcept;

  /// Does any step want the load, as far as that is known when so many steps of the run are over?
  bool wants(std::uint32_t load, std::uint64_t steps_done) const noexcept;
  /// How many steps are over when more will be known of that; 0: never.
  std::uint64_t known_next(std::uint32_t load, std::uint64_t steps_done) const noexcept;

  /// Of its tables.
  std::uint64_t bytes() const noexcept;

 private:
  struct Bound {
    std::uint64_t condition = 0;  // its place in the arena
    std::uint32_t decided = 0;    // steps that are over when it is known, and with it those around it
    std::uint32_t around = 0;
    bool wanted = true;
  };
  const std::byte* arena_ = nullptr;
  std::vector<Bound> guards_;  // as operators::Guards::guards
  std::vector<Run> runs_;
  std::vector<std::uint32_t> of_load_;  // by load; empty: no load has a guard
};

}  // namespace sluice::executor

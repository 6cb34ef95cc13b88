// Plans of a graph with the chains that a test asks for, whether they pay or not. Each is verified and run on symbols.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "sluice/plan/verify.h"
#include "sluice/planner/bands/band_chain.h"
#include "sluice/planner/bands/partitioned.h"
#include "sluice/planner/choose/policies.h"
#include "sluice/planner/choose/write_plan.h"
#include "tests/planner/problem_fixture.h"
#include "tests/property/plan_machine.h"

namespace sluice::planner {

class ForcedBands {
 public:
  /// `passing`: of each tensor, whether it passes; empty: none does.
  ForcedBands(const model::Graph& graph, int threads, std::vector<Passing::Kind> passing = {})
      : graph_(graph), whole_(whole(graph, threads, std::move(passing))), cutter_(graph, whole_.kernels, whole_.views) {}

  std::size_t positions() const { return whole_.views.order.size(); }

  /// Runs of positions as long as can be, up to `longest`, in `bands` bands each; `first` leaves out some at the front.
  std::vector<Banded> chains(std::size_t first, std::size_t longest, std::int64_t bands) const {
    std::vector<Banded> chains;
    for (std::size_t p = first; p < positions();) {
      std::size_t end = std::min(p + longest, positions());
      std::optional<Banded> banded;
      for (; end > p + 1 && !banded; --end) banded = cutter_.cut(p, end, bands);
      if (banded) chains.push_back(*banded);
      p = banded ? chains.back().chain.end : p + 1;
    }
    return chains;
  }

  static std::size_t rings(const std::vector<Banded>& chains) {
    std::size_t count = 0;
    for (const Banded& banded : chains)
      for (const std::int64_t ring : banded.ring_rows) count += ring > 0 ? 1 : 0;
    return count;
  }

  plan::Plan plan(const std::vector<Banded>& chains, std::uint64_t target) const {
    Problem problem = whole_;
    problem.shared = std::make_shared<SharedPrices>();
    for (const Banded& banded : chains) cutter_.apply(banded, problem.views);
    return plan_of(problem, target);
  }

  /// With nodes [first, end) of the graph as one region; nothing where it cannot run so. Weights of more than `reread_above` are read
  /// again.
  std::optional<plan::Plan> plan_region(const Region& region, std::uint64_t target) const {
    const std::vector<NodeId> order = graph_order(graph_);
    const Uses uses(graph_, whole_.kernels, order);
    StepCosts costs(whole_);
    const Partitioned partitioned(whole_, uses, order, false, {region}, costs);
    if (!partitioned.valid()) return std::nullopt;
    return plan_of(partitioned.problem(), target);
  }

 private:
  plan::Plan plan_of(const Problem& problem, std::uint64_t target) const {
    const std::optional<Candidate> candidate = place_on_demand(problem, make_draft(problem, {.target = target}), kEndlessArena);
    REQUIRE(candidate.has_value());
    plan::Plan plan = emit(problem, *candidate);
    plan.capacity = plan.arena_bytes;
    Bytes end(1);
    for (const model::Stretch& stretch : graph_.stretches) end = std::max(end, stretch.offset + stretch.stored_size);
    const Status status = plan::verify(plan, graph_, {align_up(end, 4096), 0, kernels::kReadTail});
    INFO((status ? std::string() : status.error().to_string()));
    REQUIRE(status.has_value());
    for (const auto loads : {plan::PlanMachine::Loads::kEarly, plan::PlanMachine::Loads::kLate})
      REQUIRE(plan::PlanMachine(plan, graph_, loads).run(1) == "");
    return plan;
  }

  static Problem whole(const model::Graph& graph, int threads, std::vector<Passing::Kind> passing) {
    static const profiler::DeviceProfile kProfile;
    Problem problem = problem_of(graph, kProfile);
    problem.threads = threads;
    if (passing.empty()) return problem;
    problem.kernels.pass(std::make_shared<const Passing>(graph, std::move(passing)));
    problem.views = assign_views(graph, problem.kernels, graph_order(graph), false);
    problem.pieces = cut_pieces(graph, problem.kernels, problem.views.order);
    return problem;
  }

  const model::Graph& graph_;
  const Problem whole_;
  const BandCutter cutter_;
};

}  // namespace sluice::planner

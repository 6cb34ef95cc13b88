#include "sluice/planner/planner.h"

#include "sluice/kernels/kernel.h"
#include "sluice/plan/verify.h"
#include "sluice/planner/emit.h"
#include "sluice/planner/linearise.h"
#include "sluice/planner/policies.h"

namespace sluice::planner {
namespace {

// The greedy order costs nodes x ready nodes; no sane graph is larger than this.
constexpr std::size_t kMostToReorder = 1 << 13;

/// Orders and aliases the graph: what does not depend on capacity or policy.
Result<Problem> prepare(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  if (request.threads < 1) return fail(ErrorCode::kInvalidArgument, "threads", "a plan needs at least one thread");
  Problem problem{&graph, &profile, request.threads, request.repeat, {}, {}, {}, {}, {}};
  problem.tables = request.tables;
  SLUICE_ASSIGN_OR_RETURN(problem.kernels, select_kernels(graph));
  problem.views = assign_views(graph, problem.kernels, graph_order(graph), request.keep_inputs);
  if (graph.nodes.size() <= kMostToReorder) {
    Views greedy = assign_views(graph, problem.kernels, greedy_order(graph), request.keep_inputs);
    if (live_peak(greedy) < live_peak(problem.views)) problem.views = std::move(greedy);
  }
  if (problem.views.order.empty()) return fail(ErrorCode::kUnsupported, graph.name, "the graph has no node that computes anything");
  for (const model::Port& port : graph.outputs)
    if (graph.tensor(port.tensor).weight.valid())
      return fail(ErrorCode::kUnsupported, port.name, "an output that is a constant has no buffer");
  if (request.repeat) problem.options = derive_options(graph, problem.kernels, problem.views.order, profile, request.threads);
  problem.pieces = cut_pieces(graph, problem.kernels, problem.views.order);
  if (request.repeat) problem.residency = best_residency(problem);
  return problem;
}

/// Model files end with the block of their last stretch.
Bytes file_size_of(const model::Graph& graph) {
  Bytes end;
  for (const model::Stretch& stretch : graph.stretches) end = std::max(end, stretch.offset + stretch.stored_size);
  return align_up(end, kBlockBytes);
}

}  // namespace

std::string_view name_of(Policy policy) noexcept {
  constexpr std::string_view kNames[] = {"sluice", "resident", "on_demand", "flexnn"};
  return kNames[static_cast<int>(policy)];
}

Result<plan::Plan> make_plan(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  SLUICE_ASSIGN_OR_RETURN(const Problem problem, prepare(graph, profile, request));
  const Candidate least = least_candidate(problem, request.policy);
  if (request.capacity.count() < least.bytes()) {
    return fail(make_error(ErrorCode::kBudgetTooSmall, graph.name, "no plan of this policy fits the arena", least.bytes(),
                           request.capacity.count()));
  }
  const std::uint64_t capacity = ample_capacity(problem, least, request.capacity.count());
  Search search{problem, capacity, {}, SearchLimit::of_milliseconds(request.search_ms)};
  choose(search, request.policy, least);
  plan::Plan plan = emit(problem, *search.best);
  plan.model_hash = request.model_hash;
  plan.capacity = request.capacity;
  plan.minimum_capacity = Bytes(least.bytes());
  plan.prediction = predict(problem, *search.best, search.bound);
  SLUICE_RETURN_IF_ERROR(plan::verify(plan, graph, {file_size_of(graph), request.model_hash, kernels::kReadTail}));
  return plan;
}

Result<Bytes> minimum_capacity(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  SLUICE_ASSIGN_OR_RETURN(const Problem problem, prepare(graph, profile, request));
  return Bytes(least_candidate(problem, request.policy).bytes());
}

}  // namespace sluice::planner

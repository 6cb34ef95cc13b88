#include "sluice/planner/planner.h"

#include "sluice/kernels/kernel.h"
#include "sluice/plan/verify.h"
#include "sluice/planner/choose.h"
#include "sluice/planner/emit.h"
#include "sluice/planner/lean_partition.h"
#include "sluice/planner/linearise.h"
#include "sluice/planner/residency_orders.h"
#include "src/core/out_of_memory.h"

namespace sluice::planner {
namespace {

// The greedy order costs nodes x ready nodes; no sane graph is larger than this.
constexpr std::size_t kMostToReorder = 1 << 13;

/// The same problem with the chains in its views.
Problem with_chains(const Problem& problem, const BandCutter& cutter, const std::vector<Banded>& chains) {
  Problem banded = problem;
  banded.memo = std::make_shared<Memo>();
  for (const Banded& chain : chains) cutter.apply(chain, banded.views);
  return banded;
}

/// What does not depend on capacity: chains for time, and other chains for the least memory, which only the default policy has.
struct Problems {
  Problem fast;
  std::optional<Problem> lean;
};

/// Orders and aliases the graph.
Result<Problem> prepare_whole(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  if (request.threads < 1) return fail(ErrorCode::kInvalidArgument, "threads", "a plan needs at least one thread");
  Problem problem{&graph, &profile, request.threads, request.repeat, {}, {}, {}, {}};
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
  return problem;
}

Result<Problems> prepare(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  SLUICE_ASSIGN_OR_RETURN(const Problem whole, prepare_whole(graph, profile, request));
  const BandCutter cutter(graph, whole.kernels, whole.views);
  const std::vector<Banded> chains = partition_for_time(whole, cutter);
  Problems problems{with_chains(whole, cutter, chains), {}};
  if (request.repeat) problems.fast.residency = residency_orders(problems.fast);
  if (request.policy != Policy::kSluice) return problems;
  const std::optional<std::vector<Banded>> leaner = partition_for_memory(whole, cutter, chains);
  if (!leaner) return problems;
  problems.lean = with_chains(whole, cutter, *leaner);
  problems.lean->residency = problems.fast.residency;
  return problems;
}

/// Model files end with the block of their last stretch.
Bytes file_size_of(const model::Graph& graph) {
  Bytes end;
  for (const model::Stretch& stretch : graph.stretches) end = std::max(end, stretch.offset + stretch.stored_size);
  return align_up(end, kBlockBytes);
}

Result<plan::Plan> make_verified_plan(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  SLUICE_ASSIGN_OR_RETURN(const Problems problems, prepare(graph, profile, request));
  Planning fast(problems.fast, request);
  std::optional<Planning> lean;
  if (problems.lean) lean.emplace(*problems.lean, request);
  const std::uint64_t least = std::min(fast.least.bytes(), lean ? lean->least.bytes() : fast.least.bytes());
  if (request.capacity.count() < least)
    return fail(
        make_error(ErrorCode::kBudgetTooSmall, graph.name, "no plan of this policy fits the arena", least, request.capacity.count()));
  Planning& chosen = choose(fast, lean ? &*lean : nullptr, request);
  plan::Plan plan = emit(chosen.problem, *chosen.search.best);
  plan.model_hash = request.model_hash;
  plan.capacity = request.capacity;
  plan.minimum_capacity = Bytes(least);
  plan.prediction =
      predict(chosen.problem, *chosen.search.best, std::min(fast.search.bound, lean ? lean->search.bound : fast.search.bound));
  if (const Status proven = plan::verify(plan, graph, {file_size_of(graph), request.model_hash, kernels::kReadTail}); !proven) {
    Error error = proven.error();
    // The planner's fault: planning again would end the same way.
    if (error.code != ErrorCode::kOutOfMemory) error.code = ErrorCode::kInternal;
    return fail(error);
  }
  return plan;
}

}  // namespace

std::string_view name_of(Policy policy) noexcept {
  const auto number = static_cast<std::size_t>(policy);
  return number < std::size(kPolicyNames) ? kPolicyNames[number] : std::string_view();
}

Result<plan::Plan> make_plan(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  return or_out_of_memory(graph.name, [&] { return make_verified_plan(graph, profile, request); });
}

Result<Bytes> minimum_capacity(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  return or_out_of_memory(graph.name, [&]() -> Result<Bytes> {
    SLUICE_ASSIGN_OR_RETURN(const Problems problems, prepare(graph, profile, request));
    std::uint64_t least = least_candidate(problems.fast, request.policy).bytes();
    if (problems.lean) least = std::min(least, least_candidate(*problems.lean, request.policy).bytes());
    return Bytes(least);
  });
}

}  // namespace sluice::planner

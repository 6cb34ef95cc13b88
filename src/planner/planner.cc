#include "sluice/planner/planner.h"

#include <limits>

#include "sluice/kernels/kernel.h"
#include "sluice/plan/verify.h"
#include "sluice/planner/emit.h"
#include "sluice/planner/lean_partition.h"
#include "sluice/planner/linearise.h"
#include "sluice/planner/policies.h"

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
  return problem;
}

Result<Problems> prepare(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  SLUICE_ASSIGN_OR_RETURN(const Problem whole, prepare_whole(graph, profile, request));
  const BandCutter cutter(graph, whole.kernels, whole.views);
  const std::vector<Banded> chains = partition_for_time(whole, cutter);
  Problems problems{with_chains(whole, cutter, chains), {}};
  if (request.repeat) problems.fast.residency = best_residency(problems.fast);
  if (request.policy != Policy::kSluice) return problems;
  const std::optional<std::vector<Banded>> leaner = partition_for_memory(whole, cutter, chains);
  if (!leaner) return problems;
  problems.lean = with_chains(whole, cutter, *leaner);
  problems.lean->residency = problems.fast.residency;
  return problems;
}

/// What is planned of one problem at one capacity.
struct Planning {
  const Problem& problem;
  Least least;
  Search search;
  std::optional<StreamDrafts> drafts = {};

  Planning(const Problem& p, const PlanRequest& request)
      : problem(p), least(least_candidate(p, request.policy)), search{p, request.capacity.count(), {}, {}} {}
  void begin(SearchLimit limit) {
    search.capacity = ample_capacity(problem, least, search.capacity);
    search.allow(limit);
  }
  bool fits() const noexcept { return search.capacity >= least.bytes(); }
  double seconds() const noexcept { return search.best ? search.best->seconds : std::numeric_limits<double>::infinity(); }

  void draft() { drafts.emplace(problem, detail::ground_of(problem, least), search); }

  /// `former`: what has found something already.
  void place(Planning* former) {
    if (former != nullptr) {
      search.to_beat = former->seconds();
      search.search = former->search.search;
    }
    drafts->place();
  }
};

/// The chains for time and the chains for least memory, if there are others: which of them first, and are both worth it? One draft of each,
/// alike in what it keeps, says what to expect.
void stream_either(Planning& fast, Planning* lean) {
  constexpr double kWorthBoth = 0.99;
  if (fast.fits()) {
    fast.draft();
    fast.drafts->judge_mixes();
  }
  if (lean == nullptr || !lean->fits()) return fast.place(nullptr);
  lean->draft();
  if (!fast.fits()) {
    lean->drafts->judge_mixes();
    return lean->place(nullptr);
  }
  const double expected = lean->drafts->judge(fast.drafts->best_mix());
  const bool lean_first = expected < fast.drafts->best_bound() * kWorthwhile;
  if (lean_first) lean->drafts->judge_mixes();
  Planning& first = lean_first ? *lean : fast;
  Planning& second = lean_first ? fast : *lean;
  first.place(nullptr);
  if (second.drafts->best_bound() >= first.seconds() * kWorthBoth) return;
  if (!lean_first) lean->drafts->judge_mixes();
  second.place(&first);
}

/// The default policy's best, in either search.
void choose_best(Planning& fast, Planning* lean) {
  if (fast.fits() && keep_everything(fast.search)) return;
  stream_either(fast, lean);
  if (fast.fits()) try_baselines(fast.search, fast.least, fast.drafts->floor_of_streaming());
  for (Planning* each : {&fast, lean})
    if (each != nullptr && each->fits() && std::min(fast.seconds(), each->seconds()) == std::numeric_limits<double>::infinity())
      try_baselines(each->search, each->least, 0);
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
  SLUICE_ASSIGN_OR_RETURN(const Problems problems, prepare(graph, profile, request));
  Planning fast(problems.fast, request);
  std::optional<Planning> lean;
  if (problems.lean) lean.emplace(*problems.lean, request);
  const std::uint64_t least = std::min(fast.least.bytes(), lean ? lean->least.bytes() : fast.least.bytes());
  if (request.capacity.count() < least)
    return fail(
        make_error(ErrorCode::kBudgetTooSmall, graph.name, "no plan of this policy fits the arena", least, request.capacity.count()));
  const SearchLimit limit = SearchLimit::of_milliseconds(request.search_ms);
  for (Planning* each : {&fast, lean ? &*lean : nullptr})
    if (each != nullptr && each->fits()) each->begin(limit);
  if (request.policy == Policy::kSluice) {
    choose_best(fast, lean ? &*lean : nullptr);
  } else {
    choose_baseline(fast.search, request.policy, fast.least);
  }
  const bool leaner = lean && (lean->seconds() < fast.seconds() || !fast.fits());
  Planning& chosen = leaner ? *lean : fast;
  if (!chosen.search.best) chosen.search.best = complete_least(chosen.problem, chosen.least);
  chosen.search.best->policy = request.policy;
  plan::Plan plan = emit(chosen.problem, *chosen.search.best);
  plan.model_hash = request.model_hash;
  plan.capacity = request.capacity;
  plan.minimum_capacity = Bytes(least);
  plan.prediction = predict(chosen.problem, *chosen.search.best, std::min(fast.search.bound, lean ? lean->search.bound : fast.search.bound));
  if (const Status proven = plan::verify(plan, graph, {file_size_of(graph), request.model_hash, kernels::kReadTail}); !proven) {
    Error error = proven.error();
    error.code = ErrorCode::kInternal;  // the planner's fault: planning again would end the same way
    return fail(error);
  }
  return plan;
}

Result<Bytes> minimum_capacity(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  SLUICE_ASSIGN_OR_RETURN(const Problems problems, prepare(graph, profile, request));
  std::uint64_t least = least_candidate(problems.fast, request.policy).bytes();
  if (problems.lean) least = std::min(least, least_candidate(*problems.lean, request.policy).bytes());
  return Bytes(least);
}

}  // namespace sluice::planner

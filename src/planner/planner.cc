#include "sluice/planner/planner.h"

#include <map>
#include <optional>
#include <span>

#include "sluice/kernels/kernel.h"
#include "sluice/model/body.h"
#include "sluice/plan/verify.h"
#include "sluice/planner/bands/bounds.h"
#include "sluice/planner/bands/memory_partition.h"
#include "sluice/planner/bands/overhead.h"
#include "sluice/planner/bands/time_partition.h"
#include "sluice/planner/choose/choose.h"
#include "sluice/planner/choose/residency_orders.h"
#include "sluice/planner/choose/write_plan.h"
#include "sluice/planner/order/linearise.h"
#include "sluice/planner/order/passing_choice.h"
#include "src/core/build_list.h"
#include "src/core/out_of_memory.h"
#include "src/core/stack.h"

namespace sluice::planner {
namespace {

// The greedy order costs nodes x ready nodes; no sane graph is larger than this.
constexpr std::size_t kMostToReorder = 1 << 13;

/// The same problem with the chains in its views.
Problem with_chains(const Problem& problem, const BandCutter& cutter, const std::vector<Banded>& chains) {
  Problem banded = problem;
  banded.shared = std::make_shared<SharedPrices>();
  for (const Banded& chain : chains) cutter.apply(chain, banded.views);
  return banded;
}

/// How long bands for memory are searched for. Quickly where a plan fits anyway and bands may only make it faster: that is what opening a
/// session costs. Thoroughly where nothing fits otherwise, and where the least is asked for.
enum class BandSearch : std::uint8_t { kQuick, kThorough };

/// Data that do not depend on capacity.
struct Problems {
  std::vector<NodeId> order;
  Problem whole;  // no bands
  Problem fast;   // bands for time
  Ladder ladder;  // bands for memory
};

/// The tensors without a buffer, with these kernels, before anything is spilled.
PassingKinds passing_of(const model::Graph& graph, const KernelChoice& kernels, const PlanRequest& request) {
  return request.hand_over_outputs ? handed_over(graph, kernels) : PassingKinds(graph.tensors.size(), Passing::Kind::kStays);
}

Result<plan::Plan> make_verified_plan(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request);
Result<std::uint64_t> least_of(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request);

/// What a body finds in the step that runs it: what it captures, and the weights for which `held` says so.
template <class Held>
plan::Outside outside_of(const model::Body& body, const Held& held) {
  plan::Outside outside{std::vector<bool>(body.graph.tensors.size(), false), std::vector<bool>(body.weights.size(), false)};
  for (std::size_t i = 0; i < body.count_captures(); ++i) outside.tensors[body.captured(i).index()] = true;
  for (std::size_t w = 0; w < body.weights.size(); ++w) outside.weights[w] = held(w);
  return outside;
}

/// What is set aside for slices of a body's weights, in nodes' tables; engine/budget.cc takes it from what is set aside for all.
constexpr std::size_t kSlicedBody = 12;

/// How a body is planned: whole nodes, for many turns. Where its weights are cut, tables count in its arena beyond what is set aside for them.
PlanRequest body_request(const PlanRequest& request, const model::Body& body, const plan::Outside& outside, bool again, Bytes capacity) {
  PlanRequest inner = request;
  inner.capacity = capacity;
  inner.policy = Policy::kSluice;
  inner.repeat = again;
  inner.read_ahead = true;
  inner.keep_inputs = inner.hand_over_outputs = inner.may_spill = false;
  inner.search_ms = 0;
  inner.partition = Partition::kOff;
  inner.search.kept_transforms = false;
  inner.outside = &outside;
  const bool reads = std::find(outside.weights.begin(), outside.weights.end(), false) != outside.weights.end();
  if (!reads) inner.tables = {};  // there is nothing to cut: the tables are what they are
  if (inner.tables.set_aside >= kUnlimitedBytes.count()) return inner;
  std::size_t deeper = 0;
  for (const model::Subgraph& subgraph : body.graph.subgraphs) deeper += subgraph.nodes.size();
  inner.tables.set_aside = (kSlicedBody + body.graph.nodes.size() + deeper) * request.tables.node;
  inner.tables.any_plan = sizeof(plan::Plan) + body.graph.tensors.size() * sizeof(plan::TensorPlacement) + deeper * request.tables.node;
  return inner;
}

/// Turns of a node that runs subgraphs, as far as they are known.
double turns_of(const model::Graph& graph, const model::Node& node, const kernels::KernelDescriptor& kernel) {
  return kernel.weight_turns == nullptr ? 1 : static_cast<double>(std::max<std::int64_t>(kernel.weight_turns(graph, node), 1));
}

Result<BodyNeed> need_of(const model::Graph& graph, const model::Node& node, const kernels::KernelDescriptor& kernel,
                         const profiler::DeviceProfile& profile, const PlanRequest& request) {
  BodyNeed need;
  std::uint64_t least = 0;
  const double turns = turns_of(graph, node, kernel);
  for (std::uint32_t i = 0; i < node.subgraph_count; ++i) {
    const model::Body body = model::body_of(graph, node, node.first_subgraph + i);
    const plan::Outside all = outside_of(body, [](std::size_t) { return true; });
    SLUICE_ASSIGN_OR_RETURN(const plan::Plan held,
                            make_verified_plan(body.graph, profile, body_request(request, body, all, turns > 1, kUnlimitedBytes)));
    need.arena = std::max(need.arena, held.arena_bytes.count());
    need.seconds = std::max(need.seconds, turns * held.prediction.compute_ms / 1e3);
    const plan::Outside small = outside_of(body, [&](std::size_t w) { return body.graph.weights[w].always_resident; });
    if (request.outside != nullptr || std::find(small.weights.begin(), small.weights.end(), false) == small.weights.end()) continue;
    SLUICE_ASSIGN_OR_RETURN(const std::uint64_t streamed,
                            least_of(body.graph, profile, body_request(request, body, small, turns > 1, Bytes())));
    least = std::max(least, streamed);
  }
  if (least > 0) need.window = std::max(kBlockBytes, align_up(least - std::min(least, need.arena), kBlockBytes));
  return need;
}

/// What the nodes that run subgraphs need for them.
Status add_needs(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request, KernelChoice& kernels) {
  kernels.lie_in(request.outside);
  if (graph.subgraphs.empty()) return {};
  constexpr Bytes kPlanningStack(std::uint64_t{48} * 1024);  // a plan takes 21, and that of a body begins within that of the graph around
  SLUICE_RETURN_IF_ERROR(check_stack(kPlanningStack));
  std::vector<BodyNeed> needs(graph.nodes.size());
  for (std::size_t n = 0; n < needs.size(); ++n) {
    if (graph.nodes[n].subgraph_count == 0) continue;
    SLUICE_ASSIGN_OR_RETURN(needs[n], need_of(graph, graph.nodes[n], *kernels[n], profile, request));
  }
  kernels.run_bodies(std::move(needs));
  return {};
}

/// The plans of the subgraphs that a plan's steps run, each in the workspace that it has.
Status add_subplans(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request,
                    const KernelChoice& kernels, plan::Plan& plan) {
  plan.subplans.resize(graph.subgraphs.size());
  for (const plan::Step& step : plan.steps) {
    const model::Node& node = graph.node(step.node);
    if (node.subgraph_count == 0) continue;
    std::map<WeightId, bool> held;
    for (const plan::WeightOperand& o : std::span(plan.operands).subspan(step.first_operand, step.operand_count))
      held.try_emplace(o.weight, o.load.valid() || kernels.held_outside(o.weight));
    for (std::uint32_t i = 0; i < node.subgraph_count; ++i) {
      const model::Body body = model::body_of(graph, node, node.first_subgraph + i);
      const plan::Outside outside = outside_of(body, [&](std::size_t w) {
        const auto found = held.find(body.weights[w]);
        return found != held.end() && found->second;
      });
      const bool loads = std::find(outside.weights.begin(), outside.weights.end(), false) != outside.weights.end();
      const plan::Buffer& workspace = plan.buffer(step.workspace);
      const std::uint64_t begin = align_up(workspace.offset.count(), loads ? kBlockBytes : kBufferAlignment);
      const Bytes capacity = workspace.offset + workspace.size - Bytes(begin);
      const bool again = turns_of(graph, node, *kernels[step.node.index()]) > 1;
      SLUICE_ASSIGN_OR_RETURN(plan.subplans[node.first_subgraph + i],
                              make_verified_plan(body.graph, profile, body_request(request, body, outside, again, capacity)));
    }
  }
  return {};
}

/// Orders and aliases the graph. `passing`: what is to pass; empty: what the request says.
Result<Problem> prepare_whole(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request,
                              PassingKinds passing, std::vector<NodeId>& order) {
  if (request.threads < 1) return fail(ErrorCode::kInvalidArgument, "threads", "a plan needs at least one thread");
  if (kTrimmed && request.partition == Partition::kLeast)
    return fail(ErrorCode::kUnsupported, "partition",
                "this build was trimmed and does not look for the least activations: plan with a whole one");
  Problem problem{&graph, &profile, request.threads, request.repeat, request.read_ahead, {}, {}, {}, {}};
  problem.tables = request.tables;
  problem.search = request.search;
  SLUICE_ASSIGN_OR_RETURN(problem.kernels, select_kernels(graph));
  SLUICE_RETURN_IF_ERROR(add_needs(graph, profile, request, problem.kernels));
  if (passing.empty()) passing = passing_of(graph, problem.kernels, request);
  if (std::any_of(passing.begin(), passing.end(), [](Passing::Kind kind) { return kind != Passing::Kind::kStays; }))
    problem.kernels.pass(std::make_shared<const Passing>(graph, std::move(passing)));
  order = graph_order(graph);
  problem.views = assign_views(graph, problem.kernels, order, request.keep_inputs);
  if (request.search.greedy_order && graph.nodes.size() <= kMostToReorder) {
    std::vector<NodeId> other = greedy_order(graph);
    Views greedy = assign_views(graph, problem.kernels, other, request.keep_inputs);
    if (live_peak(greedy) < live_peak(problem.views)) {
      problem.views = std::move(greedy);
      order = std::move(other);
    }
  }
  if (problem.views.order.empty()) return fail(ErrorCode::kUnsupported, graph.name, "the graph has no node that computes anything");
  for (const model::Port& port : graph.outputs)
    if (graph.tensor(port.tensor).weight.valid())
      return fail(ErrorCode::kUnsupported, port.name, "an output that is a constant has no buffer");
  if (request.repeat && request.search.kept_transforms)
    problem.options = derive_options(graph, problem.kernels, problem.views.order, profile, request.threads);
  problem.pieces = cut_pieces(graph, problem.kernels, problem.views.order);
  return problem;
}

/// Bands for time as regions of the order, for the search of bands for memory to begin with.
std::vector<Region> regions_of(const std::vector<Banded>& chains, const Problem& whole, const std::vector<NodeId>& order) {
  std::vector<std::size_t> place(whole.graph->nodes.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i].index()] = i;
  std::vector<Region> regions;
  for (const Banded& banded : chains)
    regions.push_back({place[whole.views.order[banded.chain.first].index()], place[whole.views.order[banded.chain.end - 1].index()] + 1,
                       banded.bands, false});
  return regions;
}

/// Are bands for memory looked for at all?
bool has_ladder(const PlanRequest& request) noexcept {
  return request.policy == Policy::kSluice && request.partition != Partition::kOff && request.search.memory_bands;
}

/// Nodes that the search may look at: a fixed number, and more for each millisecond of a request's search.
std::uint64_t work_of(BandSearch search, const PlanRequest& request) noexcept {
  if (search == BandSearch::kThorough || request.partition == Partition::kLeast) return 400'000 + request.search_ms * 4000;
  return 20'000 + request.search_ms * 400;
}

/// Would a thorough search look further than this one did?
bool may_search_on(BandSearch search, const PlanRequest& request) noexcept {
  return has_ladder(request) && work_of(search, request) < work_of(BandSearch::kThorough, request);
}

/// `seeds`: bands for time.
Ladder ladder_of(const Problem& whole, const std::vector<NodeId>& order, std::vector<Region> seeds, const PlanRequest& request,
                 std::uint64_t work) {
  const PartitionRule rule{request.partition == Partition::kLeast ? Lower::kActivations : Lower::kArena, request.max_overhead, work};
  if (!kTrimmed && rule.lower == Lower::kActivations) return least_ladder(whole, order, request.keep_inputs, seeds, rule);
  return partition_ladder(whole, order, request.keep_inputs, std::move(seeds), rule);
}

Result<Problems> prepare(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request, BandSearch search,
                         PassingKinds passing = {}) {
  Problems problems;
  SLUICE_ASSIGN_OR_RETURN(problems.whole, prepare_whole(graph, profile, request, std::move(passing), problems.order));
  const Problem& whole = problems.whole;
  std::vector<Region> seeds;
  {
    const BandCutter cutter(graph, whole.kernels, whole.views);
    std::vector<Banded> chains;
    if (request.partition != Partition::kOff && request.search.time_bands) chains = partition_for_time(whole, cutter);
    problems.fast = with_chains(whole, cutter, chains);
    seeds = regions_of(chains, whole, problems.order);
  }
  if (request.repeat && request.search.other_orders) problems.fast.residency = residency_orders(problems.fast);
  if (!has_ladder(request)) return problems;
  problems.ladder = ladder_of(whole, problems.order, std::move(seeds), request, work_of(search, request));
  return problems;
}

/// A partition of the ladder, to be planned.
struct Lean {
  Problem problem;
  Planning planning;

  Lean(Problem banded, const PlanRequest& request) : problem(std::move(banded)), planning(problem, request) {}
};

std::unique_ptr<Lean> lean_of(const Problems& problems, const Rung& rung, const PlanRequest& request) {
  const Uses uses(*problems.whole.graph, problems.whole.kernels, problems.order);
  StepCosts costs(problems.whole);
  Problem banded = Partitioned(problems.whole, uses, problems.order, request.keep_inputs, rung.regions, costs).problem();
  banded.residency = problems.fast.residency;
  return std::make_unique<Lean>(std::move(banded), request);
}

/// The problems that a request chooses from: bands for time, and of the ladder for memory the first rung that fits where those do not, and
/// the last.
struct Contenders {
  Planning fast;
  std::unique_ptr<Lean> first, last;
  std::uint64_t least_lean = ~std::uint64_t{0};  // the least that a partition needs

  Contenders(const Problems& problems, const PlanRequest& request) : fast(problems.fast, request) {
    const Ladder& ladder = problems.ladder;
    if (!ladder.empty()) last = least_of_last(problems, request);
    if (fast.fits() || request.partition == Partition::kLeast) return;
    for (std::size_t r = 0; r + 1 < ladder.size() && !first; ++r) {
      if (ladder.peak(r) > request.capacity.count()) continue;
      first = lean_of(problems, ladder[r], request);
      if (!first->planning.fits()) first.reset();
    }
  }

  /// The last rung, or if that does not fit, of some others the one that needs least: what the search compares are estimates, and for the
  /// least activations those of an arena are others.
  std::unique_ptr<Lean> least_of_last(const Problems& problems, const PlanRequest& request) {
    const Ladder& ladder = problems.ladder;
    const bool wants_least = request.partition == Partition::kLeast;
    std::unique_ptr<Lean> chosen = lean_of(problems, ladder.back(), request);
    const bool fits = chosen->planning.fits();
    least_lean = chosen->planning.least.bytes();
    if (fits && !wants_least) return chosen;
    for (const std::size_t rung : others_of(ladder.size(), wants_least)) {
      std::unique_ptr<Lean> other = lean_of(problems, ladder[rung], request);
      if (other->planning.least.bytes() >= least_lean) continue;
      least_lean = other->planning.least.bytes();
      if (!fits) chosen = std::move(other);
    }
    return chosen;
  }

  /// Of a ladder, besides the last: the three before it, or four at even distances.
  static std::vector<std::size_t> others_of(std::size_t rungs, bool spread) {
    constexpr std::size_t kLast = 4;
    std::vector<std::size_t> others;
    if (rungs <= kLast + 1 || !spread) {
      for (std::size_t r = 2; r <= std::min(spread ? kLast + 1 : kLast, rungs); ++r) others.push_back(rungs - r);
    } else {
      for (std::size_t r = kLast; r-- > 0;) others.push_back((rungs - 1) * r / kLast);
    }
    return others;
  }

  /// A plan that fits the least capacity fits every larger one.
  std::uint64_t least() const noexcept { return std::min(fast.least.bytes(), least_lean); }

  /// The best plan's problem and search, at a capacity that is not below the least.
  Planning& choose_from(const PlanRequest& request) {
    Planning* leaner = last ? &last->planning : nullptr;
    if (request.partition == Partition::kLeast && leaner != nullptr && leaner->fits()) return choose(*leaner, nullptr, request);
    return choose(first ? first->planning : fast, leaner, request);
  }

  double bound() const noexcept {
    double bound = fast.search.bound;
    for (const auto* lean : {first.get(), last.get()})
      if (lean != nullptr) bound = std::min(bound, lean->planning.search.bound);
    return bound;
  }
};

/// Model files end with the block of their last stretch.
Bytes file_size_of(const model::Graph& graph) {
  Bytes end;
  for (const model::Stretch& stretch : graph.stretches) end = std::max(end, stretch.offset + stretch.stored_size);
  return align_up(end, kBlockBytes);
}

Result<plan::Plan> choose_and_verify(const model::Graph& graph, const profiler::DeviceProfile& profile, Contenders& contenders,
                                     const PlanRequest& request) {
  const std::uint64_t least = contenders.least();
  Planning& chosen = contenders.choose_from(request);
  plan::Plan plan = emit(chosen.problem, *chosen.search.best);
  plan.model_hash = request.model_hash;
  plan.capacity = request.capacity;
  plan.minimum_capacity = Bytes(least);
  plan.prediction = predict(chosen.problem, *chosen.search.best, contenders.bound());
  SLUICE_RETURN_IF_ERROR(add_subplans(graph, profile, request, chosen.problem.kernels, plan));
  const plan::VerifyContext context{file_size_of(graph), request.model_hash, kernels::kReadTail, request.outside};
  if (const Status proven = plan::verify(plan, graph, context); !proven) {
    Error error = proven.error();
    // This is a fault of the planner: planning again would fail in the same way.
    if (error.code != ErrorCode::kOutOfMemory) error.code = ErrorCode::kInternal;
    return fail(error);
  }
  return plan;
}

/// The sets that may be spilled, where the request allows any.
std::vector<PassingKinds> spills_of(const Problems& problems, const PlanRequest& request) {
  if (!request.may_spill || request.policy != Policy::kSluice) return {};
  const Problem& whole = problems.whole;
  return spill_sets(*whole.graph, whole.kernels, problems.order, passing_of(*whole.graph, whole.kernels, request));
}

/// What one search comes to. The search's own data are gone by then: searches do not add up in memory.
struct FoundPlan {
  std::optional<plan::Plan> plan;  // nothing: none of this capacity
  std::uint64_t least = ~std::uint64_t{0};
  std::vector<PassingKinds> spills;  // that may be tried in place of `passing`
};

Result<FoundPlan> search_once(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request,
                              BandSearch search, PassingKinds passing = {}) {
  const bool spilled = !passing.empty();
  SLUICE_ASSIGN_OR_RETURN(const Problems problems, prepare(graph, profile, request, search, std::move(passing)));
  FoundPlan searched;
  {
    Contenders contenders(problems, request);
    searched.least = contenders.least();
    if (request.capacity.count() >= searched.least) {
      SLUICE_ASSIGN_OR_RETURN(searched.plan, choose_and_verify(graph, profile, contenders, request));
      return searched;
    }
  }
  if (!spilled && search == BandSearch::kThorough) searched.spills = spills_of(problems, request);
  return searched;
}

/// What is asked for instead where nothing fits: the partition of the least activations may need a larger arena than another, and cuts may
/// need more than none (weights of a region are held together).
std::optional<PlanRequest> leaner_request(const PlanRequest& request) {
  if (!has_ladder(request)) return std::nullopt;
  PlanRequest other = request;
  other.partition = request.partition == Partition::kLeast ? Partition::kAuto : Partition::kOff;
  return other;
}

/// All searches of a request, until one finds a plan.
Result<FoundPlan> search_all(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  FoundPlan found;
  const auto lower = [&](FoundPlan next) {
    const std::uint64_t least = std::min(found.least, next.least);
    found = std::move(next);
    found.least = least;
  };
  if (may_search_on(BandSearch::kQuick, request)) {
    SLUICE_ASSIGN_OR_RETURN(found, search_once(graph, profile, request, BandSearch::kQuick));
    if (found.plan) return found;
  }
  SLUICE_ASSIGN_OR_RETURN(FoundPlan thorough, search_once(graph, profile, request, BandSearch::kThorough));
  std::vector<PassingKinds> spills = std::move(thorough.spills);
  lower(std::move(thorough));
  if (found.plan) return found;
  if (const std::optional<PlanRequest> other = leaner_request(request)) {
    PlanRequest whole = *other;
    whole.may_spill = false;  // the sets are the same
    SLUICE_ASSIGN_OR_RETURN(FoundPlan next, search_all(graph, profile, whole));
    lower(std::move(next));
  }
  for (const PassingKinds& spilled : spills) {
    for (std::optional<PlanRequest> asked = request; asked; asked = leaner_request(*asked)) {
      if (found.plan) return found;
      SLUICE_ASSIGN_OR_RETURN(FoundPlan next, search_once(graph, profile, *asked, BandSearch::kThorough, spilled));
      lower(std::move(next));
    }
  }
  return found;
}

Result<plan::Plan> make_verified_plan(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  SLUICE_ASSIGN_OR_RETURN(FoundPlan found, search_all(graph, profile, request));
  if (found.plan) return std::move(*found.plan);
  return fail(
      make_error(ErrorCode::kBudgetTooSmall, graph.name, "no plan of this policy fits the arena", found.least, request.capacity.count()));
}

/// The least capacity that the quick search finds a plan for.
Result<std::uint64_t> least_of(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  PlanRequest nothing = request;
  nothing.capacity = Bytes();
  SLUICE_ASSIGN_OR_RETURN(const FoundPlan quick, search_once(graph, profile, nothing, BandSearch::kQuick));
  return quick.least;
}

}  // namespace

std::string_view name_of(Policy policy) noexcept {
  const auto number = static_cast<std::size_t>(policy);
  return number < std::size(kPolicyNames) ? kPolicyNames[number] : std::string_view();
}

std::string_view name_of(Partition partition) noexcept {
  constexpr std::string_view kNames[] = {"auto", "off", "least"};
  const auto number = static_cast<std::size_t>(partition);
  return number < std::size(kNames) ? kNames[number] : std::string_view();
}

Result<plan::Plan> make_plan(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  return or_out_of_memory(graph.name, [&] { return make_verified_plan(graph, profile, request); });
}

Result<Bytes> minimum_capacity(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request) {
  return or_out_of_memory(graph.name, [&]() -> Result<Bytes> {
    PlanRequest nothing = request;
    nothing.capacity = Bytes();
    // A plan is made by the quick search where that fits: the thorough one mostly ends lower, by another way, and not always.
    SLUICE_ASSIGN_OR_RETURN(const FoundPlan found, search_all(graph, profile, nothing));
    return Bytes(found.least);
  });
}

Result<PartitionReport> report_partition(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request,
                                         const plan::Plan& plan) {
  return or_out_of_memory(graph.name, [&]() -> Result<PartitionReport> {
    std::vector<NodeId> order;
    SLUICE_ASSIGN_OR_RETURN(const Problem whole, prepare_whole(graph, profile, request, {}, order));
    return PartitionReport{Bytes(activation_bound(graph, whole.kernels, order)),
                           overhead_of(whole, plan, request.partition != Partition::kLeast)};
  });
}

}  // namespace sluice::planner

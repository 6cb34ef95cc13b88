// What an open model takes of a budget: everything that its graph holds, whatever kind of model it is.
#include "src/engine/budget.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sluice/model/graph.h"
#include "src/engine/arena_layout.h"
#include "src/engine/expected_peak.h"
#include "tests/engine/fixture.h"

namespace sluice::engine {
namespace {

constexpr std::size_t kMany = 1000;

/// What `add` makes a graph take more.
template <class Add>
std::uint64_t more(const Add& add) {
  model::Graph graph;
  graph.weights.resize(1);
  graph.quantisations.reserve(1);
  graph.subgraphs.reserve(1);
  graph.units.reserve(1);
  const Bytes before = graph_bytes(graph);
  add(graph);
  return (graph_bytes(graph) - before).count();
}

TEST_CASE("the ends of sparse panels, scales, bodies of loops and units count as the rest of a graph does") {
  CHECK(more([](model::Graph& graph) { graph.weights[0].panel_ends.resize(kMany); }) >= kMany * sizeof(std::uint32_t));
  CHECK(more([](model::Graph& graph) { graph.quantisations.push_back({.scales = std::vector<float>(kMany)}); }) >= kMany * sizeof(float));
  CHECK(more([](model::Graph& graph) { graph.subgraphs.push_back({.nodes = std::vector<model::Node>(kMany)}); }) >=
        kMany * sizeof(model::Node));
  CHECK(more([](model::Graph& graph) { graph.subgraphs.push_back({.tensors = std::vector<model::Tensor>(kMany)}); }) >=
        kMany * sizeof(model::Tensor));
  CHECK(more([](model::Graph& graph) { graph.units.push_back({.inputs = std::vector<TensorId>(kMany)}); }) >= kMany * sizeof(TensorId));
}

TEST_CASE("the least process has room for the planning of a long graph") {
  const Fixture few, many({.rows = 2, .widths = std::vector<std::int64_t>(900, 16)});
  const auto floor = [](const Fixture& fixture, planner::Partition partition, const plan::Plan* plan = nullptr,
                        double max_overhead = 0.05) {
    SessionOptions options{.scope = BudgetScope::kProcess, .plan = plan};
    options.tuning.partition = partition;
    options.tuning.max_overhead = max_overhead;
    return budget_of(*fixture.model, {}, {}, options);
  };
  using planner::Partition;
  const Bytes least = least_process(false);
  const std::size_t nodes = many.model->graph().nodes.size();
  REQUIRE(nodes > 890);
  for (const Partition partition : {Partition::kAuto, Partition::kOff, Partition::kLeast}) CHECK(floor(few, partition) == least);
  CHECK(floor(many, Partition::kOff) >= least + Bytes((nodes - 750) * 2600));  // by which chains of 3,000 convolutions were above
  CHECK(floor(many, Partition::kAuto) >= least + Bytes((nodes - 750) * 3200));
  CHECK(floor(many, Partition::kLeast) >= floor(many, Partition::kAuto) + Bytes((nodes - 400) * 2600));
  CHECK(floor(many, Partition::kLeast, nullptr, 4) > floor(many, Partition::kLeast));
  const plan::Plan given;
  CHECK(floor(many, Partition::kAuto, &given) == least);
}

TEST_CASE("the usual overhead counts both copies of a profile, and a process that holds less has it") {
  const Fixture fixture;
  SessionOptions options{.scope = BudgetScope::kProcess};
  const Bytes without = usual_overhead(*fixture.model, options);
  CHECK(overhead_of(*fixture.model, options) >= without);
  profiler::DeviceProfile profile;
  profile.samples.resize(kMany);
  options.profile = &profile;
  const Bytes with = usual_overhead(*fixture.model, options);
  CHECK((with - without).count() >= 2 * kMany * sizeof(profiler::KernelSample));
  // A copy has another capacity, and the same overhead.
  profiler::DeviceProfile grown = profile;
  grown.samples.reserve(3 * kMany);
  options.profile = &grown;
  CHECK(usual_overhead(*fixture.model, options) == with);
  options.reserve = Bytes(1 << 20);
  CHECK(usual_overhead(*fixture.model, options) == with + options.reserve);
}

TEST_CASE("an expected peak is within its budget, nearer to it where that is tight, and counts all code where there is plenty") {
  const Fixture fixture({.rows = 2, .widths = std::vector<std::int64_t>(40, 256)});
  SessionOptions options{.scope = BudgetScope::kProcess};
  const auto planned = plan_session(*fixture.model, options);
  REQUIRE(planned);
  const Bytes tables = table_bytes(fixture.model->graph(), planned->plan);
  const Bytes usual = usual_overhead(*fixture.model, options) + tables - std::min(tables, table_bound(fixture.model->graph()));
  const auto expected = [&](Bytes budget, Bytes overhead) {
    options.budget = budget;
    return expected_peak(*fixture.model, planned->plan, overhead, options);
  };
  const Bytes tight = usual + align_up(planned->plan.arena_bytes, kArenaPage), plenty = tight + Bytes(32 << 20), much = Bytes(8 << 20);
  INFO("arena " << planned->plan.arena_bytes.count() << ", usual " << usual.count() << ", expected " << expected(tight, usual).count());
  CHECK(expected(tight, usual) <= tight);
  CHECK(expected(tight, usual) + Bytes(3 << 19) >= tight);
  CHECK(expected(plenty, usual) >= expected(tight, usual) + Bytes(1 << 20));
  CHECK(expected(kUnlimitedBytes, usual) == expected(plenty, usual));
  // What a process holds beyond the usual, and what it says that it will take.
  const Bytes alone = expected(tight, usual);
  CHECK(expected(tight + much, usual + much) == alone + much);
  options.reserve = much;
  CHECK(expected(tight + much, usual + much) == alone + much);
  options.scope = BudgetScope::kLibrary;
  CHECK(expected(tight, usual) == tight);
}

}  // namespace
}  // namespace sluice::engine

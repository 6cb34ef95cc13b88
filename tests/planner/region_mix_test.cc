#include <catch2/catch.hpp>

#include "sluice/plan/peak.h"
#include "sluice/planner/bands/memory_partition.h"
#include "sluice/planner/bands/overhead.h"
#include "sluice/planner/choose/choose.h"
#include "sluice/planner/choose/write_plan.h"
#include "sluice/planner/order/linearise.h"
#include "sluice/planner/planner.h"
#include "tests/planner/nets.h"
#include "tests/planner/problem_fixture.h"
#include "tests/property/band_nets.h"

namespace sluice::planner {
namespace {

Region piece_of(std::size_t first, std::size_t end, std::int64_t bands) { return {first, end, bands}; }

/// Four places of 5, 9, 9 and 5 bytes.
RegionPool pool_of_four() {
  RegionPool pool({5, 9, 9, 5});
  const auto add = [&](const Region& region, double extra, std::uint64_t need) {
    pool.add_piece({pool.add_kind({region, extra}), region.first, need});
  };
  add(piece_of(1, 3, 2), 2, 7);
  add(piece_of(1, 2, 4), 2, 6);
  add(piece_of(2, 4, 4), 3, 6);
  add(piece_of(2, 4, 2), 1, 8);
  return pool;
}

TEST_CASE("the cheapest way leads over places and regions that need no more than the limit") {
  const RegionPool pool = pool_of_four();
  CHECK(pool.cheapest(9).pieces.empty());
  CHECK(pool.cheapest(9).extra == 0);
  CHECK(pool.regions(pool.cheapest(8)) == std::vector<Region>{piece_of(1, 3, 2)});
  CHECK(pool.cheapest(7).extra == 2);
  CHECK(pool.regions(pool.cheapest(6)) == std::vector<Region>{piece_of(1, 2, 4), piece_of(2, 4, 4)});
  CHECK(pool.cheapest(6).extra == 5);
  CHECK(pool.cheapest(5).stuck == 1);  // nothing leads over the second place
  CHECK(pool.least(1.5, 9) == std::nullopt);
  CHECK(pool.least(2, 9) == 7);
  CHECK(pool.least(5, 9) == 6);
  CHECK(pool.least(5, 6) == std::nullopt);
}

TEST_CASE("what a region saves, once its rows are placed, and what it was seen to need count from then on") {
  RegionPool pool = pool_of_four();
  pool.settle(0, 2);
  CHECK(pool.least(2, 9) == 5);
  pool.correct_whole(0, 6);
  CHECK(pool.least(2, 9) == 6);
  pool.piece({1, 0}).need = 8;
  CHECK(pool.least(2, 9) == 8);
}

struct Searched {
  Ladder ladder;
  double seconds = 0;  // of the last rung, of those without bands
};

Searched search(const model::Graph& graph, double max_overhead, bool from_bottleneck_alone) {
  const profiler::DeviceProfile profile;
  const Problem whole = problem_of(graph, profile);
  const std::vector<NodeId> order = graph_order(graph);
  const PartitionRule rule{Lower::kActivations, max_overhead, 600'000};
  Searched searched;
  searched.ladder = from_bottleneck_alone ? partition_ladder(whole, order, false, {}, rule) : least_ladder(whole, order, false, {}, rule);
  if (searched.ladder.empty()) return searched;
  const Uses uses(graph, whole.kernels, order);
  StepCosts costs(whole, false);
  const auto seconds = [&](std::vector<Region> regions) {
    return Partitioned(whole, uses, order, false, std::move(regions), costs).seconds();
  };
  searched.seconds = seconds(searched.ladder.back().regions) / seconds({});
  return searched;
}

std::vector<model::Graph> nets() {
  std::vector<model::Graph> nets;
  nets.push_back(joining_net());
  nets.push_back(pre_norm_net(4, 320, 256, true));
  nets.push_back(squeezenet1_1());
  return nets;
}

TEST_CASE("a larger limit never ends higher, and no search ends above that from bottleneck to bottleneck") {
  for (const model::Graph& graph : nets()) {
    std::uint64_t former = ~std::uint64_t{0};
    for (const double limit : {0.0, 0.02, 0.05, 0.08, 0.2, 0.5}) {
      INFO(graph.name << " " << limit);
      const Searched mixed = search(graph, limit, false);
      const std::uint64_t peak = mixed.ladder.lowest();
      CHECK(peak <= former);
      CHECK(mixed.seconds <= 1 + limit + 1e-9);
      for (std::size_t r = 1; r < mixed.ladder.size(); ++r) CHECK(mixed.ladder.peak(r) < mixed.ladder.peak(r - 1));
      former = peak;
      if (limit != 0.05) continue;
      const Searched greedy = search(graph, limit, true);
      CHECK(peak <= greedy.ladder.lowest());
    }
  }
}

TEST_CASE("measured rates that promise that bands save time are not believed where least activations are asked for") {
  profiler::DeviceProfile profile;
  profile.kernels.emplace_back();  // measured
  const auto share_of_whole = [&](std::int64_t columns, std::int64_t rows, std::uint64_t far_bytes) {
    NetBuilder net("relu");
    net.output(net.relu(net.input({1, 64, columns, 64})));
    const model::Graph graph = net.finish();
    const Problem problem = problem_of(graph, profile);
    StepCosts costs(problem, false);
    return costs.seconds(NodeId(0), {0, {0, rows}, far_bytes}) / costs.seconds(NodeId(0), {0, {0, 64}, 0}) * 64 / static_cast<double>(rows);
  };
  for (const std::int64_t rows : {1, 8, 32}) {
    CHECK(share_of_whole(16, rows, 0) >= 0.999999);
    const auto bytes_of_rows = static_cast<std::uint64_t>(rows) * 128 * 64 * 8;  // read and written
    CHECK(share_of_whole(128, rows, 0) < 0.9);  // but what a core's own cache does not hold of the whole, 3 MiB
    CHECK(share_of_whole(128, rows, bytes_of_rows) >= 0.999999);
  }
}

TEST_CASE("what a pool's large tensors cost follows the run that it is in") {
  const auto far_of_pool = [](std::int64_t features) {
    NetBuilder net("pool");
    const TensorId pooled = net.pool(net.input({1, 128, 128, 64}), 2, 2);
    net.output(features > 0 ? net.dense(net.reshape(pooled, {1, 64 * 64 * 64}), features) : pooled);
    const model::Graph graph = net.finish();
    profiler::DeviceProfile profile;
    profiler::KernelRates rates;
    rates.kernel = {kernels::kernel_id::kPool, profiler::KernelUse::kRun};
    rates.seconds_per[profiler::detail::kOfLargeOutput] = 1e-12;
    profile.kernels.push_back(rates);
    const Problem problem = problem_of(graph, profile);
    StepCosts costs(problem, false);
    return costs.whole(NodeId(0)).far;
  };
  CHECK(far_of_pool(0) == 0);
  CHECK(far_of_pool(128) == Approx(1e-12 * ((1 << 20) - (256 << 10))));  // 128 MiB of weights pass between two runs
}

TEST_CASE("with measured rates a band counts the weights that it transforms again, and those that come back from a shared cache") {
  NetBuilder net("winograd");
  net.output(net.conv(net.input({1, 32, 32, 128}), {.channels = 128, .kernel = 3}));
  net.last_node().numeric = model::NumericClass::kWinograd4;
  const model::Graph graph = net.finish();
  profiler::DeviceProfile profile;
  profiler::KernelRates rates;
  rates.kernel = {kernels::kernel_id::kConvWinograd, profiler::KernelUse::kRun};
  rates.seconds_per[3] = 1e-9;  // by these a band takes its share
  profile.kernels.push_back(rates);
  const Problem problem = problem_of(graph, profile);
  const auto kernel = problem.kernels[0];
  REQUIRE(kernel->id == rates.kernel.kernel);
  StepCosts costs(problem, false);
  const auto flops = [&](std::int64_t rows) {
    return static_cast<double>(kernel->cost(graph, graph.nodes[0], {{0, rows}, {0, 128}, problem.threads, false}).flops);
  };
  const auto seconds = [&](std::int64_t rows, std::uint64_t round_bytes) {
    return costs.seconds(NodeId(0), {0, {0, rows}, 0, round_bytes});
  };
  for (const std::int64_t rows : {4, 8}) {
    CHECK(flops(rows) * 32 > flops(32) * static_cast<double>(rows) * 1.02);
    CHECK(seconds(rows, 0) >= seconds(32, 0) * flops(rows) / flops(32) * 0.999999);
  }
  CHECK(seconds(4, 2u << 20) > seconds(4, 1u << 20));
  CHECK(seconds(4, 1u << 20) == seconds(4, 1));
}

TEST_CASE("regions that were taken first go where others need less") {
  const auto peak = [](bool from_bottleneck_alone) { return search(squeezenet1_1(), 0.05, from_bottleneck_alone).ladder.lowest(); };
  CHECK(static_cast<double>(peak(false)) < 0.95 * static_cast<double>(peak(true)));
}

/// The plan of a partition, with all weights held.
plan::Plan plan_of(const Partitioned& parts) {
  const PlanRequest request;
  const Problem problem = parts.problem();
  Planning planning(problem, request);
  const Planning& chosen = choose(planning, nullptr, request);
  return emit(chosen.problem, *chosen.search.best);
}

TEST_CASE("a plan is said to cost what the search that found its partition counted") {
  for (const model::Graph& graph : {squeezenet1_1(), mobilenet_v2(), resnet50()}) {
    INFO(graph.name);
    const profiler::DeviceProfile profile;
    const Problem whole = problem_of(graph, profile);
    const std::vector<NodeId> order = graph_order(graph);
    const Uses uses(graph, whole.kernels, order);
    for (const Lower lower : {Lower::kArena, Lower::kActivations}) {
      const Ladder ladder = partition_ladder(whole, order, false, {}, {lower, 0.05, 100'000});
      REQUIRE_FALSE(ladder.empty());
      const bool finest = lower == Lower::kArena;
      StepCosts costs(whole, finest);
      const double without = Partitioned(whole, uses, order, false, {}, costs).seconds();
      const Partitioned parts(whole, uses, order, false, ladder.back().regions, costs);
      CHECK(overhead_of(whole, plan_of(parts), finest) == Approx(parts.seconds() / without - 1).margin(1e-9));
    }
  }
}

TEST_CASE("asking for the least activations never asks for a larger arena") {
  NetBuilder tall("tall");  // of many rows: least activations take many bands, and tables of their steps
  TensorId x = tall.input({1, 4096, 16, 4});
  for (int i = 0; i < 12; ++i) x = tall.conv(x, {.channels = 4, .kernel = 3});
  tall.output(x);
  for (const model::Graph& graph : {tall.finish(), squeezenet1_1(), mobilenet_v2()}) {
    INFO(graph.name);
    PlanRequest request;
    request.tables = {.set_aside = 1 << 16, .any_plan = 1 << 14, .buffer = 48, .step = 250, .load = 64, .tensor = 64, .weight = 32};
    const auto least_of = [&](Partition partition) {
      request.partition = partition;
      return *minimum_capacity(graph, {}, request);
    };
    const Bytes off = least_of(Partition::kOff), some = least_of(Partition::kAuto), least = least_of(Partition::kLeast);
    CHECK(some <= off);
    CHECK(least <= some);
    request.capacity = least;
    CHECK(make_plan(graph, {}, request).has_value());
  }
}

}  // namespace
}  // namespace sluice::planner

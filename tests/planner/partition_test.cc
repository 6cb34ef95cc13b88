#include <catch2/catch.hpp>
#include <map>

#include "sluice/plan/peak.h"
#include "sluice/planner/bands/memory_partition.h"
#include "sluice/planner/bands/time_partition.h"
#include "sluice/planner/order/linearise.h"
#include "sluice/planner/planner.h"
#include "tests/planner/nets.h"
#include "tests/planner/problem_fixture.h"
#include "tests/property/band_nets.h"

namespace sluice::planner {
namespace {

Views views_of(const model::Graph& graph, const KernelChoice& kernels) { return assign_views(graph, kernels, graph_order(graph), false); }

bool has_rings(const plan::Plan& plan) {
  return std::any_of(plan.tensors.begin(), plan.tensors.end(), [](const plan::TensorPlacement& t) { return t.ring_rows > 0; });
}

TEST_CASE("a window reads its taps' rows, of its own image, in whole granules") {
  NetBuilder net("window");
  net.output(net.conv(net.input({2, 11, 6, 8}), {.channels = 8, .kernel = 5, .stride = 2}));  // 6 rows of output an image, padding 2
  const model::Graph graph = net.finish();
  const RowRelation by = *row_relation(graph, graph.nodes[0], 0);
  const auto read = [&](RowRange rows, std::int64_t granule) { return rows_read(by, granule, rows); };
  CHECK(read({0, 1}, 1) == RowRange{0, 3});
  CHECK(read({2, 3}, 1) == RowRange{2, 7});
  CHECK(read({5, 6}, 1) == RowRange{8, 11});
  CHECK(read({6, 7}, 1) == RowRange{11, 14});
  CHECK(read({5, 7}, 1) == RowRange{8, 14});
  CHECK(read({1, 2}, 4) == RowRange{0, 9});
  CHECK(read({5, 6}, 4) == RowRange{6, 11});
  CHECK(round_row(rows_of_image(graph, graph.nodes[0]), 4, 5) == 6);
  CHECK(round_row(rows_of_image(graph, graph.nodes[0]), 4, 7) == 10);
}

TEST_CASE("bands rise, keep the rows that two of them read, and hold no more") {
  NetBuilder net("chain");
  const TensorId a = net.conv(net.input({1, 16, 16, 16}), {.channels = 32, .kernel = 3});
  const TensorId b = net.pool(a, 3, 1, 1);
  net.output(net.pool(b, 2, 2));
  const model::Graph graph = net.finish();
  const KernelChoice kernels = *select_kernels(graph);
  const Views views = views_of(graph, kernels);
  const BandCutter cutter(graph, kernels, views);
  const std::optional<Banded> banded = cutter.cut(0, 3, 4);
  REQUIRE(banded.has_value());
  // The last node makes 2 rows of 4 a band, so the one before makes 4, of which it reads 6.
  const RowRange expected[] = {{0, 5}, {0, 4}, {0, 2}, {5, 9}, {4, 8}, {2, 4}, {9, 13}, {8, 12}, {4, 6}, {13, 16}, {12, 16}, {6, 8}};
  REQUIRE(banded->chain.steps.size() == std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    CHECK(banded->chain.steps[i].position == i % 3);
    CHECK(banded->chain.steps[i].rows == expected[i]);
  }
  CHECK(banded->ring_rows == std::vector<std::int64_t>{6, 4, 0});
  // What lies between two bands of a node: the weights, 18 KiB of them panels, and the rings, whose rows have 16 pixels of 32 channels.
  std::uint64_t round = 10 * 16 * 32 * sizeof(float);
  for (const WeightId w : graph.nodes[0].weights) round += graph.weight(w).bytes.count();
  for (std::size_t i = 0; i < std::size(expected); ++i) CHECK(banded->chain.steps[i].round_bytes == (i < 3 ? 0 : round));
}

TEST_CASE("a tensor that is replaced in place is read ahead of what replaces it, or the chain is none") {
  const auto chain_of_kernel = [](std::int64_t kernel) {
    NetBuilder net("in place");
    const TensorId x = net.relu(net.input({1, 16, 8, 16}));
    const TensorId y = net.conv(x, {.channels = 48, .kernel = kernel});
    net.output(net.relu(net.conv(y, {.channels = 16, .residual = x})));
    const model::Graph graph = net.finish();
    const KernelChoice kernels = *select_kernels(graph);
    const Views views = views_of(graph, kernels);
    const std::size_t last = views.order.size() - 1;
    REQUIRE(views.tensors[x.index()].buffer == views.tensors[graph.node(views.order[last - 1]).outputs[0].index()].buffer);
    return BandCutter(graph, kernels, views).cut(1, last, 4).has_value();
  };
  CHECK(chain_of_kernel(1));
  CHECK_FALSE(chain_of_kernel(3));  // its second band reads a row above its own
}

TEST_CASE("bands are for what caches do not hold, and cost their steps") {
  profiler::DeviceProfile profile;
  const auto banded = make_plan(mobilenet_v2(), profile, {});
  REQUIRE(banded.has_value());
  CHECK(has_rings(*banded));
  profile.step_overhead_seconds = 1e-3;
  const auto slow_steps = make_plan(mobilenet_v2(), profile, {});
  REQUIRE(slow_steps.has_value());
  CHECK_FALSE(has_rings(*slow_steps));
}

TEST_CASE("chains lower the least capacity of networks that peak at their first maps") {
  const std::pair<model::Graph, double> most[] = {{squeezenet1_1(), 2.1}, {mobilenet_v2(), 2.1}, {vgg19(), 8.0}};  // MiB
  for (const auto& [graph, mib] : most) {
    INFO(graph.name);
    const auto least = minimum_capacity(graph, {}, {});
    const auto whole = minimum_capacity(graph, {}, {.policy = Policy::kOnDemand});
    REQUIRE((least.has_value() && whole.has_value()));
    CHECK(static_cast<double>(least->count()) / 1048576.0 <= mib);
    CHECK(*least <= *whole);
  }
}

/// Layers of which each reads all maps made before it, as DenseNets have them.
model::Graph dense_block() {
  NetBuilder net("dense block");
  std::vector<TensorId> made{net.conv(net.input({1, 56, 56, 3}), {.channels = 64, .kernel = 3})};
  for (int layer = 0; layer < 4; ++layer) {
    const TensorId all = made.size() == 1 ? made[0] : net.concat(made, 3);
    made.push_back(net.conv(net.conv(net.relu(all), {.channels = 64}), {.channels = 32, .kernel = 3}));
  }
  net.output(net.pool(net.conv(net.concat(made, 3), {.channels = 64}), 2, 2));
  return net.finish();
}

TEST_CASE("rows are made when they are asked for: the first node is not ahead of the last by all that lies between") {
  NetBuilder net("deep");
  TensorId x = net.input({1, 64, 8, 16});
  for (int i = 0; i < 8; ++i) x = net.conv(x, {.channels = 16, .kernel = 3});
  net.output(x);
  const model::Graph graph = net.finish();
  const KernelChoice kernels = *select_kernels(graph);
  const Views views = views_of(graph, kernels);
  const BandCutter cutter(graph, kernels, views);
  const std::optional<Banded> at_once = cutter.cut(0, 8, 64), on_demand = cutter.cut_on_demand(0, 8, 64);
  REQUIRE((at_once.has_value() && on_demand.has_value()));
  CHECK(at_once->ring_rows.front() >= 8);
  for (std::size_t p = 0; p + 1 < 8; ++p) CHECK(on_demand->ring_rows[p] <= 3);
}

TEST_CASE("each rung of a ladder has a lower peak, and all are within the overhead limit") {
  const model::Graph graph = dense_block();
  const profiler::DeviceProfile profile;
  const Problem whole = problem_of(graph, profile);
  const std::vector<NodeId> order = graph_order(graph);
  const Uses uses(graph, whole.kernels, order);
  StepCosts costs(whole);
  const double seconds = Partitioned(whole, uses, order, false, {}, costs).seconds();
  for (const Lower lower : {Lower::kArena, Lower::kActivations}) {
    const Ladder ladder = partition_ladder(whole, order, false, {}, {lower, 0.05, 1 << 20});
    REQUIRE_FALSE(ladder.empty());
    for (std::size_t r = 1; r < ladder.size(); ++r) CHECK(ladder.peak(r) < ladder.peak(r - 1));
    for (std::size_t r = 0; r < ladder.size(); ++r)
      CHECK(Partitioned(whole, uses, order, false, ladder[r].regions, costs).seconds() <= 1.05 * seconds);
  }
}

TEST_CASE("a short region round a concatenation lowers a peak before it, where its buffer waits for its last part") {
  // The upper map's half of the concatenation is made before the peak of the lower maps, the other half behind it.
  NetBuilder net("u");
  const TensorId upper = net.conv(net.input({1, 32, 32, 8}), {.channels = 64});
  TensorId lower = net.pool(upper, 2, 2);
  for (int i = 0; i < 3; ++i) lower = net.conv(lower, {.channels = 256});
  const TensorId joined = net.concat({upper, net.conv_transpose(net.conv(lower, {.channels = 16}), 64)}, 3);
  net.output(net.conv(joined, {.channels = 4}));
  const model::Graph graph = net.finish();
  const profiler::DeviceProfile profile;
  const Problem whole = problem_of(graph, profile);
  const std::vector<NodeId> order = graph_order(graph);
  detail::RegionMeasures measures(whole, order, false, {Lower::kActivations, 0.05, 1 << 20});
  const std::size_t join = order.size() - 2;
  const auto shortest = measures.bounds_round(join, ~std::uint64_t{0}, detail::RegionMeasures::First::kShortest);
  const auto least = measures.bounds_round(join, ~std::uint64_t{0});
  REQUIRE(shortest.size() == least.size());
  REQUIRE(shortest.size() > 2);
  for (std::size_t i = 1; i < shortest.size(); ++i) {
    CHECK(shortest[i - 1].end - shortest[i - 1].first <= shortest[i].end - shortest[i].first);
    CHECK(least[i - 1].beside <= least[i].beside);
  }
  const auto peak_of = [&](std::vector<Region> regions) { return measures.measure(*measures.partition(regions)); };
  const auto before = peak_of({}), after = peak_of({{join - 1, join + 2, 8}});
  const auto peak = static_cast<std::size_t>(std::max_element(before.needs.begin(), before.needs.end()) - before.needs.begin());
  REQUIRE(peak < join - 1);
  CHECK(before.needs[peak] - after.needs[peak] == 32 * 32 * 64 * sizeof(float));  // the half that waited
}

TEST_CASE("the partition of least memory halves the peak of a dense block, none leaves it, and no plan is below the bound") {
  const model::Graph graph = dense_block();
  const auto plan_with = [&](Partition partition) { return *make_plan(graph, {}, {.partition = partition}); };
  const plan::Plan off = plan_with(Partition::kOff), least = plan_with(Partition::kLeast);
  CHECK_FALSE(has_rings(off));
  CHECK(has_rings(least));
  CHECK(plan::activation_peak(least).bytes.count() * 2 <= plan::activation_peak(off).bytes.count());
  const auto report = report_partition(graph, {}, {}, least);
  REQUIRE(report.has_value());
  CHECK(report->lower_bound <= plan::activation_peak(least).bytes);
  CHECK(report->overhead <= 0.05);
}

TEST_CASE("queries with a norm of their own leave their input, keys and values whole and little else, in layers that are cut alike") {
  constexpr int kLayers = 5;
  constexpr std::int64_t kPositions = 320, kWidth = 256;
  const auto peak = [&](bool again) {
    const plan::Plan plan =
        *make_plan(pre_norm_net(kLayers, kPositions, kWidth, again), {}, {.partition = Partition::kLeast, .max_overhead = 0.2});
    return plan::activation_peak(plan).bytes.count();
  };
  constexpr std::uint64_t kWhole = kPositions * kWidth * sizeof(float);
  CHECK(peak(false) >= 4 * kWhole);
  CHECK(peak(true) < 4 * kWhole);
  CHECK(peak(true) >= 3 * kWhole);

  const model::Graph graph = pre_norm_net(kLayers, kPositions, kWidth, true);
  const profiler::DeviceProfile profile;
  const Problem whole = problem_of(graph, profile);
  const std::vector<NodeId> order = graph_order(graph);
  const Ladder ladder = partition_ladder(whole, order, false, {}, {Lower::kActivations, 0.5, 1 << 22});
  REQUIRE_FALSE(ladder.empty());
  // By how many bands regions of each length go: one number, but where the first layer or the last is unlike the others.
  std::map<std::size_t, std::map<std::int64_t, int>> bands;
  for (const Region& region : ladder.back().regions) ++bands[region.end - region.first][region.bands];
  for (const auto& [length, counts] : bands) {
    INFO(length << " nodes");
    CHECK(counts.size() <= 3);
  }
}

TEST_CASE("twelve layers go as low as five, by as much search as a request allows unasked") {
  const auto peak = [](int layers) {
    const plan::Plan plan = *make_plan(pre_norm_net(layers, 320, 256, true), {}, {.partition = Partition::kLeast, .max_overhead = 0.2});
    return plan::activation_peak(plan).bytes;
  };
  CHECK(peak(12) <= peak(5));
}

TEST_CASE("sums in a region stay in the place of what enters it, if nothing reads rows that are gone") {
  const auto peak = [](std::int64_t window, bool in_place) -> std::optional<std::uint64_t> {
    const model::Graph graph = sums_in_place_net(window);
    const profiler::DeviceProfile profile;
    const Problem whole = problem_of(graph, profile);
    const std::vector<NodeId> order = graph_order(graph);
    const Uses uses(graph, whole.kernels, order);
    StepCosts costs(whole, false);
    const Partitioned parts(whole, uses, order, false, {{1, order.size() - 1, 11, true, ~std::uint64_t{0}, in_place}}, costs);
    CHECK(parts.works_in_place(0) == in_place);
    if (!parts.valid()) return std::nullopt;
    const Need most = parts.needs()[1];
    return most.activations;
  };
  constexpr std::uint64_t kMap = 11 * 5 * 16 * sizeof(float);
  REQUIRE((peak(1, false) && peak(1, true)));
  CHECK(*peak(1, true) + kMap / 2 < *peak(1, false));
  CHECK_FALSE(peak(3, true));
  CHECK(peak(3, false));
}

/// The first two stages of a residual network at half its height and width.
model::Graph two_stages() {
  NetBuilder net("two stages");
  TensorId x = net.pool(net.conv(net.input({1, 112, 112, 3}), {.channels = 64, .kernel = 7, .stride = 2}), 3, 2, 1);
  for (const std::int64_t width : {64, 128}) {
    for (int block = 0; block < 3; ++block) {
      const std::int64_t stride = block == 0 ? width / 64 : 1;
      TensorId y = net.conv(net.conv(x, {.channels = width}), {.channels = width, .kernel = 3, .stride = stride});
      if (stride == 1) net.last_node().numeric = model::NumericClass::kWinograd4;
      const TensorId shortcut = block == 0 ? net.conv(x, {.channels = 4 * width, .stride = stride}) : x;
      x = net.conv(y, {.channels = 4 * width, .residual = shortcut});
    }
  }
  net.output(net.pool(x, 7, 7));
  return net.finish();
}

TEST_CASE("what placing a region's rows saves counts, and the search goes on with the next peak") {
  const model::Graph graph = two_stages();
  const profiler::DeviceProfile profile;
  const Problem whole = problem_of(graph, profile);
  const std::vector<NodeId> order = graph_order(graph);
  const Uses uses(graph, whole.kernels, order);
  StepCosts costs(whole, false);
  const Ladder ladder = partition_ladder(whole, order, false, {}, {Lower::kActivations, 0.5, 1 << 22});
  REQUIRE_FALSE(ladder.empty());
  const Rung& last = ladder.back();
  const Partitioned parts(whole, uses, order, false, last.regions, costs);
  const std::vector<Need> counted = parts.needs(), plain = Partitioned(whole, uses, order, false, {}, costs).needs();
  const Region& first = last.regions.front();
  // The first region cannot be lowered further, and by its rings alone nothing else need be.
  CHECK(counted[first.first].activations > last.peak);
  CHECK(counted[first.first].activations - parts.saved_by_rows(0) <= last.peak);
  std::uint64_t next = 0;  // the most behind it, if nothing there is cut
  for (std::size_t i = first.end; i < plain.size(); ++i) next = std::max(next, plain[i].activations);
  CHECK(next < counted[first.first].activations);
  CHECK(next > last.peak);
  const plan::Plan plan = *make_plan(graph, {}, {.partition = Partition::kLeast, .max_overhead = 0.5});
  CHECK(plan::activation_peak(plan).bytes.count() < next);
}

TEST_CASE("assumed rates price steps of few dispatches higher in bands, and no others") {
  constexpr std::int64_t kRows = 64;
  NetBuilder net("short steps");
  net.output(net.relu(net.input({1, kRows, 16, 64})));  // a row is 4 KiB
  const model::Graph graph = net.finish();
  profiler::DeviceProfile profile;
  const auto factor = [&](std::int64_t rows) {
    const Problem problem = problem_of(graph, profile);
    StepSpec step{0, {0, model::step_channels(graph, graph.nodes[0])}};
    step.rows = {0, rows};
    return StepCosts(problem).seconds(NodeId(0), {0, step.rows, 0}) /
           price_step(graph, problem.kernels, NodeId(0), step, profile, problem.threads);
  };
  CHECK(factor(1) > 2);
  CHECK(factor(1) > factor(4));
  CHECK(factor(4) > 1);
  CHECK(factor(kRows - 1) == Approx(1));  // more than ten dispatches
  profile.step_overhead_seconds = 1e-4;
  CHECK(factor(kRows - 1) > 2);
  CHECK(factor(kRows) == Approx(1));  // whole, as without bands
  profile.kernels.emplace_back();
  CHECK(factor(1) == Approx(1));  // measured rates say it themselves
}

TEST_CASE("what a concatenation finds in place takes no time, and what it copies from afar takes the same") {
  NetBuilder net("in place");
  const TensorId x = net.input({1, 256, 256, 16});
  net.output(net.relu(net.concat({x, net.conv(x, {.channels = 48})}, 3)));
  const model::Graph graph = net.finish();
  const profiler::DeviceProfile profile;
  const Problem problem = problem_of(graph, profile);
  const auto seconds = [&](std::uint64_t there_bytes, std::uint64_t far_bytes) {
    StepSpec step{0, {0, 64}};
    step.rows = {0, 64};
    step.there_bytes = there_bytes;
    step.far_bytes = far_bytes;
    return price_step(graph, problem.kernels, NodeId(1), step, profile, problem.threads);
  };
  const std::uint64_t all = 64 * 256 * 64 * sizeof(float), far = all / 4;
  const double none = seconds(0, 0), dispatch = profile.step_overhead_seconds;
  CHECK(none > 2 * dispatch);
  CHECK(seconds(all, 0) == Approx(dispatch));
  CHECK(seconds(all / 4 * 3, 0) == Approx(dispatch + (none - dispatch) / 4));
  CHECK(seconds(all / 4 * 3, far) - seconds(all / 4 * 3, 0) == Approx(seconds(0, far) - none));
}

TEST_CASE("bands that read weights again save more than a hundredth of the time") {
  int read_more = 0;
  for (const std::int64_t positions : {320, 512}) {
    const model::Graph graph = pre_norm_net(3, positions, 256, true);
    for (const double speed : {1.0, 1.5, 2.0, 2.5, 3.0, 4.0})  // of memory: the slower, the more bands save
      for (const std::uint64_t kib : {3600u, 4400u, 6000u}) {
        profiler::DeviceProfile profile;
        profile.memory_bytes_per_second *= speed;
        PlanRequest request{.capacity = Bytes(kib << 10), .repeat = true};
        const auto free = make_plan(graph, profile, request);
        request.partition = Partition::kOff;
        const auto whole = make_plan(graph, profile, request);
        if (!free || !whole) continue;
        if (static_cast<double>(free->streamed_bytes.count()) <= 1.05 * static_cast<double>(whole->streamed_bytes.count())) continue;
        INFO(positions << " positions, " << kib << " KiB, " << speed);
        ++read_more;
        CHECK(free->prediction.period_ms < 0.992 * whole->prediction.period_ms);
      }
  }
  CHECK(read_more > 0);
}

TEST_CASE("a budget between two rungs takes the first that fits") {
  const model::Graph graph = dense_block();
  const auto whole = minimum_capacity(graph, {}, {.partition = Partition::kOff}), least = minimum_capacity(graph, {}, {});
  REQUIRE((whole.has_value() && least.has_value()));
  REQUIRE(*least < *whole);
  for (const std::uint64_t capacity : {least->count(), (least->count() + whole->count()) / 2, whole->count()}) {
    const auto plan = make_plan(graph, {}, {.capacity = Bytes(capacity)});
    REQUIRE(plan.has_value());
    CHECK(plan->arena_bytes.count() <= capacity);
    CHECK(plan->minimum_capacity == *least);
  }
  CHECK_FALSE(make_plan(graph, {}, {.capacity = *least - Bytes(4096)}).has_value());
}

TEST_CASE("rings that are never needed at one step lie at one place, others beside each other") {
  // By step: a and c take turns, b meets both, d meets nobody.
  const std::vector<RingUse> rings = {{128, {{6, 8}, {0, 2}}}, {64, {{7, 9}, {1, 3}}}, {64, {{8, 10}, {3, 4}}}, {192, {{4, 6}}}};
  const BusySteps busy(rings);
  CHECK(busy.meet(0, 1));
  CHECK_FALSE(busy.meet(0, 2));
  CHECK(busy.meet(1, 2));
  const SharedRings shared = share_rings(rings, 64);
  CHECK(shared.offsets == std::vector<std::uint64_t>{0, 128, 0, 0});
  CHECK(shared.bytes == 192);
}

TEST_CASE("rings meet where a step is in ranges of both, in whichever words their bits lie") {
  for (const std::int64_t at : {0, 1, 62, 63, 64, 65, 127, 128, 200}) {
    const std::vector<RingUse> rings = {{64, {{at, at + 1}}}, {64, {{at + 1, at + 130}, {0, at}}}, {64, {{0, at + 130}}}};
    const BusySteps busy(rings);
    CHECK_FALSE(busy.meet(0, 1));
    CHECK(busy.meet(0, 2));
    CHECK(busy.meet(1, 2));
  }
}

TEST_CASE("rows lie in the slots that others leave free, and a workspace in what is free at its step") {
  // Slot by slot: b is needed when the second slot of a is not, c always; a step's workspace finds a's first slot free.
  const std::vector<SlotUse> rings = {{64, {{{0, 2}, {4, 6}}, {{2, 4}}}}, {64, {{{0, 2}, {4, 6}}}}, {64, {{{0, 6}}}}};
  CHECK(meet(rings[0].busy[0], rings[1].busy[0]));
  CHECK_FALSE(meet(rings[0].busy[1], rings[1].busy[0]));
  const std::vector<std::uint64_t> workspaces = {0, 0, 0, 64, 0, 128};
  const PlacedRows placed = place_rows(rings, workspaces, false, 64, 0);
  CHECK(placed.offsets == std::vector<std::uint64_t>{0, 64, 128});
  CHECK(placed.workspaces[3] == Interval<std::uint64_t>{0, 64});
  CHECK(placed.workspaces[5] == Interval<std::uint64_t>{192, 320});
  CHECK(placed.bytes == 320);
  // The larger workspace at the bottom, rings round it: the first slot of a is needed then, the second is not.
  const PlacedRows below = place_rows(rings, workspaces, true, 64, 0);
  CHECK(below.workspaces[5] == Interval<std::uint64_t>{0, 128});
  CHECK(below.bytes < placed.bytes + 64);
  // With a tail behind each row that is read, a ring leaves no slot to another that is needed at the same steps as the slot before it.
  CHECK(place_rows(rings, workspaces, false, 64, 64).bytes > placed.bytes);
}

TEST_CASE("workspaces of bands lie between the rows of rings") {
  NetBuilder net("between");
  TensorId x = net.input({1, 64, 32, 16});
  for (int layer = 0; layer < 4; ++layer) {
    x = net.conv(net.conv(x, {.channels = 64}), {.channels = 32, .kernel = 3});
    net.last_node().numeric = model::NumericClass::kWinograd4;
  }
  net.output(net.pool(x, 8, 8));
  const model::Graph graph = net.finish();
  const profiler::DeviceProfile profile;
  const Problem whole = problem_of(graph, profile);
  const std::vector<NodeId> order = graph_order(graph);
  const Uses uses(graph, whole.kernels, order);
  StepCosts costs(whole);
  // Whatever regions and bands prices would choose: some leave room between rows, and what lies there is inside the block of the rings.
  std::size_t between = 0;
  for (std::size_t end = 2; end <= order.size(); ++end) {
    for (const std::int64_t bands : {2, 4, 8, 16, 32}) {
      const Partitioned cut(whole, uses, order, false, {Region{0, end, bands}}, costs);
      if (!cut.valid()) continue;
      const Views views = cut.problem().views;
      for (const Interval<std::uint64_t>& workspace : views.chains.front().workspaces) {
        if (workspace.empty()) continue;
        ++between;
        CHECK(workspace.end <= views.blocks[views.chains.front().rings.index()].bytes);
      }
    }
  }
  CHECK(between > 0);
}

TEST_CASE("a node's steps are those of its bands, or one of all rows") {
  const Chain chain{1, 2, {{1, {0, 32}}, {1, {32, 64}}}, {}};
  CHECK(steps_of_rows({chain}, 1, 64).count == 2);
  CHECK(steps_of_rows({chain}, 1, 64).first == RowRange{0, 32});
  CHECK(steps_of_rows({chain}, 0, 64).count == 1);
  CHECK(steps_of_rows({chain}, 0, 64).first == RowRange{0, 64});
}

/// The first `count` nodes of a net as a region in 64 bands, cut on demand.
struct FirstRegion {
  FirstRegion(const model::Graph& graph, std::size_t count)
      : kernels(*select_kernels(graph)),
        order(graph_order(graph)),
        views(views_of(graph, count)),
        cutter(graph, kernels, views, Connected::kDeclared),
        banded(cutter.cut_on_demand(0, count, 64)) {}

  const KernelChoice kernels;
  const std::vector<NodeId> order;
  const Views views;
  const BandCutter cutter;
  const std::optional<Banded> banded;

 private:
  Views views_of(const model::Graph& graph, std::size_t count) const {
    std::vector<bool> apart(graph.tensors.size(), false);
    Uses(graph, kernels, order).mark_inside({0, count, 64}, apart);
    return assign_views(graph, kernels, order, false, apart);
  }
};

TEST_CASE("in a region rings share bytes, and its input dies under its output") {
  NetBuilder net("shares");
  TensorId x = net.conv(net.input({1, 64, 32, 16}), {.channels = 16, .kernel = 3});
  x = net.relu(net.concat({net.relu(x), net.conv(x, {.channels = 16})}, 2));
  x = net.conv(x, {.channels = 16, .kernel = 3});
  net.output(net.dense(net.reshape(x, {1, net.shape(x).element_count()}), 16));
  model::Graph graph = net.finish();
  const FirstRegion region(graph, 6);
  const auto& [kernels, order, views, cutter, banded] = region;
  REQUIRE((banded.has_value() && banded->shared.has_value()));
  std::uint64_t apart_bytes = 0;
  for (std::size_t p = 0; p < 6; ++p) apart_bytes += static_cast<std::uint64_t>(banded->ring_rows[p]) * cutter.row_bytes(p);
  CHECK(banded->shared->bytes < apart_bytes);
  // The output has twice the channels of the input: 256 KiB under which 128 die, but for what windows still read.
  const std::uint64_t before = live_peak(views);
  Views after = views;
  cutter.apply(*banded, after);
  drop_empty(after);
  CHECK(after.blocks.size() < views.blocks.size());
  CHECK(live_peak(after) < before);
  const std::uint64_t in = graph.tensor(graph.inputs[0].tensor).bytes().count();
  if (banded->overlaid) CHECK(banded->overlaid->bytes < in + cutter.output_bytes(5));
}

TEST_CASE("what a region makes of a concatenation lies in its ring, unless that runs too far ahead") {
  // Behind `far` come three windows of three rows each before the concatenation: it is up to four rows ahead of what they make.
  NetBuilder net("joined");
  const TensorId far = net.conv(net.input({1, 64, 16, 16}), {.channels = 16, .kernel = 3});
  TensorId near = far;
  for (int i = 0; i < 3; ++i) near = net.conv(near, {.channels = i == 2 ? 48 : 16, .kernel = 3});
  const TensorId whole = net.concat({far, near}, 3);
  net.output(net.conv(whole, {.channels = 16, .kernel = 3}));
  const model::Graph graph = net.finish();
  const FirstRegion region(graph, 6);
  const auto& [kernels, order, views, cutter, banded] = region;
  REQUIRE(banded.has_value());
  REQUIRE(banded->joined.size() == 1);
  CHECK(banded->joined[0].part == 3);
  CHECK(banded->joined[0].whole == 4);
  CHECK(banded->joined[0].offset == 16 * sizeof(float));
  CHECK_FALSE(banded->has_ring(3));
  CHECK(banded->has_ring(0));
  CHECK(banded->ring_rows[3] == banded->ring_rows[4]);
  // Three quarters of what the concatenation's steps would copy.
  for (const BandStep& step : banded->chain.steps)
    CHECK(step.there_bytes == (step.position == 4 ? static_cast<std::uint64_t>(step.rows.size()) * 16 * 48 * sizeof(float) : 0));
  Views after = views;
  cutter.apply(*banded, after);
  const plan::TensorPlacement &part = after.tensors[near.index()], &all = after.tensors[whole.index()];
  CHECK(part.buffer == all.buffer);
  CHECK(part.offset == all.offset + Bytes(16 * sizeof(float)));
  CHECK((part.row_pitch == all.row_pitch && part.pixel_pitch == all.pixel_pitch));
  // No two rows of the ring are held in one slot.
  const std::vector<SlotUse> slots = cutter.slots_of(*banded);
  for (const auto& slot : slots[4].busy)
    for (std::size_t i = 0; i + 1 < slot.size(); ++i) CHECK(slot[i].end <= slot[i + 1].begin);
}

TEST_CASE("rings that are done before the last rows of a region's output lie there, and what is needed then does not") {
  NetBuilder net("under the output");
  TensorId x = net.input({1, 64, 32, 4});
  for (const std::int64_t channels : {16, 16, 16, 64}) x = net.conv(x, {.channels = channels, .kernel = 3});
  net.output(net.pool(x, 2, 2));
  const model::Graph graph = net.finish();
  const FirstRegion region(graph, 4);
  const auto& [kernels, order, views, cutter, banded] = region;
  REQUIRE(banded.has_value());
  std::vector<SlotUse> rings = cutter.slots_of(*banded);
  const std::vector<SlotUse> all = rings;
  const std::optional<UnderOutput> under = place_under_output(graph, views, cutter, *banded, rings);
  REQUIRE(under.has_value());
  const std::uint64_t row = cutter.row_bytes(3), height = cutter.output_bytes(3);
  std::size_t there = 0;
  for (std::size_t r = 0; r < rings.size(); ++r) {
    if (under->offsets[r] == UnderOutput::kNowhere) continue;
    ++there;
    CHECK(rings[r].busy.empty());
    CHECK(under->offsets[r] + all[r].bytes() <= height);
    // The first output row on its bytes is made behind its last use.
    std::int64_t last = 0;
    for (const auto& slot : all[r].busy) last = std::max(last, slot.back().end);
    for (std::size_t s = 0; s < banded->chain.steps.size(); ++s) {
      const BandStep& step = banded->chain.steps[s];
      if (step.position == 3 && static_cast<std::uint64_t>(step.rows.end) * row > under->offsets[r]) {
        CHECK(static_cast<std::int64_t>(s) >= last);
      }
    }
  }
  CHECK((there > 0 && there < rings.size()));
}

TEST_CASE("with a scratch file the least capacity of dense blocks is smaller, and the search for bands goes to its end") {
  NetBuilder net("dense blocks");
  TensorId x = net.pool(net.conv(net.input({1, 112, 112, 3}), {.channels = 64, .kernel = 7, .stride = 2}), 3, 2, 1);
  for (const int layers : {6, 12, 24}) {
    std::vector<TensorId> made{x};
    for (int layer = 0; layer < layers; ++layer) {
      const TensorId all = made.size() == 1 ? made[0] : net.concat(made, 3);
      made.push_back(net.conv(net.conv(net.relu(all), {.channels = 128}), {.channels = 32, .kernel = 3}));
    }
    x = net.pool(net.conv(net.relu(net.concat(made, 3)), {.channels = 128}), 2, 2);
  }
  net.output(x);
  const model::Graph graph = net.finish();
  const Bytes without = *minimum_capacity(graph, {}, {});
  const PlanRequest spilling{.capacity = *minimum_capacity(graph, {}, {.may_spill = true}), .may_spill = true};
  CHECK(spilling.capacity < without);
  const auto plan = make_plan(graph, {}, spilling);
  REQUIRE(plan.has_value());
  CHECK_FALSE(plan->passing.empty());
}

TEST_CASE("with a scratch file, too, the partition of least activations asks for no larger arena than auto, nor auto than off") {
  NetBuilder net("stages");
  TensorId x = net.input({1, 96, 96, 3});
  for (const std::int64_t channels : {32, 64, 128}) {
    for (int i = 0; i < 2; ++i) x = net.conv(x, {.channels = channels, .kernel = 3});
    x = net.pool(x, 2, 2);
  }
  net.output(net.conv(x, {.channels = 256, .kernel = 3}));
  for (const model::Graph& graph : {net.finish(), dense_block()}) {
    const auto least_of = [&](Partition partition) { return *minimum_capacity(graph, {}, {.partition = partition, .may_spill = true}); };
    CHECK(least_of(Partition::kLeast) <= least_of(Partition::kAuto));
    CHECK(least_of(Partition::kAuto) <= least_of(Partition::kOff));
  }
}

}  // namespace
}  // namespace sluice::planner

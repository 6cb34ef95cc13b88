// Runs plans in which tensors pass: outputs handed over as they are made, activations through a scratch file; whole and in bands, with one
// slice and many, with one thread and two. The same bits as with a buffer for each.
#include <catch2/catch.hpp>

#include "sluice/planner/order/passing_choice.h"
#include "tests/property/band_nets.h"
#include "tests/property/filled_run.h"
#include "tests/property/forced_bands.h"

namespace sluice::planner {
namespace {

/// Rows that the caller gets in another shape.
model::Graph shown_net() {
  NetBuilder net("shown");
  const TensorId x = net.relu(net.dense(net.input({12, 48}), 96));
  net.output(net.reshape(net.dense(x, 80), {3, 4, 80}));
  return net.finish();
}

/// What could pass in a graph: nothing but outputs, and then with what may be spilled.
std::vector<PassingKinds> ways_of(const model::Graph& graph) {
  const KernelChoice kernels = *select_kernels(graph);
  const PassingKinds outputs = handed_over(graph, kernels);
  std::vector<PassingKinds> ways = spill_sets(graph, kernels, graph_order(graph), outputs);
  ways.push_back(outputs);
  // Without the scratch file's least size, too: these networks are small.
  PassingKinds all = outputs;
  const detail::PassingCandidates candidates(graph, kernels);
  for (std::size_t t = 0; t < all.size(); ++t)
    if (candidates.may_be_spilled(TensorId(t))) all[t] = Passing::Kind::kSpilled;
  ways.push_back(all);
  return ways;
}

std::size_t count_of(const plan::Plan& plan, plan::Passage passage) {
  return static_cast<std::size_t>(
      std::count_if(plan.blocks.begin(), plan.blocks.end(), [&](const plan::PassingBlock& b) { return b.passage == passage; }));
}

void check_passing(const model::Graph& graph) {
  INFO(graph.name);
  const Filled model(graph);
  const std::vector<std::byte> expected = run(model, ForcedBands(model.graph, 1).plan({}, 1 << 20), 1);
  std::size_t handed = 0, stored = 0, fetched = 0, in_bands = 0;
  const auto check = [&](const plan::Plan& plan, int threads) {
    handed += count_of(plan, plan::Passage::kHandedOver);
    stored += count_of(plan, plan::Passage::kStored);
    fetched += count_of(plan, plan::Passage::kFetched);
    REQUIRE(run(model, plan, threads) == expected);
  };
  for (const int threads : {1, 2}) {
    for (const PassingKinds& way : ways_of(graph)) {
      const ForcedBands bands(model.graph, threads, way);
      for (const std::uint64_t target : {1, 1 << 20}) check(bands.plan({}, target), threads);
      for (std::size_t first = 0; first < graph.nodes.size(); first += 2) {
        for (std::size_t end = first + 1; end <= graph.nodes.size(); end += 3) {
          const auto plan = bands.plan_region(Region{first, end, 4, true, first % 4 == 0 ? ~std::uint64_t{0} : 0}, 1);
          if (!plan) continue;
          INFO(threads << " threads, nodes " << first << " to " << end);
          ++in_bands;
          check(*plan, threads);
        }
      }
    }
  }
  CHECK(handed > 0);
  CHECK(stored > 0);
  CHECK(fetched > 0);
  CHECK(in_bands > 0);
}

}  // namespace

TEST_CASE("what passes is the same bits as what has a buffer, in image networks") {
  check_passing(image_net());
  check_passing(winograd_net());
}

TEST_CASE("what passes is the same bits as what has a buffer, through joins and skips") {
  check_passing(joining_net());
  check_passing(skipping_net());
}

TEST_CASE("what passes is the same bits as what has a buffer, in rows of matrices") {
  check_passing(row_net());
  check_passing(shown_net());
  check_passing(attending_net());
}

}  // namespace sluice::planner

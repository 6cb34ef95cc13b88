// Runs plans in bands: the same bits as whole, for every number of bands and threads, and nothing touched between the buffers.
#include <catch2/catch.hpp>

#include "tests/property/band_nets.h"
#include "tests/property/filled_run.h"
#include "tests/property/forced_bands.h"

namespace sluice::planner {
namespace {

std::size_t joined_parts(const model::Graph& graph, const plan::Plan& plan) {
  std::size_t count = 0;
  for (const model::Node& node : graph.nodes) {
    const plan::TensorPlacement& whole = plan.tensors[node.outputs[0].index()];
    if (node.op != model::OpKind::kConcat || whole.ring_rows == 0) continue;
    for (const TensorId in : node.inputs) {
      const plan::TensorPlacement& part = plan.tensors[in.index()];
      count += part.buffer == whole.buffer && part.ring_rows == whole.ring_rows && part.pixel_pitch == whole.pixel_pitch ? 1 : 0;
    }
  }
  return count;
}

/// Each run of nodes as a region, in several numbers of bands, weights held and read again. `in_place`: sums stay in the place of what they
/// add to. How many parts of concatenations were made in their ring.
std::size_t check_regions(const model::Graph& graph, bool in_place = false) {
  INFO(graph.name);
  const Filled model(graph);
  const std::vector<std::byte> expected = run(model, ForcedBands(model.graph, 1).plan({}, 1 << 20), 1);
  std::size_t plans = 0, rings = 0, joined = 0;
  for (const int threads : {1, 2}) {
    const ForcedBands bands(model.graph, threads);
    for (std::size_t first = 0; first < graph.nodes.size(); first += 2) {
      for (std::size_t end = first + 2; end <= graph.nodes.size(); end += 3) {
        for (const std::int64_t count : {2, 5, 100}) {
          for (const std::uint64_t above : {std::uint64_t{1} << 40, std::uint64_t{0}}) {
            INFO(threads << " threads, nodes " << first << " to " << end << " in " << count << " bands, read again above " << above);
            const auto plan = bands.plan_region(Region{first, end, count, true, above, in_place}, above == 0 ? 1 : 1 << 20);
            if (!plan) continue;
            ++plans;
            for (const plan::TensorPlacement& t : plan->tensors) rings += t.ring_rows > 0 ? 1 : 0;
            joined += joined_parts(graph, *plan);
            REQUIRE(run(model, *plan, threads) == expected);
          }
        }
      }
    }
  }
  CHECK(plans >= 20);
  CHECK(rings >= 20);
  return joined;
}

void check_same_bits(const model::Graph& graph) {
  INFO(graph.name);
  const Filled model(graph);
  std::vector<std::byte> expected;
  for (const int threads : {1, 3}) {
    const ForcedBands bands(model.graph, threads);
    const std::vector<std::byte> whole = run(model, bands.plan({}, 1 << 20), threads);
    if (expected.empty()) expected = whole;
    CHECK(whole == expected);
    std::size_t rings = 0;
    for (const std::int64_t count : {2, 3, 7, 1000}) {
      for (const std::size_t longest : {2, 3, 6, 20}) {
        INFO(threads << " threads, " << count << " bands, chains of up to " << longest);
        const std::vector<Banded> chains = bands.chains(longest % 2, longest, count);
        rings += ForcedBands::rings(chains);
        CHECK(run(model, bands.plan(chains, longest == 3 ? 1 : 1 << 20), threads) == expected);
      }
    }
    CHECK(rings >= 10);
  }
}

}  // namespace

TEST_CASE("bands of image networks give the same bits as whole maps") {
  check_same_bits(image_net());
  check_same_bits(winograd_net());
}

TEST_CASE("bands of rows give the same bits as whole matrices") { check_same_bits(row_net()); }

TEST_CASE("regions with joins, skips and residuals give the same bits as whole maps") {
  check_regions(joining_net());
  check_regions(skipping_net());
  check_regions(image_net());
  check_regions(winograd_net());
}

TEST_CASE("parts that are made in a concatenation's ring give the same bits as parts that are copied there") {
  std::size_t joined = 0;
  for (std::uint32_t seed = 1; seed <= 6; ++seed) joined += check_regions(random_joining_net(seed));
  CHECK(joined >= 100);
}

TEST_CASE("regions whose sums stay in the place of what they add to give the same bits as whole maps") {
  for (const std::int64_t window : {1, 3}) check_regions(sums_in_place_net(window), true);
  check_regions(attending_net(), true);
}

TEST_CASE("a sum that takes the place of a map that a concatenation shows gives the same bits while another one copies that map") {
  check_regions(sum_in_a_join_net());
}

TEST_CASE("regions with sums of parts that concatenations show or copy give the same bits as whole maps") {
  for (std::uint32_t seed = 1; seed <= 8; ++seed)
    for (const bool in_place : {false, true}) check_regions(random_joining_net(seed, true), in_place);
}

TEST_CASE("regions with an attention give the same bits as whole matrices") {
  check_regions(attending_net());
  check_regions(pre_norm_net(1, 37, 32, true));
}

}  // namespace sluice::planner

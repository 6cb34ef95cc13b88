#include "sluice/planner/choose/policies.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/planner/nets.h"
#include "tests/planner/problem_fixture.h"

namespace sluice::planner {
namespace {

constexpr TableCosts kCosts{
    .set_aside = 0, .any_plan = 1000, .buffer = 50, .step = 200, .load = 100, .tensor = 70, .weight = 30, .operand = 20};

TEST_CASE("a sample of the slices takes the arena and the tables of all of them") {
  int threads = 0;
  for (model::Graph graph : {squeezenet1_1(), resnet50(), resnet50(), mobilenet_v2(), vgg19(), vgg19()}) {
    Fixture f(std::move(graph));
    threads = threads % 3 + 1;
    f.problem.threads = threads;
    INFO(f.graph.name << ", " << threads << " threads");
    f.problem.tables = kCosts;
    for (const std::uint64_t target : {std::uint64_t{1}, std::uint64_t{64} << 10, std::uint64_t{4} << 20}) {
      const auto whole = place_on_demand(f.problem, make_draft(f.problem, {.target = target, .hold = false}), kEndlessArena);
      const auto sample =
          place_on_demand(f.problem, make_draft(f.problem, {.target = target, .hold = false, .sample = true}), kEndlessArena);
      REQUIRE((whole && sample));
      CHECK(sample->arena_bytes == whole->arena_bytes);
      CHECK(sample->table_bytes == whole->table_bytes);
    }
    const Least least = least_candidate(f.problem, Policy::kSluice);
    const Candidate complete = complete_least(f.problem, least);
    CHECK(complete.bytes() == least.bytes());
  }
}

TEST_CASE("a weight that two nodes read slice by slice comes in pieces that count twice, and they are kept first") {
  NetBuilder net("tied");
  TensorId x = net.dense(net.input({64, 512}), 4096);
  x = net.dense(x, 512);
  net.output(net.dense(x, 4096));
  model::Graph graph = net.finish();
  std::vector<model::Node*> dense;
  for (model::Node& node : graph.nodes)
    if (node.op == model::OpKind::kDense) dense.push_back(&node);
  REQUIRE(dense.size() == 3);
  dense[2]->weights = dense[0]->weights;
  const Fixture f(std::move(graph));
  const Interval<std::uint32_t> tied = f.problem.pieces.of_weight[dense[0]->weights[0].index()];
  REQUIRE(tied.size() >= 1);
  for (std::uint32_t p = tied.begin; p < tied.end; ++p) CHECK(f.problem.pieces.all[p].reads == 2);
  REQUIRE(f.problem.residency.front().size() == f.problem.pieces.all.size());
  std::vector<std::uint32_t> reads;
  for (const std::uint32_t piece : f.problem.residency.front()) reads.push_back(f.problem.pieces.all[piece].reads);
  CHECK(std::is_sorted(reads.rbegin(), reads.rend()));
}

TEST_CASE("the paper's rule leaves room for the tables of its plans") {
  Fixture f(mobilenet_v2());
  f.problem.tables = kCosts;
  for (const std::uint64_t mib : {7, 9, 12, 16}) {
    INFO(mib << " MiB");
    const std::optional<Candidate> candidate = flexnn_candidate(f.problem, mib << 20);
    REQUIRE(candidate.has_value());
    CHECK(candidate->table_bytes > 0);
    CHECK(candidate->bytes() <= mib << 20);
  }
}

TEST_CASE("of shares of the spare memory that promise the same, the one that leaves loads room is drafted first") {
  NetBuilder net("dense");  // nothing of it is kept transformed
  TensorId x = net.input({256, 1024});
  for (int layer = 0; layer < 12; ++layer) x = net.dense(x, 1024);
  net.output(x);
  Fixture f(net.finish());
  f.profile.read_bytes_per_second = 1e12;  // computing alone decides
  const Least least = least_candidate(f.problem, Policy::kSluice);
  Search search{f.problem, least.bytes() + (16u << 20)};
  StreamDrafts drafts(f.problem, detail::ground_of(f.problem, least), search);
  drafts.judge_mixes();
  CHECK(drafts.best_mix().twentieths == 14);
}

TEST_CASE("a baseline that reads more must be better by more than a tie") {
  NetBuilder net("dense");
  net.output(net.dense(net.input({4, 64}), 64));
  Fixture f(net.finish());
  Search search{f.problem, 1u << 20};
  search.worthwhile = 1;  // as for baselines
  const auto offer = [&](double seconds, std::uint64_t bytes) {
    Candidate candidate;
    candidate.seconds = seconds;
    candidate.schedule.loads.emplace_back().payload.size = Bytes(bytes);
    search.offer(std::move(candidate));
    return search.best->seconds == seconds;
  };
  CHECK(offer(1.0, 8 * kBlockBytes));
  CHECK_FALSE(offer(0.9999, 16 * kBlockBytes));
  CHECK(offer(0.9998, 8 * kBlockBytes));
  CHECK(offer(0.99, 16 * kBlockBytes));
}

TEST_CASE("workspaces lie where their slices were cut for, and blocks where they lie in every draft") {
  Fixture f(resnet50());
  const Least least = least_candidate(f.problem, Policy::kSluice);
  const Room room = Room::beside_blocks(least.candidate.layout, f.problem.views.order.size());
  const std::uint64_t height = least.candidate.layout.height + (8u << 20);
  Draft draft = make_draft(f.problem, {.room = room.within(height), .depth = 2});
  REQUIRE(room.lay_out(draft.layout, height));
  CHECK(draft.layout.height <= height);
  for (std::size_t b = 0; b < draft.layout.blocks; ++b) CHECK(draft.layout.offsets[b] == least.candidate.layout.offsets[b]);
  for (std::size_t i = 0; i < draft.layout.items.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Rectangle &a = draft.layout.items[i], &b = draft.layout.items[j];
      if (a.size == 0 || b.size == 0 || !a.time.overlaps(b.time)) continue;
      const bool apart =
          draft.layout.offsets[i] + a.size <= draft.layout.offsets[j] || draft.layout.offsets[j] + b.size <= draft.layout.offsets[i];
      CHECK(apart);
    }
}

TEST_CASE("there is an order of residency for each rule, and it holds each piece once") {
  Fixture f(resnet50());
  REQUIRE(f.problem.residency.size() == std::size(kResidencyOrders));
  for (std::vector<std::uint32_t> order : f.problem.residency) {
    std::sort(order.begin(), order.end());
    REQUIRE(order.size() == f.problem.pieces.all.size());
    for (std::uint32_t p = 0; p < order.size(); ++p) CHECK(order[p] == p);
  }
}

}  // namespace
}  // namespace sluice::planner

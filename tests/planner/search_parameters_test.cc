// Each rule of the search off, and all: what is planned is slower or larger, but right. `make_plan` verifies what it gives.
#include "sluice/planner/search_parameters.h"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "sluice/planner/planner.h"
#include "tests/planner/nets.h"
#include "tests/planner/search_rules.h"

namespace sluice::planner {
namespace {

double seconds(const model::Graph& graph, Bytes capacity, const SearchParameters& search, bool repeat = true) {
  const auto plan = make_plan(graph, {}, {.capacity = capacity, .repeat = repeat, .search = search});
  if (!plan) FAIL(plan.error().to_string());
  CHECK(plan->arena_bytes <= capacity);
  const double ms = repeat ? plan->prediction.period_ms : plan->prediction.cold_ms;
  CHECK(ms >= plan->prediction.bound_ms * 0.9999);
  return ms;
}

/// The least capacity, and shares of the way to twice the least that keeps every weight.
std::vector<Bytes> some_capacities(const model::Graph& graph, const SearchParameters& search) {
  const auto least = minimum_capacity(graph, {}, {.repeat = true, .search = search});
  const auto all = minimum_capacity(graph, {}, {.policy = Policy::kResident, .repeat = true});
  REQUIRE(least);
  REQUIRE(all);
  const std::uint64_t way = all->count() > least->count() ? all->count() - least->count() : 0;
  return {*least, *least + Bytes(way / 8), *least + Bytes(way / 2)};
}

TEST_CASE("each rule of the search may be off, and all of them: plans stay right") {
  for (const model::Graph& graph : {squeezenet1_1(), mobilenet_v2()}) {
    CAPTURE(graph.name);
    SearchParameters none;
    for (const SearchRule& rule : kSearchRules) none.*rule.on = false;
    for (const Bytes capacity : some_capacities(graph, none)) {
      CAPTURE(capacity.count());
      const double all_on = seconds(graph, capacity, {}), all_off = seconds(graph, capacity, none);
      CHECK(all_on <= all_off * 1.0001);
      for (const SearchRule& rule : kSearchRules) {
        CAPTURE(rule.name);
        SearchParameters one_off;
        one_off.*rule.on = false;
        if (const auto least = minimum_capacity(graph, {}, {.repeat = true, .search = one_off}); least && *least <= capacity)
          seconds(graph, capacity, one_off);
      }
      seconds(graph, capacity, none, false);
    }
  }
}

TEST_CASE("rules that are off do nothing") {
  const model::Graph graph = vgg19();
  const auto steps_in_bands = [&](const SearchParameters& search) {
    const Bytes capacity = Bytes(64u << 20);
    const auto plan = make_plan(graph, {}, {.capacity = capacity, .repeat = true, .search = search});
    REQUIRE(plan);
    std::size_t bands = 0, derived = 0;
    for (const plan::Step& step : plan->steps) bands += step.rows.begin > 0;
    for (const plan::Buffer& buffer : plan->buffers) derived += buffer.kind == plan::BufferKind::kDerived;
    return std::pair(bands, derived);
  };
  SearchParameters no_bands;
  no_bands.time_bands = no_bands.memory_bands = false;
  CHECK(steps_in_bands({}).first > 0);
  CHECK(steps_in_bands(no_bands).first == 0);
  const auto least = [&](const SearchParameters& search) { return *minimum_capacity(graph, {}, {.repeat = true, .search = search}); };
  SearchParameters no_memory_bands;
  no_memory_bands.memory_bands = false;
  CHECK(least({}) < least(no_memory_bands));
}

}  // namespace
}  // namespace sluice::planner

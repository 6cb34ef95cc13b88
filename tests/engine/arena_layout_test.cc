#include "src/engine/arena_layout.h"

#include <catch2/catch.hpp>

#include "sluice/core/interval.h"
#include "sluice/core/units.h"
#include "sluice/engine/engine.h"
#include "sluice/plan/verify.h"
#include "tests/executor/toy_file.h"

namespace sluice::engine {
namespace {

constexpr std::uint64_t kPage = 4096;

using ByteRange = Interval<std::uint64_t>;

}  // namespace

TEST_CASE("a lone plan lies as it was placed") {
  const PlanToPlace plan{{5 * kPage, 3 * kPage + 64}, 0};
  for (const std::uint64_t capacity : {plan.parts.bytes(), plan.parts.bytes() + 7, 100 * kPage})
    CHECK(lay_out({&plan, 1}, capacity) == std::vector<PlanPlace>{{0, 5 * kPage}});
}

TEST_CASE("plans of random sizes keep the rules of the layout") {
  std::uint32_t random = 1;
  const auto below = [&](std::uint64_t n) {
    random = random * 1664525u + 1013904223u;
    return (random >> 8) % n;
  };
  for (int problem = 0; problem < 2000; ++problem) {
    CAPTURE(problem);
    std::vector<PlanToPlace> plans;
    std::uint64_t largest = 0;
    for (std::uint64_t i = 0, count = 1 + below(6); i < count; ++i) {
      plans.push_back({{below(20) * kPage, below(10) * kPage + 64 * below(3)}, below(i + 1)});
      if (plans.back().model != i && below(2) == 0) plans.back().parts = plans[plans.back().model].parts;
      largest = std::max(largest, plans.back().parts.bytes());
    }
    for (PlanToPlace& plan : plans)  // a model is named by its first plan
      while (plans[plan.model].model != plan.model) plan.model = plans[plan.model].model;
    const std::uint64_t capacity = largest + below(60 * kPage);
    const std::vector<PlanPlace> places = lay_out(plans, capacity);
    REQUIRE(places.size() == plans.size());
    std::uint64_t kept = 0;
    std::uint64_t passing = 0;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      std::uint64_t most = 0;
      for (const PlanToPlace& plan : plans) most = plan.model == i ? std::max(most, plan.parts.kept) : most;
      kept += most;
      passing = std::max(passing, plans[i].parts.passing);
    }
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const ByteRange own{places[i].kept, places[i].kept + plans[i].parts.kept};
      const ByteRange own_passing{places[i].passing, places[i].passing + plans[i].parts.passing};
      CHECK(own.end <= own_passing.begin);  // L1
      CHECK(own_passing.end <= capacity);
      CHECK((own.begin % kPage == 0 && own_passing.begin % kPage == 0));  // L4
      for (std::size_t j = 0; j < plans.size(); ++j) {
        const ByteRange other{places[j].kept, places[j].kept + plans[j].parts.kept};
        if (plans[j].model == plans[i].model) CHECK(places[j].kept == places[i].kept);  // L2
        if (kept + passing > capacity || plans[j].model == plans[i].model) continue;
        CHECK_FALSE((own.overlaps(other) && !own.empty() && !other.empty()));  // L3
        CHECK_FALSE((own_passing.overlaps(other) && !other.empty()));
      }
    }
  }
}

TEST_CASE("where all does not fit, some still do") {
  // The first two keep their places beside each other; the third lies where it overlaps the fewest bytes.
  const PlanToPlace plans[] = {{{40 * kPage, 10 * kPage}, 0}, {{40 * kPage, 10 * kPage}, 1}, {{40 * kPage, 10 * kPage}, 2}};
  const std::vector<PlanPlace> places = lay_out(plans, 100 * kPage);
  CHECK(places == std::vector<PlanPlace>{{0, 90 * kPage}, {40 * kPage, 90 * kPage}, {50 * kPage, 90 * kPage}});
}

TEST_CASE("a plan that was moved is a plan, and comes back") {
  const toy::ToyModel toy = toy::make_toy_model({.rows = 2, .widths = {64, 512, 384, 512, 10}});
  const toy::TemporaryPath path("arena_layout_test.sluice");
  REQUIRE(toy::write_toy_file(toy, path.str()));
  const auto model = Model::open(path.str());
  REQUIRE(model);
  for (const std::uint64_t kib : {400, 1000, 1500, 4000}) {
    const auto planned = plan_session(**model, {.budget = Bytes(kib << 10), .repeat = true});
    REQUIRE(planned);
    const plan::Plan& plan = planned->plan;
    const PlanParts parts = parts_of(plan);
    const PlanPlace natural{0, parts.kept};
    for (const PlanPlace& place : {PlanPlace{16 * kPage, 16 * kPage + align_up(parts.kept, kPage)}, PlanPlace{kPage, 2000 * kPage}}) {
      CAPTURE(kib, parts.kept, parts.passing);
      plan::Plan moved = plan;
      move_plan(moved, parts, natural, place);
      const Status valid =
          plan::verify(moved, (*model)->graph(), {.file_size = (*model)->file().file_size(), .model_hash = plan.model_hash});
      if (!valid) FAIL(valid.error().to_string());
      move_plan(moved, parts, place, natural);
      for (std::size_t b = 0; b < plan.buffers.size(); ++b) REQUIRE(moved.buffers[b].offset == plan.buffers[b].offset);
    }
  }
}

}  // namespace sluice::engine

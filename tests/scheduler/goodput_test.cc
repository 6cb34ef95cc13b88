// What is promised of our policy beside the six published ones and the optimum, on few instances; docs/scheduling.md has the full counts.
#include <catch2/catch.hpp>

#include "tests/scheduler/small_instances.h"

namespace sluice::scheduler {
namespace {

constexpr OptimumLimits kQuick{.nodes_a_set = 20'000, .nodes = 400'000};

TEST_CASE("all jobs known at the start: ours is within 3 % of the optimum") {
  Score score;
  for (std::uint64_t seed = 0; score.instances < 30; ++seed) {
    Score one;
    add_with_optimum(random_instance(seed, {.most_jobs = 8, .most_units = 6}), kQuick, one);
    if (one.proven == 0) continue;
    score.submitted += one.submitted;
    score.most += one.most;
    score.met[kPublished] += one.met[kPublished];
    ++score.instances;
  }
  CHECK(static_cast<double>(score.met[kPublished]) >= 0.97 * static_cast<double>(score.most));
}

TEST_CASE("arrivals over time: ours closes a third of the gap to the clairvoyant bound") {
  GeneratorParameters parameters{.least_jobs = 8, .most_jobs = 10, .at_start = false};
  parameters.load = find_knee(parameters, 0.9, 0, 40);
  Score score;
  for (std::uint64_t seed = 0; seed < 40; ++seed) add_with_optimum(random_instance(seed, parameters), kQuick, score);
  CHECK(score.best_published() == Approx(0.9).margin(0.02));
  CHECK(score.gap_left() <= 2.0 / 3);
}

TEST_CASE("ours is never below the best of the six by more than a hundredth, at any load") {
  GeneratorParameters parameters{.least_jobs = 40, .most_jobs = 40, .at_start = false};
  for (const double load : {0.1, 0.3, 0.6, 1.0, 1.5, 2.5}) {
    parameters.load = load;
    const Score score = score_policies(parameters, 1000, 6);
    CHECK(score.ours() >= score.best_published() - 0.01);
  }
}

}  // namespace
}  // namespace sluice::scheduler

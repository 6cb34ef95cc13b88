#include "sluice/scheduler/simulator/optimum.h"

#include <catch2/catch.hpp>

#include "tests/scheduler/small_instances.h"

namespace sluice::scheduler {
namespace {

/// All orders of all units on all processors: no bound, no memory, nothing shared with the search.
class BruteForce {
 public:
  explicit BruteForce(const Instance& instance)
      : instance_(instance), next_(instance.arrivals.size(), 0), place_(next_.size(), 0), ready_(next_.size()) {
    for (std::size_t j = 0; j < ready_.size(); ++j) ready_[j] = instance.arrivals[j].at;
    free_.assign(instance.device.count(), 0);
    last_.assign(instance.device.count(), ~std::size_t{0});
  }

  std::size_t best() {
    extend(0);
    return best_;
  }

 private:
  void extend(std::size_t met) {
    best_ = std::max(best_, met);
    for (std::size_t j = 0; j < next_.size(); ++j) {
      const Request& request = instance_.arrivals[j].request;
      const std::vector<Unit>& units = instance_.models[request.model.index()].units;
      if (next_[j] == units.size()) continue;
      for (std::size_t p = 0; p < free_.size(); ++p) {
        const Unit& unit = units[next_[j]];
        if (unit.times[p] >= kNever) continue;
        Time work = unit.times[p];
        if (next_[j] > 0) work += instance_.device.transfer(place_[j], p, units[next_[j] - 1].output);
        if (next_[j] == 0 || last_[p] != j || place_[j] != p) work += instance_.device.processors[p].dispatch;
        const Time end = std::max(free_[p], ready_[j]) + work;
        if (end > request.deadline) continue;
        const auto before = std::tuple(next_[j], place_[j], ready_[j], free_[p], last_[p]);
        ++next_[j];
        place_[j] = p;
        ready_[j] = free_[p] = end;
        last_[p] = j;
        extend(met + (next_[j] == units.size()));
        std::tie(next_[j], place_[j], ready_[j], free_[p], last_[p]) = before;
      }
    }
  }

  const Instance& instance_;
  std::vector<std::size_t> next_, place_;
  std::vector<Time> ready_, free_;
  std::vector<std::size_t> last_;
  std::size_t best_ = 0;
};

TEST_CASE("the optimum is what trying everything gives") {
  std::size_t between = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    GeneratorParameters parameters{.least_jobs = 2,
                                   .most_jobs = 4,
                                   .least_processors = 1,
                                   .most_processors = 2,
                                   .most_units = 2,
                                   .at_start = seed % 2 == 0,
                                   .load = 2};
    parameters.least_slack = 1;
    parameters.most_slack = 2;
    const Instance instance = random_instance(seed, parameters);
    const std::size_t truth = BruteForce(instance).best();
    const Optimum found = find_optimum(instance);
    REQUIRE(found.proven());
    REQUIRE(found.least == truth);
    between += truth > 0 && truth < instance.arrivals.size();
  }
  CHECK(between > 100);
}

TEST_CASE("no policy does better than the optimum, and a search that is cut short stays a bound") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Instance instance = random_instance(seed, {.most_jobs = 6, .most_units = 4});
    const Optimum exact = find_optimum(instance, 0, {.nodes_a_set = 200'000, .nodes = 4'000'000});
    const Optimum short_of_work = find_optimum(instance, 0, {.nodes_a_set = 10, .nodes = 1000});
    CHECK(short_of_work.least <= exact.most);
    CHECK(short_of_work.most >= exact.least);
    for (const Policy& p : kPolicies) CHECK(simulate(instance, p).statistics.met <= exact.most);
  }
}

TEST_CASE("a fluid is a lower bound, and exact where nothing can be shared") {
  const Device device = make_device(2);
  const std::vector<Model> models = {make_chain({{10 * kMs, kNever}, {kNever, 4 * kMs}})};
  const std::vector<std::size_t> jobs = {0, 0};
  CHECK(fluid_makespan(device, models, jobs) == Approx(20e6).epsilon(0.02));
  const std::vector<Model> even = {make_chain({{6 * kMs, 6 * kMs}})};
  CHECK(fluid_makespan(device, even, jobs) == Approx(6e6).epsilon(0.02));
}

}  // namespace
}  // namespace sluice::scheduler

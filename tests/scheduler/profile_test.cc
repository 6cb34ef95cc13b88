#include "sluice/scheduler/profile.h"

#include <catch2/catch.hpp>

#include "tests/scheduler/small_instances.h"

namespace sluice::scheduler {
namespace {

/// All ways over the processors from unit `u` on, the one before it having run on `from`.
Time shortest_by_trying(const Instance& instance, const Model& model, UnitIndex u, std::size_t from) {
  if (u == model.units.size()) return 0;
  Time least = kNever;
  for (std::size_t p = 0; p < instance.device.count(); ++p) {
    if (model.units[u].times[p] >= kNever) continue;
    Time enter = p == from ? 0 : instance.device.processors[p].dispatch;
    if (u > 0) enter += instance.device.transfer(from, p, model.units[u - 1].output);
    least = std::min(least, enter + model.units[u].times[p] + shortest_by_trying(instance, model, u + 1, p));
  }
  return least;
}

TEST_CASE("tails of chains are what trying all ways gives") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Instance instance = random_instance(seed, {.most_units = 6});
    const Profile profile(instance.device, instance.models);
    for (std::size_t m = 0; m < instance.models.size(); ++m) {
      CHECK(profile.shortest(ModelId(m)) == shortest_by_trying(instance, instance.models[m], 0, Device::kMostProcessors));
      for (UnitIndex u = 0; u < instance.models[m].units.size(); ++u)
        for (std::size_t p = 0; p < instance.device.count(); ++p)
          CHECK(profile.tail(ModelId(m), u, p) == shortest_by_trying(instance, instance.models[m], u + 1, p));
    }
  }
}

TEST_CASE("noise is smoothed, and moves no other time") {
  const Device device = make_device(2);
  const std::vector<Model> models = {make_chain({{1000, 1000}, {1000, 1000}})};
  Profile profile(device, models);
  for (int i = 0; i < 50; ++i) profile.observe(ModelId(0), 0, 0, i % 2 == 0 ? 1100 : 900);
  CHECK(std::abs(profile.time(ModelId(0), 0, 0) - 1000) < 20);
  CHECK(profile.time(ModelId(0), 1, 0) == 1000);
  CHECK(profile.version() == 0);
  for (int i = 0; i < 50; ++i) profile.observe(ModelId(0), 0, 0, 1250);
  CHECK(profile.time(ModelId(0), 0, 0) > 1200);
  CHECK(profile.version() > 0);
}

TEST_CASE("one outlier is no change") {
  const Device device = make_device(1);
  const std::vector<Model> models = {make_chain({{1000}, {1000}})};
  Profile profile(device, models);
  profile.observe(ModelId(0), 0, 0, 1000);
  profile.observe(ModelId(0), 0, 0, 50000);
  profile.observe(ModelId(0), 0, 0, 1000);
  CHECK(profile.time(ModelId(0), 0, 0) < 1400);
  CHECK(profile.time(ModelId(0), 1, 0) == 1000);
}

TEST_CASE("a processor that has changed is known after three units, for all units and models, and unsupported stays so") {
  const Device device = make_device(2);
  const std::vector<Model> models = {make_chain({{1000, 500}, {1000, kNever}}), make_chain({{400, 400}})};
  Profile profile(device, models);
  const Time before = profile.tail(ModelId(0), 0, 1);
  for (int i = 0; i < 8; ++i) profile.observe(ModelId(0), 0, 0, 1000);  // its estimate is known to be right
  for (int i = 0; i < 3; ++i) profile.observe(ModelId(0), 0, 0, 3000);
  CHECK(std::abs(profile.time(ModelId(0), 1, 0) - 3000) < 900);
  CHECK(std::abs(profile.time(ModelId(1), 0, 0) - 1200) < 360);
  CHECK(profile.time(ModelId(1), 0, 1) == 400);
  CHECK(profile.tail(ModelId(0), 0, 1) > 2 * before);
  profile.rescale(1, 2);
  CHECK(profile.time(ModelId(0), 1, 1) == kNever);
  CHECK(profile.time(ModelId(0), 0, 1) == 1000);
}

TEST_CASE("however much slower a processor has become, three units show it, and a mild change five") {
  const Device device = make_device(1);
  const std::vector<Model> models = {make_chain({{1000}}), make_chain({{1000}})};
  for (const Time slow : {1600, 2200, 3000, 3300, 4000, 5000, 10000}) {
    Profile profile(device, models);
    for (int i = 0; i < 8; ++i) profile.observe(ModelId(0), 0, 0, 1000);
    int units = 0;
    for (; units < 12 && profile.time(ModelId(1), 0, 0) < slow * 9 / 10; ++units) profile.observe(ModelId(0), 0, 0, slow);
    INFO(slow);
    CHECK(units == (slow > 2000 ? 3 : 5));
    CHECK(std::abs(profile.time(ModelId(1), 0, 0) - slow) < slow / 10);
    CHECK(std::abs(profile.time(ModelId(0), 0, 0) - slow) < slow / 10);
  }
}

TEST_CASE("a first estimate that was wrong moves alone, and different units that agree move their processor") {
  const Device device = make_device(1);
  const std::vector<Model> models = {make_chain({{1000}}), make_chain({{2000}}), make_chain({{1500}})};
  Profile profile(device, models);
  for (int i = 0; i < 3; ++i) profile.observe(ModelId(0), 0, 0, 3000);
  CHECK(profile.time(ModelId(0), 0, 0) > 2000);
  CHECK(profile.time(ModelId(1), 0, 0) == 2000);
  for (int i = 0; i < 3; ++i) profile.observe(ModelId(1 + i % 2), 0, 0, i % 2 == 0 ? 6000 : 4500);
  CHECK(profile.time(ModelId(1), 0, 0) > 5000);
  CHECK(profile.time(ModelId(2), 0, 0) > 4000);
}

TEST_CASE("what was wrong with one first estimate is not taken for a change of the processor later") {
  const Device device = make_device(1);
  for (const Time right : {3000, 300}) {
    const std::vector<Model> models = {make_chain({{1000}}), make_chain({{2000}})};
    Profile profile(device, models);
    for (int i = 0; i < 12; ++i) profile.observe(ModelId(0), 0, 0, right);
    for (int i = 0; i < 3; ++i) profile.observe(ModelId(0), 0, 0, 3 * right);  // the processor is three times slower
    CHECK(std::abs(profile.time(ModelId(1), 0, 0) - 6000) < 1800);
  }
}

TEST_CASE("changes that come and go carry no unit away that nobody measures meanwhile") {
  const Device device = make_device(1);
  const std::vector<Model> models = {make_chain({{1000}}), make_chain({{1200}}), make_chain({{1000}})};
  Profile profile(device, models);
  for (int change = 0; change < 40; ++change)
    for (int i = 0; i < 9; ++i) {
      const Time took = change % 2 == 0 ? 3000 + 900 * (i % 3) : 1000;
      profile.observe(ModelId(i % 2), 0, 0, took);
    }
  CHECK(profile.time(ModelId(2), 0, 0) > 450);
  CHECK(profile.time(ModelId(2), 0, 0) < 2200);
}

TEST_CASE("three units in a row that were disturbed mildly change no other time, five do") {
  const Device device = make_device(1);
  const std::vector<Model> models = {make_chain({{1000}}), make_chain({{2000}}), make_chain({{1500}})};
  Profile profile(device, models);
  const auto disturb = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const ModelId model(i % 2);
      profile.observe(model, 0, 0, profile.time(model, 0, 0) * 3 / 2);
    }
  };
  disturb(4);
  CHECK(profile.time(ModelId(2), 0, 0) == 1500);
  profile.observe(ModelId(0), 0, 0, profile.time(ModelId(0), 0, 0));
  disturb(5);
  CHECK(profile.time(ModelId(2), 0, 0) > 1800);
}

TEST_CASE("a disturbance that the units seen recover from one by one leaves no other time far off") {
  const Device device = make_device(1);
  const std::vector<Model> models = {make_chain({{1000}}), make_chain({{1200}}), make_chain({{1000}})};
  Profile profile(device, models);
  for (int change = 0; change < 10; ++change) {
    for (int i = 0; i < 5; ++i) profile.observe(ModelId(i % 2), 0, 0, profile.time(ModelId(i % 2), 0, 0) * 3 / 2);
    for (int i = 0; i < 40; ++i) profile.observe(ModelId(i % 2), 0, 0, profile.time(ModelId(i % 2), 0, 0) * 9 / 10);
    for (int i = 0; i < 8; ++i) profile.observe(ModelId(i % 2), 0, 0, i % 2 == 0 ? 1000 : 1200);
  }
  CHECK(profile.time(ModelId(2), 0, 0) < 2200);
}

TEST_CASE("what short units show moves no long one") {
  const Device device = make_device(1);
  const std::vector<Model> models = {make_chain({{1000}}), make_chain({{1100}}), make_chain({{100000}})};
  Profile profile(device, models);
  for (int i = 0; i < 3; ++i) profile.observe(ModelId(i % 2), 0, 0, 3300);
  CHECK(profile.time(ModelId(0), 0, 0) > 2000);
  CHECK(profile.time(ModelId(2), 0, 0) == 100000);
}

TEST_CASE("what a run takes beside its units is learned, and no outlier is") {
  Device device = make_device(2);
  device.processors[0].dispatch = 20000;
  const std::vector<Model> models = {make_chain({{1000, 1000}, {1000, kNever}})};
  Profile profile(device, models);
  const Time before = profile.tail(ModelId(0), 0, 1);  // which enters the first processor
  profile.observe_dispatch(0, 100 * kMillisecond);
  CHECK(profile.dispatch(0) < 30000);
  for (int i = 0; i < 60; ++i) profile.observe_dispatch(0, i % 2 == 0 ? 45000 : 35000);
  CHECK(std::abs(profile.dispatch(0) - 40000) < 2000);
  CHECK(std::abs(profile.tail(ModelId(0), 0, 1) - before - 20000) < 6000);
  CHECK(profile.dispatch(1) == device.processors[1].dispatch);
}

}  // namespace
}  // namespace sluice::scheduler

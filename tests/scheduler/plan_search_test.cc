// L1 to L4 of plans, checked with code that shares nothing with the search.
#include <catch2/catch.hpp>
#include <map>

#include "tests/scheduler/small_instances.h"

namespace sluice::scheduler {
namespace {

void check_plan(const Instance& instance, const State& state, const PlanSearch& search) {
  std::map<std::pair<std::size_t, UnitIndex>, std::pair<std::size_t, PlannedSlot>> planned;
  for (std::size_t p = 0; p < instance.device.count(); ++p) {
    Time free = state.now + state.wait(p);
    for (const PlannedSlot& slot : search.slots(p)) {
      REQUIRE(slot.begin >= free);  // L1, and L4 for what runs
      free = slot.end;
      REQUIRE(planned.emplace(std::pair(slot.job.index(), slot.unit), std::pair(p, slot)).second);
    }
  }
  for (const auto& [key, value] : planned) {
    const auto& [p, slot] = value;
    const Unit& unit = instance.models[state.job(slot.job).model.index()].units[slot.unit];
    Time work = unit.times[p];
    for (const UnitIndex from : unit.reads_from) {
      const auto source = planned.find({key.first, from});
      if (source == planned.end()) {
        REQUIRE(state.phase(slot.job, from) != UnitPhase::kPending);
        continue;
      }
      REQUIRE(slot.begin >= source->second.second.end);  // L2
      work += instance.device.transfer(source->second.first, p, instance.models[state.job(slot.job).model.index()].units[from].output);
    }
    REQUIRE(slot.end - slot.begin >= work);
    REQUIRE(slot.end - slot.begin <= work + instance.device.transfer(0, 0, Bytes(0)) + instance.device.processors[p].dispatch + 2 * kMs);
  }
  for (const PlanSearch::Item& item : search.items()) {
    Time end = 0;
    std::size_t units = 0;
    for (const auto& [key, value] : planned)
      if (key.first == item.job.index()) {
        end = std::max(end, value.second.end);
        ++units;
      }
    REQUIRE(units == (item.end < kNever ? state.units_of(item.job) : 0));
    if (units > 0) REQUIRE(item.end == end);
    if (units > 0) REQUIRE(end <= item.deadline);  // L3
  }
}

TEST_CASE("plans of chains and of graphs with forks keep what they promise") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Instance instance = random_instance(seed, {.forks = seed % 2 == 0 ? 0.0 : 0.5});
    Profile profile(instance.device, instance.models);
    Board board(instance.device, profile, {});
    for (const Arrival& a : instance.arrivals) board.submit(a.request);
    PlanSearch search(board.state(), {.cells = 5000});
    search.plan(board.state());
    check_plan(instance, board.state(), search);
  }
}

TEST_CASE("more work never makes a plan worse") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Instance instance = random_instance(seed, {});
    Profile profile(instance.device, instance.models);
    Board board(instance.device, profile, {});
    for (const Arrival& a : instance.arrivals) board.submit(a.request);
    std::size_t before = 0;
    for (const std::uint64_t cells : {1000u, 4000u, 16000u}) {
      PlanSearch search(board.state(), {.cells = cells});
      search.plan(board.state());
      std::size_t met = 0;
      for (const PlanSearch::Item& item : search.items()) met += item.end < kNever;
      CHECK(met >= before);
      before = met;
    }
  }
}

TEST_CASE("a plan that cannot be better is not searched for") {
  const Device device = make_device(2);
  const std::vector<Model> models = {make_chain({{9 * kMs, 9 * kMs}, {3 * kMs, 3 * kMs}})};
  Profile profile(device, models);
  Board board(device, profile, {});
  PlanSearch search(board.state(), {});
  const std::uint64_t drafts = 5, cells_of_a_job = 2 * 2;  // the four that it begins with and the best, once more
  board.submit({ModelId(0), kNever, 0});
  CHECK(search.plan(board.state()) <= drafts * cells_of_a_job);
  board.submit({ModelId(0), 100 * kMs, 0});
  CHECK(search.plan(board.state()) <= drafts * 2 * cells_of_a_job);
  for (int i = 0; i < 3; ++i) board.submit({ModelId(0), 100 * kMs, 0});  // now somebody has to wait: who, is worth a search
  CHECK(search.plan(board.state()) > drafts * 5 * cells_of_a_job);
}

TEST_CASE("a job of higher priority is never given up for others") {
  const Device device = make_device(1);
  const std::vector<Model> models = {make_chain({{9 * kMs}}), make_chain({{kMs}})};
  Profile profile(device, models);
  Board board(device, profile, {});
  const JobSlot important = board.submit({ModelId(0), 9 * kMs, 1});
  for (int i = 0; i < 8; ++i) board.submit({ModelId(1), 8 * kMs, 0});
  PlanSearch search(board.state(), {});
  search.plan(board.state());
  for (const PlanSearch::Item& item : search.items()) CHECK((item.end < kNever) == (item.job == important));
}

TEST_CASE("gaps that earlier jobs left are found") {
  Timetable table;
  table.reserve(8);
  table.reset(10);
  table.take(20, 30);
  table.take(40, 50);
  const auto fit = [&](Time ready, Time duration) {
    std::size_t cursor = 0;
    return table.fit(ready, duration, cursor);
  };
  CHECK(fit(0, 10) == 10);
  CHECK(fit(0, 11) == 50);
  CHECK(fit(15, 10) == 30);
  CHECK(fit(35, 5) == 35);
  CHECK(fit(60, 5) == 60);
  table.take(30, 40);
  CHECK(table.busy().size() == 2);
  CHECK(fit(12, 9) == 50);
  table.take(10, 20);
  CHECK(table.busy().size() == 1);
}

}  // namespace
}  // namespace sluice::scheduler

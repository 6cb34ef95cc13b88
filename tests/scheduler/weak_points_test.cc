// Where Band breaks, by reading its code (docs/scheduling.md), each as something that must hold here.
#include <catch2/catch.hpp>

#include "tests/scheduler/small_instances.h"

namespace sluice::scheduler {
namespace {

TEST_CASE("1: dropping jobs does not raise the rate of met objectives, for it is over all that was submitted") {
  const Instance instance{make_device(1),
                          {make_chain({{4 * kMs}})},
                          {arrival(0, 0, 5 * kMs), arrival(0, 0, 5 * kMs), arrival(0, 0, 5 * kMs), arrival(0, 0, 5 * kMs)}};
  const SimulationResult result = simulate(instance, policy("sluice"));
  CHECK(result.statistics.dropped == 3);
  CHECK(result.statistics.goodput() == 0.25);
  const Statistics full{.submitted = 10, .refused = 5, .met = 5};
  CHECK(full.goodput() == 0.5);
}

TEST_CASE("2: the early drop looks at times that are there: nothing that can still be met is dropped, nothing past hope is run") {
  for (const std::string_view name : {"least_slack", "sluice"})
    for (const Time deadline : {4 * kMs - 1, 4 * kMs}) {
      const Instance instance{make_device(1), {make_chain({{4 * kMs}})}, {arrival(0, 0, deadline)}};
      SimulationOptions options;
      options.trace = true;
      const SimulationResult result = simulate(instance, policy(name), options);
      CHECK(result.statistics.met == (deadline >= 4 * kMs ? 1 : 0));
      CHECK(result.statistics.dropped == (deadline >= 4 * kMs ? 0 : 1));
      CHECK(events_of(result, TraceEvent::Kind::kStart).size() == result.statistics.met);
    }
}

TEST_CASE("3: after a processor was throttled work goes on, there as elsewhere") {
  Instance instance{make_device(2), {make_chain({{2 * kMs, kMs}, {2 * kMs, kMs}})}, {}};
  for (Time at = 0; at < kSecond; at += 5 * kMs) instance.arrivals.push_back(arrival(at, 0));
  SimulationOptions options;
  options.reality.faults = {{.at = 100 * kMs, .processor = ProcessorId(1), .kind = Fault::Kind::kSlow, .factor = 3},
                            {.at = 300 * kMs, .processor = ProcessorId(1), .kind = Fault::Kind::kHang},
                            {.at = 600 * kMs, .processor = ProcessorId(1), .kind = Fault::Kind::kWell}};
  for (const Policy& p : kPolicies) {
    const SimulationResult result = simulate(instance, p, options);
    CHECK(result.statistics.met == instance.arrivals.size());
    CHECK(result.end < 2 * kSecond);
  }
}

TEST_CASE("4a: expected latencies are never stale") {
  const Device device = make_device(2);
  const std::vector<Model> models = {make_chain({{3 * kMs, 2 * kMs}})};
  Profile profile(device, models);
  Board board(device, profile, {});
  const JobSlot slot = board.submit({ModelId(0)});
  std::uint64_t cells = 0;
  CHECK(shortest_route(board.state(), slot, waits_of(board.state()), cells).now.processor == 1);
  for (int i = 0; i < 3; ++i) profile.observe(ModelId(0), 0, 1, 6 * kMs);
  CHECK(shortest_route(board.state(), slot, waits_of(board.state()), cells).now.processor == 0);
  CHECK(board.state().least_rest(slot) == 3 * kMs);
}

TEST_CASE("4b: models have more than 64 units") {
  std::vector<std::vector<Time>> times;
  for (int u = 0; u < 200; ++u) times.push_back(u % 2 == 0 ? std::vector<Time>{kMs, kMs / 4} : std::vector<Time>{kMs / 4, kNever});
  const Instance instance{make_device(2), {make_chain(times)}, {arrival(0, 0, 200 * kMs), arrival(0, 0, 200 * kMs)}};
  for (const Policy& p : kPolicies) CHECK(simulate(instance, p).statistics.left() == 2);
  CHECK(simulate(instance, policy("sluice")).statistics.met == 2);
}

TEST_CASE("4c: an idle processor takes over what was meant for one that does not get on") {
  // Both jobs are planned for processor 1, which hangs.
  const Instance instance{make_device(2), {make_chain({{12 * kMs, 4 * kMs}})}, {arrival(0, 0, 50 * kMs), arrival(0, 0, 50 * kMs)}};
  SimulationOptions options;
  options.trace = true;
  options.reality.faults = {{.at = 0, .processor = ProcessorId(1), .kind = Fault::Kind::kHang}};
  const SimulationResult result = simulate(instance, policy("sluice"), options);
  CHECK(result.statistics.met == 2);
  CHECK(events_of(result, TraceEvent::Kind::kLost).size() == 1);
}

TEST_CASE("5, 6: what does not change processors copies nothing, and what shares memory neither") {
  Instance instance{make_device(2), {make_chain({{4 * kMs, 3 * kMs}, {3 * kMs, 4 * kMs}}, Bytes(1 << 20))}, {arrival(0, 0)}};
  CHECK(simulate(instance, policy("sluice")).end == 6 * kMs);  // shared memory: to and fro for nothing
  for (const std::size_t pair : {1u, 2u}) instance.device.transfers[pair] = {0, 10 * kMicrosecond};
  CHECK(simulate(instance, policy("sluice")).end == 7 * kMs);  // 10 ms to copy: it stays where it is
}

TEST_CASE("7: a job that runs can be interrupted") {
  const Instance instance{
      make_device(1, 0, kMs), {make_chain({{100 * kMs}}), make_chain({{kMs}})}, {arrival(0, 0), arrival(20 * kMs, 1, 25 * kMs, 1)}};
  CHECK(simulate(instance, policy("sluice")).statistics.met == 2);
  CHECK(simulate(instance, policy("least_slack")).statistics.met == 1);
}

}  // namespace
}  // namespace sluice::scheduler

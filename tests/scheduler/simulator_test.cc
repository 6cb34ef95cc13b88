#include "sluice/scheduler/simulator/simulator.h"

#include <catch2/catch.hpp>

#include "tests/scheduler/small_instances.h"

namespace sluice::scheduler {
namespace {

SimulationOptions traced(Reality reality = {}) {
  SimulationOptions options;
  options.reality = std::move(reality);
  options.trace = true;
  return options;
}

TEST_CASE("the same seed gives the same trace, another seed another, and every job leaves exactly once") {
  Reality reality{.seed = 5, .bias = 0.2, .noise = 0.1, .idle_after = kMs, .idle_factor = 2, .thermal = 0.5, .thermal_time = 50 * kMs};
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Instance instance = random_instance(seed, {.least_jobs = 40, .most_jobs = 40, .forks = 0.3, .at_start = false});
    for (const Policy& p : kPolicies) {
      const SimulationResult one = simulate(instance, p, traced(reality)), two = simulate(instance, p, traced(reality));
      CHECK(one.trace == two.trace);
      CHECK(one.statistics.left() == 40);
      CHECK(one.ended.size() + one.statistics.refused == 40);
      Reality other = reality;
      other.seed = 6;
      CHECK(simulate(instance, p, traced(other)).trace != one.trace);
    }
  }
}

TEST_CASE("no processor runs two things at once, and no unit runs before what it reads from") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Instance instance = random_instance(seed, {.least_jobs = 20, .most_jobs = 20, .forks = 0.4, .at_start = false, .load = 1.5});
    for (const Policy& p : kPolicies) {
      std::vector<int> running(instance.device.count(), 0);
      for (const TraceEvent& event : simulate(instance, p, traced({.noise = 0.2})).trace) {
        if (event.kind == TraceEvent::Kind::kStart) CHECK(++running[event.processor.index()] == 1);
        if (event.kind == TraceEvent::Kind::kEnd) CHECK(--running[event.processor.index()] == 0);
      }
    }
  }
}

TEST_CASE("what is expected is what happens where reality is as expected") {
  const Instance instance{make_device(2, 100), {make_chain({{1000, 400}, {1000, 5000}}, Bytes(1024))}, {arrival(0, 0)}};
  Instance copying = instance;
  copying.device.transfers[2] = {50, 10};  // from 1 to 0
  CHECK(simulate(instance, policy("sluice")).end == 100 + 400 + 100 + 1000);
  CHECK(simulate(copying, policy("sluice")).end == 100 + 400 + 100 + 50 + 10 + 1000);
}

TEST_CASE("a processor that was idle begins slowly, a busy one warms up and cools") {
  Body body;
  const Reality idle{.idle_after = 2 * kMs, .idle_ramp = kMs, .idle_factor = 3};
  CHECK(body.factor(idle, 10 * kMs) == Approx(3));
  body.worked(idle, 10 * kMs, 10 * kMs + kMs / 2);
  CHECK(body.factor(idle, 10 * kMs + kMs / 2) == Approx(2));
  Body hot;
  const Reality thermal{.thermal = 1, .thermal_time = kSecond};
  hot.worked(thermal, 0, kSecond);
  const double warm = hot.factor(thermal, kSecond);
  CHECK(warm == Approx(1.632).epsilon(0.01));
  CHECK(hot.factor(thermal, 5 * kSecond) < 1.02);
}

TEST_CASE("an urgent job takes the processor at the next step boundary; what it displaced loses nothing") {
  const Instance instance{make_device(1, 0, kMs),
                          {make_chain({{50 * kMs}}), make_chain({{2 * kMs}})},
                          {arrival(0, 0), arrival(10 * kMs + 300, 1, 15 * kMs, 1)}};
  const SimulationResult result = simulate(instance, policy("sluice"), traced());
  const auto starts = events_of(result, TraceEvent::Kind::kStart);
  REQUIRE(starts.size() == 3);
  CHECK(starts[1].ticket == 2);
  CHECK(starts[1].at == 11 * kMs);
  CHECK(result.end == 52 * kMs);
  CHECK(result.statistics.met == 2);
}

TEST_CASE("a processor that dies or hangs loses no job") {
  for (const Fault::Kind kind : {Fault::Kind::kDie, Fault::Kind::kHang})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Instance instance = random_instance(seed, {.least_jobs = 20, .most_jobs = 20, .at_start = false, .load = 0.5});
      for (Arrival& a : instance.arrivals) a.request.deadline = kNever;  // each must end, whenever
      const ProcessorId victim(instance.device.count() - 1);             // processor 0 supports everything
      const Reality reality{.faults = {{.at = instance.arrivals[10].at, .processor = victim, .kind = kind}}};
      for (const Policy& p : kPolicies) CHECK(simulate(instance, p, traced(reality)).statistics.met == 20);
    }
}

TEST_CASE("a processor that became three times slower is found out, and work moves away from it") {
  Instance instance{make_device(2), {make_chain({{2 * kMs, kMs}})}, {}};
  for (Time at = 0; at < 2 * kSecond; at += 2 * kMs) instance.arrivals.push_back(arrival(at, 0, at + 5 * kMs));
  const Reality reality{.faults = {{.at = kSecond, .processor = ProcessorId(1), .kind = Fault::Kind::kSlow, .factor = 3}}};
  const SimulationResult result = simulate(instance, policy("sluice"), traced(reality));
  const auto starts = events_of(result, TraceEvent::Kind::kStart);
  std::size_t slow = 0, after = 0, missed = 0;
  for (const TraceEvent& start : starts)
    if (start.at >= kSecond + 20 * kMs) {
      ++after;
      slow += start.processor == ProcessorId(1);
    }
  for (const JobState& job : result.ended)
    if (job.arrival >= kSecond + 20 * kMs) missed += job.dropped || job.expected_end > job.deadline;
  CHECK(after > 400);
  CHECK(slow < after / 2);
  CHECK(missed <= after / 20);  // the two together still just do it
}

/// Two models on three processors, more work than two of them can do, less than all.
Instance steady_work() {
  Instance instance{make_device(3), {make_chain({{2 * kMs, 3 * kMs, kMs}}), make_chain({{kMs, kMs, kMs}, {3 * kMs, 2 * kMs, kMs}})}, {}};
  Random random(3);
  for (Time at = 0; at < 3 * kSecond; at += kMs / 2 + static_cast<Time>(random.below(kMs)))
    instance.arrivals.push_back(arrival(at, random.below(2), at + 12 * kMs));
  return instance;
}

/// Goodput over jobs that came after `since`.
double goodput_after(const SimulationResult& result, Time since) {
  double met = 0, all = 0;
  for (const JobState& job : result.ended) {
    if (job.arrival < since) continue;
    ++all;
    met += !job.dropped && job.expected_end <= job.deadline;
  }
  return met / all;
}

/// When the tenth job after `at` completed.
Time tenth_completion_after(const SimulationResult& result, Time at) {
  int completed = 0;
  for (const JobState& job : result.ended)
    if (!job.dropped && job.expected_end >= at && ++completed == 10) return job.expected_end;
  return kNever;
}

TEST_CASE("ten completions after a processor was slowed, hung or died, goodput is what it would be if that had always been known") {
  const Instance instance = steady_work();
  const ProcessorId victim(2);
  for (const Fault::Kind kind : {Fault::Kind::kSlow, Fault::Kind::kHang, Fault::Kind::kDie}) {
    const Reality reality{.noise = 0.03, .faults = {{.at = kSecond, .processor = victim, .kind = kind, .factor = 3}}};
    const SimulationResult result = simulate(instance, policy("sluice"), traced(reality));
    Instance known = instance;  // the same jobs, and a processor whose times are true from the beginning
    for (Model& model : known.models)
      for (Unit& unit : model.units) unit.times[victim.index()] = kind == Fault::Kind::kSlow ? 3 * unit.times[victim.index()] : kNever;
    const SimulationResult best = simulate(known, policy("sluice"), traced({.noise = 0.03}));
    const Time since = tenth_completion_after(result, kSecond);
    REQUIRE(since < kSecond + 40 * kMs);
    CAPTURE(static_cast<int>(kind), goodput_after(result, since), goodput_after(best, since));
    CHECK(goodput_after(result, 0) < 1);
    CHECK(goodput_after(best, since) < 1);  // what is left cannot do it all
    CHECK(goodput_after(result, since) >= 0.95 * goodput_after(best, since));
  }
}

}  // namespace
}  // namespace sluice::scheduler

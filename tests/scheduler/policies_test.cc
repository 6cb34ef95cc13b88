// Each published policy does what it is published for; a job's shortest way is what trying all ways gives.
#include <catch2/catch.hpp>

#include "tests/scheduler/small_instances.h"

namespace sluice::scheduler {
namespace {

Time shortest_by_trying(const State& state, JobSlot slot, const Waits& waits, UnitIndex u, std::size_t from, Time at) {
  if (u == state.units_of(slot)) return at;
  const ModelId model = state.job(slot).model;
  Time least = kNever;
  for (std::size_t p = 0; p < state.processors.size(); ++p) {
    const Time time = state.profile->time(model, u, p);
    if (time >= kNever) continue;
    const Time enter = p == from ? 0 : state.profile->dispatch(p) + (u > 0 ? state.profile->copy(model, u - 1, from, p) : 0);
    const Time begin = p == from ? at : std::max(at, waits[p]);
    least = std::min(least, shortest_by_trying(state, slot, waits, u + 1, p, begin + enter + time));
  }
  return least;
}

TEST_CASE("the shortest way with occupied processors is what trying all ways gives") {
  Random random(3);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Instance instance = random_instance(seed, {.most_units = 6});
    Profile profile(instance.device, instance.models);
    Board board(instance.device, profile, {});
    const JobSlot slot = board.submit({ModelId(0)});
    Waits waits{};
    for (std::size_t p = 0; p < instance.device.count(); ++p) waits[p] = static_cast<Time>(random.below(20 * kMs));
    std::uint64_t cells = 0;
    const Route route = shortest_route(board.state(), slot, waits, cells);
    CHECK(route.latency == shortest_by_trying(board.state(), slot, waits, 0, Device::kMostProcessors, 0));
    CHECK(route.now.first == 0);
    CHECK(cells <= instance.models[0].units.size() * instance.device.count() * instance.device.count());
  }
}

TEST_CASE("policies are found by their names and by Band's") {
  CHECK(policies().size() == 7);
  for (const Policy& p : policies()) {
    CHECK(find_policy(p.name) == &p);
    CHECK(find_policy(p.alias) == &p);
  }
  CHECK(find_policy("heterogeneous_earliest_finish_time_reserved")->name == "heft_reserved");
  CHECK(find_policy("random") == nullptr);
}

SimulationResult run(const Instance& instance, std::string_view name) {
  SimulationOptions options;
  options.trace = true;
  return simulate(instance, policy(name), options);
}

TEST_CASE("fixed_worker keeps each model on its processor, and goes elsewhere only for what that does not support") {
  const Instance instance{make_device(2),
                          {make_chain({{4 * kMs, kMs}, {4 * kMs, kMs}}), make_chain({{4 * kMs, 9 * kMs}, {4 * kMs, kNever}})},
                          {arrival(0, 0), arrival(0, 1)}};
  const SimulationResult result = run(instance, "fixed_worker");
  const auto starts = events_of(result, TraceEvent::Kind::kStart);
  REQUIRE(starts.size() == 3);
  CHECK(starts[0].processor == ProcessorId(0));
  CHECK(starts[0].last == 2);
  CHECK(starts[1].processor == ProcessorId(1));
  CHECK(starts[1].last == 1);
  CHECK(starts[2].processor == ProcessorId(0));
  CHECK(result.statistics.met == 2);
}

TEST_CASE("round_robin gives the oldest job to whoever is idle") {
  const Instance instance{make_device(2), {make_chain({{kMs, 9 * kMs}})}, {arrival(0, 0), arrival(0, 0), arrival(0, 0)}};
  const auto starts = events_of(run(instance, "round_robin"), TraceEvent::Kind::kStart);
  REQUIRE(starts.size() == 3);
  CHECK(starts[1].processor == ProcessorId(1));
  CHECK(starts[2].at == kMs);
  CHECK(starts[2].processor == ProcessorId(0));
}

TEST_CASE("shortest_expected_latency and heft take the longest job first, to where it ends soonest") {
  const Instance instance{
      make_device(2), {make_chain({{2 * kMs, 3 * kMs}}), make_chain({{8 * kMs, 20 * kMs}})}, {arrival(0, 0), arrival(0, 1)}};
  for (const std::string_view name : {"shortest_expected_latency", "heft", "heft_reserved"}) {
    const auto starts = events_of(run(instance, name), TraceEvent::Kind::kStart);
    REQUIRE(starts.size() == 2);
    CHECK(starts[0].ticket == 2);
    CHECK(starts[0].processor == ProcessorId(0));
    CHECK(starts[1].processor == ProcessorId(1));
    CHECK(starts[1].at == 0);
  }
}

TEST_CASE("a reservation keeps others off the processor that a running job goes to next") {
  // Job 1 will need processor 1, the only one for its second unit; job 2 would be a little sooner over there, but not behind job 1.
  const Instance instance{make_device(2),
                          {make_chain({{4 * kMs, kNever}, {kNever, 8 * kMs}}), make_chain({{6 * kMs, 8 * kMs}})},
                          {arrival(0, 0), arrival(kMs, 1)}};
  const auto place_of_second = [&](std::string_view name) {
    for (const TraceEvent& start : events_of(run(instance, name), TraceEvent::Kind::kStart))
      if (start.ticket == 2) return start.processor.index();
    return Device::kMostProcessors;
  };
  CHECK(place_of_second("heft") == 1);
  CHECK(place_of_second("heft_reserved") == 0);
}

TEST_CASE("least_slack takes the most urgent job first and drops what is past hope") {
  const Instance instance{
      make_device(1), {make_chain({{4 * kMs}})}, {arrival(0, 0, 20 * kMs), arrival(0, 0, 5 * kMs), arrival(0, 0, 3 * kMs)}};
  const SimulationResult result = run(instance, "least_slack");
  CHECK(events_of(result, TraceEvent::Kind::kStart)[0].ticket == 2);
  CHECK(result.statistics.dropped == 1);
  CHECK(result.statistics.met == 2);
}

TEST_CASE("sluice gives one long job up for two short ones, and says so at once") {
  const Instance instance{make_device(1),
                          {make_chain({{9 * kMs}}), make_chain({{4 * kMs}})},
                          {arrival(0, 0, 9 * kMs), arrival(0, 1, 10 * kMs), arrival(0, 1, 10 * kMs)}};
  Profile profile(instance.device, instance.models);
  Board board(instance.device, profile, {});
  PolicyMemory memory(board.state());
  Decisions decisions(most_decisions(board.state()));
  for (const Arrival& a : instance.arrivals) board.submit(a.request);
  scheduler::sluice(board.state(), memory, decisions);
  board.apply(decisions.all());
  CHECK(board.state().job(JobSlot(0)).expected_end == kNever);
  CHECK(board.state().job(JobSlot(1)).expected_end + board.state().job(JobSlot(2)).expected_end == 12 * kMs);
  CHECK(run(instance, "sluice").statistics.met == 2);
}

TEST_CASE("sluice leaves a processor idle for what is about to need it") {
  // The first job reaches processor 1 after 2 ms and must begin there at once; the second would take it for 9 ms, and has time.
  const Instance instance{make_device(2),
                          {make_chain({{2 * kMs, kNever}, {kNever, 2 * kMs}}), make_chain({{kNever, 9 * kMs}})},
                          {arrival(0, 0, 5 * kMs), arrival(0, 1, 20 * kMs)}};
  CHECK(run(instance, "heft").statistics.met == 1);
  CHECK(run(instance, "sluice").statistics.met == 2);
}

/// A board whose jobs the test submits and ends by hand.
struct Hand {
  explicit Hand(std::vector<Model> of, std::size_t window = 32)
      : models(std::move(of)),
        profile(device, models),
        board(device, profile, {}),
        memory(board.state(), {}, {.window = window}),
        decisions(most_decisions(board.state())) {}
  void decide() {
    decisions.clear();
    scheduler::sluice(board.state(), memory, decisions);
    board.apply(decisions.all());
  }
  JobSlot submit(std::size_t model, Time deadline = kNever) {
    const JobSlot slot = board.submit({ModelId(model), deadline, 0});
    decide();
    return slot;
  }
  /// Ends what runs, at its time; the ticket of it.
  std::uint64_t end() {
    const ProcessorState& processor = board.state().processors[0];
    const std::uint64_t ticket = board.state().job(processor.run.job).ticket;
    board.set_now(processor.expected_end);
    board.finished(ProcessorId(0));
    decide();
    return ticket;
  }
  Time expected(JobSlot slot) const { return board.state().job(slot).expected_end; }

  Device device = make_device(1);
  std::vector<Model> models;
  Profile profile;
  Board board;
  PolicyMemory memory;
  Decisions decisions;
};

TEST_CASE("jobs that come while all processors are busy are told their end, and wait for a new plan until one is idle") {
  Hand hand({make_chain({{4 * kMs}})});
  hand.submit(0, kSecond);
  const std::uint64_t plans = hand.memory.plans;
  CHECK(hand.expected(hand.submit(0, kSecond)) == 8 * kMs);
  CHECK(hand.expected(hand.submit(0, kSecond)) == 12 * kMs);
  CHECK(hand.memory.plans == plans);
  hand.end();
  CHECK(hand.memory.plans == plans + 1);
  // A place in the table that another job had is no job of the plan.
  CHECK(hand.expected(hand.submit(0, kSecond)) == 16 * kMs);
  for (std::uint64_t ticket = 1; ticket < 4; ++ticket) CHECK(hand.end() == hand.board.state().job(JobSlot(0)).ticket - 3 + ticket);
}

TEST_CASE("jobs without a deadline end as was said when they came, whatever comes later") {
  Hand hand({make_chain({{7 * kMs}}), make_chain({{1 * kMs}}), make_chain({{3 * kMs}})});
  std::vector<Time> said(1);  // by ticket
  Random random(5);
  for (int i = 0; i < 60; ++i) {
    for (std::uint64_t jobs = random.below(5); jobs > 0 && hand.board.state().live.size() < 60; --jobs)
      said.push_back(hand.expected(hand.submit(random.below(3))));
    if (hand.board.state().live.empty()) continue;
    const std::uint64_t ticket = hand.end();
    CHECK(hand.board.state().now == said[ticket]);
  }
  CHECK_FALSE(hand.memory.search.searched());
  CHECK(hand.memory.search.items().size() > 32);  // those beyond the window of a search are told too
}

TEST_CASE("beyond the window who came first comes first") {
  Hand hand({make_chain({{1 * kMs}})}, 2);
  std::vector<std::uint64_t> submitted, ended;
  const auto submit = [&] { submitted.push_back(hand.board.state().job(hand.submit(0)).ticket); };
  for (int i = 0; i < 8; ++i) submit();
  for (int i = 0; i < 20; ++i) {  // a new job for each that ends takes its place in the table
    ended.push_back(hand.end());
    submit();
  }
  while (ended.size() < submitted.size()) ended.push_back(hand.end());
  CHECK(ended == submitted);
}

TEST_CASE("a job that was told its end is not pushed back for ever by shorter ones that come later") {
  Hand hand({make_chain({{10 * kMs}}), make_chain({{2 * kMs}})});
  hand.submit(0);
  const JobSlot promised = hand.submit(0);
  const std::uint64_t ticket = hand.board.state().job(promised).ticket;
  REQUIRE(hand.expected(promised) == 20 * kMs);
  for (int i = 0; i < 6; ++i) hand.submit(1);
  std::size_t before = 0;
  hand.end();
  while (hand.end() != ticket) ++before;
  CHECK(before <= 1);  // what delays it by no more than an eighth of its response
}

TEST_CASE("a run that is past its expected end still gives way to an urgent job, one that ends before its step does not") {
  Device device = make_device(1);
  device.processors[0].step = kMs;
  const std::vector<Model> models = {make_chain({{60 * kMs}}), make_chain({{kMs}})};
  const auto gives_way_at = [&](Time at) {
    Profile profile(device, models);
    Board board(device, profile, {});
    PolicyMemory memory(board.state(), {});
    Decisions decisions(most_decisions(board.state()));
    const auto submit_at = [&](Time now, std::size_t model, int priority) {
      board.set_now(now);
      board.submit({ModelId(model), kNever, priority});
      decisions.clear();
      scheduler::sluice(board.state(), memory, decisions);
      board.apply(decisions.all());
    };
    submit_at(0, 0, 0);
    REQUIRE(board.state().processors[0].busy);
    submit_at(at, 1, 1);
    return board.state().processors[0].giving_way;
  };
  CHECK(gives_way_at(30 * kMs));
  CHECK_FALSE(gives_way_at(60 * kMs - kMs / 2));
  CHECK(gives_way_at(90 * kMs));
}

}  // namespace
}  // namespace sluice::scheduler

#include "src/scheduler/weight_shares.h"

#include <numeric>

#include "src/engine/arena_window.h"
#include "src/engine/tenancy.h"
#include "tests/scheduler/real_jobs.h"

namespace sluice::scheduler {
namespace {

using namespace literals;

const SessionOptions kSession{.repeat = true, .keep_inputs = false};

/// Units of two nets in two windows, and one of a third in the first window alone.
std::vector<ShareUnit> units_of(const Net& a, const Net& b, const Net& c) {
  std::vector<ShareUnit> units;
  units.push_back({.graph = a.model, .options = kSession, .runs = 2, .parts = {0, 1}});
  units.push_back({.graph = b.model, .options = kSession, .runs = 1, .parts = {0, 1}});
  units.push_back({.graph = c.model, .options = kSession, .runs = 1, .parts = {0}});
  for (ShareUnit& unit : units) REQUIRE(plan_least(unit));
  return units;
}

double cost_of(const std::vector<ShareUnit>& units) {
  return std::accumulate(units.begin(), units.end(), 0.0, [](double sum, const ShareUnit& u) { return sum + u.runs * u.plan().cost_ms; });
}

}  // namespace

TEST_CASE("what is chosen fits the room, and costs no more than the least plans") {
  const Net a(1, {64, 1024, 1024, 10}), b(2, {64, 1024, 512, 10}), c(3, {64, 512, 512, 10});
  const std::vector<ShareUnit> least = units_of(a, b, c);
  const Bytes floor = bytes_of(least, 2);
  for (const Bytes more : {0_B, 4_KiB, 100_KiB, 700_KiB, 3_MiB, 6_MiB}) {
    CAPTURE(more.count());
    std::vector<ShareUnit> units = units_of(a, b, c);
    for (ShareUnit& unit : units) REQUIRE(plan_more(unit, floor + more));
    share_out(units, 2, floor + more);
    CHECK(bytes_of(units, 2) <= floor + more);
    const double shared = cost_of(units);
    CHECK(shared <= cost_of(least));
    REQUIRE(use_rest(units, 2, floor + more));
    CHECK(bytes_of(units, 2) <= floor + more);
    CHECK(cost_of(units) <= shared);
  }
}

TEST_CASE("where there is room for all weights once, no unit reads any again") {
  const Net a(1, {64, 1024, 1024, 10}), b(2, {64, 1024, 512, 10}), c(3, {64, 512, 512, 10});
  std::vector<ShareUnit> all = units_of(a, b, c);
  for (ShareUnit& unit : all) REQUIRE(plan_all(unit));
  Bytes kept;
  for (const ShareUnit& unit : all) {
    CHECK(unit.plan().plan->streamed_bytes == 0_B);
    CHECK(unit.plan().parts.kept > 0);
    kept += Bytes(unit.plan().parts.kept);
  }
  CHECK(bytes_of(all, 2) + bytes_of(all, 2) < kept + kept + kept);  // not twice, though two windows use it
  std::vector<ShareUnit> units = units_of(a, b, c);
  for (ShareUnit& unit : units) REQUIRE(plan_more(unit, bytes_of(all, 2) + 64_KiB));
  share_out(units, 2, bytes_of(all, 2) + 64_KiB);
  for (const ShareUnit& unit : units) CHECK(unit.plan().plan->streamed_bytes == 0_B);
}

TEST_CASE("of two units of one size the one that runs more often keeps its weights") {
  const Net a(1, {64, 1024, 1024, 10}), b(2, {64, 1024, 1024, 10});
  for (const bool first : {true, false}) {
    std::vector<ShareUnit> units;
    units.push_back({.graph = a.model, .options = kSession, .runs = first ? 9.0 : 1.0, .parts = {0}});
    units.push_back({.graph = b.model, .options = kSession, .runs = first ? 1.0 : 9.0, .parts = {0}});
    for (ShareUnit& unit : units) REQUIRE(plan_least(unit));
    const Bytes room = bytes_of(units, 1) + 5_MiB;  // for the weights of one
    for (ShareUnit& unit : units) REQUIRE(plan_more(unit, room));
    share_out(units, 1, room);
    const auto streamed = [&](std::size_t i) { return units[i].plan().plan->streamed_bytes.count(); };
    CHECK(streamed(first ? 0 : 1) < streamed(first ? 1 : 0));
  }
}

TEST_CASE("a session without a place in the window is refused, and one that does not fit it") {
  const Net net(1, {64, 512, 10}), other(2, {64, 512, 10});
  ShareUnit unit{.graph = net.model, .options = kSession, .parts = {0}};
  REQUIRE(plan_least(unit));
  REQUIRE(plan_all(unit));
  auto arena = Arena::reserve(4_MiB);
  REQUIRE((arena && arena->commit(4_MiB)));
  const auto shared = std::make_shared<Arena>(std::move(*arena));
  const auto open = [&](std::uint64_t window) {
    auto opened = engine::open_window(
        {.window = {shared, {2 << 20, (2 << 20) + window}, {{unit.plan().plan.get(), 0, unit.plan().parts}}}, .compute_cpus = {}});
    REQUIRE(opened);
    return *opened;
  };
  SessionOptions options = kSession;
  options.arena = open(1 << 20);
  const auto without = Session::create(net.model, options);
  REQUIRE_FALSE(without);
  CHECK(without.error().code == ErrorCode::kInvalidArgument);
  options.plan = unit.plan().plan.get();
  CHECK(Session::create(net.model, options));
  CHECK_FALSE(Session::create(other.model, options));
  options.arena = open(4096);
  const auto narrow = Session::create(net.model, options);
  REQUIRE(unit.plan().parts.passing > 4096);
  REQUIRE_FALSE(narrow);
  CHECK(narrow.error().code == ErrorCode::kBudgetTooSmall);
}

TEST_CASE("two processors of CPU kernels use one copy of the weights, with the bits of each model alone") {
  const Net a(1, {64, 1024, 1024, 10}), b(2, {64, 1024, 512, 10});
  const auto memory = [&](std::vector<ProcessorOptions> processors, Bytes budget) {
    const auto scheduler = make_scheduler({.budget = budget, .processors = std::move(processors)},
                                          {{&a, a.options()}, {&b, b.options(true)}, {&a, a.options()}});
    CHECK(scheduler->statistics().memory <= budget);
    Jobs jobs(*scheduler);
    for (int i = 0; i < 24; ++i) jobs.submit(i % 3 == 1 ? b : a, static_cast<std::size_t>(i % 3));
    for (const JobResult& result : jobs.wait_all()) CHECK(result.outcome == Outcome::kMet);
    CHECK(jobs.all_right());
    return scheduler->statistics().memory;
  };
  const Bytes one = memory({{}}, kUnlimitedBytes), two = memory({{}, {}}, kUnlimitedBytes);
  CHECK(two < one + 1_MiB);  // the weights are 6.5 MiB
  memory({{}, {.threads = 2}}, kUnlimitedBytes);
  for (const Bytes budget : {two - 1_MiB, two - 3_MiB, two - 5_MiB}) {
    memory({{}, {}}, budget);
    memory({{}, {.threads = 2}}, budget + 1_MiB);
  }
}

}  // namespace sluice::scheduler

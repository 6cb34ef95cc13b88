// What a program that embeds the library is told: lines of a log, and each step of a run.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/core/cpu.h"
#include "sluice/core/log.h"
#include "tests/engine/fixture.h"

namespace sluice {
namespace {

struct Log {
  std::vector<std::pair<LogLevel, std::string>> lines;

  LogHook hook(LogLevel least) {
    return {[](void* log, LogLevel level, std::string_view text) noexcept { static_cast<Log*>(log)->lines.emplace_back(level, text); },
            this, least};
  }
  bool has(LogLevel level, std::string_view part) const {
    for (const auto& [of, text] : lines)
      if (of == level && text.find(part) != std::string::npos) return true;
    return false;
  }
};

struct Steps {
  struct Seen {
    std::size_t index;
    std::string node;
    bool ran;
    bool timed;
  };
  std::vector<Seen> before, after;
  std::size_t count = 0;
  std::thread::id thread;
  Session* cancelled = nullptr;  // before step 1

  executor::StepHook hook_before() {
    return {[](void* all, const executor::StepEvent& event) noexcept {
              Steps& steps = *static_cast<Steps*>(all);
              steps.before.push_back({event.index, event.node->name, event.ran, event.time != nullptr});
              if (event.index == 1 && steps.cancelled != nullptr) steps.cancelled->cancel();
            },
            this};
  }
  executor::StepHook hook_after() {
    return {[](void* all, const executor::StepEvent& event) noexcept {
              Steps& steps = *static_cast<Steps*>(all);
              steps.after.push_back({event.index, event.node->name, event.ran, event.time != nullptr});
              steps.count = event.count;
              steps.thread = std::this_thread::get_id();
            },
            this};
  }
};

}  // namespace

TEST_CASE("hooks see each step of a run, in order, in the thread that runs") {
  const Fixture fixture;
  for (const bool timed : {false, true}) {
    Steps steps;
    auto session = Session::create(
        fixture.model, {.threads = 2, .time_steps = timed, .before_step = steps.hook_before(), .after_step = steps.hook_after()});
    REQUIRE(session);
    REQUIRE(fixture.run(**session).value_or(false));
    const plan::Plan& plan = (*session)->plan();
    REQUIRE(steps.before.size() == plan.steps.size());
    REQUIRE(steps.after.size() == plan.steps.size());
    CHECK(steps.count == plan.steps.size());
    CHECK(steps.thread == std::this_thread::get_id());
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      CHECK(steps.before[i].index == i);
      CHECK(steps.after[i].index == i);
      CHECK(steps.after[i].node == fixture.model->graph().node(plan.steps[i].node).name);
      CHECK(steps.after[i].ran);
      CHECK(steps.after[i].timed == timed);
      CHECK_FALSE(steps.before[i].timed);
    }
  }
}

TEST_CASE("a hook may end its run, and hooks stay across a change of the budget") {
  const Fixture fixture;
  Steps steps;
  auto session = Session::create(fixture.model, {.before_step = steps.hook_before(), .after_step = steps.hook_after()});
  REQUIRE(session);
  REQUIRE((*session)->set_input(0, DType::kF32, fixture.input()));
  steps.cancelled = session->get();
  CHECK(code_of((*session)->run()) == ErrorCode::kCancelled);
  CHECK(steps.before.size() == 2);
  CHECK(steps.after.size() == 1);
  steps.cancelled = nullptr;
  REQUIRE((*session)->set_budget(*minimum_budget(*fixture.model, {})));
  steps.before.clear();
  REQUIRE(fixture.run(**session).value_or(false));
  CHECK(steps.before.size() == (*session)->plan().steps.size());
}

TEST_CASE("between parts of a step another session may run, as long as it is wanted, and bits stay") {
  const Fixture fixture;
  struct Between {
    const Fixture& fixture;
    std::unique_ptr<Session> other;
    std::atomic<bool> wanted{true};
    int calls = 0, right = 0;
  };
  for (const int threads : {1, 2}) {
    Between between{.fixture = fixture, .other = std::move(*Session::create(fixture.model, {.threads = 2}))};
    const executor::PartHook hook{&between.wanted,
                                  [](void* context) noexcept {
                                    Between& self = *static_cast<Between*>(context);
                                    ++self.calls;
                                    self.right += self.fixture.run(*self.other).value_or(false);
                                  },
                                  &between};
    auto session = Session::create(fixture.model, {.threads = threads, .between_parts = hook});
    REQUIRE(session);
    REQUIRE(fixture.run(**session).value_or(false));
    CHECK(between.calls > 0);
    CHECK(between.right == between.calls);
    if (threads == 1) CHECK(between.calls >= static_cast<int>((*session)->plan().steps.size()));
    between.wanted = false;
    const int before = between.calls;
    REQUIRE(fixture.run(**session).value_or(false));
    CHECK(between.calls == before);
  }
}

TEST_CASE("the log is told what was planned, what was run and what failed, as far as it wants") {
  const Fixture fixture;
  Log log;
  const Bytes least = *minimum_budget(*fixture.model, {});
  CHECK_FALSE(Session::create(fixture.model, {.budget = least - Bytes(1), .log = log.hook(LogLevel::kDebug)}));
  CHECK(log.has(LogLevel::kError, "budget too small"));
  CHECK(log.has(LogLevel::kError, std::to_string(least.count())));
  auto session = Session::create(fixture.model, {.budget = least, .log = log.hook(LogLevel::kDebug)});
  REQUIRE(session);
  CHECK(log.has(LogLevel::kInfo, "policy "));
  CHECK_FALSE((*session)->run());
  CHECK(log.has(LogLevel::kError, "run: invalid argument: in: the input was not set"));
  REQUIRE(fixture.run(**session).value_or(false));
  CHECK(log.has(LogLevel::kDebug, "run: "));
  log.lines.clear();
  REQUIRE((*session)->set_budget(2 * least));
  CHECK(log.has(LogLevel::kInfo, "policy "));
  CHECK_FALSE((*session)->set_budget(Bytes(1)));
  CHECK(log.has(LogLevel::kError, "set_budget: budget too small"));
  (*session)->cancel();
  CHECK_FALSE(fixture.run(**session));
  CHECK(log.has(LogLevel::kInfo, "run: cancelled"));
  CHECK_FALSE(log.has(LogLevel::kError, "cancelled"));

  Log quiet;
  auto other = Session::create(fixture.model, {.log = quiet.hook(LogLevel::kError)});
  REQUIRE(other);
  REQUIRE(fixture.run(**other).value_or(false));
  CHECK(quiet.lines.empty());
}

TEST_CASE("the log is told what keeps a session from its best") {
  const Fixture fixture;
  Log log;
  profiler::DeviceProfile profile;
  profile.isa = active_isa() == Isa::kScalar ? "avx2" : "scalar";
  profile.threads = 3;
  REQUIRE(Session::create(fixture.model, {.profile = &profile, .log = log.hook(LogLevel::kWarning)}));
  CHECK(log.has(LogLevel::kWarning, "3 threads, the session computes with 1"));
  CHECK(log.has(LogLevel::kWarning, "this process computes with "));
  log.lines.clear();
  REQUIRE(Session::create(fixture.model, {.threads = 64, .log = log.hook(LogLevel::kWarning)}));
  CHECK(log.has(LogLevel::kWarning, "64 threads compute on "));
  CHECK_FALSE(log.has(LogLevel::kWarning, "profile"));
}

}  // namespace sluice

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <thread>

#include "sluice/engine/engine.h"
#include "sluice/engine/shared_arena.h"
#include "sluice/plan/verify.h"
#include "src/engine/process_memory.h"
#include "tests/engine/fixture.h"
#include "tests/property/cut_sums.h"

namespace sluice {

using namespace literals;

TEST_CASE("a session gives the right bits at every budget and number of threads") {
  const Fixture fixture;
  for (int threads : {1, 2}) {
    const auto minimum = minimum_budget(*fixture.model, {.threads = threads});
    REQUIRE(minimum);
    for (Bytes budget : {*minimum, *minimum + 64_KiB, *minimum + 300_KiB, *minimum + 1_MiB, kUnlimitedBytes}) {
      for (bool repeat : {false, true}) {
        CAPTURE(threads, budget.count(), repeat);
        auto session = Session::create(fixture.model, {.budget = budget, .threads = threads, .repeat = repeat});
        REQUIRE(session);
        CHECK((*session)->memory().overhead + (*session)->plan().arena_bytes <= budget);
        for (int i = 0; i < 3; ++i) {
          const auto right = fixture.run(**session);
          REQUIRE(right);
          REQUIRE(*right);
        }
      }
    }
  }
}

TEST_CASE("one byte under the minimum is refused and the minimum named") {
  const Fixture fixture;
  const auto minimum = minimum_budget(*fixture.model, {});
  REQUIRE(minimum);
  const auto refused = Session::create(fixture.model, {.budget = *minimum - 1_B});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kBudgetTooSmall);
  CHECK(refused.error().needed == minimum->count());
  CHECK(refused.error().available == minimum->count() - 1);

  const SessionOptions options{.budget = *minimum};
  CHECK(minimum_budget(*fixture.model, options).value_or(0_B) == *minimum);
  const auto planned = plan_session(*fixture.model, options);
  REQUIRE(planned);
  CHECK(planned->minimum_budget == *minimum);
  CHECK(planned->overhead + planned->plan.arena_bytes <= *minimum);
  auto session = Session::create(fixture.model, options);
  REQUIRE(session);
  CHECK(fixture.run(**session) == true);
}

// A sanitizer keeps freed memory and shadows of it, an emulator what it translated: what is resident then says nothing of the library.
#if defined(SLUICE_FOREIGN_MEMORY)
constexpr bool kResidentIsOurs = false;
#else
constexpr bool kResidentIsOurs = true;
#endif

// What the process holds besides moves by some pages between two calls, so this scope is tested with a margin.
TEST_CASE("in process scope the overhead covers the process as it is") {
  if (!kResidentIsOurs) {
    WARN("SKIPPED: under a sanitizer or an emulator the resident set is not the library's");
    return;
  }
  const Fixture fixture;
  SessionOptions options{.scope = BudgetScope::kProcess};
  const auto minimum = minimum_budget(*fixture.model, options);
  REQUIRE(minimum);
  const std::vector<char> ballast(32 << 20, 'x');
  REQUIRE(*const_cast<const volatile char*>(&ballast.back()) == 'x');  // else a compiler may leave it out
  const auto with_ballast = minimum_budget(*fixture.model, options);
  REQUIRE(with_ballast);
  CHECK(*with_ballast >= *minimum + 24_MiB);
  options.budget = *minimum;
  const auto refused = Session::create(fixture.model, options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kBudgetTooSmall);
  CHECK(refused.error().needed > options.budget.count() + ballast.size() / 2);
  options.budget = *with_ballast + 1_MiB;
  auto session = Session::create(fixture.model, options);
  REQUIRE(session);
  CHECK(fixture.run(**session) == true);
}

TEST_CASE("what the program says it will take itself is left for it in a process budget") {
  if (!kResidentIsOurs) {
    WARN("SKIPPED: under a sanitizer or an emulator the resident set is not the library's");
    return;
  }
  const Fixture fixture;
  const auto plain = minimum_budget(*fixture.model, {.scope = BudgetScope::kProcess});
  const auto reserving = minimum_budget(*fixture.model, {.scope = BudgetScope::kProcess, .reserve = 8_MiB});
  REQUIRE(plain);
  REQUIRE(reserving);
  CHECK(*reserving >= *plain + 7_MiB);
  CHECK(*reserving <= *plain + 9_MiB);
  CHECK(*minimum_budget(*fixture.model, {.reserve = 8_MiB}) == *minimum_budget(*fixture.model, {}));
  CHECK_FALSE(Session::create(fixture.model, {.budget = *plain + 4_MiB, .scope = BudgetScope::kProcess, .reserve = 8_MiB}));
  // A child's peak begins with what it holds.
  const pid_t child = ::fork();
  if (child == 0) {
    const SessionOptions options{.budget = *reserving + 1_MiB, .scope = BudgetScope::kProcess, .reserve = 8_MiB, .repeat = true};
    auto session = Session::create(fixture.model, options);
    if (!session) ::_exit(1);
    const std::vector<char> own(8 << 20, 'x');
    if (*const_cast<const volatile char*>(&own.back()) != 'x') ::_exit(2);
    for (int i = 0; i < 3; ++i)
      if (fixture.run(**session) != true) ::_exit(3);
    const MemoryReport memory = (*session)->memory();
    ::_exit(memory.peak_resident <= memory.budget ? 0 : 4);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a reserve is the shared arena's, and none may be without end") {
  const Fixture fixture;
  CHECK_FALSE(Session::create(fixture.model, {.reserve = kUnlimitedBytes}));
  auto arena = SharedArena::create({.reserve = 2_MiB});
  REQUIRE(arena);
  CHECK_FALSE(Session::create(fixture.model, {.reserve = 1_MiB, .arena = *arena}));
  CHECK(Session::create(fixture.model, {.reserve = 2_MiB, .arena = *arena}));
}

TEST_CASE("a plan of the caller's is verified and then run") {
  const Fixture fixture;
  auto planned = plan_session(*fixture.model, {.budget = 2_MiB});
  REQUIRE(planned);
  SECTION("not with inputs kept that it does not keep") {
    const auto forgetful = plan_session(*fixture.model, {.budget = 2_MiB, .keep_inputs = false});
    REQUIRE(forgetful);
    const auto session = Session::create(fixture.model, {.plan = &forgetful->plan});
    REQUIRE_FALSE(session);
    CHECK(session.error().code == ErrorCode::kInvalidPlan);
    CHECK(Session::create(fixture.model, {.keep_inputs = false, .plan = &forgetful->plan}));
  }
  SECTION("as it was made") {
    auto session = Session::create(fixture.model, {.budget = 2_MiB, .plan = &planned->plan});
    REQUIRE(session);
    CHECK(fixture.run(**session) == true);
  }
  SECTION("with its sums in parts") {
    const plan::Plan cut = plan::cut_sums(planned->plan, fixture.model->graph(), {.at = {32, 100, 101}});
    REQUIRE(cut.steps.size() > planned->plan.steps.size());
    auto session = Session::create(fixture.model, {.budget = 4_MiB, .plan = &cut});
    REQUIRE(session);
    CHECK(fixture.run(**session) == true);
    CHECK(fixture.run(**session) == true);
  }
  SECTION("not with parts of its sums in the wrong order") {
    plan::Plan cut = plan::cut_sums(planned->plan, fixture.model->graph(), {.at = {32, 40}});
    std::swap(cut.steps[0].reduction, cut.steps[1].reduction);
    auto session = Session::create(fixture.model, {.plan = &cut});
    REQUIRE_FALSE(session);
    CHECK(session.error().code == ErrorCode::kInvalidPlan);
  }
  SECTION("not within a smaller budget") {
    auto session = Session::create(fixture.model, {.budget = planned->plan.arena_bytes, .plan = &planned->plan});
    REQUIRE_FALSE(session);
    CHECK(session.error().code == ErrorCode::kBudgetTooSmall);
  }
  SECTION("not for another model") {
    planned->plan.model_hash ^= 1;
    auto session = Session::create(fixture.model, {.plan = &planned->plan});
    REQUIRE_FALSE(session);
    CHECK(session.error().code == ErrorCode::kInvalidPlan);
  }
  SECTION("not with more threads than it is for") {
    auto session = Session::create(fixture.model, {.threads = 2, .plan = &planned->plan});
    REQUIRE_FALSE(session);
    CHECK(session.error().code == ErrorCode::kInvalidPlan);
  }
}

TEST_CASE("wrong calls are errors and leave the session usable") {
  const Fixture fixture;
  auto created = Session::create(fixture.model, {});
  REQUIRE(created);
  Session& session = **created;
  std::vector<std::byte> bytes(4096);
  std::span<std::byte> output(bytes.data(), fixture.toy.expected.size() * sizeof(float));
  CHECK(code_of(session.run()) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.get_output(0, output)) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.set_input(1, DType::kF32, fixture.input())) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.set_input(0, DType::kI32, fixture.input())) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.set_input(0, DType::kF32, fixture.input().subspan(1))) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.set_input(0, DType::kF32, {})) == ErrorCode::kInvalidArgument);
  REQUIRE(session.set_input(0, DType::kF32, fixture.input()));
  CHECK(code_of(session.get_output(0, output)) == ErrorCode::kInvalidArgument);
  REQUIRE(session.run());
  CHECK(code_of(session.get_output(1, output)) == ErrorCode::kInvalidArgument);
  CHECK(code_of(session.get_output(0, output.first(4))) == ErrorCode::kInvalidArgument);
  CHECK(session.get_output(0, output));
  REQUIRE(session.set_input(0, DType::kF32, fixture.input()));
  CHECK(code_of(session.get_output(0, output)) == ErrorCode::kInvalidArgument);
  CHECK(fixture.run(session) == true);
}

TEST_CASE("sessions that cannot be are refused") {
  const Fixture fixture;
  CHECK_FALSE(Session::create(nullptr, {}));
  CHECK_FALSE(Session::create(fixture.model, {.threads = 0}));
  CHECK_FALSE(Session::create(fixture.model, {.threads = -1}));
  CHECK_FALSE(Session::create(fixture.model, {.emulation = {.read_bytes_per_second = -1}}));
  CHECK_FALSE(Session::create(fixture.model, {.emulation = {.compute_slowdown = 0.9}}));
  CHECK_FALSE(plan_session(*fixture.model, {.threads = 0}));
  CHECK_FALSE(minimum_budget(*fixture.model, {.threads = 0}));
  CHECK_FALSE(Model::open("there-is-no-such-file.sluice"));
}

TEST_CASE("inputs that are kept serve many runs, others must be set again") {
  const Fixture fixture;
  for (bool keep : {true, false}) {
    auto session = Session::create(fixture.model, {.keep_inputs = keep});
    REQUIRE(session);
    CHECK(fixture.run(**session) == true);
    CHECK((*session)->run().has_value() == keep);
  }
}

TEST_CASE("a budget that changes between runs keeps the bits, and gives memory back at once") {
  const Fixture fixture({.rows = 2, .widths = {64, 1024, 1024, 1024, 10}});
  const auto minimum = minimum_budget(*fixture.model, {.repeat = true});
  REQUIRE(minimum);
  for (Bytes largest : {0_B, kUnlimitedBytes}) {
    for (bool run_between : {true, false}) {
      CAPTURE(largest.count(), run_between);
      auto created = Session::create(fixture.model, {.budget = *minimum + 2_MiB, .largest_budget = largest, .repeat = true});
      REQUIRE(created);
      Session& session = **created;
      REQUIRE(fixture.run(session) == true);
      for (Bytes budget :
           {*minimum, *minimum + 4_MiB, *minimum + 1_MiB, kUnlimitedBytes, *minimum + 512_KiB, *minimum + 768_KiB, *minimum}) {
        CAPTURE(budget.count());
        const Bytes before = engine::read_process_memory().resident;
        const Bytes arena_before = session.plan().arena_bytes;
        const Status changed = session.set_budget(budget);
        if (!changed) FAIL(changed.error().to_string());
        const Bytes after = engine::read_process_memory().resident;
        const Bytes arena = session.plan().arena_bytes;
        CHECK(session.memory().budget == budget);
        CHECK(session.memory().overhead + arena <= budget);
        if (kResidentIsOurs && run_between && arena + 2_MiB < arena_before)
          CHECK(after + Bytes((arena_before - arena).count() / 2) < before);
        if (!run_between) continue;
        CHECK_FALSE(session.run());  // inputs are to be set again
        for (int i = 0; i < 3; ++i) REQUIRE(fixture.run(session) == true);
      }
      REQUIRE(fixture.run(session) == true);
    }
  }
}

TEST_CASE("resident weights that two plans hold at the same addresses are not read again") {
  const Fixture fixture({.rows = 2, .widths = {64, 1024, 1024, 1024, 10}});
  auto session = Session::create(fixture.model, {.repeat = true});
  REQUIRE(session);
  REQUIRE(fixture.run(**session) == true);
  CHECK((*session)->stats().bytes_read > 8_MiB);
  REQUIRE((*session)->set_budget(1_GiB));
  REQUIRE(fixture.run(**session) == true);
  CHECK((*session)->stats().bytes_read == 0_B);
}

TEST_CASE("a budget that is too small leaves the session as it was") {
  const Fixture fixture;
  const auto minimum = minimum_budget(*fixture.model, {});
  REQUIRE(minimum);
  auto session = Session::create(fixture.model, {.budget = *minimum + 1_MiB});
  REQUIRE(session);
  REQUIRE(fixture.run(**session) == true);
  const Status refused = (*session)->set_budget(*minimum - 1_B);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kBudgetTooSmall);
  CHECK(refused.error().needed == minimum->count());
  CHECK((*session)->memory().budget == *minimum + 1_MiB);
  CHECK(fixture.run(**session) == true);
}

TEST_CASE("a session that is called off goes on with the next run") {
  const Fixture fixture;
  auto session = Session::create(fixture.model, {});
  REQUIRE(session);
  (*session)->cancel();
  REQUIRE((*session)->set_input(0, DType::kF32, fixture.input()));
  CHECK(code_of((*session)->run()) == ErrorCode::kCancelled);
  CHECK(fixture.run(**session) == true);
}

TEST_CASE("a cancellation that comes beside a change of budget ends a run, and the session goes on") {
  const Fixture fixture;
  const auto minimum = minimum_budget(*fixture.model, {});
  REQUIRE(minimum);
  auto session = Session::create(fixture.model, {.budget = kUnlimitedBytes, .repeat = true});
  REQUIRE(session);
  REQUIRE(fixture.run(**session).value_or(false));
  for (int i = 0; i < 20; ++i) {
    std::thread other([&] { (*session)->cancel(); });
    REQUIRE((*session)->set_budget(i % 2 == 0 ? *minimum + 64_KiB : kUnlimitedBytes));
    other.join();
    const auto cancelled = fixture.run(**session);
    REQUIRE_FALSE(cancelled);
    CHECK(cancelled.error().code == ErrorCode::kCancelled);
    CHECK(fixture.run(**session).value_or(false));
  }
  (*session)->cancel();
  REQUIRE((*session)->set_budget(*minimum + 64_KiB));
  CHECK_FALSE(fixture.run(**session));
  CHECK(fixture.run(**session).value_or(false));
}

TEST_CASE("an output comes in parts too") {
  const Fixture fixture;
  auto session = Session::create(fixture.model, {});
  REQUIRE(session);
  std::vector<float> output(fixture.toy.expected.size());
  const auto bytes = std::as_writable_bytes(std::span(output));
  CHECK(code_of((*session)->get_output_part(0, 0, bytes)) == ErrorCode::kInvalidArgument);
  REQUIRE(fixture.run(**session).value_or(false));
  std::fill(output.begin(), output.end(), 0.0f);
  for (std::size_t i = 0; i < output.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, output.size() - i);
    REQUIRE((*session)->get_output_part(0, i, bytes.subspan(i * sizeof(float), count * sizeof(float))));
  }
  CHECK(output == fixture.toy.expected);
  CHECK(code_of((*session)->get_output_part(0, 1, bytes)) == ErrorCode::kInvalidArgument);
  CHECK(code_of((*session)->get_output_part(0, ~std::uint64_t{0}, bytes)) == ErrorCode::kInvalidArgument);
  CHECK(code_of((*session)->get_output_part(0, 0, bytes.first(3))) == ErrorCode::kInvalidArgument);
  CHECK(code_of((*session)->get_output_part(1, 0, {})) == ErrorCode::kInvalidArgument);
}

TEST_CASE("each step's time is kept where that was asked for") {
  const Fixture fixture;
  auto plain = Session::create(fixture.model, {});
  REQUIRE(plain);
  REQUIRE(fixture.run(**plain).value_or(false));
  CHECK((*plain)->step_times().empty());
  auto timed = Session::create(fixture.model, {.time_steps = true});
  REQUIRE(timed);
  REQUIRE(fixture.run(**timed).value_or(false));
  REQUIRE((*timed)->step_times().size() == (*timed)->plan().steps.size());
  std::int64_t stall = 0;
  std::int64_t compute = 0;
  for (const executor::StepTime& step : (*timed)->step_times()) {
    stall += step.stall_ns;
    compute += step.compute_ns;
  }
  CHECK(stall == (*timed)->stats().stall_ns);
  CHECK(compute > 0);
  CHECK(compute + stall <= (*timed)->stats().wall_ns);
}

TEST_CASE("threads that no step would share are not started") {
  const auto threads_now = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const Fixture fixture;
  auto planned = plan_session(*fixture.model, {.threads = 2});
  REQUIRE(planned);
  std::ptrdiff_t started[2];
  for (const bool shared : {false, true}) {
    for (plan::Step& step : planned->plan.steps) step.alone = true;
    planned->plan.steps.back().alone = !shared;
    REQUIRE(plan::shares_steps(planned->plan) == shared);
    const auto before = threads_now();
    auto session = Session::create(fixture.model, {.threads = 2, .plan = &planned->plan});
    REQUIRE(session);
    started[shared] = threads_now() - before;
    CHECK(fixture.run(**session).value_or(false));
  }
  CHECK(started[1] == started[0] + 1);
}

TEST_CASE("processors for compute and loads are kept to, and impossible ones refused") {
  const Fixture fixture;
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  int cpu = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(cpu), &before)) ++cpu;
  auto session = Session::create(fixture.model, {.threads = 2, .tuning = {.compute_cpus = {cpu}, .load_cpus = {cpu}}});
  REQUIRE(session);
  CHECK(fixture.run(**session).value_or(false));
  cpu_set_t after;
  REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
  CHECK(CPU_EQUAL(&before, &after));
  const auto refused = Session::create(fixture.model, {.tuning = {.load_cpus = {CPU_SETSIZE - 1}}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("two sessions of one model run at once") {
  const Fixture fixture;
  const auto minimum = minimum_budget(*fixture.model, {});
  REQUIRE(minimum);
  std::array<std::unique_ptr<Session>, 2> sessions;
  for (auto& session : sessions) {
    auto created = Session::create(fixture.model, {.budget = *minimum + 200_KiB});
    REQUIRE(created);
    session = std::move(*created);
  }
  std::array<int, 2> right{};
  std::array<std::thread, 2> threads;
  for (std::size_t i = 0; i < 2; ++i) {
    threads[i] = std::thread([&, i] {
      for (int run = 0; run < 20; ++run) {
        const auto result = fixture.run(*sessions[i]);
        right[i] += result && *result;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::array<int, 2>{20, 20});
}

TEST_CASE("a session outlives the caller's handle of its model") {
  Fixture fixture;
  auto session = Session::create(fixture.model, {});
  REQUIRE(session);
  fixture.model.reset();
  CHECK(fixture.run(**session) == true);
}

TEST_CASE("each way of reading gives the same bits") {
  const Fixture fixture;
  auto buffered = Session::create(fixture.model, {.budget = 2_MiB, .tuning = {.read_mode = model::ReadMode::kBuffered}});
  REQUIRE(buffered);
  CHECK(fixture.run(**buffered) == true);
}

}  // namespace sluice

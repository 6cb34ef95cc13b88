// A forked child has its parent's sessions, but none of their threads: it is told so, and its end leaves the parent's as they are.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "sluice/engine/engine.h"
#include "sluice/engine/shared_arena.h"
#include "tests/executor/toy_file.h"

namespace sluice {
namespace {

struct ForkFixture {
  ForkFixture() : toy(toy::make_toy_model({.rows = 2, .widths = {64, 512, 384, 512, 10}})) {
    REQUIRE(toy::write_toy_file(toy, path.str()));
    auto opened = Model::open(path.str());
    REQUIRE(opened);
    model = *opened;
  }
  bool right(Session& session) const {
    std::vector<float> output(toy.expected.size());
    return session.set_input(0, DType::kF32, std::as_bytes(std::span(toy.input))) && session.run() &&
           session.get_output(0, std::as_writable_bytes(std::span(output))) &&
           std::memcmp(output.data(), toy.expected.data(), output.size() * sizeof(float)) == 0;
  }
  toy::ToyModel toy;
  toy::TemporaryPath path{"fork_test.sluice"};
  std::shared_ptr<const Model> model;
};

/// What a child finds of the parent's session: 0, or the number of what is not as it should be.
int attempts_of_child(const ForkFixture& fixture, std::unique_ptr<Session> session) {
  const auto refused = [](const Status& status) { return !status && status.error().code == ErrorCode::kInvalidArgument; };
  std::vector<float> output(fixture.toy.expected.size());
  if (!refused(session->set_input(0, DType::kF32, std::as_bytes(std::span(fixture.toy.input))))) return 1;
  if (!refused(session->run())) return 2;
  if (!refused(session->get_output(0, std::as_writable_bytes(std::span(output))))) return 3;
  if (!refused(session->set_budget(kUnlimitedBytes))) return 4;
  session->cancel();
  session.reset();
#if !defined(__SANITIZE_THREAD__)  // which does not follow threads into a forked child
  auto own = Session::create(fixture.model, {.threads = 2});
  if (!own || !fixture.right(**own)) return 5;
#endif
  return 0;
}

int status_of(pid_t child) {
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

/// Forks; the child tries, and is ended where it hangs.
int fork_and_try(const ForkFixture& fixture, std::unique_ptr<Session>& session) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(attempts_of_child(fixture, std::move(session)));
  }
  return status_of(child);
}

}  // namespace

TEST_CASE("a forked child is refused its parent's session, ends it without harm, and makes its own") {
  const ForkFixture fixture;
  for (const bool repeat : {false, true}) {
    auto session = Session::create(fixture.model, {.threads = 2, .repeat = repeat});
    REQUIRE(session);
    REQUIRE(fixture.right(**session));
    CHECK(fork_and_try(fixture, *session) == 0);
    CHECK(fixture.right(**session));
  }
}

TEST_CASE("a child that was forked in the middle of a run ends the session, too") {
  const ForkFixture fixture;
  auto session = Session::create(fixture.model, {.threads = 2});
  REQUIRE(session);
  std::atomic<bool> stop{false};
  std::atomic<int> runs{0}, wrong{0};
  std::thread runner([&] {
    while (!stop) {
      wrong += !fixture.right(**session);
      ++runs;
    }
  });
  while (runs == 0) std::this_thread::yield();
  int failed = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      (*session)->cancel();
      const bool refused = !(*session)->run();
      session->reset();
      ::_exit(refused ? 0 : 1);
    }
    failed += status_of(child) != 0;
  }
  stop = true;
  runner.join();
  CHECK(failed == 0);
  CHECK(wrong == 0);
}

TEST_CASE("sessions of a shared arena are the parent's, and so is the arena") {
  const ForkFixture fixture;
  auto arena = SharedArena::create({.threads = 2});
  REQUIRE(arena);
  auto session = Session::create(fixture.model, {.arena = *arena});
  REQUIRE(session);
  REQUIRE(fixture.right(**session));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const bool refused = !(*arena)->set_budget(kUnlimitedBytes) && !Session::create(fixture.model, {.arena = *arena});
    session->reset();
    arena->reset();
    ::_exit(refused ? 0 : 1);
  }
  CHECK(status_of(child) == 0);
  CHECK(fixture.right(**session));
}

}  // namespace sluice

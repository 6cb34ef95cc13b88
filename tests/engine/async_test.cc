#include "sluice/engine/async.h"

#include <atomic>
#include <thread>

#include "tests/engine/fixture.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

struct Counted {
  std::atomic<int> good = 0;
  std::atomic<int> bad = 0;
};
void count(void* context, const Status& status) { (status ? static_cast<Counted*>(context)->good : static_cast<Counted*>(context)->bad)++; }

/// A session that needs `slowdown` times as long.
std::unique_ptr<Session> session_of(const Fixture& fixture, double slowdown = 1) {
  auto session = Session::create(fixture.model, {.emulation = {.compute_slowdown = slowdown}});
  REQUIRE(session);
  REQUIRE((*session)->set_input(0, DType::kF32, fixture.input()));
  return std::move(*session);
}

bool right(const Fixture& fixture, Session& session) {
  std::vector<float> output(fixture.toy.expected.size());
  return session.get_output(0, std::as_writable_bytes(std::span(output))) && output == fixture.toy.expected;
}

}  // namespace

TEST_CASE("a run beside the caller tells when it is over, and leaves the right output") {
  const Fixture fixture;
  const auto session = session_of(fixture);
  const auto runs = AsyncSession::create(*session);
  REQUIRE(runs);
  CHECK((*runs)->wait());
  Counted counted;
  for (int i = 1; i <= 20; ++i) {
    REQUIRE((*runs)->start(&count, &counted));
    REQUIRE((*runs)->wait());
    REQUIRE(counted.good == i);
    REQUIRE(right(fixture, *session));
  }
  CHECK(counted.bad == 0);
}

TEST_CASE("a second run is refused while one is under way, and a cancelled one says so") {
  const Fixture fixture;
  const auto session = session_of(fixture, 1000);
  const auto runs = AsyncSession::create(*session);
  REQUIRE(runs);
  Counted counted;
  REQUIRE((*runs)->start(&count, &counted));
  CHECK(code_of((*runs)->start(nullptr, nullptr)) == ErrorCode::kInvalidArgument);
  session->cancel();
  CHECK(code_of((*runs)->wait()) == ErrorCode::kCancelled);
  CHECK(counted.bad == 1);
}

TEST_CASE("a run that has too little time is called off, and the next one is as if nothing had been") {
  const Fixture fixture;
  const auto session = session_of(fixture, 1000);
  const auto runs = AsyncSession::create(*session);
  REQUIRE(runs);
  const Status late = (*runs)->run_within(0ns);
  CHECK(code_of(late) == ErrorCode::kCancelled);
  CHECK(late.error().to_string().find("longer than it was given") != std::string::npos);

  const auto quick = session_of(fixture);
  const auto quick_runs = AsyncSession::create(*quick);
  REQUIRE(quick_runs);
  // Limits about as long as a run: whether it is late or not, what it says is true, and nothing is left for the next.
  for (int i = 0; i < 200; ++i) {
    const Status status = (*quick_runs)->run_within(std::chrono::microseconds(i));
    if (!status) REQUIRE(status.error().code == ErrorCode::kCancelled);
    if (status) REQUIRE(right(fixture, *quick));
    REQUIRE(quick->run());
    REQUIRE(right(fixture, *quick));
  }
  CHECK((*quick_runs)->run_within(1h));
  CHECK((*quick_runs)->run_within(std::chrono::nanoseconds::max()));
  for (int i = 0; i < 2000; ++i)
    REQUIRE(code_of((*quick_runs)->run_within(i % 2 == 0 ? std::chrono::nanoseconds::min() : 0ns)) == ErrorCode::kCancelled);
  CHECK(quick->run());
}

TEST_CASE("a limit that passes when a run has used its inputs up is not the next run's") {
  const Fixture fixture;
  auto session = Session::create(fixture.model, {.keep_inputs = false});
  REQUIRE(session);
  const auto runs = AsyncSession::create(**session);
  REQUIRE(runs);
  for (int i = 0; i < 400; ++i) {
    REQUIRE((*session)->set_input(0, DType::kF32, fixture.input()));
    const Status status = (*runs)->run_within(std::chrono::microseconds(i / 2));
    if (!status) REQUIRE(status.error().code == ErrorCode::kCancelled);
    const auto after = fixture.run(**session);
    if (!after) FAIL("run " << i << ": " << after.error().to_string());
    REQUIRE(*after);
  }
}

TEST_CASE("a runner that ends while its caller is told of a run cancels nothing") {
  const Fixture fixture;
  const auto session = session_of(fixture);
  for (int i = 0; i < 20; ++i) {
    struct Told {
      std::atomic<bool> begun = false, ending = false;
    } told;
    auto runs = AsyncSession::create(*session);
    REQUIRE(runs);
    const auto tell = [](void* context, const Status&) {
      auto& told = *static_cast<Told*>(context);
      told.begun = true;
      while (!told.ending) std::this_thread::yield();
      std::this_thread::sleep_for(1ms);  // the destructor has been entered, or will be: both are right
    };
    REQUIRE((*runs)->start(tell, &told));
    while (!told.begun) std::this_thread::yield();
    told.ending = true;
    runs->reset();
    REQUIRE(session->run());
    REQUIRE(right(fixture, *session));
  }
}

TEST_CASE("a runner that ends takes its run with it and leaves the session usable") {
  const Fixture fixture;
  const auto session = session_of(fixture);
  for (int i = 0; i < 50; ++i) {
    {
      const auto runs = AsyncSession::create(*session);
      REQUIRE(runs);
      REQUIRE((*runs)->start(nullptr, nullptr));
    }
    REQUIRE(session->run());
    REQUIRE(right(fixture, *session));
  }
}

}  // namespace sluice

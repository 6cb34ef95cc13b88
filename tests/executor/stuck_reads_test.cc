// Reads that the system does not end: what a run, a cancellation and the end of an executor make of them.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>

#include "tests/executor/bench.h"

namespace sluice::executor {

using toy::Bench;

TEST_CASE("a read that does not end is left alone after the time-out, or when the run is called off") {
  for (bool timeout : {true, false}) {
    CAPTURE(timeout);
    Bench bench({.slots = 5});
    bench.source.stuck_at = 3;
    auto executor = bench.create({.read = {.timeout_ms = timeout ? 300 : 5000}});
    REQUIRE(executor);
    bench.set_input(**executor);
    std::thread caller([&] {
      if (timeout) return;
      while (bench.source.reads <= 3) usleep(1000);
      (*executor)->cancel();
    });
    const Status stuck = (*executor)->run();
    caller.join();
    REQUIRE_FALSE(stuck);
    CHECK(stuck.error().code == (timeout ? ErrorCode::kIo : ErrorCode::kCancelled));
    CHECK(stuck.error().os_error == (timeout ? ETIMEDOUT : 0));
    if (timeout) {
      const Status still = (*executor)->run();
      REQUIRE_FALSE(still);
      CHECK(still.error().os_error == ETIMEDOUT);
    }
    bench.source.release();
    REQUIRE((*executor)->run());
    CHECK(bench.right(**executor));
  }
}

TEST_CASE("an executor is quiet as soon as no read of it is under way, and says so after its patience") {
  for (const bool wrap : {false, true}) {
    Bench bench({.slots = 5, .wrap = wrap});
    bench.source.stuck_at = 3;
    auto executor = bench.create();
    REQUIRE(executor);
    bench.set_input(**executor);
    CHECK((*executor)->settle());
    std::thread caller([&] {
      while (bench.source.reads <= 3) usleep(1000);
      (*executor)->cancel();
    });
    CHECK((*executor)->run().error().code == ErrorCode::kCancelled);
    caller.join();
    CHECK_FALSE((*executor)->quiet(1'000'000));
    CHECK_FALSE((*executor)->quiet(0));
    bench.source.release();
    REQUIRE((*executor)->settle());
    CHECK((*executor)->quiet(0));
    REQUIRE((*executor)->run());
    CHECK(bench.right(**executor));
    REQUIRE((*executor)->settle());
  }
}

TEST_CASE("a read that a ring does not end is left to it, and is waited for before the next run") {
  Bench bench({.slots = 5});
  toy::PipeSource source(bench.model.file);
  auto executor = Executor::create(bench.model.graph, bench.plan, source, bench.arena, *bench.pool,
                                   {.read = {.method = ReadMethod::kRing}, .find_kernel = &toy::find_toy_kernel});
  if (!executor) {
    WARN("SKIPPED: io_uring is not available");
    return;
  }
  bench.set_input(**executor);
  std::thread caller([&, before = source.asked.load()] {
    while (source.asked == before) usleep(1000);
    (*executor)->cancel();
  });
  CHECK((*executor)->run().error().code == ErrorCode::kCancelled);
  caller.join();
  CHECK_FALSE((*executor)->quiet(0));
  source.release();
  REQUIRE((*executor)->run());
  CHECK(bench.right(**executor));
}

}  // namespace sluice::executor

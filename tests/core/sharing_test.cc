// When calls are shared with the workers, told by times that the test makes up.
#include "src/core/sharing.h"

#include <catch2/catch.hpp>

using sluice::Sharing;

namespace {

constexpr std::int64_t kUs = 1000, kMs = 1'000'000;

/// Calls of 50 us that follow each other, and a caller whose processor time passes as `share` per cent of them.
class Calls {
 public:
  explicit Calls(std::int64_t share = 100) : share_(share) {}

  /// One call: so much work of the caller's in so many tasks, then so much waiting. Was it shared?
  bool call(std::int64_t work = 50 * kUs, std::int64_t wait = 1 * kUs, std::int64_t tasks = 1) {
    if (!sharing_.wanted(now_)) {
      now_ += 2 * work;
      return false;
    }
    const Sharing::Call call{now_, now_ + work, now_ + work + wait, tasks};
    now_ = call.end;
    cpu_ += work * share_ / 100;
    sharing_.ended(call, [&] {
      ++asked_;
      return cpu_;
    });
    return true;
  }
  /// Time passes without calls.
  void pause(std::int64_t time) { now_ += time; }
  std::int64_t now() const { return now_; }
  int asked() const { return asked_; }

 private:
  Sharing sharing_;
  std::int64_t share_;
  std::int64_t now_ = 1 * kMs, cpu_ = 0;
  int asked_ = 0;
};

}  // namespace

TEST_CASE("calls that go well are shared, and the processor's clock is rarely asked") {
  Calls calls;
  for (int i = 0; i < 1000; ++i) CHECK(calls.call());
  CHECK(calls.asked() <= 1 + 1000 * 51 / 3000);
}

TEST_CASE("waiting for a worker that lost its processor keeps the next calls to the caller, four times as long") {
  Calls calls;
  CHECK(calls.call());
  CHECK(calls.call(50 * kUs, 3 * kMs));
  const std::int64_t lost_at = calls.now();
  while (calls.now() < lost_at + 12 * kMs) CHECK_FALSE(calls.call());
  CHECK(calls.call());
}

TEST_CASE("where sharing loses again at once, it is tried half as often, up to a limit") {
  Calls calls;
  std::int64_t alone = 0;
  for (const std::int64_t want : {4, 8, 16, 32, 64, 128, 200, 200}) {
    CHECK(calls.call(50 * kUs, 1 * kMs));
    const std::int64_t lost_at = calls.now();
    while (!calls.call()) alone = calls.now() - lost_at;
    CHECK(alone >= want * kMs);
    CHECK(alone <= want * kMs + 200 * kUs);
  }
  for (int i = 0; i < 10'000; ++i) calls.call();  // half a second without a loss
  CHECK(calls.call(50 * kUs, 1 * kMs));
  calls.pause(4 * kMs);
  CHECK(calls.call());
}

TEST_CASE("losses that come back every few turns are one disturbance") {
  Calls calls;
  std::int64_t alone = 0;
  for (int loss = 0; loss < 10; ++loss) {
    for (int i = 0; i < 300; ++i) CHECK(calls.call());  // 15 ms
    CHECK(calls.call(50 * kUs, 3 * kMs));
    const std::int64_t lost_at = calls.now();
    while (!calls.call()) alone = calls.now() - lost_at;
  }
  CHECK(alone >= 199 * kMs);
}

TEST_CASE("waiting for a few tasks, and a wake-up, is how uneven tasks end") {
  Calls calls;
  for (int i = 0; i < 100; ++i) {
    CHECK(calls.call(2 * kMs, 2 * kMs));
    CHECK(calls.call(100 * kUs, 200 * kUs + 100 * kUs));
    CHECK(calls.call(800 * kUs, 300 * kUs, 8));
  }
}

TEST_CASE("how long a worker may take is told by the tasks, not by the call") {
  Calls calls;
  CHECK(calls.call(8 * kMs, 7 * kMs, 8));
  CHECK_FALSE(calls.call());
}

TEST_CASE("a caller that found no task says nothing of how long they are") {
  Calls calls;
  for (int i = 0; i < 100; ++i) CHECK(calls.call(1 * kUs, 2 * kMs, 0));
}

TEST_CASE("a caller that loses its processor to its own worker computes alone") {
  Calls calls(70);
  int shared = 0;
  for (int i = 0; i < 2000; ++i) shared += calls.call() ? 1 : 0;
  CHECK(shared > 0);
  CHECK(shared < 2000 / 4);
}

TEST_CASE("pauses between calls are nobody's loss") {
  Calls calls;
  for (int i = 0; i < 1000; ++i) {
    CHECK(calls.call());
    calls.pause(5 * kMs);
  }
}

TEST_CASE("time alone has an end, however much was lost") {
  Calls calls;
  CHECK(calls.call(50 * kUs, 60'000 * kMs));
  calls.pause(Sharing::kLongestAlone);
  CHECK(calls.call());
}

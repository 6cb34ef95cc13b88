#include "sluice/core/lane.h"

#include <catch2/catch.hpp>
#include <vector>

#include "sluice/core/native_thread.h"

namespace sluice {
namespace {

struct Duo {
  Lane there;
  Lane back;
  std::vector<int> mail;  // written by one side before it advances, read by the other after its wait
  static constexpr int kRounds = 20000;
};

void answer(void* context) noexcept {
  Duo& duo = *static_cast<Duo*>(context);
  for (int round = 0; round < Duo::kRounds; ++round) {
    if (!duo.there.wait_for(static_cast<std::uint64_t>(round) + 1)) return;
    duo.mail[0] += 1;
    duo.back.advance();
  }
}

void wait_for_ever(void* context) noexcept {
  Duo& duo = *static_cast<Duo*>(context);
  if (!duo.there.wait_for(5)) duo.mail[0] = -1;
}

}  // namespace

TEST_CASE("two threads that wait for each other see each advance and what was written before it") {
  Duo duo;
  duo.mail = {0};
  NativeThread thread;
  REQUIRE(thread.start("test", 64 * 1024, &answer, &duo));
  bool right = true;
  for (int round = 0; round < Duo::kRounds; ++round) {
    duo.mail[0] += 1;
    duo.there.advance();
    right = right && duo.back.wait_for(static_cast<std::uint64_t>(round) + 1) && duo.mail[0] == 2 * (round + 1);
  }
  CHECK(right);
  thread.join();
}

TEST_CASE("a wait that cannot be fulfilled ends when it is interrupted") {
  Duo duo;
  duo.mail = {0};
  NativeThread thread;
  REQUIRE(thread.start("test", 64 * 1024, &wait_for_ever, &duo));
  for (int i = 0; i < 4; ++i) duo.there.advance();
  duo.there.interrupt();
  thread.join();
  CHECK(duo.mail[0] == -1);
  CHECK_FALSE(duo.there.wait_for(5));
  CHECK(duo.there.wait_for(4));
  duo.there.rearm();
  duo.there.advance();
  CHECK(duo.there.wait_for(5));
}

}  // namespace sluice

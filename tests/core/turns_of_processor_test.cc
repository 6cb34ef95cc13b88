#include "src/core/turns_of_processor.h"

#include <catch2/catch.hpp>
#include <thread>

namespace sluice {

TEST_CASE("a thread's turn is what was asked for, or stays as it was, and others keep theirs") {
  const std::int64_t before = turn_of_this_thread();
  std::int64_t usual = 0, asked = 0, again = 0;
  std::thread([&] {
    usual = turn_of_this_thread();
    work_in_turns_of(kLongTurnNs);
    asked = turn_of_this_thread();
    work_in_turns_of(1'000'000);
    again = turn_of_this_thread();
  }).join();
  CHECK((asked == kLongTurnNs || asked == usual));
  CHECK((again == 1'000'000 || again == usual));
  CHECK(turn_of_this_thread() == before);
}

}  // namespace sluice

#include "src/profiler/interruption_meter.h"

#include <array>
#include <catch2/catch.hpp>

namespace sluice::profiler {
namespace {

constexpr double kTurn = 4e-6;
using Times = std::array<double, InterruptedTurns::kWatched>;

/// Every `apart`-th turn takes so much longer.
Times interrupted(std::size_t apart, double seconds) {
  Times times;
  times.fill(kTurn);
  for (std::size_t i = apart / 2; i < times.size(); i += apart) times[i] += seconds;
  return times;
}

InterruptedTurns turns_of(const Times& times, int watches = 20) {
  InterruptedTurns turns;
  for (int i = 0; i < watches; ++i) turns.add(times);
  return turns;
}

TEST_CASE("what interrupts a processor is met by runs as long as it is apart") {
  // 10 us in each 50 turns: 5 % of a long run. A median run of 10 turns meets none of it, of 100 turns all.
  const Interruptions often = turns_of(interrupted(50, 1e-5)).met(1);
  CHECK(often.share == Approx(0.05));
  for (std::size_t i = 0; i < 2; ++i) CHECK(often.met[i] == Approx(0).margin(1e-6));
  CHECK(often.met[2] == Approx(1));  // of most runs of 32 turns
  CHECK(often.met[3] == Approx(1));
  // In each 500 turns: no run of a hundred meets it, and two of three of 316.
  const Interruptions seldom = turns_of(interrupted(500, 4e-5)).met(1);
  CHECK(seldom.share == Approx(0.02));
  for (std::size_t i = 0; i < 4; ++i) CHECK(seldom.met[i] == Approx(0).margin(1e-6));
  CHECK(seldom.met[4] == Approx(1));
  // In each 18 turns, which half of the runs of ten meet, and most of three do not.
  const Interruptions close = turns_of(interrupted(18, 2e-6)).met(1);
  CHECK(close.met[0] == Approx(0).margin(1e-6));
  CHECK(close.met[1] == Approx(1));
}

TEST_CASE("of several threads that are interrupted, all wait") {
  const InterruptedTurns turns = turns_of(interrupted(50, 1e-5));
  CHECK(turns.met(2).share == Approx(2 * turns.met(1).share));
  CHECK(turns.met(64).share == Approx(0.15));  // no usual state of a machine has more
}

TEST_CASE("few watches, quiet ones and very busy ones say nothing of interruptions") {
  const Interruptions nothing;
  CHECK(turns_of(interrupted(50, 1e-5), 19).met(1) == nothing);
  CHECK(turns_of(interrupted(2000, 0)).met(1).share < 1e-9);
  CHECK(turns_of(interrupted(50, 1e-4)).met(1) == nothing);
}

}  // namespace
}  // namespace sluice::profiler

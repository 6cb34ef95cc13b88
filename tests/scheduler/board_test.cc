#include "sluice/scheduler/board.h"

#include <catch2/catch.hpp>

#include "tests/scheduler/small_instances.h"

namespace sluice::scheduler {
namespace {

struct Fixture {
  Device device = make_device(2, 10);
  std::vector<Model> models = {make_chain({{100, 200}, {100, 50}, {100, kNever}})};
  Profile profile{device, models};
  Board board{device, profile, {.jobs = 2}};
};

TEST_CASE("a job goes through its units and leaves as met, or late after its deadline") {
  Fixture f;
  const JobSlot slot = f.board.submit({ModelId(0), 320});
  f.board.apply(std::array{Decision::start(slot, 0, 2, 0)});
  REQUIRE(f.board.started().size() == 1);
  CHECK(f.board.state().wait(0) == 210);
  CHECK(f.board.state().least_rest(slot) == 310);
  f.board.set_now(210);
  f.board.finished(ProcessorId(0));
  CHECK(f.board.state().job(slot).done == 2);
  CHECK(f.board.state().expected_run(slot, 2, 3, 0) == 100);  // goes on where it was: no dispatch
  f.board.apply(std::array{Decision::start(slot, 2, 3, 0)});
  f.board.set_now(320);
  f.board.finished(ProcessorId(0));
  CHECK(f.board.statistics().met == 1);
  CHECK(f.board.state().live.empty());
  const JobSlot again = f.board.submit({ModelId(0), 400});
  f.board.apply(std::array{Decision::start(again, 0, 3, 0)});
  f.board.set_now(640);
  f.board.finished(ProcessorId(0));
  CHECK(f.board.statistics().late == 1);
  CHECK(f.board.statistics().left() == f.board.statistics().submitted);
}

TEST_CASE("what waits for a processor begins after what is before it") {
  Fixture f;
  const JobSlot a = f.board.submit({ModelId(0)}), b = f.board.submit({ModelId(0)});
  f.board.apply(std::array{Decision::start(a, 0, 1, 0), Decision::start(b, 0, 2, 0)});
  CHECK(f.board.started().size() == 1);
  CHECK(f.board.state().wait(0) == 110 + 210);
  CHECK_FALSE(f.board.submit({ModelId(0)}).valid());
  CHECK(f.board.statistics().refused == 1);
  f.board.set_now(110);
  f.board.finished(ProcessorId(0));
  f.board.apply({});
  CHECK(f.board.started().size() == 1);
  CHECK(f.board.state().processors[0].run.job == b);
}

TEST_CASE("a lost processor gives back what it ran and what waited for it") {
  Fixture f;
  const JobSlot a = f.board.submit({ModelId(0)}), b = f.board.submit({ModelId(0)});
  f.board.apply(std::array{Decision::start(a, 0, 2, 1), Decision::start(b, 0, 1, 1)});
  f.board.lost(ProcessorId(1));
  for (const JobSlot slot : {a, b}) {
    CHECK(f.board.state().job(slot).running == 0);
    CHECK(f.board.state().ready(slot, 0, 1));
  }
  CHECK(f.board.state().wait(1) == kNever);
  f.board.back(ProcessorId(1));
  CHECK(f.board.state().idle(1));
}

TEST_CASE("what a processor says after it was given up changes nothing") {
  Fixture f;
  const JobSlot slot = f.board.submit({ModelId(0), 320});
  f.board.apply(std::array{Decision::start(slot, 0, 2, 1)});
  f.board.lost(ProcessorId(1));
  f.board.apply(std::array{Decision::start(slot, 0, 3, 0)});
  f.board.finished(ProcessorId(1));
  f.board.interrupted(ProcessorId(1), 1, 5);
  CHECK(f.board.state().job(slot).done == 0);
  f.board.set_now(310);
  f.board.finished(ProcessorId(0));
  CHECK(f.board.statistics().met == 1);
  CHECK(f.board.statistics().left() == f.board.statistics().submitted);
}

TEST_CASE("the largest tensor over the slowest way that may be is a time") {
  const Transfer transfer{.fixed = 7, .per_kib = 1'000'000'000};
  CHECK(transfer.of(Bytes(std::uint64_t{1} << 40)) == 7 + (Time{1} << 30) * 1'000'000'000);
  CHECK(transfer.of(Bytes(1536)) == 7 + 1'500'000'000);
}

TEST_CASE("an interrupted unit keeps its rest where it was, and begins anew elsewhere") {
  Fixture f;
  const JobSlot slot = f.board.submit({ModelId(0)});
  f.board.apply(std::array{Decision::start(slot, 0, 2, 0)});
  f.board.set_now(150);
  f.board.interrupted(ProcessorId(0), 1, 60);
  CHECK(f.board.state().job(slot).done == 1);
  CHECK(f.board.state().expected_run(slot, 1, 2, 0) == 10 + 60);
  CHECK(f.board.state().expected_run(slot, 1, 2, 1) == 10 + 50);
  f.board.lost(ProcessorId(0));
  f.board.back(ProcessorId(0));
  CHECK(f.board.state().expected_run(slot, 1, 2, 0) == 10 + 100);
}

TEST_CASE("a cancelled or dropped job leaves when what runs of it has ended, and counts once") {
  Fixture f;
  const JobSlot slot = f.board.submit({ModelId(0), 10});
  f.board.apply(std::array{Decision::start(slot, 0, 1, 0)});
  f.board.apply(std::array{Decision::drop(slot)});
  f.board.cancel(slot);
  CHECK(f.board.statistics().dropped == 1);
  CHECK(f.board.statistics().cancelled == 0);
  CHECK(f.board.state().live.size() == 1);
  f.board.finished(ProcessorId(0));
  CHECK(f.board.state().live.empty());
  CHECK(f.board.statistics().goodput() == 0);
  const JobSlot other = f.board.submit({ModelId(0)});
  f.board.cancel(other);
  CHECK(f.board.statistics().cancelled == 1);
  CHECK(f.board.statistics().left() == 2);
}

}  // namespace
}  // namespace sluice::scheduler

// Processors that slow down, hang and die, files that go bad, and what Band's weak points are over real sessions (docs/scheduling.md).
#include <fcntl.h>
#include <unistd.h>

#include "tests/scheduler/real_jobs.h"

namespace sluice::scheduler {
namespace {

using namespace sluice::literals;

/// The fastest processor is the timed one; the other does all when it must.
struct FaultyPair {
  explicit FaultyPair(Time time = 2 * kMillisecond, double overdue_slack_ms = 100)
      : scheduler(make_scheduler(
            {.processors = {{}, timed({time})}, .policy = "sluice", .overdue_slack = static_cast<Time>(overdue_slack_ms * 1e6)},
            {{&net, net.options()}})),
        jobs(*scheduler) {}
  void fault(Fault::Kind kind, double factor = 1) const {
    REQUIRE(scheduler->emulate({.processor = ProcessorId(1), .kind = kind, .factor = factor}));
  }
  /// All ended well and right, and the books agree.
  void check_all() const {
    for (const JobResult& result : jobs.wait_all()) {
      CAPTURE(result.status ? "" : result.status.error().to_string());
      CHECK(result.outcome == Outcome::kMet);
    }
    CHECK(jobs.all_right());
    const Statistics statistics = scheduler->statistics().jobs;
    CHECK(statistics.met == statistics.submitted);
  }

  Net net;
  std::unique_ptr<Scheduler> scheduler;
  Jobs jobs;
};

TEST_CASE("a processor that dies in the middle of a run loses no job, and takes none after") {
  FaultyPair pair(200 * kMillisecond);
  JobOptions fixed;
  for (int i = 0; i < 12; ++i) pair.jobs.submit(pair.net, 0);
  pair.fault(Fault::Kind::kDie);
  const std::uint64_t runs_before = pair.scheduler->statistics().processors[1].runs;  // some, where submitting took long
  for (int i = 0; i < 4; ++i) pair.jobs.submit(pair.net, 0);
  pair.check_all();
  const SchedulerStatistics statistics = pair.scheduler->statistics();
  CHECK(statistics.processors[1].runs == runs_before);
  if (statistics.processors[1].losses > 0) CHECK_FALSE(statistics.processors[1].usable);
}

TEST_CASE("a processor that dies alone loses its jobs to nobody: they wait until it is well") {
  const Net net;
  const auto scheduler =
      make_scheduler({.processors = {{}, timed({5 * kMillisecond})}, .policy = "fixed_worker"},
                     {{&net, {.name = "net", .reference_inputs = net.options().reference_inputs, .fixed = ProcessorId(1)}}});
  Jobs jobs(*scheduler);
  REQUIRE(scheduler->emulate({.processor = ProcessorId(1), .kind = Fault::Kind::kDie}));
  jobs.submit(net, 0);
  jobs.submit(net, 0);
  for (const JobResult& result : jobs.wait_all()) CHECK(result.outcome == Outcome::kMet);  // by the other one
  CHECK(jobs.all_right());
  CHECK(scheduler->statistics().processors[1].losses == 1);
  REQUIRE(scheduler->emulate({.processor = ProcessorId(1), .kind = Fault::Kind::kWell}));
  CHECK(scheduler->statistics().processors[1].usable);
  const Ticket ticket = jobs.submit(net, 0);
  CHECK(jobs.wait(ticket).outcome == Outcome::kMet);
  CHECK(scheduler->statistics().processors[1].runs >= 1);
}

TEST_CASE("a processor that hangs is given up, its jobs go to others, and what it still brings is thrown away") {
  const Net net;
  const auto scheduler =
      make_scheduler({.processors = {{}, timed({kMillisecond})}, .policy = "fixed_worker", .overdue_slack = 20 * kMillisecond},
                     {{&net, {.name = "net", .reference_inputs = net.options().reference_inputs, .fixed = ProcessorId(1)}}});
  Jobs jobs(*scheduler);
  REQUIRE(scheduler->emulate({.processor = ProcessorId(1), .kind = Fault::Kind::kHang}));
  for (int i = 0; i < 3; ++i) jobs.submit(net, 0);
  const std::vector<JobResult> results = jobs.wait_all();
  for (const JobResult& result : results) CHECK(result.outcome == Outcome::kMet);
  CHECK(results[0].losses == 1);
  CHECK(jobs.all_right());
  CHECK_FALSE(scheduler->statistics().processors[1].usable);
  // It wakes up: nobody waits for that run any more, and it is there again for the next.
  for (ToyJob& job : jobs.jobs) std::fill(job.output.begin(), job.output.end(), -1.0f);
  REQUIRE(scheduler->emulate({.processor = ProcessorId(1), .kind = Fault::Kind::kWell}));
  while (!scheduler->statistics().processors[1].usable) usleep(1000);
  for (const ToyJob& job : jobs.jobs) CHECK(job.untouched());
  const Ticket ticket = jobs.submit(net, 0);
  CHECK(jobs.wait(ticket).outcome == Outcome::kMet);
  CHECK(jobs.jobs.back().right());
}

TEST_CASE("a processor that becomes three times slower is expected to after a few units, and no more") {
  const Net net;
  const auto scheduler =
      make_scheduler({.processors = {slow_cpu(), timed({20 * kMillisecond})}, .policy = "fixed_worker"},
                     {{&net, {.name = "net", .reference_inputs = net.options().reference_inputs, .fixed = ProcessorId(1)}}});
  Jobs jobs(*scheduler);
  CHECK(scheduler->expected_time(ModelId(0), ProcessorId(1)) == 20 * kMillisecond);
  REQUIRE(scheduler->emulate({.processor = ProcessorId(1), .kind = Fault::Kind::kSlow, .factor = 3}));
  for (int i = 0; i < 4; ++i) jobs.submit(net, 0);
  jobs.wait_all();
  // Three that agree move the expectation at once; waking up late can only make it longer.
  CHECK(scheduler->expected_time(ModelId(0), ProcessorId(1)) >= 59 * kMillisecond);
  CHECK(scheduler->statistics().processors[1].losses == 0);
}

TEST_CASE("a model file that goes bad: its jobs say so, others' answers are right, and it may become well again") {
  const Net bad(1, {64, 512, 512, 512, 512, 10}), good(2);
  // No room to keep the weights of the first: each run reads them.
  const Bytes least = minimum_budget(*bad.model, {.threads = 1, .repeat = true}).value_or(0_B);
  const auto scheduler = make_scheduler({.budget = least + 512_KiB}, {{&bad, bad.options()}, {&good, good.options()}});
  Jobs jobs(*scheduler);
  CHECK(jobs.wait(jobs.submit(bad, 0)).outcome == Outcome::kMet);
  const int file = open(bad.path.str().c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(file >= 0);
  std::vector<std::byte> all(static_cast<std::size_t>(lseek(file, 0, SEEK_END)));
  REQUIRE(pread(file, all.data(), all.size(), 0) == static_cast<ssize_t>(all.size()));
  std::vector<std::byte> broken = all;
  for (std::size_t i = broken.size() / 2; i < broken.size(); ++i) broken[i] ^= std::byte{0x10};
  REQUIRE(pwrite(file, broken.data(), broken.size(), 0) == static_cast<ssize_t>(broken.size()));
  const Ticket failing = jobs.submit(bad, 0), fine = jobs.submit(good, 1);
  const JobResult result = jobs.wait(failing);
  CHECK(result.outcome == Outcome::kFailed);
  REQUIRE_FALSE(result.status);
  CHECK((result.status.error().code == ErrorCode::kChecksumMismatch || result.status.error().code == ErrorCode::kFileChanged));
  CHECK(jobs.jobs[1].untouched());
  CHECK(jobs.wait(fine).outcome == Outcome::kMet);
  CHECK(jobs.jobs[2].right());
  const Statistics statistics = scheduler->statistics().jobs;
  CHECK(statistics.failed == 1);
  CHECK(statistics.goodput() == Approx(2.0 / 3));
  close(file);
}

TEST_CASE("weak point 1: refused, dropped and failed jobs lower the rate of met objectives") {
  const Net net;
  const auto scheduler = make_scheduler({.processors = {slow_cpu(), timed({30 * kMillisecond})}}, {{&net, net.options()}});
  Jobs jobs(*scheduler);
  const Ticket sound = jobs.submit(net, 0, {.deadline = 100 * kSecond});
  for (int i = 0; i < 3; ++i) jobs.submit(net, 0, {.deadline = kMillisecond});
  CHECK(jobs.wait(sound).outcome == Outcome::kMet);
  scheduler->drain();
  CHECK(scheduler->statistics().jobs.goodput() == 0.25);
}

TEST_CASE("weak point 2: no job is dropped early whose deadline can hold") {
  const Net net;
  for (const char* policy : {"least_slack", "sluice"}) {
    const auto scheduler =
        make_scheduler({.processors = {slow_cpu(), timed({5 * kMillisecond})}, .policy = policy}, {{&net, net.options()}});
    Jobs jobs(*scheduler);
    for (int i = 0; i < 10; ++i) jobs.submit(net, 0, {.deadline = 1000 * kSecond});
    for (const JobResult& result : jobs.wait_all()) CHECK(result.outcome == Outcome::kMet);
  }
}

TEST_CASE("weak point 3: a processor may come and go while jobs come from several callers: nobody waits for ever") {
  FaultyPair pair(kMillisecond, 20);
  for (int round = 0; round < 3; ++round) {
    for (const Fault::Kind kind : {Fault::Kind::kSlow, Fault::Kind::kHang, Fault::Kind::kWell, Fault::Kind::kDie, Fault::Kind::kWell}) {
      pair.jobs.submit(pair.net, 0);
      pair.jobs.submit(pair.net, 0);
      pair.fault(kind, 3);
    }
  }
  pair.check_all();
}

TEST_CASE("weak points 5 and 6: one budget for all models on all processors, and one copy in and out between caller and unit") {
  const Net a(1, {64, 1024, 1024, 10}), b(2, {64, 1024, 512, 10}), c(3, {64, 512, 512, 10});
  const Bytes budget = 3_MiB;  // of 11 MiB of weights, on each of two processors
  const auto scheduler =
      make_scheduler({.budget = budget, .processors = {{}, {}}}, {{&a, a.options()}, {&b, b.options()}, {&c, c.options()}});
  CHECK(scheduler->statistics().memory <= budget);
  Jobs jobs(*scheduler);
  for (int i = 0; i < 12; ++i) jobs.submit(i % 3 == 0 ? a : i % 3 == 1 ? b : c, static_cast<std::size_t>(i % 3));
  for (const JobResult& result : jobs.wait_all()) CHECK(result.outcome == Outcome::kMet);
  CHECK(jobs.all_right());
}

}  // namespace
}  // namespace sluice::scheduler

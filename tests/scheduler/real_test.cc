// The scheduler over sessions, with real sessions and timed processors. Nothing here depends on how fast the machine is.
#include <atomic>
#include <limits>
#include <thread>

#include "tests/scheduler/c_scheduler.h"
#include "tests/scheduler/real_jobs.h"

namespace sluice::scheduler {
namespace {

using namespace sluice::literals;

ErrorCode code_of(const Status& status) {
  REQUIRE_FALSE(status);
  return status.error().code;
}
template <class T>
ErrorCode code_of(const Result<T>& result) {
  REQUIRE_FALSE(result);
  return result.error().code;
}

TEST_CASE("models on several processors give the bits of each alone, whatever the policy") {
  const Net a(1), b(2, {64, 384, 10}), c(3, {32, 64, 96, 10});
  for (const Policy& policy : kPolicies) {
    CAPTURE(policy.name);
    const auto scheduler =
        make_scheduler({.budget = 16_MiB, .processors = {{}, {.compute_slowdown = 3}}, .policy = std::string(policy.name)},
                       {{&a, a.options()}, {&b, b.options()}, {&c, c.options()}});
    Jobs jobs(*scheduler);
    for (int round = 0; round < 8; ++round) {
      jobs.submit(a, 0);
      jobs.submit(b, 1);
      jobs.submit(c, 2, {.app = 1});
    }
    for (const JobResult& result : jobs.wait_all()) CHECK(result.outcome == Outcome::kMet);
    CHECK(jobs.all_right());
    const SchedulerStatistics statistics = scheduler->statistics();
    CHECK(statistics.jobs.met == 24);
    CHECK(statistics.apps[1].met == 8);
    CHECK(statistics.jobs.left() == statistics.jobs.submitted);
    CHECK(statistics.processors[0].runs + statistics.processors[1].runs == 24);
    CHECK(statistics.memory <= 16_MiB);
  }
}

TEST_CASE("a policy and a processor that are not there, and jobs that do not fit their model, are refused by name") {
  CHECK(code_of(Scheduler::create({.policy = "fastest"})) == ErrorCode::kInvalidArgument);
  CHECK(code_of(Scheduler::create({.processors = {{.cpus = {100000}}}})) == ErrorCode::kInvalidArgument);
  CHECK(code_of(Scheduler::create({.processors = {{.compute_slowdown = 0.5}}})) == ErrorCode::kInvalidArgument);
  const Net net;
  auto early = Scheduler::create({});
  REQUIRE(early);
  ToyJob job(net);
  CHECK(code_of((*early)->start()) == ErrorCode::kInvalidArgument);
  CHECK(code_of((*early)->submit(ModelId(0), job.tensors(), {})) == ErrorCode::kInvalidArgument);
  const auto scheduler = make_scheduler({}, {{&net, net.options()}});
  CHECK(code_of(scheduler->submit(ModelId(1), job.tensors(), {})) == ErrorCode::kInvalidArgument);
  CHECK(code_of(scheduler->submit(ModelId(0), {{}, job.tensors().outputs}, {})) == ErrorCode::kInvalidArgument);
  CHECK(code_of(scheduler->submit(ModelId(0), job.tensors(), {.deadline = 0})) == ErrorCode::kInvalidArgument);
  CHECK(code_of(scheduler->submit(ModelId(0), job.tensors(), {.app = kMostApps})) == ErrorCode::kInvalidArgument);
  CHECK(code_of(scheduler->wait(17)) == ErrorCode::kInvalidArgument);
  CHECK(code_of(scheduler->cancel(17)) == ErrorCode::kInvalidArgument);
  CHECK(code_of(scheduler->emulate({.processor = ProcessorId(0)})) == ErrorCode::kInvalidArgument);
  CHECK(code_of(scheduler->add_model(net.model, net.options())) == ErrorCode::kInvalidArgument);
}

TEST_CASE("a budget that is too small is refused with one that works") {
  const Net a(1, {64, 2048, 1024, 10}), b(2, {64, 1024, 512, 10});
  const SchedulerOptions options{.budget = 256_KiB, .processors = {{}, {}}};
  const auto refused = [&](Bytes budget) {
    SchedulerOptions other = options;
    other.budget = budget;
    auto scheduler = Scheduler::create(other);
    REQUIRE(scheduler);
    REQUIRE((*scheduler)->add_model(a.model, a.options()));
    REQUIRE((*scheduler)->add_model(b.model, b.options(true)));
    return (*scheduler)->start();
  };
  Status status = refused(options.budget);
  REQUIRE(code_of(status) == ErrorCode::kBudgetTooSmall);
  REQUIRE(status.error().has_numbers);
  const Bytes needed(status.error().needed);
  REQUIRE(needed > options.budget);
  CHECK(refused(needed));
  CHECK(code_of(refused(needed - 1_B)) == ErrorCode::kBudgetTooSmall);
}

TEST_CASE("a job is told of once: by wait, or by its function in a thread of the scheduler's") {
  const Net net;
  const auto scheduler = make_scheduler({}, {{&net, net.options()}});
  struct Told {
    std::atomic<int> calls{0};
    std::thread::id thread;
    Outcome outcome = Outcome::kFailed;
  } told;
  Jobs jobs(*scheduler);
  const Ticket ticket = jobs.submit(net, 0,
                                    {.done =
                                         [](void* context, const JobResult& result) noexcept {
                                           Told& told = *static_cast<Told*>(context);
                                           told.thread = std::this_thread::get_id();
                                           told.outcome = result.outcome;
                                           ++told.calls;
                                           told.calls.notify_all();
                                         },
                                     .context = &told});
  CHECK(code_of(scheduler->wait(ticket)) == ErrorCode::kInvalidArgument);
  told.calls.wait(0);
  CHECK(told.outcome == Outcome::kMet);
  CHECK(told.thread != std::this_thread::get_id());
  CHECK(jobs.all_right());
  const Ticket second = jobs.submit(net, 0);
  CHECK(jobs.wait(second).outcome == Outcome::kMet);
  CHECK(code_of(scheduler->wait(second)) == ErrorCode::kInvalidArgument);
}

TEST_CASE("a full table refuses, and counts what it refuses") {
  const Net net;
  ToyJob a(net), b(net), c(net);  // their tensors are written until the scheduler has ended
  const auto scheduler = make_scheduler({.processors = {slow_cpu(), timed({kNever})}, .limits = {.jobs = 2}}, {{&net, net.options()}});
  REQUIRE(scheduler->submit(ModelId(0), a.tensors(), {}));
  REQUIRE(scheduler->submit(ModelId(0), b.tensors(), {}));
  std::vector<Ticket> tickets;
  bool full = false;
  for (int i = 0; i < 8 && !full; ++i) full = !scheduler->submit(ModelId(0), c.tensors(), {});
  CHECK(full);
  CHECK(scheduler->statistics().jobs.refused == 1);
  CHECK(scheduler->statistics().jobs.goodput() < 1);
}

TEST_CASE("a table of more jobs than numbers can say is refused") {
  for (const std::size_t jobs : {std::size_t{0}, std::size_t{21846}, std::numeric_limits<std::size_t>::max() / 3 + 2})
    CHECK(code_of(Scheduler::create({.limits = {.jobs = jobs}})) == ErrorCode::kInvalidArgument);
}

TEST_CASE("of two that wait for a job one gets its end, and the other is told that there is none") {
  const Net net;
  const auto scheduler = make_scheduler({.processors = {slow_cpu()}}, {{&net, net.options()}});
  for (int round = 0; round < 4; ++round) {
    ToyJob job(net);
    const auto submission = scheduler->submit(ModelId(0), job.tensors(), {});
    REQUIRE(submission);
    std::atomic<int> ended{0}, gone{0};
    const auto wait = [&] { ++(scheduler->wait(submission->ticket) ? ended : gone); };
    std::thread other(wait);
    wait();
    other.join();
    CHECK(ended == 1);
    CHECK(gone == 1);
  }
}

TEST_CASE("cancelling: at once where a job waits, at the next step boundary where it runs") {
  const Net net(1, {64, 512, 512, 512, 512, 10});
  const auto scheduler =
      make_scheduler({.processors = {{.compute_slowdown = kLongSteps}}, .overdue_slack = kPatience}, {{&net, net.options()}});
  Jobs jobs(*scheduler);
  for (int i = 0; i < 6; ++i) jobs.submit(net, 0);
  for (const Ticket ticket : jobs.tickets) CHECK(scheduler->cancel(ticket));
  std::uint64_t cancelled = 0;
  for (std::size_t i = 0; i < jobs.tickets.size(); ++i) {
    const JobResult result = jobs.wait(jobs.tickets[i]);
    cancelled += result.outcome == Outcome::kCancelled;
    CHECK((result.outcome == Outcome::kCancelled || jobs.jobs[i].right()));
  }
  CHECK(cancelled >= 4);
  CHECK(scheduler->statistics().jobs.cancelled == cancelled);
  jobs.submit(net, 0);
  CHECK(jobs.wait(jobs.tickets.back()).outcome == Outcome::kMet);
  CHECK(jobs.jobs.back().right());
}

TEST_CASE("a deadline that cannot hold is said at once") {
  const Net net;
  const auto scheduler = make_scheduler({.processors = {slow_cpu(), timed({50 * kMillisecond})}}, {{&net, net.options()}});
  ToyJob first(net), second(net), third(net);
  const auto holds = scheduler->submit(ModelId(0), first.tensors(), {.deadline = 100 * kSecond});
  REQUIRE(holds);
  CHECK(holds->holds);
  CHECK(holds->expected_end < kNever);
  const auto hopeless = scheduler->submit(ModelId(0), second.tensors(), {.deadline = 1});
  REQUIRE(hopeless);
  CHECK_FALSE(hopeless->holds);
  CHECK(code_of(scheduler->submit(ModelId(0), third.tensors(), {.deadline = 1, .only_if_it_holds = true})) == ErrorCode::kCancelled);
  CHECK(scheduler->wait(hopeless->ticket)->outcome == Outcome::kDropped);
  CHECK(scheduler->wait(holds->ticket)->outcome == Outcome::kMet);
  CHECK(second.untouched());
  const Statistics statistics = scheduler->statistics().jobs;
  CHECK(statistics.submitted == 3);
  CHECK(statistics.goodput() == Approx(1.0 / 3));
}

TEST_CASE("an urgent job takes the processor at a step boundary, and the run before goes on with the same bits") {
  const Net slow(1, {64, 512, 512, 512, 512, 512, 512, 512, 10}), urgent(2, {32, 16, 10});
  // Slowed, so that its steps are long beside everything else that happens here.
  const auto scheduler = make_scheduler({.processors = {{.compute_slowdown = kLongSteps}}, .overdue_slack = kPatience, .trace_runs = 100},
                                        {{&slow, slow.options()}, {&urgent, urgent.options(true)}});
  Jobs jobs(*scheduler);
  const Ticket long_one = jobs.submit(slow, 0);
  while (scheduler->trace().empty() && scheduler->statistics().processors[0].interruptions == 0) {
    const Ticket short_one = jobs.submit(urgent, 1);
    CHECK(jobs.wait(short_one).outcome == Outcome::kMet);
  }
  const JobResult result = jobs.wait(long_one);
  CHECK(result.outcome == Outcome::kMet);
  CHECK(jobs.all_right());
  const SchedulerStatistics statistics = scheduler->statistics();
  CHECK(statistics.processors[0].interruptions >= 1);
  CHECK(result.interruptions == statistics.processors[0].interruptions);
}

TEST_CASE("an urgent job does not wait for the end of a long step") {
  const Net slow(1, {512, 4096}), urgent(2, {32, 16, 10});
  const std::size_t steps = (*sluice::Session::create(slow.model, {}))->plan().steps.size();
  const auto scheduler = make_scheduler({.processors = {{.compute_slowdown = 3 * kLongSteps}}, .overdue_slack = kPatience},
                                        {{&slow, slow.options()}, {&urgent, urgent.options(true)}});
  Jobs jobs(*scheduler);
  std::uint32_t most = 0;
  // At step boundaries alone a run is never interrupted more often than it has steps. A busy machine may keep the callers away.
  for (int i = 0; i < 100 && most <= steps; ++i) {
    const Ticket long_one = jobs.submit(slow, 0);
    const std::uint64_t done = scheduler->statistics().jobs.met;
    for (std::size_t k = 0; k < 2 * steps + 2; ++k) CHECK(jobs.wait(jobs.submit(urgent, 1)).outcome == Outcome::kMet);
    const JobResult result = jobs.wait(long_one);
    CHECK(result.outcome == Outcome::kMet);
    CHECK(scheduler->statistics().jobs.met > done);
    most = std::max(most, static_cast<std::uint32_t>(result.interruptions));
  }
  CHECK(most > steps);
  CHECK(jobs.all_right());
}

TEST_CASE("a job that gave way may be cancelled, and its processor goes on") {
  const Net slow(1, {64, 512, 512, 512, 512, 512, 512, 512, 10}), urgent(2, {32, 16, 10});
  const auto scheduler = make_scheduler({.processors = {{.compute_slowdown = kLongSteps}}, .overdue_slack = kPatience},
                                        {{&slow, slow.options()}, {&urgent, urgent.options(true)}});
  Jobs jobs(*scheduler);
  const Ticket long_one = jobs.submit(slow, 0);
  std::vector<Ticket> short_ones;
  for (int i = 0; i < 5; ++i) short_ones.push_back(jobs.submit(urgent, 1));
  CHECK(scheduler->cancel(long_one));
  CHECK(jobs.wait(long_one).outcome == Outcome::kCancelled);
  for (const Ticket ticket : short_ones) CHECK(jobs.wait(ticket).outcome == Outcome::kMet);
  CHECK(scheduler->statistics().processors[0].losses == 0);
  const Ticket again = jobs.submit(slow, 0);
  CHECK(jobs.wait(again).outcome == Outcome::kMet);
  CHECK(jobs.jobs.back().right());
}

TEST_CASE("a scheduler that ends drops what has not ended, and tells") {
  const Net net;
  std::atomic<int> told{0};
  ToyJob a(net), b(net);
  {
    const auto scheduler =
        make_scheduler({.processors = {slow_cpu(), timed({100 * kSecond})}, .policy = "fixed_worker"},
                       {{&net, {.name = "net", .reference_inputs = net.options().reference_inputs, .fixed = ProcessorId(1)}}});
    const JobOptions options{.done =
                                 [](void* context, const JobResult& result) noexcept {
                                   if (result.outcome == Outcome::kDropped) ++*static_cast<std::atomic<int>*>(context);
                                 },
                             .context = &told};
    REQUIRE(scheduler->submit(ModelId(0), a.tensors(), options));
    REQUIRE(scheduler->submit(ModelId(0), b.tensors(), options));
  }
  CHECK(told == 2);
  CHECK(a.untouched());
}

TEST_CASE("a job that comes from its function while the scheduler ends is refused, not lost") {
  const Net net;
  struct Caller {
    Scheduler* scheduler = nullptr;
    ToyJob job;
    std::atomic<int> told{0}, taken{1};

    static void done(void* context, const JobResult&) noexcept {
      Caller& caller = *static_cast<Caller*>(context);
      ++caller.told;
      if (caller.scheduler->submit(ModelId(0), caller.job.tensors(), {.done = done, .context = context})) ++caller.taken;
    }
  };
  Caller caller{.job = ToyJob(net)};
  {
    const auto scheduler =
        make_scheduler({.processors = {slow_cpu(), timed({100 * kSecond})}, .policy = "fixed_worker"},
                       {{&net, {.name = "net", .reference_inputs = net.options().reference_inputs, .fixed = ProcessorId(1)}}});
    caller.scheduler = scheduler.get();
    REQUIRE(scheduler->submit(ModelId(0), caller.job.tensors(), {.done = Caller::done, .context = &caller}));
  }
  CHECK(caller.told == 1);
  CHECK(caller.taken == 1);
}

TEST_CASE("the C API does the same") {
  const Net net;
  sluice_model* model = nullptr;
  REQUIRE(sluice_model_open(net.path.str().c_str(), &model) == SLUICE_OK);
  ToyJob a(net), b(net);
  CHECK(c_scheduler_check(model, a.input.data(), a.room.data(), b.room.data()) == 0);
  CHECK(a.right());
  CHECK(b.right());
  sluice_model_close(model);
}

}  // namespace
}  // namespace sluice::scheduler

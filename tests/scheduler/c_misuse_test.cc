// The C interface of the scheduler used wrongly, call by call, as engine/c_api_misuse_test.cc does it with models and sessions.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/engine/misuse.h"

namespace sluice {
namespace {

using test::attempt;
using test::kNone;
using test::Misuse;
using test::Subject;

/// A scheduler that serves one model.
struct Served {
  explicit Served(const Subject& s) {
    REQUIRE(sluice_scheduler_create(nullptr, &scheduler) == SLUICE_OK);
    REQUIRE(sluice_scheduler_add_model(scheduler, s.model, 0, &number) == SLUICE_OK);
    REQUIRE(sluice_scheduler_start(scheduler) == SLUICE_OK);
  }
  ~Served() { sluice_scheduler_close(scheduler); }
  sluice_scheduler* scheduler = nullptr;
  std::size_t number = 0;
};

std::vector<Misuse> of_schedulers(Subject& s, Served& served) {
  static sluice_job_result result;
  static sluice_scheduler_statistics statistics;
  static std::uint64_t ticket;
  static std::size_t number;
  const auto scheduler_with = [&s](const std::function<void(sluice_scheduler_options&)>& change) {
    sluice_scheduler_options options = sluice_default_scheduler_options();
    change(options);
    return sluice_scheduler_create(&options, &s.made_scheduler);
  };
  const auto submit = [&s, &served](const std::function<void(sluice_job&)>& change) {
    const void* const inputs[] = {s.toy.input.data()};
    void* const outputs[] = {s.output.data()};
    sluice_job job{};
    job.inputs = inputs, job.outputs = outputs;
    change(job);
    return sluice_scheduler_submit(served.scheduler, &job, &ticket, nullptr);
  };
  static const void* const no_inputs[] = {nullptr};
  static void* const no_outputs[] = {nullptr};
  return {
      {"create: no place", [] { return sluice_scheduler_create(nullptr, nullptr); }},
      {"create: a policy that is none", [=] { return scheduler_with([](auto& o) { o.policy = "nobody's"; }); }},
      {"create: a scope that is none", [=] { return scheduler_with([](auto& o) { o.scope = 9; }); }},
      {"create: processors that are not there", [=] { return scheduler_with([](auto& o) { o.processor_count = 3; }); }},
      {"add: no scheduler", [&] { return sluice_scheduler_add_model(nullptr, s.model, 0, &number); }},
      {"add: no model", [&] { return sluice_scheduler_add_model(served.scheduler, nullptr, 0, &number); }},
      {"add: after the start", [&] { return sluice_scheduler_add_model(served.scheduler, s.model, 0, &number); }},
      {"start: no scheduler", [] { return sluice_scheduler_start(nullptr); }},
      {"start: twice", [&] { return sluice_scheduler_start(served.scheduler); }},
      {"submit: no scheduler", [] { return sluice_scheduler_submit(nullptr, nullptr, nullptr, nullptr); }},
      {"submit: no job", [&] { return sluice_scheduler_submit(served.scheduler, nullptr, &ticket, nullptr); }},
      {"submit: a model that is none", [=] { return submit([](auto& job) { job.model = 1; }); }},
      {"submit: no model at all", [=] { return submit([](auto& job) { job.model = kNone; }); }},
      {"submit: no inputs", [=] { return submit([](auto& job) { job.inputs = nullptr; }); }},
      {"submit: no outputs", [=] { return submit([](auto& job) { job.outputs = nullptr; }); }},
      {"submit: an input that is none", [=] { return submit([](auto& job) { job.inputs = no_inputs; }); }},
      {"submit: an output that is none", [=] { return submit([](auto& job) { job.outputs = no_outputs; }); }},
      {"submit: an app that is none", [=] { return submit([](auto& job) { job.app = 16; }); }},
      {"wait: no scheduler", [] { return sluice_scheduler_wait(nullptr, 0, &result); }},
      {"wait: a ticket that nobody has", [&] { return sluice_scheduler_wait(served.scheduler, 12345, &result); }},
      {"wait: no place", [&] { return sluice_scheduler_wait(served.scheduler, 12345, nullptr); }},
      {"cancel: no scheduler", [] { return sluice_scheduler_cancel(nullptr, 0); }},
      {"cancel: a ticket that nobody has", [&] { return sluice_scheduler_cancel(served.scheduler, UINT64_MAX); }},
      {"statistics: no scheduler", [] { return sluice_scheduler_statistics_of(nullptr, &statistics); }},
      {"statistics: no place", [&] { return sluice_scheduler_statistics_of(served.scheduler, nullptr); }},
  };
}

}  // namespace

TEST_CASE("each wrong call on a scheduler is refused with a text, and jobs go on") {
  Subject subject;
  Served served(subject);
  for (const Misuse& misuse : of_schedulers(subject, served)) {
    CHECK(attempt(misuse) == "");
    INFO(misuse.name);
    CHECK(subject.untouched());
  }
  const void* const inputs[] = {subject.toy.input.data()};
  void* const outputs[] = {subject.output.data()};
  sluice_job job{};
  job.inputs = inputs, job.outputs = outputs;
  std::uint64_t ticket = 0;
  sluice_job_result result;
  REQUIRE(sluice_scheduler_submit(served.scheduler, &job, &ticket, nullptr) == SLUICE_OK);
  REQUIRE(sluice_scheduler_wait(served.scheduler, ticket, &result) == SLUICE_OK);
  CHECK(result.status == SLUICE_OK);
  CHECK(std::memcmp(subject.output.data(), subject.toy.expected.data(), subject.output_bytes) == 0);
  CHECK(sluice_scheduler_wait(served.scheduler, ticket, &result) == SLUICE_INVALID_ARGUMENT);  // it is gone
}

// The thread sanitizer does not follow threads into a forked child.
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("a forked child that uses and closes its parent's scheduler is refused, and jobs of the parent go on") {
  Subject subject;
  Served served(subject);
  const void* const inputs[] = {subject.toy.input.data()};
  void* const outputs[] = {subject.output.data()};
  sluice_job job{};
  job.inputs = inputs, job.outputs = outputs;
  std::uint64_t ticket = 0;
  sluice_job_result result;
  REQUIRE(sluice_scheduler_submit(served.scheduler, &job, &ticket, nullptr) == SLUICE_OK);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const auto refused = [](sluice_status status) { return status == SLUICE_INVALID_ARGUMENT && sluice_last_error()[0] != '\0'; };
    std::uint64_t other = 0;
    std::size_t number = 0;
    sluice_scheduler_statistics statistics;
    int wrong = 0;
    wrong += !refused(sluice_scheduler_submit(served.scheduler, &job, &other, nullptr));
    wrong += !refused(sluice_scheduler_wait(served.scheduler, ticket, &result));
    wrong += !refused(sluice_scheduler_cancel(served.scheduler, ticket));
    wrong += !refused(sluice_scheduler_start(served.scheduler));
    wrong += !refused(sluice_scheduler_add_model(served.scheduler, subject.model, 0, &number));
    static_cast<void>(sluice_scheduler_statistics_of(served.scheduler, &statistics));
    sluice_scheduler_close(served.scheduler);
    ::_exit(wrong);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  REQUIRE(sluice_scheduler_wait(served.scheduler, ticket, &result) == SLUICE_OK);
  CHECK(std::memcmp(subject.output.data(), subject.toy.expected.data(), subject.output_bytes) == 0);
}
#endif

}  // namespace sluice

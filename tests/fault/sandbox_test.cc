// A sandbox that starts around a session: io_uring and other system calls are refused before it is made, between its runs, and in them.
#include "tests/fault/sandbox.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <string>
#include <thread>

#include "sluice/core/file.h"
#include "tests/fault/fixture.h"

namespace sluice {
namespace {

using test::Fixture;
using test::in_child;
using test::ReadMethod;
using test::refuse_calls;

constexpr int kRuns = 4;

/// What is wrong with a run: nothing (empty), an error, or other bits.
std::string run_once(const Fixture& fixture, Session& session) {
  const Status status = fixture.set_and_run(session);
  if (!status) return status.error().to_string();
  return fixture.right(session) ? "" : "other bits";
}

/// Runs of which none may fail. What `between` does comes before the run of that number.
std::string run_all(const Fixture& fixture, Session& session, const std::function<bool(int)>& between) {
  for (int run = 0; run < kRuns; ++run) {
    if (!between(run)) return "no filter";
    if (const std::string wrong = run_once(fixture, session); !wrong.empty()) return "run " + std::to_string(run) + ": " + wrong;
  }
  return "";
}

bool has_ring(const Fixture& fixture) { return fixture.methods().size() > 1; }

/// Skipped by name.
bool missing(const Fixture& fixture) {
  if (!test::has_seccomp()) {
    WARN("SKIPPED: seccomp filters are not available");
    return true;
  }
  if (!has_ring(fixture)) {
    WARN("SKIPPED: io_uring is not available");
    return true;
  }
  return false;
}

/// Entering an io_uring is refused from its n-th time on, or only so often.
struct RefusedRing {
  static inline std::atomic<int> entered = 0;
  static inline int first = 0;
  static inline int count = 0;
  static inline int error = 0;

  RefusedRing(int from, int times, int with) {
    entered = 0;
    first = from;
    count = times;
    error = with;
    ops = system_file_ops();
    ops.enter_ring = []() noexcept {
      const int n = entered++;
      return n >= first && n - first < count ? -error : 0;
    };
    replace_file_ops(&ops);
  }
  ~RefusedRing() { replace_file_ops(nullptr); }
  FileOps ops;
};

}  // namespace

TEST_CASE("whenever entering an io_uring is refused, once or for good, runs give the same bits") {
  const Fixture fixture;
  if (!has_ring(fixture)) {
    WARN("SKIPPED: io_uring is not available");
    return;
  }
  for (const bool repeat : {false, true}) {
    for (const int error : {EPERM, EINVAL, ENOSYS, EAGAIN, EBUSY, EINTR, ENOMEM}) {
      for (const int times : {1, 3, 1 << 30}) {
        for (const int from : {1, 2, 3, 7, 20, 50}) {  // the 0th is of the opening
          CAPTURE(repeat, error, times, from);
          const RefusedRing ops(from, times, error);
          const auto session = fixture.create(ReadMethod::kRing, repeat);
          CHECK(run_all(fixture, *session, [](int) { return true; }).empty());
          CHECK(RefusedRing::entered > from);
        }
      }
    }
  }
}

TEST_CASE("a ring that may be made but not entered is none") {
  const Fixture fixture;
  const RefusedRing ops(0, 1 << 30, EPERM);
  CHECK(fixture.methods().size() == 1);
  const auto session = fixture.create(ReadMethod::kAuto);
  CHECK(run_once(fixture, *session).empty());
  CHECK(RefusedRing::entered <= 2);  // each opening asks once
}

TEST_CASE("a sandbox that starts before the session has it read with threads") {
  const Fixture fixture;
  if (missing(fixture)) return;
  for (const long call : {SYS_io_uring_enter, SYS_io_uring_setup}) {
    for (const int error : {EPERM, EINVAL, ENOSYS}) {
      CAPTURE(call, error);
      CHECK(in_child([&]() -> std::string {
              if (!refuse_calls({call}, error)) return "no filter";
              if (has_ring(fixture)) return "there is a ring";
              const auto session = fixture.create(ReadMethod::kAuto, true);
              return run_all(fixture, *session, [](int) { return true; });
            }) == "");
    }
  }
}

TEST_CASE("a sandbox that starts between runs, or before the first, changes nothing, and closing ends") {
  const Fixture fixture;
  if (missing(fixture)) return;
  for (const bool repeat : {false, true}) {
    for (const int error : {EPERM, EINVAL, ENOSYS, EAGAIN}) {
      for (const int before : {0, 1, 2}) {
        CAPTURE(repeat, error, before);
        CHECK(in_child([&] {
                const auto session = fixture.create(ReadMethod::kRing, repeat);
                return run_all(fixture, *session, [&](int run) { return run != before || refuse_calls({SYS_io_uring_enter}, error); });
              }) == "");
      }
    }
  }
}

TEST_CASE("a sandbox that starts in the middle of runs changes nothing") {
  const Fixture fixture;
  if (missing(fixture)) return;
  for (const bool repeat : {false, true}) {
    for (const int error : {EPERM, EINVAL, ENOSYS}) {
      for (const unsigned after_us : {0u, 200u, 500u, 1000u, 3000u}) {
        CAPTURE(repeat, error, after_us);
        CHECK(in_child([&]() -> std::string {
                const auto session = fixture.create(ReadMethod::kRing, repeat);
                std::atomic<bool> sandboxed = false;
                std::thread sandbox([&] {
                  usleep(after_us);
                  sandboxed = refuse_calls({SYS_io_uring_enter}, error);
                });
                std::string wrong;
                for (int run = 0; wrong.empty() && (run < kRuns || !sandboxed); ++run) wrong = run_once(fixture, *session);
                sandbox.join();
                return wrong.empty() ? run_once(fixture, *session) : wrong;
              }) == "");
      }
    }
  }
}

TEST_CASE("whatever else a sandbox refuses, runs, changes of budget and closing end, and never with other bits") {
  const Fixture fixture;
  if (missing(fixture)) return;
  const std::initializer_list<std::initializer_list<long>> refusals = {{SYS_openat},
                                                                       {SYS_fadvise64},
                                                                       {SYS_madvise},
                                                                       {SYS_mmap},
                                                                       {SYS_munmap},
                                                                       {SYS_mprotect},
                                                                       {SYS_fstat},
                                                                       {SYS_newfstatat},
                                                                       {SYS_statx},
                                                                       {SYS_pread64},
                                                                       {SYS_close},
                                                                       {SYS_sched_setaffinity},
                                                                       {SYS_rt_sigprocmask},
                                                                       {SYS_clone3},
                                                                       {SYS_clone3, SYS_clone},
                                                                       {SYS_clock_nanosleep},
                                                                       {SYS_io_uring_enter, SYS_pread64},
                                                                       {SYS_io_uring_enter, SYS_clock_nanosleep},
                                                                       {SYS_io_uring_enter, SYS_clone3, SYS_clone, SYS_mmap}};
  for (const ReadMethod method : fixture.methods()) {
    for (const std::initializer_list<long>& calls : refusals) {
      for (const bool repeat : {false, true}) {
        CAPTURE(static_cast<int>(method), *calls.begin(), calls.size(), repeat);
        CHECK(in_child([&]() -> std::string {
                auto session = fixture.create(method, repeat);
                if (const std::string wrong = run_once(fixture, *session); !wrong.empty()) return "before: " + wrong;
                if (!refuse_calls(calls, EPERM)) return "no filter";
                for (int run = 0; run < kRuns; ++run) {
                  if (run_once(fixture, *session) == "other bits") return "other bits";
                  static_cast<void>(session->set_budget(fixture.budget + Bytes(static_cast<std::uint64_t>(run) * 65536)));
                }
                session.reset();
                return "";
              }) == "");
      }
    }
  }
}

}  // namespace sluice

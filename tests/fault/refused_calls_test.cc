// Single system calls that a sandbox refuses, each with several errors: from before the model is opened, and from after the session was
// made and has run. The table says what comes of each: the same bits, or an error of the system's. Nothing hangs, and bits are never others.
#include <sys/syscall.h>

#include <cerrno>
#include <string>
#include <vector>

#include "tests/fault/fixture.h"
#include "tests/fault/sandbox.h"

namespace sluice {
namespace {

using test::Fixture;
using test::in_child;
using test::ReadMethod;
using test::refuse_calls;

/// What may come of a refusal. All end by themselves.
enum class Comes {
  kSame,   // the same bits
  kError,  // an error that the system's refusal explains: I/O or memory
  kEither,
  kAbort,  // any of these, or the C library ends the process: it has no way to tell of a futex that is refused
};

struct Refusal {
  const char* name;
  std::vector<long> calls;
  Comes before, after;
};

const Refusal kRefusals[] = {
    {"io_uring_setup", {SYS_io_uring_setup}, Comes::kSame, Comes::kSame},
    {"io_uring_enter", {SYS_io_uring_enter}, Comes::kSame, Comes::kSame},
    {"io_uring_register", {SYS_io_uring_register}, Comes::kSame, Comes::kSame},
    {"io_uring, all three", {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register}, Comes::kSame, Comes::kSame},
    {"futex", {SYS_futex}, Comes::kAbort, Comes::kAbort},
    {"fadvise64", {SYS_fadvise64}, Comes::kSame, Comes::kSame},
#if defined(SYS_open)
    {"openat, open", {SYS_openat, SYS_open}, Comes::kError, Comes::kSame},
#else
    {"openat", {SYS_openat}, Comes::kError, Comes::kSame},
#endif
    {"mmap", {SYS_mmap}, Comes::kError, Comes::kSame},
    {"munmap", {SYS_munmap}, Comes::kSame, Comes::kSame},
    {"mprotect", {SYS_mprotect}, Comes::kError, Comes::kSame},
    {"madvise", {SYS_madvise}, Comes::kSame, Comes::kSame},
    {"mlock, mlock2, mlockall", {SYS_mlock, SYS_mlock2, SYS_mlockall}, Comes::kSame, Comes::kSame},
    {"pread64", {SYS_pread64}, Comes::kError, Comes::kEither},  // where a ring reads, nobody calls it
    {"pread64 and io_uring_enter", {SYS_pread64, SYS_io_uring_enter}, Comes::kError, Comes::kError},
    {"preadv, preadv2, read", {SYS_preadv, SYS_preadv2, SYS_read}, Comes::kSame, Comes::kSame},
    {"fcntl", {SYS_fcntl}, Comes::kSame, Comes::kSame},
    {"statx, fstat, newfstatat", {SYS_statx, SYS_fstat, SYS_newfstatat}, Comes::kError, Comes::kError},
    {"clone3, clone", {SYS_clone3, SYS_clone}, Comes::kError, Comes::kSame},
    {"sched_setaffinity", {SYS_sched_setaffinity}, Comes::kSame, Comes::kSame},
};

const char* name_of(Comes comes) {
  constexpr const char* kNames[] = {"the same bits", "an error", "the same bits or an error", "or the C library ends the process"};
  return kNames[static_cast<std::size_t>(comes)];
}

/// "" for the same bits, else an error's text behind its kind: "I/O error: ...".
std::string run_of(const Fixture& fixture, Session& session) {
  const Status status = fixture.set_and_run(session);
  if (!status) return status.error().to_string();
  return fixture.right(session) ? "" : "other bits";
}

std::string open_and_run(const Fixture& fixture, ReadMethod method) {
  const auto model = Model::open(fixture.path.str());
  if (!model) return model.error().to_string();
  const auto session = Session::create(*model, {.budget = fixture.budget, .threads = 2, .tuning = {.read_method = method}});
  if (!session) return session.error().to_string();
  for (int run = 0; run < 3; ++run)
    if (const std::string wrong = run_of(fixture, **session); !wrong.empty()) return wrong;
  return "";
}

bool allowed(Comes comes, const std::string& said) {
  const bool same = said.empty();
  const bool error = said.starts_with("I/O error: ") || said.starts_with("out of memory: ");
  switch (comes) {
    case Comes::kSame:
      return same;
    case Comes::kError:
      return error;
    case Comes::kEither:
      return same || error;
    case Comes::kAbort:
      return same || error || said == "it died of signal 6";
  }
  return false;
}

bool missing() {
  if (test::has_seccomp()) return false;
  WARN("SKIPPED: seccomp filters are not available");
  return true;
}

constexpr int kErrors[] = {EPERM, EACCES, ENOSYS, EINVAL, ENOMEM};

}  // namespace

TEST_CASE("a call that is refused before the model is opened changes no bit, or is told") {
  if (missing()) return;
  const Fixture fixture;
  for (const Refusal& refusal : kRefusals)
    for (const int error : kErrors) {
      const std::string said = in_child([&]() -> std::string {
        for (const long call : refusal.calls)
          if (!refuse_calls({call}, error)) return "no filter";
        return open_and_run(fixture, ReadMethod::kAuto);
      });
      CAPTURE(refusal.name, error, name_of(refusal.before));
      CHECK((allowed(refusal.before, said) ? "" : said) == "");
    }
}

TEST_CASE("a call that is refused after a session has run changes no bit of the next runs, or is told") {
  if (missing()) return;
  const Fixture fixture;
  for (const ReadMethod method : fixture.methods())
    for (const Refusal& refusal : kRefusals)
      for (const int error : kErrors) {
        const std::string said = in_child([&]() -> std::string {
          const auto session = fixture.create(method);
          if (const std::string wrong = run_of(fixture, *session); !wrong.empty()) return "before: " + wrong;
          for (const long call : refusal.calls)
            if (!refuse_calls({call}, error)) return "no filter";
          std::string first;
          for (int run = 0; run < 3; ++run)
            if (const std::string wrong = run_of(fixture, *session); first.empty()) first = wrong;
          return first;
        });
        CAPTURE(refusal.name, error, name_of(refusal.after), method == ReadMethod::kRing);
        CHECK((allowed(refusal.after, said) ? "" : said) == "");
      }
}

}  // namespace sluice

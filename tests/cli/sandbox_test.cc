// What a process may and may not do once it is in the sandbox. Each attempt is made in a child, which tells by its status.
#include "src/cli/sandbox.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <thread>

#include "sluice/core/file.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "tests/cli/temporary.h"

using namespace sluice;
using namespace sluice::cli;

namespace {

constexpr int kDone = 0, kRefused = 1, kOther = 2, kNoSandbox = 3;

/// A model to read, an output to write, and another file of each kind that is open and named to nobody.
struct Files {
  TemporaryFolder folder;
  FileDescriptor model, other, output, other_output;

  Files() {
    for (const char* name : {"model", "other", "output", "other_output"})
      write_atomically(folder.path(name), std::as_bytes(std::span("0123456789")));
    model = FileDescriptor(::open(folder.path("model").c_str(), O_RDONLY));
    other = FileDescriptor(::open(folder.path("other").c_str(), O_RDONLY));
    output = FileDescriptor(::open(folder.path("output").c_str(), O_WRONLY));
    other_output = FileDescriptor(::open(folder.path("other_output").c_str(), O_WRONLY));
  }
};

/// What becomes of `attempt`, which returns like a system call, in a child in the sandbox.
int in_sandbox(const Files& files, const std::function<long(const Files&)>& attempt) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      enter_sandbox({{files.model.get()}, {files.output.get()}});
    } catch (const Failure&) {
      ::_exit(kNoSandbox);
    }
    const long result = attempt(files);
    ::_exit(result >= 0 ? kDone : errno == EPERM ? kRefused : kOther);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

struct Attempt {
  const char* name;
  long (*make)(const Files& files);
};

long succeeded(const void* address) { return address == MAP_FAILED ? -1 : 0; }

char buffer[16];

const Attempt kAllowed[] = {
    {"read the model", [](const Files& f) -> long { return ::pread(f.model.get(), buffer, 4, 2); }},
    {"write the output", [](const Files& f) -> long { return ::pwrite(f.output.get(), "abc", 3, 1); }},
    {"sync the output", [](const Files& f) -> long { return ::fsync(f.output.get()); }},
    {"print", [](const Files&) -> long { return ::write(STDOUT_FILENO, "", 0); }},
    {"take memory",
     [](const Files&) -> long { return succeeded(::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }},
    {"ask after the model", [](const Files& f) -> long {
       struct stat state {};
       return ::fstat(f.model.get(), &state);
     }}};

const Attempt kForbidden[] = {
    {"open a file", [](const Files& f) -> long { return ::open(f.folder.path("other").c_str(), O_RDONLY); }},
    {"make a file", [](const Files& f) -> long { return ::open(f.folder.path("new").c_str(), O_WRONLY | O_CREAT, 0666); }},
    {"read another open file", [](const Files& f) -> long { return ::pread(f.other.get(), buffer, 4, 0); }},
    {"write another open file", [](const Files& f) -> long { return ::pwrite(f.other_output.get(), "x", 1, 0); }},
    {"write the model", [](const Files& f) -> long { return ::pwrite(f.model.get(), "x", 1, 0); }},
    {"read the output", [](const Files& f) -> long { return ::pread(f.output.get(), buffer, 1, 0); }},
    {"double a descriptor", [](const Files& f) -> long { return ::dup(f.other.get()); }},
    {"rename", [](const Files& f) -> long { return ::rename(f.folder.path("other").c_str(), f.folder.path("new").c_str()); }},
    {"remove a file", [](const Files& f) -> long { return ::unlink(f.folder.path("other").c_str()); }},
    {"make a socket", [](const Files&) -> long { return ::socket(AF_INET, SOCK_STREAM, 0); }},
    {"start a program",
     [](const Files&) -> long {
       char* const words[] = {buffer, nullptr};
       return ::execve("/bin/true", words, words);
     }},
    {"fork", [](const Files&) -> long { return ::fork(); }},
    {"start a thread",
     [](const Files&) -> long {
       pthread_t thread;
       const int error = ::pthread_create(
           &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
       errno = error == EAGAIN ? EPERM : error;  // what glibc makes of a refusal
       return error == 0 ? 0 : -1;
     }},
    {"signal another process", [](const Files&) -> long { return ::kill(::getppid(), 0); }},
    {"make a ring", [](const Files&) -> long { return ::syscall(__NR_io_uring_setup, 1, buffer); }},
    {"map memory to execute",
     [](const Files&) -> long { return succeeded(::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }},
    {"make memory executable",
     [](const Files&) -> long {
       void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       return ::mprotect(page, 4096, PROT_READ | PROT_EXEC);
     }},
    {"map another open file",
     [](const Files& f) -> long { return succeeded(::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, f.other.get(), 0)); }},
    {"read another process's memory",
     [](const Files&) -> long { return ::syscall(__NR_process_vm_readv, ::getppid(), nullptr, 0, nullptr, 0, 0); }},
};

/// A sanitizer or an emulator makes system calls of its own, which no sandbox knows of.
bool skipped() {
#if defined(SLUICE_FOREIGN_MEMORY)
  WARN("SKIPPED: the system calls are not the program's alone");
  return true;
#else
  return false;
#endif
}

}  // namespace

TEST_CASE("in the sandbox a process reads its model, writes its outputs, and takes memory") {
  if (skipped()) return;
  const Files files;
  for (const Attempt& attempt : kAllowed) {
    INFO(attempt.name);
    const int result = in_sandbox(files, attempt.make);
    if (result == kNoSandbox) return;  // a system without: `run --sandbox` says so
    CHECK(result == kDone);
  }
}

TEST_CASE("in the sandbox all else is refused") {
  if (skipped()) return;
  const Files files;
  for (const Attempt& attempt : kForbidden) {
    INFO(attempt.name);
    const int result = in_sandbox(files, attempt.make);
    if (result == kNoSandbox) return;
    CHECK(result == kRefused);
  }
}

TEST_CASE("threads that were there before are in the sandbox too") {
  if (skipped()) return;
  const Files files;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::atomic<int> state{0};
    std::thread other([&] {
      while (state == 0) std::this_thread::yield();
      state = ::open("/dev/null", O_RDONLY) < 0 && errno == EPERM ? kRefused + 1 : kDone + 1;
    });
    try {
      enter_sandbox({{files.model.get()}, {}});
    } catch (const Failure&) {
      ::_exit(kNoSandbox);
    }
    state = -1;
    while (state == -1) std::this_thread::yield();
    ::_exit(state - 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK((WEXITSTATUS(status) == kRefused || WEXITSTATUS(status) == kNoSandbox));
}

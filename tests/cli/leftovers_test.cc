// A program that a signal ends leaves no folder and no program of its own behind.
#include "src/cli/leftovers.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "src/cli/child.h"
#include "src/cli/scratch_folder.h"
#include "tests/cli/temporary.h"

using namespace sluice::cli;

namespace {

struct Ends {
  Ends() { REQUIRE(::pipe(ends.data()) == 0); }
  ~Ends() {
    ::close(ends[0]);
    close_writing();
  }
  void close_writing() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
  std::array<int, 2> ends{};
};

/// Runs `work` in a process of its own until it has written its first byte, sends it the signal, and gives its status as of waitpid.
int ended_by(int signal, Ends& pipe, const std::function<void(int)>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) ::signal(each, SIG_DFL);
    work(pipe.ends[1]);
    ::_exit(0);
  }
  pipe.close_writing();
  char byte = 0;
  REQUIRE(::read(pipe.ends[0], &byte, 1) == 1);
  ::kill(child, signal);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

bool there_is(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0;
}

std::size_t entries_of(const std::string& path) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) count += entry.path().empty() ? 0 : 1;
  return count;
}

}  // namespace

TEST_CASE("a signal removes folders of a moment with what is in them, and ends the program as ever") {
  const TemporaryFolder parent;
  REQUIRE(::setenv("TMPDIR", parent.path(".").c_str(), 1) == 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Ends pipe;
    const int status = ended_by(signal, pipe, [&](int out) {
      const ScratchFolder one("one"), other("other");
      // More of them than the system tells of at once.
      for (int i = 0; i < 300; ++i) std::ofstream(one.file("file" + std::to_string(i))) << "values";
      static_cast<void>(::write(out, "x", 1) == 1);
      for (;;) ::pause();
    });
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    CHECK(entries_of(parent.path(".")) == 0);
  }
  ::unsetenv("TMPDIR");
}

TEST_CASE("a folder that is gone already is no longer removed, and what took its place stays") {
  const TemporaryFolder parent;
  const std::string place = parent.path("place");
  Ends pipe;
  const int status = ended_by(SIGTERM, pipe, [&](int out) {
    { const LeftoverFolder folder(place); }
    ::mkdir(place.c_str(), 0700);
    static_cast<void>(::write(out, "x", 1) == 1);
    for (;;) ::pause();
  });
  CHECK(WIFSIGNALED(status));
  CHECK(there_is(place));
}

TEST_CASE("a signal that the program ignores stays ignored") {
  const TemporaryFolder parent;
  Ends pipe;
  const int status = ended_by(SIGHUP, pipe, [&](int out) {
    ::signal(SIGHUP, SIG_IGN);
    const LeftoverFolder folder(parent.path("none"));
    ::raise(SIGHUP);
    static_cast<void>(::write(out, "x", 1) == 1);
  });
  CHECK(WIFEXITED(status));
}

TEST_CASE("a signal goes to the program that was started, too") {
  Ends pipe;
  const int status = ended_by(SIGTERM, pipe, [&](int out) {
    // What is written to where this started it shows that it runs; it holds the pipe's end until it is no more.
    static_cast<void>(run_program("/bin/sh", "sh", {"-c", "echo x >&" + std::to_string(out) + "; exec sleep 1000"}));
  });
  CHECK(WIFSIGNALED(status));
  char byte = 0;
  while (::read(pipe.ends[0], &byte, 1) == 1) continue;  // comes to the end where nobody is left to write
  CHECK(byte != 'y');
}

#include "sluice/core/check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace sluice {
namespace {

/// How a process ends that breaks a contract: its wait status.
int status_of_breach(CheckHandler handler) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);
    set_check_handler(handler);
    SLUICE_CHECK(handler == nullptr && child != 0, "a test breaks it");
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("a broken contract goes to the program's handler") {
  const int status = status_of_breach([](const char*, int, const char*, const char*) { ::_exit(42); });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);
}

TEST_CASE("the default handler, and one that returns, end in an abort") {
  for (const CheckHandler handler : {CheckHandler(nullptr), CheckHandler([](const char*, int, const char*, const char*) {})}) {
    const int status = status_of_breach(handler);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
  }
}

}  // namespace sluice

// Runs a program and writes how it ended and what it took, as the kernel counted it for that process alone:
//
//     measured RESULT SECONDS ADDRESSES PROGRAM ARGUMENT...
//
// SECONDS: after which it is ended; ADDRESSES: how many KiB of addresses it may have, 0 for any number. The file RESULT gets one line:
//
//     STATUS SIGNAL ENDED PEAK CPU WALL      exit status; signal or 0; whether it was ended here; KiB; microseconds; microseconds
//
// The kernel's count of a child's peak begins with what its parent held when the child was made: a harness that holds 40 MB finds 40 MB.
// Hence this program between the two, which holds a megabyte, less than any C++ program comes to.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace {

constexpr int kFirstArgument = 4, kNotStarted = 127;

long long microseconds(const timeval& time) { return 1'000'000LL * time.tv_sec + time.tv_usec; }

long long now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1'000'000LL * time.tv_sec + time.tv_nsec / 1000;
}

[[noreturn]] void become(char** words, rlim_t addresses) {
  setpgid(0, 0);  // what it starts ends with it
  const rlimit none{0, 0}, most{addresses, addresses};
  setrlimit(RLIMIT_CORE, &none);
  if (addresses > 0) setrlimit(RLIMIT_AS, &most);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigprocmask(SIG_SETMASK, &alarms, nullptr);
  execvp(words[0], words);
  _exit(kNotStarted);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc <= kFirstArgument) return 1;
  const int result = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (result < 0) return 1;
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ended, nullptr);
  const long long begin = now();
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) become(argv + kFirstArgument, static_cast<rlim_t>(strtoll(argv[3], nullptr, 10)) * 1024);

  const timespec patience{strtol(argv[2], nullptr, 10), 0};
  const bool late = sigtimedwait(&ended, nullptr, &patience) < 0 && errno == EAGAIN;
  if (late) kill(-child, SIGKILL);
  int status = 0;
  rusage used{};
  while (wait4(child, &status, 0, &used) < 0 && errno == EINTR) continue;
  const long long wall = now() - begin;
  kill(-child, SIGKILL);  // what it left behind
  dprintf(result, "%d %d %d %ld %lld %lld\n", WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          late ? 1 : 0, used.ru_maxrss, microseconds(used.ru_utime) + microseconds(used.ru_stime), wall);
  return 0;
}

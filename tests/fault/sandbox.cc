#include "tests/fault/sandbox.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

namespace sluice::test {
namespace {

constexpr unsigned kSecondsToHang = 60;

}  // namespace

bool refuse_calls(std::initializer_list<long> calls, int error) {
  std::vector<sock_filter> program;
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (const long call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

std::string in_child(const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = fork();
  if (child < 0) return "no child";
  if (child == 0) {
    close(ends[0]);
    alarm(kSecondsToHang);
    for (const int death : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE})
      signal(death, SIG_DFL);  // the parent says what it meant, not Catch's handlers
    const std::string said = work();
    const bool told = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  std::array<char, 256> part{};
  for (ssize_t got = 0; (got = read(ends[0], part.data(), part.size())) > 0;) said.append(part.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status))
    return said + (WTERMSIG(status) == SIGALRM ? "it hung" : "it died of signal " + std::to_string(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? said : said + "it ended with status " + std::to_string(WEXITSTATUS(status));
}

bool has_seccomp() {
  static const bool has = in_child([] {
                            if (!refuse_calls({SYS_getppid}, EPERM)) return std::string("no filter");
                            return syscall(SYS_getppid) == -1 && errno == EPERM ? std::string() : std::string("no refusal");
                          }).empty();
  return has;
}

}  // namespace sluice::test

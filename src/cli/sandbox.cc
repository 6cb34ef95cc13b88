#include "src/cli/sandbox.h"

#include "sluice/core/error.h"
#include "src/cli/failure.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::cli {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// What touches nothing but this process's own memory, threads, time and end. A thread that was started just before still makes itself known
// (rseq, set_robust_list). newfstatat and fstat look at files without opening them: a run asks
// whether its model was replaced.
constexpr int kAllowed[] = {
    __NR_futex,
    __NR_sched_yield,
    __NR_sched_getaffinity,
    __NR_clock_gettime,
    __NR_clock_getres,
    __NR_clock_nanosleep,
    __NR_nanosleep,
    __NR_madvise,
    __NR_munmap,
    __NR_mincore,
    __NR_brk,
    __NR_getrusage,
    __NR_close,
    __NR_exit,
    __NR_exit_group,
    __NR_rt_sigreturn,
    __NR_rt_sigprocmask,
    __NR_restart_syscall,
    __NR_getpid,
    __NR_gettid,
    __NR_getrandom,
    __NR_fstat,
    __NR_newfstatat,
    __NR_membarrier,
    __NR_rseq,
    __NR_set_robust_list,
};
constexpr int kReads[] = {__NR_read, __NR_pread64, __NR_lseek, __NR_fadvise64};
constexpr int kWrites[] = {__NR_write, __NR_writev, __NR_pwrite64, __NR_fsync};

/// Writes the filter: a list of blocks, each of one call, which end in a verdict.
class FilterWriter {
 public:
  FilterWriter() {
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
    give(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
  }

  void allow(std::span<const int> calls) {
    for (const int call : calls) {
      add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1);
      give(SECCOMP_RET_ALLOW);
    }
  }

  /// Applies if the first argument is one of these numbers.
  void allow_with_first_of(std::span<const int> calls, std::span<const int> numbers) {
    for (const int call : calls) {
      begin_block(call, 2 * numbers.size() + 2);
      load_argument(0);
      for (const int number : numbers) {
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1);
        give(SECCOMP_RET_ALLOW);
      }
      give(kRefused);
    }
  }

  /// Applies if argument `index` has none of these bits, and argument `other` has one of those (0: it does not matter).
  void allow_without_bits(int call, int index, std::uint32_t none, int other, std::uint32_t some) {
    begin_block(call, some == 0 ? 4 : 7);
    load_argument(index);
    add(BPF_JMP | BPF_JSET | BPF_K, none, 0, 1);
    give(kRefused);
    if (some != 0) {
      load_argument(other);
      add(BPF_JMP | BPF_JSET | BPF_K, some, 1, 0);
      give(kRefused);
    }
    give(SECCOMP_RET_ALLOW);
  }

  std::vector<sock_filter> take() {
    give(kRefused);
    return std::move(filter_);
  }

 private:
  static constexpr std::uint32_t kRefused = SECCOMP_RET_ERRNO | EPERM;

  void add(int code, std::uint32_t value, std::uint8_t if_true = 0, std::uint8_t if_false = 0) {
    filter_.push_back({static_cast<std::uint16_t>(code), if_true, if_false, value});
  }
  void load(std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
  /// Its lower half, which both architectures have first: descriptors and flags are numbers of 32 bits.
  void load_argument(int index) { load(offsetof(seccomp_data, args) + static_cast<std::size_t>(index) * sizeof(std::uint64_t)); }
  void give(std::uint32_t verdict) { add(BPF_RET | BPF_K, verdict); }
  /// Another call skips the block; the number of the call is not needed inside.
  void begin_block(int call, std::size_t length) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, static_cast<std::uint8_t>(length));
  }

  std::vector<sock_filter> filter_;
};

std::vector<sock_filter> make_filter(const SandboxFiles& files) {
  std::vector<int> written = files.written;
  written.insert(written.end(), {STDOUT_FILENO, STDERR_FILENO});
  FilterWriter writer;
  writer.allow(kAllowed);
  writer.allow_with_first_of(kReads, files.read);
  writer.allow_with_first_of(kWrites, written);
  constexpr int kOwnThread[] = {0};
  constexpr int kAffinity[] = {__NR_sched_setaffinity};
  writer.allow_with_first_of(kAffinity, kOwnThread);
  writer.allow_without_bits(__NR_mmap, 2, PROT_EXEC, 3, MAP_ANONYMOUS);
  writer.allow_without_bits(__NR_mprotect, 2, PROT_EXEC, 0, 0);
  writer.allow_without_bits(__NR_mremap, 3, ~static_cast<std::uint32_t>(MREMAP_MAYMOVE), 0, 0);
  return writer.take();
}

}  // namespace

void enter_sandbox(const SandboxFiles& files) {
  constexpr std::size_t kMostFiles = 100;  // a jump of the filter goes over 255 instructions at most
  if (files.read.size() + files.written.size() > kMostFiles)
    raise(make_error(ErrorCode::kUnsupported, "--sandbox", "a run in the sandbox writes at most 100 outputs"));
  std::vector<sock_filter> filter = make_filter(files);
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      ::syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0)
    return;
  Error error = make_error(ErrorCode::kUnsupported, "--sandbox", "the system has no filter of system calls for this process");
  error.os_error = errno;
  raise(error);
}

}  // namespace sluice::cli

#else

namespace sluice::cli {

void enter_sandbox(const SandboxFiles&) {
  raise(make_error(ErrorCode::kUnsupported, "--sandbox", "there is a sandbox on Linux only, on x86-64 and aarch64"));
}

}  // namespace sluice::cli

#endif

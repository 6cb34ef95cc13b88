#include "src/cli/leftovers.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace sluice::cli {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr std::size_t kMostFolders = 4, kLongestPath = 4096;

struct Folder {
  std::atomic<bool> there{false};
  std::array<char, kLongestPath> path;
};
std::array<Folder, kMostFolders> folders;
std::atomic<pid_t> child{0};
std::atomic<pid_t> owner{0};  // a forked child that is no program yet owns nothing

/// An entry of a folder, as the system gives it.
struct Entry {
  std::uint64_t inode;
  std::int64_t next;
  unsigned short size;
  unsigned char kind;
  char name[1];
};

/// By system calls alone: a signal may come while the program has taken the locks of memory.
void remove_folder(const char* path) noexcept {
  const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  alignas(Entry) std::array<char, 4096> entries;
  for (long got; (got = ::syscall(SYS_getdents64, folder, entries.data(), entries.size())) > 0;) {
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const Entry*>(entries.data() + at);
      static_cast<void>(::unlinkat(folder, entry->name, 0));  // no folder is one of ours
      at += entry->size;
    }
  }
  ::close(folder);
  static_cast<void>(::rmdir(path));
}

/// It may be writing into a folder, so its end is waited for, but not for ever.
void end_child(pid_t started, int signal) noexcept {
  constexpr int kPatience = 50;
  constexpr timespec kGlance{.tv_sec = 0, .tv_nsec = 10'000'000};
  ::kill(started, signal);
  for (int glance = 0; glance < kPatience && ::waitpid(started, nullptr, WNOHANG) == 0; ++glance) ::nanosleep(&kGlance, nullptr);
}

void clear_away(int signal) {
  if (owner.load() == ::getpid()) {
    if (const pid_t started = child.load(); started > 0) end_child(started, signal);
    for (Folder& folder : folders)
      if (folder.there.load()) remove_folder(folder.path.data());
  }
  ::signal(signal, SIG_DFL);  // and it ends the program, as it would have
  ::raise(signal);
}

sigset_t set_of_signals() noexcept {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : kSignals) ::sigaddset(&set, signal);
  return set;
}

void attend() noexcept {
  if (owner.load() == ::getpid()) return;
  owner = ::getpid();
  for (const int signal : kSignals) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = clear_away;
    action.sa_mask = set_of_signals();
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

SignalsHeld::SignalsHeld() {
  const sigset_t set = set_of_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}
SignalsHeld::~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

LeftoverFolder::LeftoverFolder(const std::string& path) : place_(kMostFolders) {
  attend();
  if (path.size() >= kLongestPath) return;
  const auto free = std::find_if(folders.begin(), folders.end(), [](const Folder& folder) { return !folder.there; });
  if (free == folders.end()) return;
  std::memcpy(free->path.data(), path.c_str(), path.size() + 1);
  free->there = true;
  place_ = static_cast<std::size_t>(free - folders.begin());
}
LeftoverFolder::~LeftoverFolder() {
  if (place_ < kMostFolders) folders[place_].there = false;
}

LeftoverChild::LeftoverChild(pid_t started) {
  attend();
  child = started;
}
LeftoverChild::~LeftoverChild() { child = 0; }

}  // namespace sluice::cli

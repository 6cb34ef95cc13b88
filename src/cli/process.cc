#include "src/cli/process.h"

#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "src/cli/failure.h"
#include "src/cli/text.h"

namespace sluice::cli {

namespace {

/// A size of /proc/self/status in bytes; 0 where there is none.
std::uint64_t status_bytes(const char* key) {
  std::FILE* file = std::fopen("/proc/self/status", "re");
  if (file == nullptr) return 0;
  std::uint64_t kibibytes = 0;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) == 0) kibibytes = std::strtoull(line + std::strlen(key), nullptr, 10);
  }
  std::fclose(file);
  return kibibytes * 1024;
}

}  // namespace

std::uint64_t current_rss_bytes() { return status_bytes("VmRSS:"); }
std::uint64_t peak_rss_bytes() { return status_bytes("VmHWM:"); }

void keep_heap_small() {
  // The default threshold grows with the largest block freed, after which pictures would stay in the heap.
  ::mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  ::mallopt(M_TRIM_THRESHOLD, 64 * 1024);
  ::mallopt(M_ARENA_MAX, 1);
}

void finish_stdout() {
  const bool flushed = std::fflush(stdout) == 0;
  const int os_error = errno;
  if (!flushed || std::ferror(stdout) != 0) raise(make_io_error("stdout", "the results cannot be written", os_error));
}

void release_free_memory() { ::malloc_trim(0); }

Progress::Progress(std::string what, std::uint64_t all)
    : what_(std::move(what)), all_(all), terminal_(::isatty(STDERR_FILENO) == 1), next_(Clock::now() + std::chrono::seconds(1)) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::update(std::uint64_t done, const std::string& text) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  shown_ = true;
  const double share = all_ == 0 ? 0 : 100.0 * static_cast<double>(done) / static_cast<double>(all_);
  fmt::print(stderr, "\r\033[K{}  {:.0f} %  {}", what_, share, text);
  std::fflush(stderr);
}

}  // namespace sluice::cli

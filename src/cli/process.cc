#include "src/cli/process.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "sluice/core/file.h"
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

Peaks read_peaks() {
  Peaks peaks;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) peaks.max_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  std::ifstream cgroups("/proc/self/cgroup");
  for (std::string line; std::getline(cgroups, line);) {  // number:controllers:path; the root's figures are the machine's
    const std::size_t slash = line.find('/');
    if (slash == std::string::npos || slash + 1 == line.size()) continue;
    const std::string path = line.substr(slash);
    std::uint64_t bytes = 0;
    if (line.find(":memory:") != std::string::npos) {
      if (std::ifstream("/sys/fs/cgroup/memory" + path + "/memory.max_usage_in_bytes") >> bytes) peaks.cgroup_peak_bytes = bytes;
    } else if (line.starts_with("0::")) {
      if (std::ifstream("/sys/fs/cgroup" + path + "/memory.peak") >> bytes) peaks.cgroup_peak_bytes = bytes;
    }
  }
  return peaks;
}

std::optional<std::uint64_t> cached_bytes_of(const std::string& path) {
  const Result<FileDescriptor> file = open_for_reading(path);
  FileState state;
  if (!file || file_ops().state(file->get(), &state) != 0) return std::nullopt;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::array<unsigned char, 4096> pages;
  const std::uint64_t window = pages.size() * page;
  std::uint64_t cached = 0;
  for (std::uint64_t at = 0; at < state.size.count(); at += window) {
    const std::size_t length = std::min(window, state.size.count() - at);
    // Mapped to be asked about, never touched: a file that is cut meanwhile raises no signal.
    void* address = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file->get(), static_cast<off_t>(at));
    if (address == MAP_FAILED) return std::nullopt;
    const bool known = ::mincore(address, length, pages.data()) == 0;
    ::munmap(address, length);
    if (!known) return std::nullopt;
    cached += page * static_cast<std::uint64_t>(std::count_if(pages.begin(),
                                                              pages.begin() + static_cast<std::ptrdiff_t>((length + page - 1) / page),
                                                              [](unsigned char state_of_page) { return (state_of_page & 1u) != 0; }));
  }
  return cached;
}

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

bool Progress::due() const { return terminal_ && Clock::now() >= next_; }

void Progress::show(std::uint64_t done, const std::string& text) {
  next_ = Clock::now() + std::chrono::milliseconds(200);
  shown_ = true;
  const double share = all_ == 0 ? 0 : 100.0 * static_cast<double>(done) / static_cast<double>(all_);
  fmt::print(stderr, "\r\033[K{}  {:.0f} %  {}", what_, share, text);
  std::fflush(stderr);
}

}  // namespace sluice::cli

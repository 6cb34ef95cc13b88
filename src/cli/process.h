// This process as the kernel sees it, and the habits that keep it small.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace sluice::cli {

/// VmRSS of /proc/self/status in bytes; 0 where there is none.
std::uint64_t current_rss_bytes();
/// VmHWM: the most that VmRSS has been.
std::uint64_t peak_rss_bytes();

/// The most memory that this process has held, as others count it; nothing where the system does not say.
struct Peaks {
  std::uint64_t max_rss_bytes = 0;                 // getrusage
  std::optional<std::uint64_t> cgroup_peak_bytes;  // of its own memory cgroup, file pages and the kernel's own included
};
Peaks read_peaks();

/// Bytes of a file that lie in the page cache; nothing where the system does not say.
std::optional<std::uint64_t> cached_bytes_of(const std::string& path);

/// Makes freed memory go back to the system: one heap, large blocks always mapped. Once, at the start of main.
void keep_heap_small();
/// Ends stdout: what is still in its buffer is written. Raises Failure (kIo) when any of the results could not be written.
void finish_stdout();

/// Gives back what is free now.
void release_free_memory();

/// "what  done of all" on a terminal's stderr, from the first second on; nothing anywhere else. Erased at the end.
class Progress {
 public:
  Progress(std::string what, std::uint64_t all);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();
  /// `text` is called only when there is something to show: writing it would bring code into memory that a run does without.
  template <class Text>
  void update(std::uint64_t done, const Text& text) {
    if (due()) show(done, text());
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool due() const;
  void show(std::uint64_t done, const std::string& text);

  std::string what_;
  std::uint64_t all_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace sluice::cli

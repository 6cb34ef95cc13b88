// Which processors a thread may run on, and which processors are small.
//
// On a CPU with big and small cores the loader belongs on a small one: it mostly sleeps, and a big core that it takes is one that does not
// compute. A thread inherits the processors of the thread that starts it, so a thread that starts others limits itself meanwhile.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "sluice/core/error.h"

namespace sluice {

/// Processors by what they can do, as the system ranks them.
struct CpuKinds {
  std::vector<int> big;    // of the highest capacity
  std::vector<int> small;  // of any lower one; empty where all are alike or the system does not say
};

/// Reads cpu_capacity of each processor below `root` (tests have their own); of this machine's, those that the calling thread may run on.
CpuKinds read_cpu_kinds(const std::string& root = {});

/// The processors on which `threads` compute threads should run: the big ones, if there are small ones too and enough big ones for all.
/// Empty: any.
std::vector<int> processors_to_compute_on(int threads, const std::string& root = {});

/// The processors that the calling thread may run on, without `cpus`.
std::vector<int> other_processors(std::span<const int> cpus);

/// Limits the calling thread to `cpus` until the end of the scope. An empty list limits nothing.
class ScopedAffinity {
 public:
  explicit ScopedAffinity(std::span<const int> cpus) noexcept;
  ScopedAffinity(const ScopedAffinity&) = delete;
  ScopedAffinity& operator=(const ScopedAffinity&) = delete;
  ~ScopedAffinity();

  /// kInvalidArgument when this process may run on none of them.
  const Status& status() const noexcept { return status_; }

 private:
  std::array<unsigned long, 1024 / (8 * sizeof(unsigned long))> before_{};  // the system's set: a bit a processor
  bool changed_ = false;
  Status status_;
};

}  // namespace sluice

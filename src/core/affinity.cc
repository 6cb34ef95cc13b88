#include "sluice/core/affinity.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "sluice/core/cpu.h"
#include "sluice/core/file.h"
#include "src/core/cpu_set.h"

namespace sluice {

std::vector<int> other_processors(std::span<const int> cpus) {
  cpu_set_t allowed;
  std::vector<int> others;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return others;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &allowed) && std::find(cpus.begin(), cpus.end(), cpu) == cpus.end()) others.push_back(cpu);
  }
  return others;
}

namespace {

constexpr int kMostCpus = CPU_SETSIZE;

/// 0 where the system does not say.
int capacity_of(const std::string& root, int cpu) {
  const Result<FileDescriptor> file = open_for_reading(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpu_capacity");
  if (!file) return 0;
  char text[32];
  const std::int64_t length = system_file_ops().pread(file->get(), text, sizeof text, 0);
  int capacity = 0;
  if (length > 0) std::from_chars(text, text + length, capacity);
  return capacity;
}

/// Without the processors that the calling thread may not run on: a container or the caller has chosen among them already.
CpuKinds allowed_of(CpuKinds kinds) {
  const std::vector<int> allowed = other_processors({});
  const auto forbidden = [&](int cpu) { return std::find(allowed.begin(), allowed.end(), cpu) == allowed.end(); };
  std::erase_if(kinds.big, forbidden);
  std::erase_if(kinds.small, forbidden);
  return kinds.big.empty() ? CpuKinds() : kinds;
}

}  // namespace

CpuKinds read_cpu_kinds(const std::string& root) {
  std::vector<int> capacities;
  while (static_cast<int>(capacities.size()) < kMostCpus) {
    const int capacity = capacity_of(root, static_cast<int>(capacities.size()));
    if (capacity <= 0) break;
    capacities.push_back(capacity);
  }
  CpuKinds kinds;
  if (capacities.empty()) return kinds;
  const int most = *std::max_element(capacities.begin(), capacities.end());
  for (std::size_t cpu = 0; cpu < capacities.size(); ++cpu) {
    (capacities[cpu] == most ? kinds.big : kinds.small).push_back(static_cast<int>(cpu));
  }
  return root.empty() ? allowed_of(std::move(kinds)) : kinds;
}

std::vector<int> processors_to_compute_on(int threads, const std::string& root) {
  CpuKinds kinds = read_cpu_kinds(root);
  const bool enough = !kinds.small.empty() && kinds.big.size() >= static_cast<std::size_t>(threads);
  return enough ? std::move(kinds.big) : std::vector<int>();
}

namespace {

cpu_set_t* as_set(unsigned long* words) noexcept { return reinterpret_cast<cpu_set_t*>(words); }

}  // namespace

static_assert(sizeof(cpu_set_t) == 1024 / 8, "ScopedAffinity keeps one as words");

ScopedAffinity::ScopedAffinity(std::span<const int> cpus) noexcept {
  if (cpus.empty()) return;
  const cpu_set_t wanted = cpu_set_of(cpus);
  if (sched_getaffinity(0, sizeof before_, as_set(before_.data())) != 0 || sched_setaffinity(0, sizeof wanted, &wanted) != 0) {
    Error error = make_error(ErrorCode::kInvalidArgument, "processors", "this process may not run on the processors that were asked for");
    error.os_error = errno;
    status_ = fail(error);
    return;
  }
  changed_ = true;
}

ScopedAffinity::~ScopedAffinity() {
  if (changed_) sched_setaffinity(0, sizeof before_, as_set(before_.data()));
}

}  // namespace sluice

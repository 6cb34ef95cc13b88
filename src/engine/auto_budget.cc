#include "sluice/engine/auto_budget.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "sluice/core/file.h"
#include "src/core/out_of_memory.h"
#include "src/engine/process_memory.h"

namespace sluice {
namespace {

using namespace literals;

constexpr Bytes kCgroupSlack = 4_MiB;
// Others wait for memory this much of the time: give way; so little: there is room to grow.
constexpr double kHighPressure = 0.10;
constexpr double kLowPressure = 0.01;

/// Empty when the file cannot be read. Files of /proc state no size, so they are read to their end.
std::string text_of(const std::string& path) {
  const FileOps& ops = system_file_ops();
  std::string text;
  Result<FileDescriptor> file = open_for_reading(path);
  if (!file) return text;
  char buffer[4096];
  for (std::int64_t at = 0;;) {
    const std::int64_t got = ops.pread(file->get(), buffer, sizeof buffer, at);
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    at += got;
  }
}

/// The number behind `key`, which begins a line.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key) {
  for (std::size_t line = 0; line < text.size(); line = text.find('\n', line) + 1) {
    if (text.substr(line).starts_with(key)) {
      const std::size_t digit = text.find_first_not_of(" :\t", line + key.size());
      std::uint64_t value = 0;
      if (digit == std::string_view::npos) return std::nullopt;
      const auto read = std::from_chars(text.data() + digit, text.data() + text.size(), value);
      return read.ec == std::errc() ? std::optional(value) : std::nullopt;
    }
    if (text.find('\n', line) == std::string_view::npos) break;
  }
  return std::nullopt;
}

/// Names of one kind of cgroup's files.
struct CgroupFiles {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* reclaimable;  // in memory.stat
};
constexpr CgroupFiles kUnified = {"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};
constexpr CgroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};

/// Narrows `outlook` by the cgroup at `path` and all above it.
void apply_cgroups(const std::string& root, const CgroupFiles& files, std::string path, MemoryOutlook& outlook) {
  for (;;) {
    const std::string directory = root + files.mount + (path == "/" ? "" : path);
    const auto limit = number_after(text_of(directory + files.limit), "");
    const auto usage = number_after(text_of(directory + files.usage), "");
    if (limit && usage && *limit < kUnlimitedBytes.count()) {
      const std::uint64_t reclaimable = number_after(text_of(directory + "/memory.stat"), files.reclaimable).value_or(0);
      const std::uint64_t used = *usage - std::min(*usage, reclaimable);
      outlook.cgroup_limit = std::min(outlook.cgroup_limit, Bytes(*limit));
      outlook.available = std::min(outlook.available, Bytes(*limit - std::min(*limit, used)));
    }
    const std::size_t slash = path.rfind('/');
    if (path.size() <= 1 || slash == std::string::npos) return;
    path.resize(std::max<std::size_t>(slash, 1));
  }
}

Bytes target_of(const MemoryOutlook& outlook) noexcept {
  const Bytes share = outlook.resident + Bytes(outlook.available.count() / 5 * 4);
  if (outlook.cgroup_limit >= kUnlimitedBytes) return share;
  return std::min(share, outlook.cgroup_limit - std::min(outlook.cgroup_limit, kCgroupSlack));
}

MemoryOutlook read_outlook(const std::string& root) {
  MemoryOutlook outlook;
  outlook.resident = engine::read_process_memory().resident;
  const auto available = number_after(text_of(root + "/proc/meminfo"), "MemAvailable");
  outlook.available = available ? Bytes(*available * 1024) : kUnlimitedBytes;
  const std::string cgroups = text_of(root + "/proc/self/cgroup");
  for (std::size_t line = 0; line < cgroups.size();) {
    const std::size_t end = std::min(cgroups.find('\n', line), cgroups.size());
    const std::string entry = cgroups.substr(line, end - line);  // number:controllers:path
    const std::size_t path = entry.find('/');
    if (path != std::string::npos && entry.find(":memory:") != std::string::npos) {
      apply_cgroups(root, kVersion1, entry.substr(path), outlook);
    } else if (path != std::string::npos && entry.starts_with("0::")) {
      apply_cgroups(root, kUnified, entry.substr(path), outlook);
    }
    line = end + 1;
  }
  // some avg10=0.00 avg60=...: percent
  const std::string pressure = text_of(root + "/proc/pressure/memory");
  const std::size_t average = pressure.find("some avg10=");
  if (average != std::string::npos) {
    double percent = 0;
    const char* const begin = pressure.data() + average + 11;
    if (std::from_chars(begin, pressure.data() + pressure.size(), percent).ec == std::errc()) outlook.pressure = percent / 100;
  }
  return outlook;
}

}  // namespace

MemoryOutlook read_memory_outlook(const std::string& root) {
  const auto outlook = or_out_of_memory("memory", [&]() -> Result<MemoryOutlook> { return read_outlook(root); });
  if (outlook) return *outlook;
  // If there is not even memory to ask, there is none.
  return {.resident = engine::read_process_memory().resident, .pressure = 1};
}

Bytes first_budget(const MemoryOutlook& outlook) noexcept { return std::min(target_of(outlook), kUnlimitedBytes); }

std::optional<Bytes> changed_budget(const MemoryOutlook& outlook, Bytes current) noexcept {
  const Bytes target = first_budget(outlook);
  if (outlook.pressure >= kHighPressure) {
    const Bytes lower = Bytes(std::min(outlook.resident, current).count() / 4 * 3);
    return std::min(target, lower);
  }
  if (target < Bytes(current.count() / 8 * 7)) return target;
  if (outlook.pressure < kLowPressure && target > current + Bytes(current.count() / 4)) return target;
  return std::nullopt;
}

}  // namespace sluice

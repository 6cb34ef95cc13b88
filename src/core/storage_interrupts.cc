#include "sluice/core/storage_interrupts.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "sluice/core/affinity.h"
#include "sluice/core/cpu.h"
#include "sluice/core/file.h"

namespace sluice {
namespace {

constexpr std::uint64_t kFewInterrupts = 100;  // say nothing yet
constexpr std::size_t kMostLines = 256;        // of interrupts: machines with more have disks of many queues

/// A device's path in /sys: /devices/pci0000:00/0000:00:02.0/virtio1/block/vda, say. Empty where the file has no block device.
std::string device_of(const std::string& file, const std::string& root) {
  struct stat status;
  if (::stat(file.c_str(), &status) != 0) return {};
  const std::string link = root + "/sys/dev/block/" + std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  std::array<char, PATH_MAX> path;
  return ::realpath(link.c_str(), path.data()) == nullptr ? std::string() : path.data();
}

/// A short text: names, or a number for each of some hundred processors. Empty where there is no such file, or a longer one.
std::string text_of(const std::string& path) {
  const Result<FileDescriptor> file = open_for_reading(path);
  if (!file) return {};
  char text[1024];
  const std::int64_t length = system_file_ops().pread(file->get(), text, sizeof text, 0);
  const bool whole = length > 0 && static_cast<std::size_t>(length) < sizeof text;
  return whole ? std::string(text, static_cast<std::size_t>(length)) : std::string();
}

/// Whether reads of the device end in one queue, so that one line speaks for all. A partition lies below its disk.
bool has_one_queue(const std::string& device) {
  const auto is_there = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  for (const std::string& disk : {device, device.substr(0, device.rfind('/'))})
    if (is_there(disk + "/mq/0")) return !is_there(disk + "/mq/1");
  return false;
}

/// Drivers name a line after their device and its queue: virtio1-req.0, nvme0q1, mmc0. So it is the device's own if it begins with a
/// component of the device's path that ends in a digit, and that number ends there.
bool names_device(std::string_view line, std::string_view device) noexcept {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (!device.empty()) {
    const std::size_t end = std::min(device.find('/'), device.size());
    const std::string_view component = device.substr(0, end);
    device.remove_prefix(std::min(end + 1, device.size()));
    if (component.empty() || is_digit(component.front()) || !is_digit(component.back()) || !line.starts_with(component)) continue;
    if (line.size() == component.size() || !is_digit(line[component.size()])) return true;
  }
  return false;
}

/// A line may serve several devices: "mmc1,mmc0".
bool belongs_to(std::string_view actions, std::string_view device) noexcept {
  while (!actions.empty()) {
    const std::size_t end = std::min(actions.find(','), actions.size());
    if (names_device(actions.substr(0, end), device)) return true;
    actions.remove_prefix(std::min(end + 1, actions.size()));
  }
  return false;
}

/// Adds "12,0,345" to `counts`, a number for each processor.
void add_counts(std::string_view text, std::vector<std::uint64_t>& counts) {
  std::size_t cpu = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    std::uint64_t count = 0;
    std::from_chars(text.data(), text.data() + end, count);
    if (cpu == counts.size()) counts.push_back(0);
    counts[cpu++] += count;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

}  // namespace

std::optional<int> interrupted_by_reads(const std::string& file, const std::string& root) {
  const std::string device = device_of(file, root);
  const std::string lines = root + "/sys/kernel/irq";
  const std::unique_ptr<DIR, CloseDirectory> directory(device.empty() || !has_one_queue(device) ? nullptr : ::opendir(lines.c_str()));
  if (directory == nullptr) return std::nullopt;
  std::vector<std::uint64_t> counts;
  std::size_t seen = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] == '.') continue;
    if (++seen > kMostLines) return std::nullopt;
    const std::string line = lines + "/" + entry->d_name;
    if (belongs_to(text_of(line + "/actions"), device)) add_counts(text_of(line + "/per_cpu_count"), counts);
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) sum += count;
  const auto most = std::max_element(counts.begin(), counts.end());
  if (sum < kFewInterrupts || *most < sum - sum / 10) return std::nullopt;
  return static_cast<int>(most - counts.begin());
}

std::vector<int> processors_to_load_on(const std::string& file, int threads, const std::vector<int>& compute_cpus) {
  std::vector<int> small = read_cpu_kinds().small;
  if (!small.empty()) return small;
  if (threads >= processor_count()) return {};
  const std::optional<int> cpu = interrupted_by_reads(file);
  const std::vector<int> allowed = other_processors(compute_cpus);
  return cpu && std::find(allowed.begin(), allowed.end(), *cpu) != allowed.end() ? std::vector{*cpu} : std::vector<int>();
}

}  // namespace sluice

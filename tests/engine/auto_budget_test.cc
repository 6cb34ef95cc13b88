#include "sluice/engine/auto_budget.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace sluice {
namespace {

using namespace literals;

/// A tree of files such as /proc and /sys, removed at the end.
class FakeRoot {
 public:
  FakeRoot() : path_("auto_budget_test." + std::to_string(getpid()) + ".tmp") {}
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + file).parent_path());
    std::ofstream(path_ + file) << text;
  }
  const std::string& str() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("the outlook is the least of the system's and of every cgroup's") {
  const FakeRoot root;
  CHECK(read_memory_outlook(root.str()).available == kUnlimitedBytes);
  CHECK(read_memory_outlook(root.str()).resident > 1_MiB);
  root.write("/proc/meminfo", "MemTotal:       8000000 kB\nMemFree:  100 kB\nMemAvailable:    4000000 kB\n");
  CHECK(read_memory_outlook(root.str()).available == Bytes(4000000ull * 1024));
  root.write("/proc/pressure/memory", "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  CHECK(read_memory_outlook(root.str()).pressure == Approx(0.125));
  SECTION("version 2, with a limit above the process's own group") {
    root.write("/proc/self/cgroup", "0::/user/app\n");
    root.write("/sys/fs/cgroup/user/app/memory.max", "max\n");
    root.write("/sys/fs/cgroup/user/app/memory.current", "1000\n");
    root.write("/sys/fs/cgroup/user/memory.max", "104857600\n");
    root.write("/sys/fs/cgroup/user/memory.current", "31457280\n");
    root.write("/sys/fs/cgroup/user/memory.stat", "anon 5\ninactive_anon 7\ninactive_file 10485760\n");
    CHECK(read_memory_outlook(root.str()).available == 80_MiB);
    CHECK(read_memory_outlook(root.str()).cgroup_limit == 100_MiB);
  }
  SECTION("version 1") {
    root.write("/proc/self/cgroup", "11:cpu,cpuacct:/\n4:memory:/box\n0::/\n");
    root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    root.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
    root.write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "33554432\n");
    root.write("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "3145728\n");
    CHECK(read_memory_outlook(root.str()).available == 29_MiB);
    CHECK(read_memory_outlook(root.str()).cgroup_limit == 32_MiB);
  }
}

TEST_CASE("a process takes four fifths of what is free, and never all of its cgroup") {
  CHECK(first_budget({.resident = 10_MiB, .available = 100_MiB}) == 90_MiB);
  CHECK(first_budget({.resident = 10_MiB, .available = 50_MiB, .cgroup_limit = 40_MiB}) == 36_MiB);
  CHECK(first_budget({.resident = 1_MiB, .available = 0_MiB, .cgroup_limit = 2_MiB}) == 0_MiB);
  CHECK(first_budget({.available = kUnlimitedBytes}) <= kUnlimitedBytes);
}

TEST_CASE("a budget gives way at once and grows only into plain room") {
  const auto outlook = [](Bytes available, double pressure = 0) {
    return MemoryOutlook{.resident = 100_MiB, .available = available, .pressure = pressure};
  };
  CHECK_FALSE(changed_budget(outlook(20_MiB), 116_MiB));
  CHECK_FALSE(changed_budget(outlook(20_MiB), 125_MiB));            // a little less: stay
  CHECK(changed_budget(outlook(20_MiB), 160_MiB) == 116_MiB);       // much less: follow
  CHECK_FALSE(changed_budget(outlook(20_MiB), 100_MiB));            // a little more: stay
  CHECK(changed_budget(outlook(100_MiB), 100_MiB) == 180_MiB);      // much more: follow
  CHECK_FALSE(changed_budget(outlook(100_MiB, 0.05), 100_MiB));     // but not while others wait
  CHECK(changed_budget(outlook(100_MiB, 0.2), 100_MiB) == 75_MiB);  // and less when they wait much
}

}  // namespace sluice

#include "sluice/core/affinity.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>

#include "sluice/core/native_thread.h"
#include "tests/core/temporary_files.h"

namespace sluice {
namespace {

cpu_set_t allowed() {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  return set;
}

int first_allowed() {
  const cpu_set_t set = allowed();
  int cpu = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(cpu), &set)) ++cpu;
  return cpu;
}

}  // namespace

TEST_CASE("a thread is limited within the scope, threads that it starts there stay so") {
  const cpu_set_t before = allowed();
  const int cpu = first_allowed();
  cpu_set_t inherited{};
  NativeThread thread;
  {
    const ScopedAffinity scope(std::array{cpu});
    REQUIRE(scope.status());
    const auto main = [](void* set) noexcept { sched_getaffinity(0, sizeof(cpu_set_t), static_cast<cpu_set_t*>(set)); };
    REQUIRE(thread.start("test", 65536, main, &inherited));
    thread.join();
    const cpu_set_t now = allowed();
    CHECK(CPU_COUNT(&now) == 1);
  }
  CHECK(CPU_COUNT(&inherited) == 1);
  CHECK(CPU_ISSET(static_cast<std::size_t>(cpu), &inherited));
  const cpu_set_t after = allowed();
  CHECK(CPU_EQUAL(&before, &after));
}

TEST_CASE("a thread runs on the processors that it was given, or anywhere where they are not to be had") {
  const cpu_set_t before = allowed();
  const auto processors_of_thread = [](int cpu) {
    struct Start {
      std::atomic<bool> placed{false};
      int count = 0;
    } start;
    NativeThread thread;
    const auto main = [](void* context) noexcept {
      Start& s = *static_cast<Start*>(context);
      while (!s.placed) sched_yield();
      cpu_set_t set;
      if (sched_getaffinity(0, sizeof set, &set) == 0) s.count = CPU_COUNT(&set);
    };
    REQUIRE(thread.start("test", 65536, main, &start, std::array{cpu}));
    start.placed = true;
    thread.join();
    return start.count;
  };
  CHECK(processors_of_thread(first_allowed()) == 1);
  CHECK(processors_of_thread(CPU_SETSIZE - 1) == CPU_COUNT(&before));
  const cpu_set_t after = allowed();
  CHECK(CPU_EQUAL(&before, &after));
}

TEST_CASE("no list limits nothing, an impossible one is refused") {
  const cpu_set_t before = allowed();
  {
    const ScopedAffinity none({});
    CHECK(none.status());
    const ScopedAffinity absent(std::array{CPU_SETSIZE - 1});
    CHECK_FALSE(absent.status());
    const ScopedAffinity nonsense(std::array{-1});
    CHECK_FALSE(nonsense.status());
    const cpu_set_t now = allowed();
    CHECK(CPU_EQUAL(&before, &now));
  }
}

TEST_CASE("other processors are the allowed ones without those that are named") {
  const int cpu = first_allowed();
  const cpu_set_t before = allowed();
  const auto count = static_cast<std::size_t>(CPU_COUNT(&before));
  CHECK(other_processors({}).size() == count);
  const std::vector<int> others = other_processors(std::array{cpu});
  CHECK(others.size() == count - 1);
  CHECK(std::find(others.begin(), others.end(), cpu) == others.end());
  const ScopedAffinity scope(std::array{cpu});
  CHECK(other_processors({}) == std::vector{cpu});
  CHECK(other_processors(std::array{cpu}).empty());
}

TEST_CASE("processors of less than the highest capacity are small") {
  const TemporaryDirectory directory;
  const auto cpu = [&](int number, const std::string& capacity) {
    const std::string place = directory.file("sys/devices/system/cpu/cpu" + std::to_string(number));
    std::filesystem::create_directories(place);
    write_text(place + "/cpu_capacity", capacity + "\n");
  };
  CHECK(read_cpu_kinds(directory.file("")).big.empty());
  cpu(0, "446");
  cpu(1, "446");
  CHECK(read_cpu_kinds(directory.file("")).big == std::vector{0, 1});
  CHECK(read_cpu_kinds(directory.file("")).small.empty());
  CHECK(processors_to_compute_on(1, directory.file("")).empty());
  cpu(2, "871");
  cpu(3, "1024");
  const CpuKinds kinds = read_cpu_kinds(directory.file(""));
  CHECK(kinds.big == std::vector{3});
  CHECK(kinds.small == std::vector{0, 1, 2});
  CHECK(processors_to_compute_on(1, directory.file("")) == std::vector{3});
  CHECK(processors_to_compute_on(2, directory.file("")).empty());  // more threads than big processors: anywhere
}

}  // namespace sluice

// The cost of decisions, counted: no allocation, and no more cells than allowed. Times are the benchmark's (sluice-bench-scheduler
// decisions).
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "tests/scheduler/small_instances.h"

namespace {
std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}
}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace sluice::scheduler {
namespace {

/// 32 jobs of 64 units on 5 processors, in a closed loop: each job that ends is followed by the next.
struct FullHouse {
  FullHouse()
      : instance(random_instance(
            11, {.least_jobs = 32, .most_jobs = 32, .least_processors = 5, .most_processors = 5, .least_units = 64, .most_units = 64})) {}

  std::int64_t run(const Policy& p, int decisions_to_make) {
    Profile profile(instance.device, instance.models);
    Board board(instance.device, profile, {.jobs = 32});
    PolicyMemory memory(board.state());
    Decisions decisions(most_decisions(board.state()));
    const std::int64_t before = allocations.load();
    std::size_t next = 0;
    for (int i = 0; i < decisions_to_make; ++i) {
      while (board.state().live.size() < 32) board.submit({ModelId(next++ % instance.models.size()), board.state().now + 20 * kSecond});
      const std::uint64_t cells = memory.cells, plans = memory.plans;
      decisions.clear();
      p.decide(board.state(), memory, decisions);
      (memory.plans > plans ? most_full : most_incremental) =
          std::max(memory.plans > plans ? most_full : most_incremental, memory.cells - cells);
      full += memory.plans > plans;
      board.apply(decisions.all());
      std::size_t first = 0;
      for (std::size_t q = 0; q < instance.device.count(); ++q) {
        const ProcessorState& candidate = board.state().processors[q];
        if (candidate.busy &&
            (!board.state().processors[first].busy || candidate.expected_end < board.state().processors[first].expected_end))
          first = q;
      }
      if (!board.state().processors[first].busy) break;
      board.set_now(board.state().processors[first].expected_end);
      board.finished(ProcessorId(first));
      board.forget_ended();
    }
    return allocations.load() - before;
  }

  Instance instance;
  std::uint64_t most_full = 0, most_incremental = 0;
  int full = 0;
};

TEST_CASE("no policy allocates when it decides") {
  for (const Policy& p : kPolicies) {
    FullHouse house;
    CHECK(house.run(p, 60) == 0);
  }
}

TEST_CASE("a full decision keeps to its cells, an incremental one of ours takes none, and most are incremental") {
  FullHouse house;
  house.run(policy("sluice"), 400);
  const std::uint64_t one_draft = 32 * 64 * 5;
  CHECK(house.most_full > one_draft);
  CHECK(house.most_full <= SearchParameters{}.cells + 5 * one_draft);  // the drafts that it begins with, the last one, and the plan itself
  CHECK(house.most_incremental == 0);
  CHECK(house.full < 100);
}

TEST_CASE("the programme of the published policies takes n p^2 cells a job") {
  FullHouse house;
  house.run(policy("heft"), 1);
  CHECK(house.most_incremental <= 32 * 33 / 2 * 64 * 25);
}

}  // namespace
}  // namespace sluice::scheduler

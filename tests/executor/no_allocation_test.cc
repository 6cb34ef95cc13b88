// E1: a run allocates nothing. This program's operators new count.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <new>

#include "sluice/executor/executor.h"
#include "tests/executor/memory_source.h"
#include "tests/executor/toy.h"

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

namespace sluice::executor {

TEST_CASE("a thousand runs allocate nothing, failed ones neither") {
  const toy::ToyModel model = toy::make_toy_model({});
  const plan::Plan plan = toy::make_toy_plan(model, {.threads = 2});
  toy::MemorySource source(model.file);
  auto arena = Arena::reserve(plan.arena_bytes);
  REQUIRE(arena);
  REQUIRE(arena->commit(plan.arena_bytes));
  auto pool = make_thread_pool(2);
  REQUIRE(pool);
  std::int64_t told = 0;
  const StepHook hook{[](void* count, const StepEvent&) noexcept { ++*static_cast<std::int64_t*>(count); }, &told};
  auto executor =
      Executor::create(model.graph, plan, source, *arena, **pool, {.time_steps = true, .before_step = hook, .after_step = hook});
  REQUIRE(executor);
  std::memcpy((*executor)->input(0).data, model.input.data(), model.input.size() * sizeof(float));
  source.fail_at = 1000;
  int failed = 0;
  const std::int64_t before = allocations.load();
  REQUIRE(before > 0);
  for (int run = 0; run < 1000; ++run) failed += !(*executor)->run();
  CHECK(allocations.load() == before);
  CHECK(failed == 1);
  CHECK(told > static_cast<std::int64_t>(1000 * plan.steps.size()));
}

}  // namespace sluice::executor

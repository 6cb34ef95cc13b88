// A toy model, a plan for it and all that an executor needs.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>

#include "sluice/executor/executor.h"
#include "tests/executor/memory_source.h"
#include "tests/executor/toy.h"

namespace sluice::toy {

using executor::Executor;
using executor::ExecutorOptions;

struct Bench {
  explicit Bench(const toy::ToyPlanOptions& plan_options = {}, const toy::ToyOptions& model_options = {})
      : model(toy::make_toy_model(model_options)),
        plan(toy::make_toy_plan(model, plan_options)),
        source(model.file),
        arena(*Arena::reserve(plan.arena_bytes)),
        pool(*make_thread_pool(static_cast<int>(plan_options.threads))) {
    REQUIRE(arena.commit(plan.arena_bytes));
    toy::plant_canaries(plan, arena);
  }

  Result<std::unique_ptr<Executor>> create(ExecutorOptions options = {}) {
    options.find_kernel = &toy::find_toy_kernel;
    return Executor::create(model.graph, plan, source, arena, *pool, options);
  }
  void set_input(Executor& executor) { std::memcpy(executor.input(0).data, model.input.data(), model.input.size() * sizeof(float)); }
  bool right(Executor& executor) const {
    return std::memcmp(executor.output(0).data, model.expected.data(), model.expected.size() * sizeof(float)) == 0;
  }
  /// Output bytes that cannot be the right ones, so that a run that writes nothing is seen.
  void spoil(Executor& executor) const { std::memset(executor.output(0).data, 0xFF, model.expected.size() * sizeof(float)); }

  toy::ToyModel model;
  plan::Plan plan;
  MemorySource source;
  Arena arena;
  std::unique_ptr<ThreadPool> pool;
};

}  // namespace sluice::toy

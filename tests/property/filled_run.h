// A graph whose weights have values, and runs of plans for it: what tests compare when the same net is planned in several ways.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "sluice/core/hash.h"
#include "sluice/executor/executor.h"
#include "tests/executor/memory_source.h"
#include "tests/executor/toy.h"

namespace sluice::planner {

/// A graph with values in its file.
struct Filled {
  explicit Filled(model::Graph g) : graph(std::move(g)) {
    std::mt19937 random(5);
    std::uniform_real_distribution<float> real(-0.25f, 0.25f);
    const model::Stretch& last = graph.stretches.back();
    file.resize(align_up((last.offset + last.stored_size).count(), 4096));
    for (std::size_t i = 0; i < file.size(); i += sizeof(float)) {
      const float value = real(random);
      std::memcpy(file.data() + i, &value, sizeof value);
    }
    for (model::Stretch& s : graph.stretches) s.xxh3 = xxh3_64({file.data() + s.offset.count(), s.stored_size.count()});
  }

  model::Graph graph;
  std::vector<std::byte> file;
};

/// The output of one run of the plan, and of one more.
inline std::vector<std::byte> run(const Filled& model, const plan::Plan& plan, int threads) {
  toy::MemorySource source(model.file);
  Arena arena = *Arena::reserve(plan.arena_bytes);
  REQUIRE(arena.commit(plan.arena_bytes));
  toy::plant_canaries(plan, arena);
  const auto pool = *make_thread_pool(threads);
  auto executor = executor::Executor::create(model.graph, plan, source, arena, *pool, {});
  INFO((executor ? std::string() : executor.error().to_string()));
  REQUIRE(executor.has_value());
  std::vector<std::byte> outputs;
  for (int turn = 0; turn < 2; ++turn) {
    const RowView in = (*executor)->input(0);
    float value = 1;
    for (std::int64_t row = 0; row < in.rows; ++row)
      for (std::int64_t pixel = 0; pixel < in.pixels; ++pixel)
        for (std::int64_t c = 0; c < in.channels; ++c) in.at<float>(row, pixel)[c] = value = value < 0 ? value + 1.37f : value - 1.07f;
    REQUIRE((*executor)->run().has_value());
    const RowView out = (*executor)->output(0);
    for (std::int64_t row = 0; row < out.rows; ++row)
      for (std::int64_t pixel = 0; pixel < out.pixels; ++pixel) {
        const auto* from = reinterpret_cast<const std::byte*>(out.at<float>(row, pixel));
        outputs.insert(outputs.end(), from, from + out.channels * static_cast<std::int64_t>(sizeof(float)));
      }
  }
  CHECK(toy::touched_canaries(plan, arena) == 0);
  return outputs;
}

}  // namespace sluice::planner

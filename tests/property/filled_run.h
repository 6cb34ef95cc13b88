// A graph whose weights have values, and runs of plans for it: what tests compare when the same net is planned in several ways.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "sluice/core/hash.h"
#include "sluice/executor/executor.h"
#include "sluice/plan/passing.h"
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

/// The first output of a graph, put together from the blocks that steps hand over.
class TakenOutput {
 public:
  explicit TakenOutput(const model::Graph& graph)
      : tensor_(graph.tensor(graph.outputs[0].tensor)), values_(static_cast<std::size_t>(tensor_.bytes().count())) {}

  static Status take(void* self, const executor::MadeBlock& block) noexcept {
    const RowView to = static_cast<TakenOutput*>(self)->view();
    const auto size = static_cast<std::int64_t>(size_of(to.dtype));
    for (std::int64_t row = block.rows.begin; row < block.rows.end; ++row)
      for (std::int64_t pixel = 0; pixel < to.pixels; ++pixel)
        std::memcpy(to.row(row) + pixel * to.pixel_pitch + block.channels.begin * size,
                    block.view.row(row) + pixel * block.view.pixel_pitch + block.channels.begin * size,
                    static_cast<std::size_t>(block.channels.size() * size));
    return {};
  }
  RowView view() noexcept { return dense_view(values_.data(), tensor_.shape, tensor_.dtype); }

 private:
  const model::Tensor& tensor_;
  std::vector<std::byte> values_;
};

/// The output of one run of the plan, and of one more.
inline std::vector<std::byte> run(const Filled& model, const plan::Plan& plan, int threads) {
  toy::MemorySource source(model.file);
  Arena arena = *Arena::reserve(plan.arena_bytes);
  REQUIRE(arena.commit(plan.arena_bytes));
  toy::plant_canaries(plan, arena);
  const auto pool = *make_thread_pool(threads);
  std::optional<executor::ScratchFile> scratch;
  if (const Bytes spilled = plan::scratch_bytes(plan, model.graph); spilled > Bytes())
    scratch = *executor::ScratchFile::create(std::filesystem::temp_directory_path().string(), spilled);
  TakenOutput taken(model.graph);
  auto executor = executor::Executor::create(model.graph, plan, source, arena, *pool,
                                             {.outputs = {&TakenOutput::take, &taken}, .scratch = scratch ? &*scratch : nullptr});
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
    RowView out = (*executor)->output(0);
    if (out.data == nullptr) out = taken.view();
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

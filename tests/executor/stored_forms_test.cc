// The decode slot of both readers: a stored form that they do not know expands on its way, and only the table of decoders says so.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "sluice/executor/executor.h"
#include "src/executor/step_reader.h"
#include "tests/executor/coded_stretches.h"
#include "tests/executor/memory_source.h"
#include "tests/executor/toy.h"

namespace sluice::executor {
namespace {

using toy::MemorySource;

/// Stores the weights of a toy model anew, each from a block on: two stretches of three in halves. What is always resident stays as it is.
void code_weights(toy::ToyModel& model) {
  std::vector<std::byte> file(
      model.file.begin(), model.file.begin() + static_cast<std::ptrdiff_t>(
                                                   align_down(model.graph.weights[model.graph.nodes.size()].offset.count(), toy::kBlock)));
  for (model::Weight& weight : model.graph.weights) {
    if (weight.always_resident) continue;
    file.resize(align_up(file.size(), toy::kBlock));
    weight.offset = Bytes(file.size());
    for (std::uint32_t s = weight.first_stretch; s < weight.first_stretch + weight.stretch_count; ++s) {
      model::Stretch& stretch = model.graph.stretches[s];
      const std::span raw(model.file.data() + stretch.offset.count(), stretch.raw_size.count());
      stretch = toy::append_stretch(file, raw, s % 3 != 0);
    }
  }
  file.resize(align_up(file.size(), toy::kBlock));
  model.file = std::move(file);
}

/// A plan of one load for each weight, whose regions are those of coded stretches and lie behind the arena of the plain plan.
plan::Plan plan_coded(const toy::ToyModel& model, int slots) {
  plan::Plan plan = toy::make_toy_plan(model, {.panels_per_step = 6, .slots = slots});
  for (plan::Load& load : plan.loads) {
    if (load.resident) continue;
    const std::span stretches = std::span(model.graph.stretches).subspan(load.first_stretch, load.stretch_count);
    load.file.offset = stretches.front().offset;
    load.file.size = Bytes(align_up((stretches.back().offset + stretches.back().stored_size).count(), toy::kBlock)) - load.file.offset;
    Bytes raw;
    for (const model::Stretch& stretch : stretches) raw += stretch.raw_size;
    plan::Buffer& target = plan.buffers[load.target.index()];
    target.size = std::max(target.size, region_bytes(load.file, raw, false));
  }
  std::uint64_t top = 0;
  for (plan::Buffer& buffer : plan.buffers) {
    buffer.offset = Bytes(align_up(top, toy::kBlock));
    top = (buffer.offset + buffer.size).count() + toy::kBlock;
  }
  plan.arena_bytes = plan.capacity = Bytes(top);
  return plan;
}

toy::ToyModel coarse_model(bool coded) {
  toy::ToyModel model = toy::make_toy_model({.widths = {64, 80, 96, 48, 10}, .coarse = true});
  model.file.resize(align_up(model.file.size(), toy::kBlock));  // as model files end
  if (coded) code_weights(model);
  return model;
}

}  // namespace

TEST_CASE("a loader brings weights of a form that it does not know, whatever the size of its reads and their order") {
  const toy::ToyModel model = coarse_model(true);
  REQUIRE(model.file.size() < coarse_model(false).file.size());
  for (const int slots : {1, 2, 4}) {
    for (const int in_flight : {1, 4}) {
      for (const std::uint64_t piece : {1, 3, 128}) {
        CAPTURE(slots, in_flight, piece);
        const plan::Plan plan = plan_coded(model, slots);
        MemorySource source(model.file);
        source.max_delay_us = 50;
        Arena arena = *Arena::reserve(plan.arena_bytes);
        REQUIRE(arena.commit(plan.arena_bytes));
        toy::plant_canaries(plan, arena);
        const auto pool = *make_thread_pool(1);
        const auto executor = Executor::create(
            model.graph, plan, source, arena, *pool,
            {.read = {.size = Bytes(piece * toy::kBlock), .in_flight = in_flight}, .make_decoders = &toy::make_halves_decoders});
        REQUIRE(executor);
        std::memcpy((*executor)->input(0).data, model.input.data(), model.input.size() * sizeof(float));
        for (int run = 0; run < 3; ++run) {
          REQUIRE((*executor)->run());
          CHECK(std::memcmp((*executor)->output(0).data, model.expected.data(), model.expected.size() * sizeof(float)) == 0);
        }
        CHECK(toy::touched_canaries(plan, arena) == 0);
      }
    }
  }
}

TEST_CASE("a form without a decoder ends the run with an error") {
  const toy::ToyModel model = coarse_model(true);
  const plan::Plan plan = plan_coded(model, 2);
  MemorySource source(model.file);
  Arena arena = *Arena::reserve(plan.arena_bytes);
  REQUIRE(arena.commit(plan.arena_bytes));
  const auto pool = *make_thread_pool(1);
  const auto executor = Executor::create(model.graph, plan, source, arena, *pool, {});
  REQUIRE(executor);
  const Status refused = (*executor)->run();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
}

TEST_CASE("a step reads weights of a form that its reader does not know") {
  const toy::ToyModel plain = coarse_model(false);
  for (const bool coded : {false, true}) {
    const toy::ToyModel model = coarse_model(coded);
    for (const std::uint64_t blocks : {8, 16, 64}) {
      CAPTURE(coded, blocks);
      MemorySource source(model.file);
      std::atomic<bool> cancelled = false;
      Arena arena = *Arena::reserve(Bytes(blocks * toy::kBlock));
      REQUIRE(arena.commit(Bytes(blocks * toy::kBlock)));
      StepReader reader(model.graph, source, {}, &toy::make_halves_decoders, cancelled);
      REQUIRE(reader.start({}));
      REQUIRE(reader.ready());
      std::vector<kernels::WeightOperand> weights;
      std::vector<WeightId> ids;
      const std::size_t layers = model.graph.nodes.size();
      for (std::size_t i = layers; i < 2 * layers; ++i) {
        weights.push_back({nullptr, {0, model.graph.weights[i].panels}, model.graph.weights[i].panel_bytes});
        ids.push_back(WeightId(i));
      }
      reader.begin(ids, weights, {arena.data(), blocks * toy::kBlock});
      for (int turn = 0; turn < 2; ++turn) {
        for (std::size_t w = 0; w < weights.size(); ++w) {
          const model::Weight& weight = model.graph.weight(ids[w]);
          const std::byte* const expected = plain.file.data() + plain.graph.weights[layers + w].offset.count();
          for (std::int64_t panel = 0; panel < weight.panels;) {
            const kernels::WeightPiece piece = reader.take(w, panel);
            if (piece.data == nullptr) FAIL(reader.end().error().to_string());
            REQUIRE(piece.panels.begin == panel);
            REQUIRE(piece.panels.end > panel);
            if (piece.panels.end < weight.panels) reader.expect(w, piece.panels.end);
            const auto bytes = weight.panel_bytes.count() * static_cast<std::uint64_t>(piece.panels.end - panel);
            CHECK(std::memcmp(piece.data, expected + weight.panel_bytes.count() * static_cast<std::uint64_t>(panel), bytes) == 0);
            panel = piece.panels.end;
          }
        }
      }
      REQUIRE(reader.end());
      CHECK(reader.take_bytes_read() > Bytes());
    }
  }
}

}  // namespace sluice::executor

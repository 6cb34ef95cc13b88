// Runs plans whose sums are cut into parts: the same bits as whole, for every cut, number of threads and kernel, through plan files too.
#include <catch2/catch.hpp>

#include "sluice/kernels/reference.h"
#include "sluice/plan/plan_file.h"
#include "sluice/planner/planner.h"
#include "tests/executor/toy_file.h"
#include "tests/planner/nets.h"
#include "tests/property/cut_sums.h"
#include "tests/property/filled_run.h"
#include "tests/property/forced_bands.h"

namespace sluice::planner {
namespace {

/// 1x1 convolutions with and without stride, residuals in place, dense layers, and others between them whose sums stay whole.
model::Graph image_net() {
  NetBuilder net("image");
  TensorId x = net.conv(net.input({1, 14, 13, 3}), {.channels = 24, .kernel = 3});
  TensorId y = net.conv(x, {.channels = 70});
  y = net.conv(y, {.channels = 70, .kernel = 3, .groups = 70});
  x = net.conv(y, {.channels = 24, .residual = x});
  x = net.relu(net.conv(x, {.channels = 96, .stride = 2}));
  x = net.conv(net.conv(x, {.channels = 40, .kernel = 3}), {.channels = 96, .residual = x});
  net.output(net.dense(net.reshape(x, {1, net.shape(x).element_count()}), 10));
  return net.finish();
}

model::Graph row_net() {
  NetBuilder net("rows");
  const TensorId x = net.relu(net.input({1, 21, 96}));
  net.output(net.binary(net.dense(net.dense(net.dense(x, 384), 400), 96), x));
  return net.finish();
}

Bytes file_size(const model::Graph& graph) {
  const model::Stretch& last = graph.stretches.back();
  return align_up(last.offset + last.stored_size, 4096);
}

/// Cuts, verifies, writes, reads and runs.
void check_cut(const Filled& model, const plan::Plan& plan, const plan::SumCuts& cuts, int threads,
               const std::vector<std::byte>& expected) {
  const plan::Plan cut = plan::cut_sums(plan, model.graph, cuts);
  INFO(plan.steps.size() << " steps in " << cut.steps.size() << " parts, " << threads << " threads");
  REQUIRE(cut.steps.size() > plan.steps.size());
  const toy::TemporaryPath path{"parts_run_test.plan"};
  REQUIRE(plan::save_plan(cut, path.str()));
  const auto loaded = plan::load_plan(path.str());
  REQUIRE(loaded);
  const Status proven = plan::verify(*loaded, model.graph, {file_size(model.graph), cut.model_hash, kernels::kReadTail});
  INFO((proven ? std::string() : proven.error().to_string()));
  REQUIRE(proven);
  for (const auto loads : {plan::PlanMachine::Loads::kEarly, plan::PlanMachine::Loads::kLate})
    REQUIRE(plan::PlanMachine(*loaded, model.graph, loads).run(2) == "");
  CHECK(run(model, *loaded, threads) == expected);
}

std::vector<plan::SumCuts> some_cuts() {
  return {{.at = {1}}, {.at = {16, 32, 48, 64, 300}}, {.at = {3, 4, 23, 39, 95}}, {.at = {20, 70}, .reload = true}};
}

plan::Plan plan_for(const model::Graph& graph, Bytes capacity, int threads) {
  const PlanRequest request{.capacity = capacity, .threads = threads, .repeat = true};
  auto plan = make_plan(graph, {}, request);
  REQUIRE(plan);
  return *plan;
}

void check_same_bits(const model::Graph& graph) {
  INFO(graph.name);
  const Filled model(graph);
  std::vector<std::byte> expected;
  for (const int threads : {1, 2}) {
    const ForcedBands bands(model.graph, threads);
    const plan::Plan whole = bands.plan({}, 1 << 20);
    const std::vector<std::byte> bits = run(model, whole, threads);
    if (expected.empty()) expected = bits;
    REQUIRE(bits == expected);
    const std::vector<Banded> chains = bands.chains(0, 6, 3);
    REQUIRE(!chains.empty());
    for (const plan::SumCuts& cuts : some_cuts()) {
      check_cut(model, whole, cuts, threads, expected);
      check_cut(model, bands.plan({}, 1), cuts, threads, expected);  // slices of a panel
      check_cut(model, bands.plan(chains, 1), cuts, threads, expected);
    }
  }
}

}  // namespace

TEST_CASE("parts of sums give the bits of whole sums, in slices and bands too") {
  check_same_bits(image_net());
  check_same_bits(row_net());
}

TEST_CASE("parts of sums in plans that keep weights, stream them ahead and wrap") {
  const Filled model(row_net());
  const PlanRequest request{.repeat = true};
  const Bytes least = *minimum_capacity(model.graph, {}, request);
  const std::vector<std::byte> expected = run(model, plan_for(model.graph, kUnlimitedBytes, 1), 1);
  std::size_t kept = 0, wrapped = 0;
  for (const int threads : {1, 2})
    for (const std::uint64_t more : {0, 100 << 10, 400 << 10, 800 << 10}) {
      const plan::Plan plan = plan_for(model.graph, least + Bytes(more), threads);
      for (const plan::Load& load : plan.loads) {
        kept += load.resident ? 1 : 0;
        wrapped += load.gate < 0 ? 1 : 0;
      }
      for (const plan::SumCuts& cuts : some_cuts()) check_cut(model, plan, cuts, threads, expected);
    }
  CHECK(kept > 0);
  CHECK(wrapped > 0);
}

TEST_CASE("chains of several slices take turns, part by part") {
  for (const model::Graph& graph : {image_net(), row_net()}) {
    const Filled model(graph);
    plan::Plan plan = plan_for(model.graph, kUnlimitedBytes, 2);
    REQUIRE(plan.streamed_bytes == Bytes());
    const std::vector<std::byte> expected = run(model, plan, 2);
    // Each step of several panels in two slices: all weights are there anyway.
    std::vector<plan::Step> steps;
    std::vector<plan::WeightOperand> operands;
    std::vector<std::int64_t> begin_of;
    for (const plan::Step& step : plan.steps) {
      begin_of.push_back(static_cast<std::int64_t>(steps.size()));
      const bool cut = model::reduction_of(model.graph, model.graph.node(step.node)) > 0 && step.channels.size() > 16;
      const std::int64_t middle = step.channels.begin + 16;
      for (int half = 0; half < (cut ? 2 : 1); ++half) {
        plan::Step part = step;
        part.first_operand = static_cast<std::uint32_t>(operands.size());
        for (std::uint32_t o = 0; o < step.operand_count; ++o) operands.push_back(plan.operands[step.first_operand + o]);
        if (cut) {
          part.channels = half == 0 ? ChannelRange{step.channels.begin, middle} : ChannelRange{middle, step.channels.end};
          operands[part.first_operand].panels = model::panels_of_channels(part.channels, step.channels.end);
        }
        steps.push_back(part);
      }
    }
    begin_of.push_back(static_cast<std::int64_t>(steps.size()));
    const auto moved = [&](plan::StepRange r) {
      return plan::StepRange{begin_of[static_cast<std::size_t>(r.begin)], begin_of[static_cast<std::size_t>(r.end)]};
    };
    for (plan::Buffer& buffer : plan.buffers) buffer.lifetime = moved(buffer.lifetime);
    for (plan::Load& load : plan.loads) {
      load.uses = moved(load.uses);
      load.gate = begin_of[static_cast<std::size_t>(load.gate)];
    }
    REQUIRE(steps.size() > plan.steps.size());
    plan.steps = steps;
    plan.operands = operands;
    REQUIRE(run(model, plan, 2) == expected);
    check_cut(model, plan, {.at = {7, 20}, .in_turn = true}, 2, expected);
  }
}

TEST_CASE("the reference runs parts of sums too") {
  const Filled model(image_net());
  plan::Plan plan = ForcedBands(model.graph, 1).plan({}, 1 << 20);
  const std::vector<std::byte> expected = run(model, plan, 1);
  for (plan::Step& step : plan.steps)
    if (model::reduction_of(model.graph, model.graph.node(step.node)) > 0)
      step.kernel = kernels::reference_kernel(model.graph.node(step.node).op).id;
  for (const plan::SumCuts& cuts : some_cuts()) check_cut(model, plan, cuts, 1, expected);
}

TEST_CASE("a plan that cuts sums for a kernel without parts is refused") {
  // A 1x1 convolution with a border is for the kernel of windows.
  NetBuilder net("border");
  net.output(net.conv(net.input({1, 6, 5, 20}), {.channels = 24, .pad = 1}));
  const Filled model(net.finish());
  const plan::Plan plan = plan::cut_sums(ForcedBands(model.graph, 1).plan({}, 1 << 20), model.graph, {.at = {8}});
  REQUIRE(plan::verify(plan, model.graph, {file_size(model.graph), 0, kernels::kReadTail}));
  toy::MemorySource source(model.file);
  Arena arena = *Arena::reserve(plan.arena_bytes);
  const auto pool = *make_thread_pool(1);
  const auto refused = executor::Executor::create(model.graph, plan, source, arena, *pool, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalidPlan);
  CHECK(refused.error().to_string().find("does not take a part of its sums") != std::string::npos);
}

}  // namespace sluice::planner

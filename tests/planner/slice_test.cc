#include "sluice/planner/slice.h"

#include <catch2/catch.hpp>

#include "sluice/planner/linearise.h"
#include "sluice/planner/residency.h"
#include "tests/planner/nets.h"

namespace sluice::planner {
namespace {

struct Fixture {
  model::Graph graph;
  kernels::KernelDescriptor kernel;
  KernelChoice choice;

  explicit Fixture(NetBuilder& net) : graph(net.finish()) {
    kernel.slices_channels = true;
    choice.assign(graph.nodes.size(), &kernel);
  }
  Schedule cut(const SliceRule& rule) const { return cut_weights(graph, choice, graph_order(graph), rule); }
};

/// Every slice begins where the last one ended, on a panel and a stretch, and lies whole in its load.
void check_tiling(const Fixture& f, const Schedule& schedule) {
  std::vector<std::int64_t> next(f.graph.nodes.size(), 0);
  for (const StepSpec& step : schedule.steps) {
    CHECK(step.channels.begin == next[step.position]);
    next[step.position] = step.channels.end;
    for (std::uint32_t o = step.first_operand; o < step.first_operand + step.operand_count; ++o) {
      const OperandSpec& operand = schedule.operands[o];
      const LoadSpec& load = schedule.loads[operand.load];
      const model::FileRange bytes = model::panel_range(f.graph.weight(operand.weight), operand.panels);
      CHECK(bytes.offset >= load.payload.offset);
      CHECK(bytes.end() <= load.payload.end());
      CHECK(operand.load < step.loads_needed);
      CHECK(load.uses.contains(static_cast<std::int64_t>(&step - schedule.steps.data())));
    }
  }
  for (std::size_t n = 0; n < f.graph.nodes.size(); ++n) CHECK(next[n] == f.graph.tensor(f.graph.nodes[n].outputs[0]).shape.back());
}

TEST_CASE("a large weight becomes even slices, in pairs of panels") {
  NetBuilder net("dense");
  net.output(net.dense(net.input({1, 1024}), 224));  // 14 panels of 64 KiB, each a stretch
  const Fixture f(net);
  const Schedule schedule = f.cut({.target = 300 << 10, .ramp = false});
  REQUIRE(schedule.steps.size() == 4);
  check_tiling(f, schedule);
  for (const StepSpec& step : schedule.steps) CHECK(step.channels.size() % 32 == 0);
  for (const LoadSpec& load : schedule.loads) CHECK(load.payload.size <= Bytes(300 << 10));
}

TEST_CASE("the finest cut takes one panel where a pair does not fit") {
  NetBuilder net("dense");
  net.output(net.dense(net.input({1, 1024}), 64));
  const Fixture f(net);
  CHECK(f.cut({.target = 1}).steps.size() == 4);
  CHECK(f.cut({.target = 128 << 10, .ramp = false}).steps.size() == 2);
  check_tiling(f, f.cut({.target = 1}));
}

TEST_CASE("the first loads are small and grow") {
  NetBuilder net("dense");
  TensorId x = net.input({1, 1024});
  for (int i = 0; i < 6; ++i) x = net.dense(x, 1024);  // 4 MiB each
  net.output(x);
  const Fixture f(net);
  const Schedule schedule = f.cut({.target = 4 << 20});
  check_tiling(f, schedule);
  std::uint64_t largest = 0;
  for (const LoadSpec& load : schedule.loads) {
    if (load.resident) continue;
    if (largest == 0) CHECK(load.payload.size <= Bytes(kFirstLoadBytes));
    largest = std::max(largest, load.payload.size.count());
  }
  CHECK(largest == 4 << 20);
}

TEST_CASE("small weights share a load, and a kernel that cuts no channels reads its weight whole") {
  NetBuilder net("convs");
  TensorId x = net.input({1, 8, 8, 64});
  for (int i = 0; i < 6; ++i) x = net.conv(x, {.channels = 64});  // 16 KiB each
  net.output(net.conv(x, {.channels = 256, .kernel = 3}));        // 576 KiB
  Fixture f(net);
  const Schedule schedule = f.cut({.target = 64 << 10, .ramp = false});
  check_tiling(f, schedule);
  std::size_t streamed = 0;
  for (const LoadSpec& load : schedule.loads) streamed += load.resident ? 0 : 1;
  CHECK(streamed == 2 + (schedule.steps.size() - 6));
  f.kernel.slices_channels = false;
  const Schedule whole = f.cut({.target = 64 << 10, .ramp = false});
  CHECK(whole.steps.size() == 7);
  check_tiling(f, whole);
}

TEST_CASE("loads keep to the room beside their node") {
  NetBuilder net("dense");
  net.output(net.dense(net.dense(net.input({1, 1024}), 1024), 1024));
  const Fixture f(net);
  const Schedule schedule = f.cut({.target = 4 << 20, .ramp = false, .room = {256 << 10, 1 << 20}});
  check_tiling(f, schedule);
  CHECK(schedule.steps_of[0].size() == 16);
  CHECK(schedule.steps_of[1].size() == 4);
}

TEST_CASE("residency keeps to its bytes") {
  NetBuilder net("dense");
  TensorId x = net.input({1, 1024});
  for (int i = 0; i < 4; ++i) x = net.dense(x, 1024);
  net.output(x);
  const Fixture f(net);
  const Schedule schedule = f.cut({.target = 1 << 20, .ramp = false});
  for (const ResidencyOrder order : {ResidencyOrder::kFront, ResidencyOrder::kEven}) {
    for (const std::uint64_t spare : {std::uint64_t{0}, std::uint64_t{5} << 20, std::uint64_t{64} << 20}) {
      const std::vector<bool> keep = choose_resident(schedule, spare, order);
      std::uint64_t kept = 0;
      std::size_t count = 0;
      for (std::size_t k = 0; k < keep.size(); ++k) {
        if (!keep[k] || schedule.loads[k].resident) continue;
        kept += schedule.loads[k].region_bytes();
        ++count;
      }
      CHECK(kept <= spare);
      if (spare >> 20 == 5) CHECK(count >= 4);
      if (spare >> 20 == 64) CHECK(count == 16);
    }
  }
}

}  // namespace
}  // namespace sluice::planner

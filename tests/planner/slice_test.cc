#include "sluice/planner/cut/slice.h"

#include <catch2/catch.hpp>

#include "sluice/planner/order/linearise.h"
#include "sluice/planner/stream/residency.h"
#include "tests/planner/nets.h"

namespace sluice::planner {
namespace {

struct Fixture {
  model::Graph graph;
  kernels::KernelDescriptor kernel;
  KernelChoice choice;

  explicit Fixture(NetBuilder& net) : graph(net.finish()) {
    kernel.slices_channels = true;
    choice = KernelChoice(graph, std::vector<const kernels::KernelDescriptor*>(graph.nodes.size(), &kernel));
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
  const Schedule schedule = f.cut({.target = 4 << 20, .ramp = false, .room = {(256 << 10) + 8192, (1 << 20) + 8192}});
  check_tiling(f, schedule);
  CHECK(schedule.steps_of[0].size() >= 16);
  CHECK(schedule.steps_of[1].size() >= 4);
  for (const LoadSpec& load : schedule.loads)
    CHECK(load.region_bytes() <= (load.uses.begin < schedule.steps_of[1].begin ? 256u << 10 : 1u << 20) + 8192);
}

TEST_CASE("kept pieces are resident loads, and what lies between them streams") {
  NetBuilder net("dense");
  TensorId x = net.input({1, 1024});
  for (int i = 0; i < 3; ++i) x = net.dense(x, 1024);                 // 4 MiB each: a piece
  x = net.dense(x, 3072);                                             // 12 MiB: three pieces
  for (int i = 0; i < 4; ++i) x = net.dense(net.dense(x, 64), 3072);  // 192 to 768 KiB: some together
  net.output(x);
  const Fixture f(net);
  const Pieces pieces = cut_pieces(f.graph, f.choice, graph_order(f.graph));
  REQUIRE(pieces.all.size() >= 8);
  CHECK(pieces.of_weight[f.graph.nodes[3].weights[0].index()].size() == 3);
  std::uint64_t bytes = 0;
  for (const Piece& piece : pieces.all) bytes += piece.payload.size.count();
  std::uint64_t weights = 0;
  for (const model::Weight& weight : f.graph.weights) weights += weight.always_resident ? 0 : weight.bytes.count();
  CHECK(bytes == weights);
  const std::vector<double> compute(f.graph.nodes.size(), 1.0);
  for (const ResidencyOrder rule : kResidencyOrders) {
    const std::vector<std::uint32_t> order = order_pieces(pieces, compute, rule);
    std::vector<bool> smaller(pieces.all.size(), false);
    for (const std::uint64_t mib : {0, 5, 9, 14, 64}) {
      const std::vector<bool> kept = keep_prefix(pieces, order, mib << 20);
      const Schedule schedule = f.cut({.target = 1 << 20, .ramp = false, .pieces = &pieces, .kept = kept});
      check_tiling(f, schedule);
      std::uint64_t resident = 0;
      std::uint64_t all = 0;
      for (const LoadSpec& load : schedule.loads) {
        all += load.piece != kNoPiece || !load.resident ? load.payload.size.count() : 0;
        if (load.piece == kNoPiece) continue;
        CHECK(load.resident);
        CHECK(kept[load.piece]);
        resident += load.region_bytes();
      }
      CHECK(resident <= mib << 20);
      CHECK(all == weights);
      for (std::size_t p = 0; p < kept.size(); ++p) CHECK((kept[p] || !smaller[p]));  // what a budget keeps a larger one keeps
      smaller = kept;
      if (mib == 64) CHECK(resident >= weights);
    }
  }
}

TEST_CASE("slices leave room for the workspace that they ask for") {
  NetBuilder net("dense");
  net.output(net.dense(net.input({1, 1024}), 1024));  // 64 panels of 64 KiB
  Fixture f(net);
  f.kernel.resolve = [](const model::Graph&, const model::Node&, Isa) noexcept { return kernels::ResolvedCall(); };
  f.kernel.workspace = [](const operators::Parameters&, const kernels::StepExtent& extent) noexcept {
    return Bytes(static_cast<std::uint64_t>(extent.channels.size()) * 4096u * 3u);  // three times the weights
  };
  const Schedule schedule = f.cut({.target = 4 << 20, .ramp = false, .room = {2u << 20}});
  check_tiling(f, schedule);
  for (const StepSpec& step : schedule.steps) CHECK(step.channels.size() * 4096 * 4 <= (2 << 20));
  CHECK(schedule.steps.size() < 16);
}

}  // namespace
}  // namespace sluice::planner

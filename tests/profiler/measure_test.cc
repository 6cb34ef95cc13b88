#include "sluice/profiler/measure.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "sluice/core/cpu.h"
#include "sluice/kernels/registry.h"
#include "src/profiler/cache_meter.h"
#include "src/profiler/sample_graph.h"
#include "src/profiler/step_timer.h"

namespace sluice::profiler {
namespace {

TEST_CASE("every layer of the built-in sample has a kernel") {
  const model::Graph graph = sample_graph();
  for (const model::Node& node : graph.nodes) {
    INFO(node.name);
    CHECK_FALSE(kernels::kernels_for(graph, node).empty());
  }
}

TEST_CASE("small steps can be timed, whole and in part") {
  const model::Graph graph = sample_graph();
  auto timer = StepTimer::create(2);
  REQUIRE(timer);
  int timed_slices = 0;
  for (const model::Node& node : graph.nodes) {
    if (graph.tensor(node.outputs[0]).bytes() > Bytes(200'000) || node.weights.empty()) continue;
    INFO(node.name);
    const kernels::KernelDescriptor& kernel = *kernels::kernels_for(graph, node).front();
    if (kernel.id >= kernels::kernel_id::kReferenceBase) continue;  // too slow for a test
    const std::int64_t channels = model::step_channels(graph, node);
    const auto step = timer->time({graph, node, kernel, KernelUse::kRun, 0.25});
    REQUIRE(step);
    REQUIRE(*step);
    CHECK((*step)->seconds > 0);
    CHECK((*step)->extent.channels.begin == 0);
    CHECK((*step)->extent.channels.end <= channels);
    timed_slices += (*step)->extent.channels.end < channels ? 1 : 0;
    if (timed_slices == 3) break;
  }
  CHECK(timed_slices == 3);
}

TEST_CASE("the device has a name") { CHECK_FALSE(device_name().empty()); }

TEST_CASE("how fast others fill shared caches is some rate, or none") {
  const std::vector<std::byte> memory(64 << 20);
  const double others = measure_others(memory);
  CHECK(others >= 0);
  CHECK(others < 1e15);
}

TEST_CASE("a profile of no thread is refused, and so is an anchor") {
  CHECK_FALSE(measure_device({.threads = 0}));
  CHECK_FALSE(time_anchor(0, 0));
}

TEST_CASE("an anchor takes some time") {
  const Result<double> seconds = time_anchor(1, 0);
  REQUIRE(seconds);
  CHECK(*seconds > 0);
}

}  // namespace
}  // namespace sluice::profiler

// Models that run in units: what one unit makes another finds where it lies, on the same processor of CPU kernels or on another.

#include <numeric>

#include "sluice/model/model_writer.h"
#include "src/scheduler/fleet.h"
#include "src/scheduler/hand_over.h"
#include "tests/planner/nets.h"
#include "tests/scheduler/real_jobs.h"

namespace sluice::scheduler {
namespace {

using namespace sluice::literals;

/// Claims every second node, so that graphs are cut, and cannot make any ready: all units fall back to the CPU processors.
class ClaimsAndFails final : public backends::Backend {
 public:
  std::string_view kind() const noexcept override { return "claims"; }
  bool same_bits() const noexcept override { return true; }
  bool supports(const model::Graph& graph, const model::Node& node) const noexcept override {
    return (&node - graph.nodes.data()) % 2 == 1;
  }
  Result<std::unique_ptr<backends::Program>> prepare(const model::Graph&, model::WeightSource&) override {
    return tl::unexpected(make_error(ErrorCode::kUnsupported, "claims", "makes nothing ready"));
  }
};

ProcessorOptions claims_and_fails() { return {.kind = ProcessorOptions::Kind::kBackend, .backend = std::make_shared<ClaimsAndFails>()}; }

const std::vector<std::int64_t> kDeep = {64, 96, 160, 32, 128, 10};

TEST_CASE("units of one job on several processors of CPU kernels hand over without a copy, with the bits of the model alone") {
  const Net a(1, kDeep), b(2, {64, 384, 48, 10});
  for (const Policy& policy : kPolicies) {
    CAPTURE(policy.name);
    const auto scheduler = make_scheduler({.budget = 16_MiB,
                                           .processors = {{}, {.compute_slowdown = 2}, claims_and_fails()},
                                           .policy = std::string(policy.name),
                                           .trace_runs = 1000},
                                          {{&a, a.options()}, {&b, b.options()}});
    REQUIRE(scheduler->units(ModelId(0)).size() > 2);
    Jobs jobs(*scheduler);
    for (int round = 0; round < 10; ++round) {
      jobs.submit(a, 0);
      jobs.submit(b, 1);
    }
    for (const JobResult& result : jobs.wait_all()) CHECK(result.outcome == Outcome::kMet);
    CHECK(jobs.all_right());
    const HandOverStatistics handed = scheduler->statistics().handed_over;
    // Two rows of floats; more where a busy machine had a run given up, whose units then ran twice.
    CHECK(handed.between_cpus >= 10 * Bytes(2 * 4 * (96 + 160 + 32 + 128 + 384 + 48)));
    CHECK(handed.copied_there == Bytes());
    CHECK(handed.others == Bytes());
  }
}

TEST_CASE("each unit on another processor than the one before: the same bits") {
  const Net net(1, kDeep);
  Fleet fleet;
  for (const ProcessorOptions& processor : {ProcessorOptions(), ProcessorOptions(), claims_and_fails()})
    REQUIRE(fleet.add_processor(processor));
  REQUIRE(fleet.add_model(net.model, net.options()));
  REQUIRE(fleet.build({.budget = 16_MiB}, 1));
  const FleetModel& model = fleet.models[0];
  REQUIRE(model.unit_ends.size() > 2);
  HandOver between(1, 0, model.between_bytes);
  ToyJob job(net);
  const JobTensors tensors = job.tensors();
  const JobMemory memory{tensors.inputs, tensors.outputs, between.bytes(0)};
  for (int run = 0; run < 3; ++run) {
    std::fill(job.output.begin(), job.output.end(), -1.0f);
    for (std::size_t u = 0; u < model.unit_ends.size(); ++u) {
      const UnitProgram& unit = model.programs[(u + static_cast<std::size_t>(run)) % 2][u];
      for (std::size_t i = 0; i < unit.inputs.size(); ++i)
        CHECK(unit.input_placed[i] == (unit.inputs[i].kind == TensorPlace::Kind::kBetween));
      REQUIRE(give_inputs(unit, memory));
      REQUIRE(unit.program->run());
      REQUIRE(take_outputs(unit, memory));
    }
    CHECK(job.right());
  }
}

/// Of a graph without weights.
class NoWeights final : public model::WeightProducer {
 public:
  Status produce(WeightId, PanelRange, std::span<std::byte>) override { return fail(ErrorCode::kInternal, "weights", "there are none"); }
};

TEST_CASE("an output of the model that another unit reads is given in its own order of axes and read in the nodes'") {
  planner::NetBuilder net("units");
  const TensorId first = net.relu(net.input({1, 2, 3, 16})), second = net.relu(first);
  net.output(first);
  net.output(second);
  model::Graph graph = net.finish();
  graph.outputs[0].perm = {0, 2, 3, 1};
  graph.outputs[0].onnx_shape = Shape{1, 16, 2, 3};
  const toy::TemporaryPath path("units_order");
  NoWeights none;
  REQUIRE(model::write_model(graph, none, path.str(), operators::validate_node, {}));
  const auto opened = sluice::Model::open(path.str());
  REQUIRE(opened);

  std::vector<float> input(96), orders[2], units[2];
  std::iota(input.begin(), input.end(), 1.0f);
  const auto session = Session::create(*opened, {});
  REQUIRE(session);
  REQUIRE((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(input))));
  REQUIRE((*session)->run());
  for (std::size_t i = 0; i < 2; ++i) {
    orders[i].resize(input.size());
    units[i].resize(input.size());
    REQUIRE((*session)->get_output(i, std::as_writable_bytes(std::span(orders[i]))));
  }
  CHECK(orders[0] != orders[1]);

  Fleet fleet;
  for (const ProcessorOptions& processor : {ProcessorOptions(), ProcessorOptions(), claims_and_fails()})
    REQUIRE(fleet.add_processor(processor));
  REQUIRE(fleet.add_model(*opened, {.name = "units"}));
  REQUIRE(fleet.build({.budget = 16_MiB}, 1));
  const FleetModel& model = fleet.models[0];
  REQUIRE(model.unit_ends.size() == 2);
  HandOver between(1, 0, model.between_bytes);
  const std::vector<std::span<const std::byte>> inputs{std::as_bytes(std::span(input))};
  const std::vector<std::span<std::byte>> outputs{std::as_writable_bytes(std::span(units[0])), std::as_writable_bytes(std::span(units[1]))};
  const JobMemory memory{inputs, outputs, between.bytes(0)};
  for (std::size_t u = 0; u < 2; ++u) {
    const UnitProgram& unit = model.programs[u][u];
    REQUIRE(give_inputs(unit, memory));
    REQUIRE(unit.program->run());
    REQUIRE(take_outputs(unit, memory));
  }
  CHECK(units[0] == orders[0]);
  CHECK(units[1] == orders[1]);
}

TEST_CASE("a run on CPU kernels that was given up writes nothing that its job still reads") {
  const Net net(1, kDeep);
  // Slowed so far, and given up so soon, that most runs of the first processor are; those of the second are too short to be.
  const auto scheduler = make_scheduler({.processors = {{.compute_slowdown = kLongSteps}, timed({100 * kMicrosecond}), claims_and_fails()},
                                         .policy = "round_robin",
                                         .overdue_factor = 0.25,
                                         .overdue_slack = 0},
                                        {{&net, net.options()}});
  Jobs jobs(*scheduler);
  for (int round = 0; round < 20; ++round) jobs.submit(net, 0);
  for (const JobResult& result : jobs.wait_all()) CHECK(result.outcome == Outcome::kMet);
  CHECK(jobs.all_right());
  CHECK(scheduler->statistics().jobs.met == 20);
}

TEST_CASE("a region that a run holds is nobody else's until the run has ended") {
  HandOver regions(2, 1, 100);
  const JobSlot slot(0), other(1);
  const std::size_t before = regions.region_of(slot);
  CHECK(regions.bytes(before).size() >= 100);
  CHECK(reinterpret_cast<std::uintptr_t>(regions.bytes(before).data()) % 64 == 0);
  CHECK(before != regions.region_of(other));
  regions.hold(before);
  CHECK(regions.leave(slot) == before);
  const std::size_t now = regions.region_of(slot);
  CHECK(now != before);
  CHECK(now != regions.region_of(other));
  regions.hold(now);
  regions.let_go(before);  // which makes it free
  CHECK(regions.leave(slot) == now);
  CHECK(regions.region_of(slot) == before);
  regions.let_go(now);
  CHECK(regions.leave(other) != before);
}

}  // namespace
}  // namespace sluice::scheduler

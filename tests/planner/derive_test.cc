#include "sluice/planner/cut/derive.h"

#include <catch2/catch.hpp>

#include "sluice/kernels/kernel.h"
#include "sluice/operators/parameters/weighted.h"
#include "sluice/plan/verify.h"
#include "sluice/planner/choose/choose.h"
#include "sluice/planner/choose/residency_orders.h"
#include "sluice/planner/choose/write_plan.h"
#include "sluice/planner/order/linearise.h"
#include "tests/planner/nets.h"
#include "tests/property/plan_machine.h"

namespace sluice::planner {
namespace {

constexpr std::uint64_t kExpansion = 4;

Bytes toy_panel_bytes(const operators::Parameters& parameters) noexcept {
  return parameters.as<operators::ConvolutionParameters>().weighted.panels.panel_bytes * kExpansion;
}
kernels::CostFeatures toy_prepare_cost(const model::Graph&, const model::Node&, const kernels::StepExtent&) noexcept {
  return {.flops = 1000};
}
/// A transform saves half of the work.
kernels::CostFeatures toy_cost(const model::Graph&, const model::Node& node, const kernels::StepExtent& extent) noexcept {
  const auto& window = node.as<model::ConvAttributes>().window;
  const auto flops = static_cast<std::uint64_t>(extent.rows.size() * extent.channels.size() * window.out_w * 1000);
  return {.flops = extent.derived ? flops / 2 : flops};
}
Bytes toy_workspace(const operators::Parameters&, const kernels::StepExtent& extent) noexcept {
  return Bytes(extent.derived ? 1024u : 8192u);
}
/// More than weights take.
Bytes hungry_workspace(const operators::Parameters& parameters, const kernels::StepExtent& extent) noexcept {
  return toy_workspace(parameters, extent) + Bytes(200'000);
}

/// A network whose 3x3 convolutions run by a kernel that knows transforms.
struct Toy {
  model::Graph graph;
  std::vector<kernels::KernelDescriptor> kernels;
  profiler::DeviceProfile profile;
  Problem problem;

  explicit Toy(model::Graph g) : graph(std::move(g)) {
    const auto chosen = select_kernels(graph);
    REQUIRE(chosen.has_value());
    kernels.reserve(graph.nodes.size());
    problem = {&graph, &profile, 1, true, {}, {}, {}, {}, {}};
    std::vector<const kernels::KernelDescriptor*> choice;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      choice.push_back((*chosen)[n]);
      const auto* conv = std::get_if<model::ConvAttributes>(&graph.nodes[n].attributes);
      if (conv == nullptr || conv->window.kernel_h != 3 || conv->depthwise()) continue;
      kernels.push_back(*choice.back());
      kernels.back().derived_panel_bytes = toy_panel_bytes;
      kernels.back().prepare_cost = toy_prepare_cost;
      kernels.back().cost = toy_cost;
      kernels.back().workspace = toy_workspace;
      choice.back() = &kernels.back();
    }
    problem.kernels = KernelChoice(graph, std::move(choice));
    problem.views = assign_views(graph, problem.kernels, graph_order(graph), false);
    problem.options = derive_options(graph, problem.kernels, problem.views.order, profile, 1);
    problem.pieces = cut_pieces(graph, problem.kernels, problem.views.order);
    problem.residency = residency_orders(problem);
  }

  plan::Plan plan(std::uint64_t capacity) {
    const PlanRequest request{.capacity = Bytes(capacity), .repeat = problem.repeat, .search_ms = 0};
    Planning planning(problem, request);
    plan::Plan plan = emit(problem, *choose(planning, nullptr, request).search.best);
    plan.repeat = problem.repeat;
    plan.capacity = Bytes(capacity);
    const Bytes end = align_up(graph.stretches.back().offset + graph.stretches.back().stored_size, 4096);
    const Status status = plan::verify(plan, graph, {end, 0, Bytes(64)});
    INFO((status ? std::string() : status.error().to_string()));
    REQUIRE(status.has_value());
    for (const auto loads : {plan::PlanMachine::Loads::kEarly, plan::PlanMachine::Loads::kLate})
      REQUIRE(plan::PlanMachine(plan, graph, loads).run(2) == "");
    return plan;
  }
};

std::size_t prepared(const plan::Plan& plan) {
  return static_cast<std::size_t>(std::count_if(plan.steps.begin(), plan.steps.end(), [](const plan::Step& s) { return s.prepare; }));
}

model::Graph three_convolutions() {
  NetBuilder net("three convolutions");
  TensorId x = net.conv(net.input({1, 16, 16, 16}), {.channels = 64, .kernel = 3});
  x = net.conv(x, {.channels = 128, .kernel = 3});
  x = net.conv(x, {.channels = 64, .kernel = 1});
  net.output(net.conv(x, {.channels = 64, .kernel = 3}));
  return net.finish();
}

TEST_CASE("with memory to spare every weight whose transform shortens the period is kept transformed") {
  Toy toy(three_convolutions());
  REQUIRE(toy.problem.options.size() == 3);
  const plan::Plan plan = toy.plan(std::uint64_t{1} << 40);
  CHECK(prepared(plan) >= 3);
  CHECK(plan.streamed_bytes == Bytes());
  // The raw bytes are not kept beside the derived ones.
  std::uint64_t raw = 0;
  for (const plan::Load& load : plan.loads)
    if (load.prologue_only) raw += load.file.size.count();
  CHECK(raw >= (9 * 16 * 64 + 9 * 64 * 128 + 9 * 64 * 64) * 4);
  CHECK(plan.resident_bytes.count() >= (9 * 16 * 64 + 9 * 64 * 128 + 9 * 64 * 64) * 4 * kExpansion);
}

bool reads_in_each_run(const Candidate& candidate) {
  const std::vector<LoadSpec>& loads = candidate.schedule.loads;
  return std::any_of(loads.begin(), loads.end(), [](const LoadSpec& load) { return load.streamed(); });
}

TEST_CASE("chains that are a little faster keep every weight, too, where there is room: nothing is read for half a percent") {
  Toy fast(three_convolutions());
  Toy lean(three_convolutions());
  for (Toy* toy : {&fast, &lean}) toy->profile.read_bytes_per_second = 1e12;  // a draft that reads is as fast as one that keeps all
  for (const double faster : {0.999, 0.995, 0.95}) {
    lean.profile.flops_per_second = fast.profile.flops_per_second / faster;
    lean.profile.step_overhead_seconds = fast.profile.step_overhead_seconds * faster;
    const PlanRequest request{.repeat = true, .search_ms = 0};
    Planning first(fast.problem, request);
    Planning second(lean.problem, request);
    const Planning& chosen = choose(first, &second, request);
    INFO("steps take " << faster << " of their time");
    CHECK(chosen.search.best->seconds <= first.seconds());
    CHECK_FALSE(reads_in_each_run(*chosen.search.best));
  }
}

TEST_CASE("where only one kind of chains has room for every weight, the other one reads for no half percent either") {
  for (const bool lean_is_hungry : {false, true}) {
    Toy fast(three_convolutions());
    Toy lean(three_convolutions());
    Toy& hungry = lean_is_hungry ? lean : fast;
    for (kernels::KernelDescriptor& kernel : hungry.kernels) kernel.workspace = hungry_workspace;
    for (Toy* toy : {&fast, &lean}) toy->profile.read_bytes_per_second = 1e12;
    hungry.profile.flops_per_second /= 0.995;
    hungry.profile.step_overhead_seconds *= 0.995;
    int contests = 0;
    for (std::uint64_t kib = 600; kib < 1400; kib += 20) {
      const PlanRequest request{.capacity = Bytes(kib << 10), .repeat = true, .search_ms = 0};
      Planning all_fast(fast.problem, request);
      Planning all_lean(lean.problem, request);
      for (Planning* each : {&all_fast, &all_lean})
        if (each->fits()) each->begin({}), keep_everything(each->search);
      const double kept = std::min(all_fast.seconds(), all_lean.seconds());
      Planning first(fast.problem, request);
      Planning second(lean.problem, request);
      if (!first.fits() || !second.fits() || all_fast.search.best.has_value() == all_lean.search.best.has_value()) continue;
      ++contests;
      const Candidate& best = *choose(first, &second, request).search.best;
      INFO(kib << " KiB");
      CHECK((!reads_in_each_run(best) || best.seconds < 0.99 * kept));
    }
    CHECK(contests > 0);
  }
}

TEST_CASE("a candidate must beat what was found elsewhere, and then only the best by its tenth of a percent") {
  const Problem problem{};
  Search search{problem, std::uint64_t{1} << 20};
  search.to_beat = 0.99;
  const auto offer = [&](double seconds) {
    Candidate candidate;
    candidate.seconds = seconds;
    search.offer(candidate);
    return search.best && search.best->seconds == seconds;
  };
  CHECK_FALSE(offer(0.995));
  CHECK(offer(0.985));
  CHECK_FALSE(offer(0.9845));
  CHECK(offer(0.978));
}

TEST_CASE("transforms are kept as far as memory goes, those that save most for a byte first") {
  Toy toy(three_convolutions());
  const Least least = least_candidate(toy.problem, Policy::kSluice);
  const std::uint64_t most = ample_capacity(toy.problem, least, kEndlessArena);
  std::size_t before = 0;
  std::size_t distinct = 0;
  for (std::uint64_t twentieth = 0; twentieth <= 20; ++twentieth) {
    const std::size_t now = prepared(toy.plan(least.bytes() + (most - least.bytes()) / 20 * twentieth));
    distinct += now != before ? 1 : 0;
    before = now;
  }
  CHECK(before >= 3);
  CHECK(distinct >= 2);  // some budget keeps a part
}

TEST_CASE("a single run transforms nothing: what it would save comes only later") {
  Toy toy(three_convolutions());
  toy.problem.repeat = false;
  CHECK(prepared(toy.plan(std::uint64_t{1} << 40)) == 0);
}

TEST_CASE("weights that are shared, or lie in the resident segment, are no options") {
  NetBuilder net("tiny");
  net.output(net.conv(net.input({1, 8, 8, 16}), {.channels = 16, .kernel = 3}));  // 9 KiB
  const Toy toy(net.finish());
  CHECK(toy.problem.options.empty());
}

TEST_CASE("the price of a byte decides which transforms are worth theirs") {
  const std::vector<DeriveOption> options{{0, 100, 400, 1.0}, {1, 100, 200, 0.9}, {2, 100, 1000, 8.0}};  // 1/300, 9/1000, 8/900 a byte
  CHECK(choose_derived_at(options, 3, 10000, 0) == std::vector<bool>{true, true, true});
  CHECK(choose_derived_at(options, 3, 10000, 0.004) == std::vector<bool>{false, true, true});
  CHECK(choose_derived_at(options, 3, 10000, 0.01) == std::vector<bool>{false, false, false});
  CHECK(choose_derived_at(options, 3, 600, 0) == std::vector<bool>{true, true, false});
}

TEST_CASE("choose_derived spends what is spare and no more") {
  const std::vector<DeriveOption> options{{0, 100, 400, 1.0}, {1, 100, 200, 0.9}, {2, 100, 1000, 8.0}};
  CHECK(choose_derived(options, 3, 0) == std::vector<bool>{false, false, false});
  CHECK(choose_derived(options, 3, 100) == std::vector<bool>{false, true, false});
  CHECK(choose_derived(options, 3, 400) == std::vector<bool>{true, true, false});
  CHECK(choose_derived(options, 3, 1000) == std::vector<bool>{false, true, true});
  CHECK(choose_derived(options, 3, 1300) == std::vector<bool>{true, true, true});
}

}  // namespace
}  // namespace sluice::planner

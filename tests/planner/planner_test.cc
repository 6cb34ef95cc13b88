#include "sluice/planner/planner.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "sluice/planner/order/linearise.h"
#include "sluice/planner/order/views.h"
#include "tests/planner/nets.h"

namespace sluice::planner {
namespace {

constexpr Policy kPolicies[] = {Policy::kSluice, Policy::kResident, Policy::kOnDemand, Policy::kFlexnn};

/// The test's own reading of a plan: everything that must be equal for two plans to be the same.
std::string fingerprint(const plan::Plan& plan) {
  std::string text = plan.policy + " " + std::to_string(plan.arena_bytes.count());
  for (const plan::Buffer& b : plan.buffers)
    text += " b" + std::to_string(b.offset.count()) + "+" + std::to_string(b.size.count()) + "@" + std::to_string(b.lifetime.begin);
  for (const plan::Step& s : plan.steps) text += " s" + std::to_string(s.node.index()) + ":" + std::to_string(s.channels.begin);
  for (const plan::Load& l : plan.loads) text += " l" + std::to_string(l.file.offset.count()) + ":" + std::to_string(l.gate);
  return text;
}

TEST_CASE("a graph of 10,000 steps is planned") {
  NetBuilder net("long");
  TensorId x = net.input({1, 4, 4, 80});
  for (int n = 0; n < 10'000; ++n) x = net.conv(x, {.channels = 80});
  net.output(x);
  const model::Graph graph = net.finish();
  for (const bool repeat : {false, true}) {
    const auto plan = make_plan(graph, {}, {.capacity = Bytes(32u << 20), .repeat = repeat});
    REQUIRE(plan.has_value());
    CHECK(plan->steps.size() >= 10'000);
    CHECK(plan->streamed_bytes > Bytes(128u << 20));
  }
}

TEST_CASE("activations of known networks peak where the literature's fused, in-place, concat-free peaks lie") {
  // MiB; planner.md and the measurements it cites. A growth is a lost alias or a lost in-place residual.
  const std::pair<model::Graph, double> expected[] = {
      {squeezenet1_1(), 3.75}, {mobilenet_v2(), 5.74}, {resnet50(), 4.98}, {resnet152(), 4.98}, {vgg19(), 24.5}};
  for (const auto& [graph, mib] : expected) {
    INFO(graph.name);
    const auto kernels = select_kernels(graph);
    REQUIRE(kernels.has_value());
    const Views views = assign_views(graph, *kernels, graph_order(graph), false);
    CHECK(static_cast<double>(live_peak(views)) / 1048576.0 <= mib * 1.005);
    const auto least = minimum_capacity(graph, {}, {.policy = Policy::kOnDemand});
    REQUIRE(least.has_value());
    CHECK(static_cast<double>(least->count()) / 1048576.0 <= mib + 0.75);  // a strip of workspace, the small weights and one slice on top
  }
}

TEST_CASE("a plan exists at the least capacity of its policy, and not one byte below") {
  for (const model::Graph& graph : {squeezenet1_1(), mobilenet_v2(), resnet50()}) {
    for (const Policy policy : kPolicies) {
      INFO(graph.name << " " << name_of(policy));
      const auto least = minimum_capacity(graph, {}, {.policy = policy});
      REQUIRE(least.has_value());
      const auto plan = make_plan(graph, {}, {.capacity = *least, .policy = policy});
      REQUIRE(plan.has_value());
      CHECK(plan->minimum_capacity == *least);
      CHECK(plan->arena_bytes <= *least);
      const auto refused = make_plan(graph, {}, {.capacity = *least - Bytes(1), .policy = policy});
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().code == ErrorCode::kBudgetTooSmall);
      CHECK(refused.error().needed == least->count());
      CHECK(refused.error().available == least->count() - 1);
    }
  }
}

TEST_CASE("the default policy is never slower than a baseline, and no plan is faster than its bounds") {
  for (const model::Graph& graph : {squeezenet1_1(), mobilenet_v2(), resnet50()}) {
    const auto least = minimum_capacity(graph, {}, {});
    REQUIRE(least.has_value());
    for (const bool repeat : {false, true}) {
      for (const double scale : {1.0, 1.3, 2.0, 5.0, 30.0}) {
        const Bytes capacity(static_cast<std::uint64_t>(static_cast<double>(least->count()) * scale));
        const auto time = [&](const plan::Plan& plan) { return repeat ? plan.prediction.period_ms : plan.prediction.cold_ms; };
        const auto best = make_plan(graph, {}, {.capacity = capacity, .repeat = repeat});
        REQUIRE(best.has_value());
        for (const Policy policy : kPolicies) {
          INFO(graph.name << " " << name_of(policy) << " at " << capacity.count() << (repeat ? " repeated" : " once"));
          const auto plan = make_plan(graph, {}, {.capacity = capacity, .policy = policy, .repeat = repeat});
          if (!plan) continue;
          CHECK(time(*best) <= time(*plan) * 1.002);
          CHECK(plan->prediction.bound_ms <= time(*plan) * (1 + 1e-9));
          CHECK(plan->prediction.pipe_bound_ms <= time(*plan) * (1 + 1e-9));
          // Where the paper's rule finds nothing, loads on demand stand in under their own name.
          CHECK((plan->policy == name_of(policy) || (policy == Policy::kFlexnn && plan->policy == name_of(Policy::kOnDemand))));
        }
      }
    }
  }
}

TEST_CASE("a plan on demand in place of the paper's rule does not bear its name") {
  int by_rule = 0, on_demand = 0;
  for (const model::Graph& graph : {squeezenet1_1(), mobilenet_v2(), resnet50()}) {
    const auto least = minimum_capacity(graph, {}, {.policy = Policy::kFlexnn});
    REQUIRE(least.has_value());
    for (const double scale : {1.0, 1.1, 1.5, 3.0, 30.0}) {
      const Bytes capacity(static_cast<std::uint64_t>(static_cast<double>(least->count()) * scale));
      const auto rule = make_plan(graph, {}, {.capacity = capacity, .policy = Policy::kFlexnn, .repeat = true});
      const auto demand = make_plan(graph, {}, {.capacity = capacity, .policy = Policy::kOnDemand, .repeat = true});
      REQUIRE((rule && demand));
      INFO(graph.name << " at " << scale << ": " << rule->policy);
      const bool stands_in = rule->policy == name_of(Policy::kOnDemand);
      CHECK((stands_in || rule->policy == name_of(Policy::kFlexnn)));
      if (stands_in) CHECK(rule->prediction.period_ms == demand->prediction.period_ms);
      by_rule += stands_in ? 0 : 1;
      on_demand += stands_in ? 1 : 0;
    }
  }
  CHECK(by_rule > 0);
  CHECK(on_demand > 0);
}

TEST_CASE("an endless arena is used no further than everything kept needs") {
  NetBuilder small("a few weights");
  small.output(small.dense(small.dense(small.dense(small.input({2, 64}), 512), 384), 10));
  for (const model::Graph& graph : {small.finish(), squeezenet1_1()}) {
    for (const Policy policy : kPolicies) {
      INFO(graph.name << " " << name_of(policy));
      const auto resident = minimum_capacity(graph, {}, {.policy = Policy::kResident});
      const auto plan = make_plan(graph, {}, {.policy = policy});
      REQUIRE(resident.has_value());
      REQUIRE(plan.has_value());
      CHECK(plan->arena_bytes.count() <= resident->count() + resident->count() / 2);
      if (policy == Policy::kSluice) CHECK(plan->streamed_bytes == Bytes());
    }
  }
}

TEST_CASE("the same request gives the same plan") {
  const model::Graph graph = resnet50();
  for (const Policy policy : kPolicies) {
    const PlanRequest request{.capacity = Bytes(110u << 20), .threads = 2, .policy = policy, .repeat = true};
    const auto first = make_plan(graph, {}, request);
    const auto second = make_plan(graph, {}, request);
    REQUIRE(first.has_value());
    REQUIRE(second.has_value());
    CHECK(fingerprint(*first) == fingerprint(*second));
  }
}

TEST_CASE("short steps of several threads run alone, long ones do not") {
  const model::Graph graph = resnet50();
  for (const int threads : {1, 2}) {
    profiler::DeviceProfile profile;
    profile.threads = threads;
    profile.share_seconds = 20e-6;
    const auto plan = make_plan(graph, profile, {.threads = threads});
    REQUIRE(plan.has_value());
    const auto alone = std::count_if(plan->steps.begin(), plan->steps.end(), [](const plan::Step& step) { return step.alone; });
    INFO(threads << " threads");
    CHECK((alone > 0) == (threads > 1));
    CHECK(alone < static_cast<std::ptrdiff_t>(plan->steps.size()));
  }
}

TEST_CASE("a small net that runs again and again finds its weights in a core's own cache, so its short steps run alone") {
  const auto alone_of = [](std::int64_t width, bool repeat) {
    NetBuilder net("weights beside few products");
    net.output(net.dense(net.input({1, 256}), width));
    profiler::DeviceProfile profile;
    profile.threads = 2;
    const auto plan = make_plan(net.finish(), profile, {.threads = 2, .repeat = repeat});
    REQUIRE(plan.has_value());
    return std::all_of(plan->steps.begin(), plan->steps.end(), [](const plan::Step& step) { return step.alone; });
  };
  CHECK(alone_of(256, true));
  CHECK_FALSE(alone_of(256, false));
  CHECK_FALSE(alone_of(4096, true));
}

TEST_CASE("kept inputs live for the whole period and are never overwritten") {
  NetBuilder net("in place on the input");
  const TensorId x = net.input({1, 8, 8, 16});
  net.output(net.relu(net.relu(x)));
  const model::Graph graph = net.finish();
  const auto buffer_of = [](const plan::Plan& plan, TensorId t) { return plan.tensors[t.index()].buffer; };
  const TensorId out = graph.outputs[0].tensor;
  const auto kept = make_plan(graph, {}, {.keep_inputs = true});
  REQUIRE(kept.has_value());
  CHECK(buffer_of(*kept, x) != buffer_of(*kept, out));
  CHECK(kept->buffer(buffer_of(*kept, x)).whole_period);
  const auto given_up = make_plan(graph, {}, {.keep_inputs = false});
  REQUIRE(given_up.has_value());
  CHECK(buffer_of(*given_up, x) == buffer_of(*given_up, out));
  CHECK(given_up->arena_bytes < kept->arena_bytes);
}

TEST_CASE("what cannot be planned is refused by name") {
  NetBuilder net("odd");
  const TensorId x = net.input({1, 4, 4, 16});
  net.output(net.reshape(x, {1, 256}));
  const auto nothing_to_do = make_plan(net.finish(), {}, {});
  REQUIRE_FALSE(nothing_to_do.has_value());
  CHECK(nothing_to_do.error().code == ErrorCode::kUnsupported);

  NetBuilder other("a dense layer of a numeric class that dense layers do not have");
  other.output(other.dense(other.input({1, 64}), 64));
  model::Graph graph = other.finish();
  graph.nodes[0].numeric = model::NumericClass::kWinograd4;
  const auto no_kernel = make_plan(graph, {}, {});
  REQUIRE_FALSE(no_kernel.has_value());
  CHECK(no_kernel.error().code == ErrorCode::kUnsupported);
  CHECK(no_kernel.error().subject() == "dense0");

  const auto no_threads = make_plan(squeezenet1_1(), {}, {.threads = 0});
  REQUIRE_FALSE(no_threads.has_value());
  CHECK(no_threads.error().code == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::planner

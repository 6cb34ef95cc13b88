// Random networks, budgets and policies: every plan passes the verifier (make_plan sees to that) and holds the right bytes at the right
// time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "sluice/plan/verify.h"
#include "sluice/planner/planner.h"
#include "tests/planner/nets.h"
#include "tests/property/forced_bands.h"
#include "tests/property/plan_machine.h"

namespace sluice::planner {
namespace {

/// A network of some 12 nodes over feature maps of at most 8 x 8 x 96; every tensor that nobody reads is an output.
class RandomNet {
 public:
  explicit RandomNet(std::uint32_t seed) : random_(seed), net_("random " + std::to_string(seed)) {}

  model::Graph make() {
    maps_.push_back(net_.input({1, 8, 8, 16}));
    if (chance(3)) maps_.push_back(net_.input({1, 8, 8, 32}));
    const int nodes = pick(6, 16);
    for (int n = 0; n < nodes; ++n) add_node();
    TensorId last = maps_.back();
    if (chance(2)) last = net_.dense(net_.reshape(last, {1, net_.shape(last).element_count()}), 16 * pick(1, 6));
    model::Graph graph = net_.unfinished();
    std::vector<bool> read(graph.tensors.size(), false);
    for (const model::Node& node : graph.nodes)
      for (TensorId in : node.inputs) read[in.index()] = true;
    for (const model::Node& node : graph.nodes)
      if (!read[node.outputs[0].index()] || chance(12)) net_.output(node.outputs[0]);
    return net_.finish();
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int one_in) { return pick(1, one_in) == 1; }
  TensorId any() { return maps_[static_cast<std::size_t>(pick(0, static_cast<int>(maps_.size()) - 1))]; }

  /// Another map of the same shape apart from one axis (-1: of the same shape), or invalid.
  TensorId alike(TensorId to, int axis) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const TensorId t = any();
      bool same = true;
      for (int a = 0; a < 4; ++a) same = same && (a == axis || net_.shape(t)[a] == net_.shape(to)[a]);
      if (same) return t;
    }
    return TensorId::invalid();
  }

  void add_node() {
    const TensorId x = chance(2) ? maps_.back() : any();
    const Shape shape = net_.shape(x);
    const TensorId same = alike(x, -1);
    switch (pick(0, 11)) {
      case 0:
      case 1:
      case 2: {
        const std::int64_t channels = 16 * pick(1, 6);
        const TensorId residual = channels == shape[3] && chance(2) ? same : TensorId::invalid();
        return maps_.push_back(net_.conv(x, {.channels = channels, .kernel = chance(2) ? 1 : 3, .residual = residual}));
      }
      case 3:
        return maps_.push_back(net_.conv(x, {.channels = shape[3], .kernel = 3, .groups = shape[3]}));
      case 4:
        return maps_.push_back(net_.relu(x));
      case 5:
        if (same.valid()) maps_.push_back(net_.binary(x, same));
        return;
      case 6:
        if (shape[1] >= 4 && shape[2] >= 4) maps_.push_back(net_.pool(x, 2, 2));
        return;
      case 7:
      case 8:
      case 9:
        return add_concat(x);
      case 10: {
        const int axis = pick(1, 3);
        if (shape[axis] < 2) return;
        const std::int64_t begin = pick(0, static_cast<int>(shape[axis]) - 1);
        return maps_.push_back(net_.slice(x, axis, begin, pick(1, static_cast<int>(shape[axis] - begin))));
      }
      default:
        return maps_.push_back(net_.reshape(x, {1, shape[2], shape[1], shape[3]}));
    }
  }

  void add_concat(TensorId x) {
    const int axis = chance(2) ? 3 : pick(1, 2);
    std::vector<TensorId> parts{x};
    std::int64_t extent = net_.shape(x)[axis];
    for (int n = pick(1, 2); n > 0; --n) {
      const TensorId other = alike(x, axis);
      if (!other.valid() || extent + net_.shape(other)[axis] > (axis == 3 ? 96 : 8)) continue;
      extent += net_.shape(other)[axis];
      parts.push_back(other);
    }
    maps_.push_back(net_.concat(parts, axis));
  }

  std::mt19937 random_;
  NetBuilder net_;
  std::vector<TensorId> maps_;
};

Bytes file_size(const model::Graph& graph) {
  return graph.stretches.empty() ? Bytes(4096) : align_up(graph.stretches.back().offset + graph.stretches.back().stored_size, 4096);
}

/// True where the plan holds something in a ring.
bool check_plan(const model::Graph& graph, const PlanRequest& request) {
  const auto plan = make_plan(graph, {}, request);
  INFO((plan ? std::string() : plan.error().to_string()));
  REQUIRE(plan.has_value());
  REQUIRE(plan->arena_bytes <= request.capacity);
  using Loads = plan::PlanMachine::Loads;
  for (const auto loads : {Loads::kEarly, Loads::kLate, Loads::kRandom}) REQUIRE(plan::PlanMachine(*plan, graph, loads).run(2) == "");
  return std::any_of(plan->tensors.begin(), plan->tensors.end(), [](const plan::TensorPlacement& t) { return t.ring_rows > 0; });
}

TEST_CASE("plans of random networks hold the right bytes at the right time") {
  constexpr std::uint32_t kNets = 250;  // at four budgets each: 1000 plans
  for (std::uint32_t seed = 1; seed <= kNets; ++seed) {
    INFO("seed " << seed);
    const model::Graph graph = RandomNet(seed).make();
    const Policy policy = static_cast<Policy>(seed % 4);
    PlanRequest request{.policy = policy, .repeat = seed % 3 == 0, .keep_inputs = seed % 5 == 0};
    const auto least = minimum_capacity(graph, {}, request);
    REQUIRE(least.has_value());
    for (const std::uint64_t percent : {100, 115, 160, 400}) {
      INFO(name_of(policy) << " at " << percent << " % of the least capacity");
      request.capacity = Bytes(least->count() * percent / 100);
      check_plan(graph, request);
    }
    request.capacity = *least - Bytes(1);
    REQUIRE_FALSE(make_plan(graph, {}, request).has_value());
  }
}

TEST_CASE("random networks in bands hold the right bytes at the right time") {
  constexpr std::uint32_t kNets = 150;
  std::size_t rings = 0;
  for (std::uint32_t seed = 2000; seed < 2000 + kNets; ++seed) {
    INFO("seed " << seed);
    const model::Graph graph = RandomNet(seed).make();
    const ForcedBands bands(graph, 1 + static_cast<int>(seed % 2));
    const std::vector<Banded> chains = bands.chains(seed % 3, 2 + seed % 5, 2 + seed % 4);
    rings += ForcedBands::rings(chains);
    bands.plan(chains, seed % 7 == 0 ? 1 : 64 << 10);
  }
  CHECK(rings >= 50);
}

TEST_CASE("a plan of a real network holds the right bytes at the least capacity") {
  const model::Graph graph = squeezenet1_1();
  const auto least = minimum_capacity(graph, {}, {});
  REQUIRE(least.has_value());
  CHECK(check_plan(graph, {.capacity = *least}));
}

/// One small change somewhere; most of them break the plan.
void damage(plan::Plan& plan, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  plan::Buffer& buffer = plan.buffers[below(plan.buffers.size())];
  plan::TensorPlacement& tensor = plan.tensors[below(plan.tensors.size())];
  plan::Step& step = plan.steps[below(plan.steps.size())];
  switch (below(8)) {
    case 0:
      buffer.offset = plan.buffers[below(plan.buffers.size())].offset;
      return;
    case 1:
      buffer.lifetime.begin += 1;
      return;
    case 2:
      buffer.lifetime.end -= 1;
      return;
    case 3:
      tensor.offset = plan.tensors[below(plan.tensors.size())].offset;
      return;
    case 4:
      tensor.buffer = plan.tensors[below(plan.tensors.size())].buffer;
      return;
    case 5:
      std::swap(step, plan.steps[below(plan.steps.size())]);
      return;
    case 6:
      if (step.loads_needed > 0) step.loads_needed -= 1;
      return;
    default: {
      if (plan.loads.empty()) return;
      plan::Load& load = plan.loads[below(plan.loads.size())];
      load.gate -= 1;
      if (below(2) == 0) plan.buffers[load.target.index()].lifetime.begin = load.gate;
    }
  }
}

TEST_CASE("whatever the verifier accepts runs right") {
  constexpr std::uint32_t kNets = 24;
  constexpr int kDamages = 60;
  std::mt19937 random(7);
  int accepted = 0;
  int refused_rightly = 0;
  for (std::uint32_t seed = 1000; seed < 1000 + kNets; ++seed) {
    const model::Graph graph = RandomNet(seed).make();
    const auto least = minimum_capacity(graph, {}, {});
    REQUIRE(least.has_value());
    const auto plan = make_plan(graph, {}, {.capacity = Bytes(least->count() * 5 / 4)});
    REQUIRE(plan.has_value());
    const auto size = file_size(graph);
    for (int n = 0; n < kDamages; ++n) {
      plan::Plan damaged = *plan;
      damage(damaged, random);
      const bool passes = plan::verify(damaged, graph, {size, 0, Bytes(64)}).has_value();
      if (!passes && n % 8 != 0) continue;
      const std::string wrong = plan::PlanMachine(damaged, graph, plan::PlanMachine::Loads::kEarly).run(1);
      INFO("seed " << seed << ", damage " << n << ": " << wrong);
      if (passes) REQUIRE(wrong == "");
      accepted += passes ? 1 : 0;
      refused_rightly += wrong.empty() ? 0 : 1;
    }
  }
  CHECK(accepted > 20);         // damage that does no harm: the property was tried
  CHECK(refused_rightly > 20);  // and the machine sees damage that does
}

}  // namespace
}  // namespace sluice::planner

#include "sluice/executor/holding.h"

#include <catch2/catch.hpp>

#include "sluice/core/units.h"

namespace sluice::executor {
namespace {

constexpr std::uint64_t kBlock = 4096;

/// Stretch i of a model is block i of its file.
const std::vector<model::Stretch>& stretches() {
  static const std::vector<model::Stretch> all = [] {
    std::vector<model::Stretch> made;
    for (std::uint64_t i = 0; i < 16; ++i) made.push_back({Bytes(i * kBlock), Bytes(kBlock), Bytes(kBlock), i});
    return made;
  }();
  return all;
}

/// Blocks of the arena: resident loads of stretches, and bytes that a run writes.
struct Sketch {
  struct Kept {
    std::uint32_t first_stretch;
    std::uint32_t count;
    std::uint64_t at;
  };
  Sketch(std::vector<Kept> kept, std::vector<Interval<std::uint64_t>> written, std::uint64_t derived_at = 100) {
    const auto add = [&](plan::BufferKind kind, std::uint64_t at, std::uint64_t blocks, bool whole) {
      plan.buffers.push_back({kind, Bytes(blocks * kBlock), kBlock, Bytes(at * kBlock), {0, 1}, whole});
      return BufferId(plan.buffers.size() - 1);
    };
    for (const Kept& k : kept) {
      plan::Load load;
      load.file = {Bytes(k.first_stretch * kBlock), Bytes(k.count * kBlock)};
      load.target = add(plan::BufferKind::kWeight, k.at, k.count, true);
      load.first_stretch = k.first_stretch;
      load.stretch_count = k.count;
      load.resident = true;
      plan.loads.push_back(load);
    }
    for (const auto& w : written) add(plan::BufferKind::kActivation, w.begin, w.end - w.begin, false);
    add(plan::BufferKind::kDerived, derived_at, 1, true);
  }
  plan::Plan plan;
};

/// What holds for `mine`, which held `before`, after `other` left `left` there.
Holding after(const Sketch& mine, std::vector<bool> before, const Sketch& other, std::vector<bool> left, bool same_model) {
  Holding holding{std::move(before), true};
  const Holding there{std::move(left), true};
  const Footprint footprint(other.plan);
  outlive(mine.plan, holding, {other.plan, footprint, there}, same_model, stretches());
  return holding;
}

using Loads = std::vector<bool>;

}  // namespace

TEST_CASE("what no buffer of the other plan overlaps holds, and nothing else") {
  const Sketch mine({{0, 2, 0}, {2, 2, 2}, {4, 1, 4}}, {{10, 20}}, 5);
  CHECK(after(mine, {true, true, true}, Sketch({{0, 2, 30}}, {{10, 20}}), {true}, false).loads == Loads{true, true, true});
  CHECK(after(mine, {true, true, true}, Sketch({{0, 2, 30}}, {{3, 4}}), {true}, false).loads == Loads{true, false, true});
  CHECK(after(mine, {true, true, true}, Sketch({{0, 3, 3}}, {{10, 20}}), {true}, false).loads == Loads{true, false, false});
  CHECK(after(mine, {true, false, true}, Sketch({}, {{10, 20}}), {}, false).loads == Loads{true, false, true});
  CHECK(after(mine, {true, true, true}, Sketch({}, {{4, 6}}), {}, false).loads == Loads{true, true, false});
  CHECK_FALSE(after(mine, {true, true, true}, Sketch({}, {{4, 6}}), {}, false).derived);
  CHECK(after(mine, {true, true, true}, Sketch({}, {{6, 9}}), {}, false).derived);
}

TEST_CASE("what the other plan keeps of the same model at the same addresses holds, also where it never did") {
  const Sketch mine({{0, 2, 0}, {2, 2, 2}, {4, 1, 4}}, {{10, 20}});
  const Sketch joined({{0, 4, 0}}, {{5, 9}}, 50);  // other cuts, same addresses
  CHECK(after(mine, {false, false, false}, joined, {true}, true).loads == Loads{true, true, false});
  CHECK(after(mine, {true, true, true}, joined, {true}, true).loads == Loads{true, true, true});
  CHECK(after(mine, {true, true, true}, joined, {false}, true).loads == Loads{false, false, true});  // it failed there
  CHECK(after(mine, {true, true, true}, joined, {true}, false).loads == Loads{false, false, true});  // of another model
  const Sketch elsewhere({{0, 4, 1}}, {{5, 9}}, 50);                                                 // same weights a block further up
  CHECK(after(mine, {true, true, true}, elsewhere, {true}, true).loads == Loads{false, false, false});
  const Sketch part({{0, 1, 0}, {3, 1, 3}}, {{30, 40}}, 50);
  CHECK(after(mine, {true, true, true}, part, {true, true}, true).loads == Loads{true, true, true});
  CHECK(after(mine, {true, true, true}, part, {true, false}, true).loads == Loads{true, false, true});
  CHECK(after(mine, {false, false, false}, part, {true, true}, true).loads == Loads{false, false, false});
}

TEST_CASE("a plan that two share holds for both what it holds for one") {
  const Sketch shared({{0, 2, 0}, {2, 2, 2}}, {{10, 20}});
  const Footprint footprint(shared.plan);
  const Holding left{{true, false}, true};
  Holding mine = Holding::none(shared.plan);
  outlive(shared.plan, mine, {shared.plan, footprint, left}, true, stretches());
  CHECK((mine.loads == left.loads && mine.derived));
}

}  // namespace sluice::executor

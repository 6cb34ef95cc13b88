#include "src/executor/bound_guards.h"

#include <algorithm>

#include "sluice/operators/guards.h"
#include "src/model/built_features.h"

namespace sluice::executor {
namespace {

using operators::kAlways;

constexpr std::uint32_t kNever = ~std::uint32_t{0};

/// How many steps are over when each tensor has been made whole; graph inputs are there from the beginning. What a node without steps gives
/// is there with what it takes.
std::vector<std::uint32_t> made_after(const model::Graph& graph, const plan::Plan& plan) {
  std::vector<std::uint32_t> last(graph.nodes.size(), 0);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) last[plan.steps[i].node.index()] = static_cast<std::uint32_t>(i + 1);
  std::vector<std::uint32_t> after(graph.tensors.size(), 0);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    std::uint32_t made = last[n];
    for (const TensorId in : graph.nodes[n].inputs) made = std::max(made, after[in.index()]);
    for (const TensorId out : graph.nodes[n].outputs) after[out.index()] = made;
  }
  return after;
}

}  // namespace

BoundGuards::BoundGuards(const model::Graph& graph, const plan::Plan& plan, const std::byte* arena) : arena_(arena) {
  if constexpr (!model::kRunsSubgraphs) return;
  const operators::Guards guards = operators::find_guards(graph);
  if (guards.empty()) return;
  const std::vector<std::uint32_t> after = made_after(graph, plan);
  guards_.push_back({});
  for (std::size_t g = 1; g < guards.guards.size(); ++g) {
    const operators::Guard& guard = guards.guards[g];
    const plan::TensorPlacement& place = plan.tensors[guard.condition.index()];
    Bound bound{0, kNever, guard.around, guard.wanted};
    if (place.buffer.valid()) {
      bound.condition = (plan.buffer(place.buffer).offset + place.offset).count();
      bound.decided = std::max(after[guard.condition.index()], guards_[guard.around].decided);
    }
    guards_.push_back(bound);
  }
  of_load_.assign(plan.loads.size(), kNever);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    std::uint32_t guard = step.prepare ? kAlways : guards.of(step.node);
    while (guards_[guard].decided > i) guard = guards_[guard].around;
    for (std::uint32_t o = step.first_operand; o < step.first_operand + step.operand_count; ++o) {
      if (!plan.operands[o].load.valid()) continue;
      std::uint32_t& of_load = of_load_[plan.operands[o].load.index()];
      of_load = of_load == kNever ? guard : guards.common(of_load, guard);
    }
    if (guard == kAlways) continue;
    const auto at = static_cast<std::uint32_t>(i);
    if (!runs_.empty() && runs_.back().end == at && runs_.back().guard == guard)
      ++runs_.back().end;
    else
      runs_.push_back({at, at + 1, guard});
  }
  for (std::size_t k = 0; k < plan.loads.size(); ++k)
    if (of_load_[k] == kNever || !plan.loads[k].streamed()) of_load_[k] = kAlways;
  if (std::all_of(of_load_.begin(), of_load_.end(), [](std::uint32_t guard) { return guard == kAlways; })) of_load_ = {};
}

bool BoundGuards::met(std::uint32_t guard) const noexcept {
  for (; guard != kAlways; guard = guards_[guard].around)
    if ((arena_[guards_[guard].condition] != std::byte{0}) != guards_[guard].wanted) return false;
  return true;
}

bool BoundGuards::wants(std::uint32_t load, std::uint64_t steps_done) const noexcept {
  if (of_load_.empty()) return true;
  std::uint32_t guard = of_load_[load];
  while (guards_[guard].decided > steps_done) guard = guards_[guard].around;
  return met(guard);
}

std::uint64_t BoundGuards::known_next(std::uint32_t load, std::uint64_t steps_done) const noexcept {
  std::uint64_t next = 0;
  if (of_load_.empty()) return next;
  for (std::uint32_t guard = of_load_[load]; guards_[guard].decided > steps_done; guard = guards_[guard].around)
    next = guards_[guard].decided;
  return next;
}

std::uint64_t BoundGuards::bytes() const noexcept {
  return guards_.capacity() * sizeof(Bound) + runs_.capacity() * sizeof(Run) + of_load_.capacity() * sizeof(std::uint32_t);
}

}  // namespace sluice::executor

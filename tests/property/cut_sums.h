// Cuts the sums of a plan's steps into parts. No rule of the planner makes such steps, so tests rewrite its plans:
//
//     before   | a | b                | c |
//     after    | a | b' | b'' | b'''  | c |       every time in the plan moves to where its step went
//
// The unfinished sums lie behind all that the plan had in the arena.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"

namespace sluice::plan {

struct SumCuts {
  std::vector<std::int64_t> at;  // where parts begin, rising; those beyond the products of a node cut nothing
  bool reload = false;           // a streamed load that brings panels comes again for each part
  bool in_turn = false;          // steps of a node that follow each other take turns, part by part; for plans that stream nothing
};

class SumCutter {
 public:
  SumCutter(const Plan& plan, const model::Graph& graph, const SumCuts& cuts)
      : plan_(plan), graph_(graph), cuts_(cuts), begin_of_(plan.steps.size() + 1), end_of_(plan.steps.size() + 1) {}

  Plan cut() {
    result_ = plan_;
    result_.steps.clear();
    result_.operands.clear();
    place_steps();
    move_times();
    if (cuts_.reload) bring_again();
    std::uint64_t end = 0;
    for (const Buffer& buffer : result_.buffers)
      end = std::max(end, (buffer.offset + buffer.size).count() + (buffer.kind == BufferKind::kWeight ? kTail : 0));
    result_.arena_bytes = Bytes(end);
    result_.capacity = std::max(result_.capacity, result_.arena_bytes);
    return std::move(result_);
  }

 private:
  static constexpr std::uint64_t kTail = 64;

  struct Part {
    std::size_t step;  // of the plan before
    ReductionRange products;
    std::size_t index = 0;  // of the step's parts
  };

  std::vector<ReductionRange> parts_of(const Step& step) const {
    const std::int64_t all = model::reduction_of(graph_, graph_.node(step.node));
    if (all == 0 || step.prepare || step.derived.buffer.valid()) return {kWholeReduction};
    std::vector<ReductionRange> parts;
    std::int64_t begin = 0;
    for (std::int64_t at : cuts_.at)
      if (at < all) parts.push_back({begin, at}), begin = at;
    parts.push_back({begin, all});
    return parts.size() == 1 ? std::vector<ReductionRange>{kWholeReduction} : parts;
  }

  /// One past the steps from `first` on that take turns with it.
  std::size_t end_of_turns(std::size_t first) const {
    std::size_t end = first + 1;
    const Step& step = plan_.steps[first];
    if (!cuts_.in_turn || parts_of(step).size() == 1) return end;
    while (end < plan_.steps.size() && plan_.steps[end].node == step.node && plan_.steps[end].rows == step.rows) ++end;
    return end;
  }

  void place_steps() {
    const std::uint64_t sums_begin = align_up(plan_.arena_bytes.count(), kTail);
    for (std::size_t first = 0; first < plan_.steps.size();) {
      const std::size_t end = end_of_turns(first);
      const auto parts = parts_of(plan_.steps[first]);
      const auto begin = static_cast<std::int64_t>(parts_.size());
      const auto after = begin + static_cast<std::int64_t>((end - first) * parts.size());
      for (std::size_t p = 0; p < parts.size(); ++p)
        for (std::size_t s = first; s < end; ++s) parts_.push_back({s, parts[p], p});
      std::uint64_t at = sums_begin;
      sums_of_.resize(end);
      for (std::size_t s = first; s < end; ++s) {
        begin_of_[s] = begin;
        end_of_[s + 1] = after;
        if (parts.size() > 1) sums_of_[s] = add_sums(plan_.steps[s], {begin, after}, at);
      }
      first = end;
    }
    begin_of_.back() = static_cast<std::int64_t>(parts_.size());
    for (const Part& part : parts_) add_step(part);
  }

  BufferId add_sums(const Step& step, StepRange lifetime, std::uint64_t& at) {
    const std::int64_t pixels = row_extents(graph_.tensor(graph_.node(step.node).outputs[0]).shape).pixels;
    const std::int64_t sums = step.rows.size() * pixels * ((step.channels.size() + 15) / 16 * 16);
    const Bytes size(static_cast<std::uint64_t>(sums) * sizeof(float));
    result_.buffers.push_back({BufferKind::kSums, size, 64, Bytes(at), lifetime, false});
    at += size.count();
    return BufferId(result_.buffers.size() - 1);
  }

  void add_step(const Part& part) {
    Step step = plan_.steps[part.step];
    const auto first = plan_.operands.begin() + step.first_operand;
    step.first_operand = static_cast<std::uint32_t>(result_.operands.size());
    result_.operands.insert(result_.operands.end(), first, first + step.operand_count);
    step.reduction = part.products;
    if (part.products != kWholeReduction) step.sums = sums_of_[part.step];
    result_.steps.push_back(step);
  }

  /// The moment when so many steps of the plan before are over; wrapped loads count from the end.
  std::int64_t moved(std::int64_t steps) const {
    const auto before = static_cast<std::int64_t>(plan_.steps.size()), now = static_cast<std::int64_t>(parts_.size());
    if (steps < 0) return begin_of_[static_cast<std::size_t>(before + steps)] - now;
    return begin_of_[static_cast<std::size_t>(steps)];
  }
  StepRange moved(StepRange steps) const {
    return {moved(steps.begin), steps.end <= 0 ? moved(steps.end) : end_of_[static_cast<std::size_t>(steps.end)]};
  }

  void move_times() {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) result_.buffers[b].lifetime = moved(plan_.buffers[b].lifetime);
    for (Load& load : result_.loads) {
      load.gate = moved(load.gate);
      load.uses = moved(load.uses);
    }
  }

  /// A copy of the load of a step's panels for each part but the first, where the plan streams them: right behind what the step waits for.
  void bring_again() {
    const std::vector<Load> before = std::move(result_.loads);
    std::vector<std::uint32_t> place(before.size());  // of each load, now
    result_.loads.clear();
    std::size_t next = 0;
    const auto take_until = [&](std::size_t end) {
      for (; next < end; ++next) {
        place[next] = static_cast<std::uint32_t>(result_.loads.size());
        result_.loads.push_back(before[next]);
      }
    };
    std::vector<LoadId> fresh(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Step& step = result_.steps[i];
      take_until(step.loads_needed);
      const LoadId panels = step.operand_count == 0 ? LoadId::invalid() : result_.operands[step.first_operand].load;
      if (panels.valid() && parts_[i].index > 0 && before[panels.index()].streamed())
        fresh[i] = add_copy(before[panels.index()], static_cast<std::int64_t>(i));
      step.loads_needed = static_cast<std::uint32_t>(result_.loads.size());
    }
    take_until(before.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Step& step = result_.steps[i];
      const std::span operands = std::span(result_.operands).subspan(step.first_operand, step.operand_count);
      const LoadId panels = operands.empty() ? LoadId::invalid() : operands.front().load;
      for (WeightOperand& operand : operands) {
        if (!operand.load.valid()) continue;
        operand.load = fresh[i].valid() && operand.load == panels ? fresh[i] : LoadId(place[operand.load.index()]);
      }
    }
  }

  LoadId add_copy(Load load, std::int64_t step) {
    std::uint64_t at = 0;
    for (const Buffer& buffer : result_.buffers) at = std::max(at, (buffer.offset + buffer.size).count());
    load.gate = result_.loads.back().gate;
    for (const Load& other : result_.loads)
      if (other.streamed()) load.gate = other.gate;
    load.uses = {step, step + 1};
    const Bytes region = align_up(load.file.size, plan_.block);
    result_.buffers.push_back({BufferKind::kWeight, region, plan_.block, Bytes(align_up(at, plan_.block)), {load.gate, step + 1}, false});
    load.target = BufferId(result_.buffers.size() - 1);
    result_.streamed_bytes += load.file.size;
    result_.loads.push_back(load);
    return LoadId(result_.loads.size() - 1);
  }

  const Plan& plan_;
  const model::Graph& graph_;
  const SumCuts& cuts_;
  Plan result_;
  std::vector<Part> parts_;  // by step, now
  std::vector<BufferId> sums_of_;
  std::vector<std::int64_t> begin_of_, end_of_;  // where the steps from this one on begin; where those before it end
};

inline Plan cut_sums(const Plan& plan, const model::Graph& graph, const SumCuts& cuts) { return SumCutter(plan, graph, cuts).cut(); }

}  // namespace sluice::plan

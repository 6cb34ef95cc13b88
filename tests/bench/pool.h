// A plan run without its addresses: what static memory planning is worth. Steps, slices, loads and gates are the plan's; only where a
// buffer lies is decided when it is needed, by a best-fit pool within the budget. What the plan keeps for the whole period lies below it.
//
//     arena  |== kept: resident, derived, inputs ==|-- activation --| gap |---- load ----| gap |- workspace -| gap |
//                                                  ^ pool: the smallest gap that holds the buffer           capacity ^
//
// A load that finds no gap at its gate waits for one, and with it all later loads: what it costs is preloading. What a step cannot do
// without and no gap holds, makes the pool slide all its blocks together, once the reads under way have ended: what it costs is copying.
//
// Invariant: gates keep the sum of what lives within the budget, so sliding always makes room (but for what alignment takes).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sluice/core/arena.h"
#include "sluice/core/lane.h"
#include "sluice/kernels/registry.h"
#include "src/executor/bind.h"
#include "src/executor/clock.h"
#include "src/executor/loader.h"

namespace sluice::bench {

class BestFitPool {
 public:
  struct Block {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t alignment = 1;
    std::size_t buffer = 0;
  };

  BestFitPool(std::uint64_t begin, std::uint64_t end) noexcept : begin_(begin), end_(end) {}

  std::optional<std::uint64_t> take(std::size_t buffer, std::uint64_t size, std::uint64_t alignment) {
    std::optional<std::uint64_t> best;
    std::uint64_t least = ~std::uint64_t{0};
    std::size_t place = 0;
    std::uint64_t from = begin_;
    for (std::size_t i = 0; i <= blocks_.size(); ++i) {
      const std::uint64_t to = i < blocks_.size() ? blocks_[i].offset : end_;
      const std::uint64_t at = align_up(from, alignment);
      if (at + size <= to && to - from < least) {
        least = to - from;
        best = at;
        place = i;
      }
      if (i < blocks_.size()) from = blocks_[i].offset + blocks_[i].size;
    }
    if (best) blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(place), {*best, size, alignment, buffer});
    return best;
  }

  /// Precondition: `buffer` was taken.
  void give_back(std::size_t buffer) {
    blocks_.erase(std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) { return block.buffer == buffer; }));
  }

  /// Closes all gaps; `move(block, to)` is told of each block that moves, from the lowest on.
  template <class Move>
  void slide(const Move& move) {
    std::uint64_t from = begin_;
    for (Block& block : blocks_) {
      const std::uint64_t to = align_up(from, block.alignment);
      if (to < block.offset) {
        move(block, to);
        block.offset = to;
      }
      from = block.offset + block.size;
    }
  }

 private:
  std::uint64_t begin_;
  std::uint64_t end_;
  std::vector<Block> blocks_;  // by offset
};

/// Repeated runs of a plan whose buffers get addresses from a pool. The caller has run the plan itself before, in `planned`.
class PooledRuns {
 public:
  struct Stats {
    std::int64_t wall_ns = 0;
    std::int64_t stall_ns = 0;
    int slides = 0;
    std::uint64_t moved_bytes = 0;
    Bytes bytes_read;
  };

  /// `plan` was run in `planned`, from which all that it keeps is copied. Errors: those of bind and Loader; kOutOfMemory.
  static Result<std::unique_ptr<PooledRuns>> create(const model::Graph& graph, const plan::Plan& plan, model::WeightSource& source,
                                                    const Arena& planned, ThreadPool& threads, std::span<const int> load_cpus) {
    SLUICE_ASSIGN_OR_RETURN(Arena arena, Arena::reserve(plan.capacity));
    SLUICE_RETURN_IF_ERROR(arena.commit(plan.capacity));
    SLUICE_ASSIGN_OR_RETURN(executor::BoundPlan bound, executor::bind({graph, plan, arena.data(), threads, kernels::find_kernel}));
    std::unique_ptr<PooledRuns> runs(new PooledRuns(graph, plan, source, std::move(arena), std::move(bound)));
    SLUICE_RETURN_IF_ERROR(runs->start(planned, load_cpus));
    return runs;
  }

  const Stats& stats() const noexcept { return stats_; }
  const std::vector<std::byte>& outputs() const noexcept { return outputs_; }

  Status run() {
    stats_ = {};
    const std::int64_t start = executor::wall_now_ns();
    if (next_ == loads_of_plan_.size()) next_ = 0;
    ahead_ = false;
    loader_.begin(runs_ == 0 ? executor::Pass::kFirst : executor::Pass::kPeriod, granted_.count());
    const std::uint64_t loads_before = runs_++ * loads_of_plan_.size();
    SLUICE_RETURN_IF_ERROR(grant_open_loads(0));
    for (std::size_t i = 0; i < bound_.steps.size(); ++i) SLUICE_RETURN_IF_ERROR(run_step(i, loads_before));
    while (next_is_wrapped()) SLUICE_RETURN_IF_ERROR(grant_next_load());
    if (!loads_of_plan_.empty()) SLUICE_RETURN_IF_ERROR(loader_.finish());
    stats_.bytes_read = loader_.stats().bytes_read;
    stats_.wall_ns = executor::wall_now_ns() - start;
    return {};
  }

 private:
  /// A pointer of a step's call that follows a buffer.
  struct Pointer {
    void* place = nullptr;
    std::size_t buffer = 0;
    std::uint64_t offset = 0;  // in the buffer
  };
  struct StepBuffers {
    std::vector<std::size_t> begin, end;
    std::vector<Pointer> pointers;
    std::optional<Pointer> next_weights;
  };

  PooledRuns(const model::Graph& graph, const plan::Plan& plan, model::WeightSource& source, Arena arena, executor::BoundPlan bound)
      : graph_(graph),
        plan_(plan),
        arena_(std::move(arena)),
        bound_(std::move(bound)),
        addresses_(plan),
        pool_(kept_bytes(plan), plan.capacity.count()),
        at_(plan.buffers.size()),
        steps_(plan.steps.size()),
        loader_({graph, addresses_, none_held_, no_guards_, source, arena_.data(), granted_, loaded_}, {}) {}

  static std::uint64_t kept_bytes(const plan::Plan& plan) {
    std::uint64_t bytes = 0;
    for (const plan::Buffer& buffer : plan.buffers)
      if (buffer.whole_period) bytes = align_up(bytes, buffer.alignment) + buffer.size.count();
    return bytes;
  }

  Status start(const Arena& planned, std::span<const int> load_cpus) {
    std::uint64_t kept = 0;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const plan::Buffer& buffer = plan_.buffers[b];
      if (!buffer.whole_period) continue;
      kept = align_up(kept, buffer.alignment);
      at_[b] = kept;
      std::memcpy(arena_.data() + kept, planned.data() + buffer.offset.count(), buffer.size.count());
      kept += buffer.size.count();
    }
    give_loader_its_loads();
    list_buffers();
    for (std::size_t i = 0; i < steps_.size(); ++i) list_pointers(i);
    for (executor::BoundStep& step : bound_.steps) step.call.fault = &fault_;
    if (loads_of_plan_.empty()) return {};
    SLUICE_RETURN_IF_ERROR(loader_.start(load_cpus));
    while (next_ < loads_of_plan_.size() && loads_of_plan_[next_].gate < 0) SLUICE_RETURN_IF_ERROR(grant_next_load());
    return {};
  }

  /// The loader has a plan of its own, of the streamed loads alone, in which a step stands for half a granted address: load j opens as soon
  /// as its address is known. Two counts a load, so that those of the next run (which are granted in this one) all have negative gates.
  void give_loader_its_loads() {
    for (const plan::Load& load : plan_.loads)
      if (load.streamed()) loads_of_plan_.push_back(load);
    const auto wrapped = std::count_if(loads_of_plan_.begin(), loads_of_plan_.end(), [](const plan::Load& load) { return load.gate < 0; });
    addresses_.loads = loads_of_plan_;
    for (std::size_t j = 0; j < loads_of_plan_.size(); ++j) {
      const std::int64_t after = static_cast<std::int64_t>(j) - wrapped;  // of the first load that is granted in its own run
      addresses_.loads[j].gate = after < 0 ? 2 * after + 1 : 2 * after + 2;
    }
    addresses_.steps.assign(2 * loads_of_plan_.size(), {});
    none_held_.assign(loads_of_plan_.size(), false);
  }

  void list_buffers() {
    std::vector<bool> loaded(plan_.buffers.size(), false);
    std::vector<bool> over(plan_.buffers.size(), false);  // lives in the first run only, which was the plan's
    for (const plan::Load& load : plan_.loads) {
      loaded[load.target.index()] = true;
      over[load.target.index()] = load.prologue_only;
    }
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const plan::Buffer& buffer = plan_.buffers[b];
      if (buffer.whole_period || over[b] || buffer.lifetime.empty()) continue;
      if (!loaded[b]) steps_[static_cast<std::size_t>(std::max<std::int64_t>(0, buffer.lifetime.begin))].begin.push_back(b);
      steps_[std::min(static_cast<std::size_t>(buffer.lifetime.end), steps_.size()) - 1].end.push_back(b);
    }
  }

  void list_pointers(std::size_t i) {
    const plan::Step& step = plan_.steps[i];
    executor::BoundStep& bound = bound_.steps[i];
    if (step.prepare) return;
    const auto follow = [&](void* place, const std::byte* address, BufferId buffer) {
      const std::uint64_t offset = static_cast<std::uint64_t>(address - arena_.data()) - plan_.buffer(buffer).offset.count();
      steps_[i].pointers.push_back({place, buffer.index(), offset});
    };
    const auto buffer_of_weight = [&](WeightId weight) {
      const plan::WeightOperand* operand = &plan_.operands[step.first_operand];
      while (operand->weight != weight) ++operand;
      return plan_.loads[operand->load.index()].target;
    };
    const auto follow_tensors = [&](std::span<const kernels::Operand> operands, const std::vector<TensorId>& ids) {
      for (std::size_t k = 0; k < ids.size(); ++k) {
        kernels::Operand& operand = bound_.operands[static_cast<std::size_t>(operands.data() - bound_.operands.data()) + k];
        const WeightId weight = graph_.tensor(ids[k]).weight;
        follow(&operand.view.data, operand.view.data, weight.valid() ? buffer_of_weight(weight) : plan_.tensors[ids[k].index()].buffer);
      }
    };
    follow_tensors(bound.call.inputs, graph_.node(step.node).inputs);
    follow_tensors(bound.call.outputs, graph_.node(step.node).outputs);
    for (const kernels::WeightOperand& weight : bound.call.weights) {
      if (weight.data == nullptr) continue;
      const auto k = static_cast<std::size_t>(&weight - bound_.weights.data());
      const auto which = static_cast<std::size_t>(&weight - bound.call.weights.data());
      follow(&bound_.weights[k].data, weight.data, buffer_of_weight(graph_.node(step.node).weights[which]));
      if (which == 0) announce(i, steps_[i].pointers.back());
    }
    if (bound.call.workspace != nullptr) follow(&bound.call.workspace, bound.call.workspace, step.workspace);
    if (bound.call.derived.data != nullptr) follow(&bound.call.derived.data, bound.call.derived.data, step.derived.buffer);
  }

  /// Steps before `i` that were told its weights.
  void announce(std::size_t i, const Pointer& weights) {
    const std::byte* const data = bound_.steps[i].call.weights[0].data;
    for (std::size_t k = i; k-- > 0 && bound_.steps[k].call.next_weights.data() == data && !steps_[k].next_weights;)
      steps_[k].next_weights = weights;
  }

  bool next_is_wrapped() {
    if (next_ == loads_of_plan_.size() && !ahead_) {
      ahead_ = true;
      next_ = 0;
    }
    return ahead_ && next_ < loads_of_plan_.size() && loads_of_plan_[next_].gate < 0;
  }

  bool take(std::size_t buffer) {
    const std::optional<std::uint64_t> at = pool_.take(buffer, plan_.buffers[buffer].size.count(), plan_.buffers[buffer].alignment);
    if (at) at_[buffer] = *at;
    return at.has_value();
  }

  Status take_or_slide(std::size_t buffer) {
    if (take(buffer)) return {};
    wait_for_loads(grants_);
    pool_.slide([&](const BestFitPool::Block& block, std::uint64_t to) {
      std::memmove(arena_.data() + to, arena_.data() + block.offset, block.size);
      at_[block.buffer] = to;
      stats_.moved_bytes += block.size;
    });
    ++stats_.slides;
    if (take(buffer)) return {};
    return fail(make_error(ErrorCode::kBudgetTooSmall, "pool", "does not hold a buffer", plan_.buffers[buffer].size.count(), 0));
  }

  void hand_over(std::size_t buffer) {
    addresses_.buffers[buffer].offset = Bytes(at_[buffer]);
    granted_.advance();
    granted_.advance();
    ++grants_;
    ++next_;
  }

  Status grant_next_load() {
    const std::size_t buffer = loads_of_plan_[next_].target.index();
    SLUICE_RETURN_IF_ERROR(take_or_slide(buffer));
    hand_over(buffer);
    return {};
  }

  /// Loads whose gates are open after `done` steps, as far as there are gaps.
  Status grant_open_loads(std::int64_t done) {
    for (;;) {
      const bool wrapped = next_is_wrapped();
      if (next_ == loads_of_plan_.size() || (ahead_ && !wrapped)) return {};
      const plan::Load& load = loads_of_plan_[next_];
      if (load.gate + (ahead_ ? static_cast<std::int64_t>(steps_.size()) : 0) > done || !take(load.target.index())) return {};
      hand_over(load.target.index());
    }
  }

  void wait_for_loads(std::uint64_t count) {
    if (loaded_.count() >= count) return;
    const std::int64_t start = executor::wall_now_ns();
    loaded_.wait_for(count);
    stats_.stall_ns += executor::wall_now_ns() - start;
  }

  /// Of the plan's first `count` loads: how many a period runs.
  std::uint64_t streamed_before(std::uint32_t count) const {
    return static_cast<std::uint64_t>(
        std::count_if(plan_.loads.begin(), plan_.loads.begin() + count, [](const plan::Load& load) { return load.streamed(); }));
  }

  Status run_step(std::size_t i, std::uint64_t loads_before) {
    StepBuffers& buffers = steps_[i];
    executor::BoundStep& step = bound_.steps[i];
    for (const std::size_t buffer : buffers.begin) SLUICE_RETURN_IF_ERROR(take_or_slide(buffer));
    const std::uint64_t needed = loads_before + streamed_before(plan_.steps[i].loads_needed);
    while (grants_ < needed) SLUICE_RETURN_IF_ERROR(grant_next_load());
    for (const Pointer& pointer : buffers.pointers) {
      const std::byte* const address = arena_.data() + at_[pointer.buffer] + pointer.offset;
      std::memcpy(pointer.place, &address, sizeof address);
    }
    const std::optional<Pointer>& next = buffers.next_weights;
    if (next) step.call.next_weights = {arena_.data() + at_[next->buffer] + next->offset, step.call.next_weights.size()};
    wait_for_loads(needed);
    if (!step.prologue_only) step.run(step.call);
    if (i + 1 == steps_.size()) keep_outputs();
    for (const std::size_t buffer : buffers.end) pool_.give_back(buffer);
    return grant_open_loads(static_cast<std::int64_t>(i) + 1);
  }

  void keep_outputs() {
    outputs_.clear();
    for (std::size_t k = 0; k < bound_.outputs.size(); ++k) {
      const RowView& view = bound_.outputs[k];
      const plan::TensorPlacement& place = plan_.tensors[graph_.outputs[k].tensor.index()];
      const std::byte* const data = arena_.data() + at_[place.buffer.index()] + place.offset.count();
      outputs_.insert(outputs_.end(), data, data + view.rows * view.row_pitch);
    }
  }

  const model::Graph& graph_;
  const plan::Plan& plan_;
  Arena arena_;
  executor::BoundPlan bound_;
  plan::Plan addresses_;  // the loader's: offsets of its buffers as the pool gives them
  BestFitPool pool_;
  std::vector<std::uint64_t> at_;  // by buffer
  std::vector<StepBuffers> steps_;
  std::vector<plan::Load> loads_of_plan_;  // streamed
  std::vector<bool> none_held_;
  const executor::BoundGuards no_guards_;  // every load is read: its lane counts addresses, and guards count steps
  std::size_t next_ = 0;                   // load to be granted
  bool ahead_ = false;                     // and it is of the next run
  std::uint64_t grants_ = 0;
  std::uint64_t runs_ = 0;
  kernels::StepFault fault_;
  std::vector<std::byte> outputs_;
  Stats stats_;
  Lane granted_;  // two for each address
  Lane loaded_;
  executor::Loader loader_;
};

}  // namespace sluice::bench

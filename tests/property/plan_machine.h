// Runs a plan on symbols instead of numbers: every word of the arena holds the name of the value that lies there.
//
// Steps check that each element they read has the right name, then write the names of their output; loads write the names of the file's
// bytes; prepare steps write the names of transforms; what no live buffer covers is poisoned after every step. Loads run as early as their
// gates allow, wrapped ones in the tail of the run before, as late as possible, or at random in between. Shares no code with planner,
// verifier or executor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"

namespace sluice::plan {

class PlanMachine {
 public:
  enum class Loads : std::uint8_t { kEarly, kLate, kRandom };

  PlanMachine(const Plan& plan, const model::Graph& graph, Loads loads)
      : plan_(plan), graph_(graph), loads_(loads), arena_((plan.arena_bytes.count() + 3) / 4, kPoison), values_(graph.tensors.size()) {
    name_values();
  }

  /// Runs prologue and some periods. The empty string, or what went wrong.
  std::string run(int periods) {
    for (int period = 0; period <= periods && failure_.empty(); ++period) run_period(period == 0);
    return failure_;
  }

 private:
  static constexpr std::uint32_t kPoison = 0xdeadbeefu;

  struct View {
    std::int64_t rows, pixels, channels, base, row_pitch, pixel_pitch, slots;  // in words
    const PassingBlock* block = nullptr;                                       // of a tensor that passes: what of it is there
  };
  /// As the step under way has it.
  View view_of(TensorId t) const {
    const RowExtents e = row_extents(graph_.tensor(t).shape);
    for (const PassingBlock& b : plan_.blocks) {
      if (b.step != step_ || b.tensor != t) continue;
      const std::int64_t row_pitch = e.pixels * b.channels.size();
      const auto at = static_cast<std::int64_t>((plan_.buffer(plan_.steps[step_].workspace).offset + b.offset).count());
      return {e.rows, e.pixels, e.channels, at / 4 - b.rows.begin * row_pitch - b.channels.begin, row_pitch, b.channels.size(), e.rows, &b};
    }
    if (passes(t)) return {e.rows, e.pixels, e.channels, 0, 0, 0, e.rows};
    const TensorPlacement& p = plan_.tensors[t.index()];
    const auto base = static_cast<std::int64_t>((plan_.buffer(p.buffer).offset + p.offset).count());
    return {e.rows, e.pixels, e.channels, base / 4, p.row_pitch / 4, p.pixel_pitch / 4, p.ring_rows == 0 ? e.rows : p.ring_rows};
  }
  bool passes(TensorId t) const {
    return std::any_of(plan_.passing.begin(), plan_.passing.end(), [&](const PassingTensor& p) { return p.tensor == t; });
  }
  static std::size_t word(const View& v, std::int64_t row, std::int64_t pixel, std::int64_t channel) {
    return static_cast<std::size_t>(v.base + row % v.slots * v.row_pitch + pixel * v.pixel_pitch + channel);
  }
  bool constant(TensorId t) const { return graph_.tensor(t).weight.valid(); }

  // The name of each element: fresh for what a node computes, copied for what it moves.
  void name_values() {
    std::uint32_t next = 1;
    for (const model::Port& port : graph_.inputs) fresh(port.tensor, next);
    for (const model::Node& node : graph_.nodes) {
      const TensorId out = node.outputs[0];
      switch (node.op) {
        case model::OpKind::kReshape:
          values_[out.index()] = values_[node.inputs[0].index()];
          break;
        case model::OpKind::kConcat:
          name_concat(node);
          break;
        case model::OpKind::kSlice:
          name_slice(node);
          break;
        default:
          fresh(out, next);
      }
    }
  }
  void fresh(TensorId t, std::uint32_t& next) {
    values_[t.index()].resize(static_cast<std::size_t>(graph_.tensor(t).shape.element_count()));
    for (std::uint32_t& value : values_[t.index()]) value = next++;
  }
  void name_concat(const model::Node& node) {
    const int axis = node.as<model::AxisAttributes>().axis;
    const Shape& to = graph_.tensor(node.outputs[0]).shape;
    const std::int64_t outer = to.count(0, axis);
    std::vector<std::uint32_t>& out = values_[node.outputs[0].index()];
    for (std::int64_t o = 0; o < outer; ++o) {
      for (TensorId in : node.inputs) {
        const std::int64_t run = graph_.tensor(in).shape.count(axis, to.rank());
        const auto first = values_[in.index()].begin() + o * run;
        out.insert(out.end(), first, first + run);
      }
    }
  }
  void name_slice(const model::Node& node) {
    const auto& a = node.as<model::SliceAttributes>();
    const Shape& from = graph_.tensor(node.inputs[0]).shape;
    const Shape& to = graph_.tensor(node.outputs[0]).shape;
    std::vector<std::uint32_t>& out = values_[node.outputs[0].index()];
    for (std::int64_t i = 0; i < to.element_count(); ++i) {
      std::int64_t rest = i;
      std::int64_t at = 0;
      std::int64_t stride = 1;
      for (int axis = to.rank() - 1; axis >= 0; --axis) {
        const auto x = static_cast<std::size_t>(axis);
        at += (a.start[x] + rest % to[axis] * a.step[x]) * stride;
        rest /= to[axis];
        stride *= from[axis];
      }
      out.push_back(values_[node.inputs[0].index()][static_cast<std::size_t>(at)]);
    }
  }

  void run_period(bool prologue) {
    for (const model::Port& port : graph_.inputs)
      if (prologue || !plan_.buffer(plan_.tensors[port.tensor.index()].buffer).whole_period)
        move(port.tensor, {0, view_of(port.tensor).rows}, {0, view_of(port.tensor).channels}, true);
    next_load_ = wrapped_;
    wrapped_ = 0;
    const auto steps = static_cast<std::int64_t>(plan_.steps.size());
    for (std::size_t i = 0; i < plan_.steps.size() && failure_.empty(); ++i) {
      const auto now = static_cast<std::int64_t>(i);
      const bool runs = prologue || !plan_.steps[i].prepare;
      const std::size_t needed = runs ? plan_.steps[i].loads_needed : 0;
      while (next_load_ < plan_.loads.size() && (next_load_ < needed || (plan_.loads[next_load_].gate <= now && comes_early()))) {
        const Load& load = plan_.loads[next_load_++];
        if (load.gate > now) fail("a step waits for a load that waits for it");
        if (prologue || !(load.resident || load.prologue_only)) fill(load);
      }
      if (runs) run_step(i);
      if (plan_.repeat && next_load_ == plan_.loads.size()) run_wrapped(now + 1 - steps);
      poison_dead(now + 1);
    }
    for (const model::Port& port : graph_.outputs)
      if (!passes(port.tensor)) move(port.tensor, {0, view_of(port.tensor).rows}, {0, view_of(port.tensor).channels}, false);
  }

  /// Does the loader do now what it may do now?
  bool comes_early() {
    coins_ = coins_ * 1664525u + 1013904223u;
    return loads_ == Loads::kEarly || (loads_ == Loads::kRandom && coins_ >> 31 != 0);
  }

  /// Loads of the next run, `now` steps after its begin (less than none).
  void run_wrapped(std::int64_t now) {
    for (; wrapped_ < plan_.loads.size(); ++wrapped_) {
      const Load& load = plan_.loads[wrapped_];
      if (load.resident || load.prologue_only) continue;
      if (load.gate >= 0 || load.gate > now || !comes_early()) return;
      fill(load);
    }
  }

  void fill(const Load& load) {
    if (!inside(plan_.buffer(load.target))) return fail("a load writes outside the arena");
    const std::uint64_t to = plan_.buffer(load.target).offset.count();
    for (std::uint64_t x = 0; x < load.file.size.count(); x += 4)
      arena_[(to + x) / 4] = static_cast<std::uint32_t>((load.file.offset.count() + x) / 4) | 0x80000000u;
  }

  bool inside(const Buffer& buffer) const { return (buffer.offset + buffer.size).count() <= arena_.size() * 4; }

  /// Writes or checks a region of a tensor.
  void move(TensorId t, RowRange rows, ChannelRange channels, bool write) {
    const View v = view_of(t);
    if (passes(t)) {
      const PassingBlock* b = v.block;
      if (b == nullptr || rows.begin < b->rows.begin || rows.end > b->rows.end || channels.begin < b->channels.begin ||
          channels.end > b->channels.end)
        return fail("a step wants rows or channels that do not pass");
    } else if (word(v, std::min(v.rows, v.slots) - 1, v.pixels - 1, v.channels - 1) >= arena_.size())
      return fail("a tensor ends outside the arena");
    if (rows.end > v.rows || channels.end > v.channels) return fail("a step writes outside its tensor");
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      for (std::int64_t p = 0; p < v.pixels; ++p) {
        for (std::int64_t c = channels.begin; c < channels.end; ++c) {
          const std::uint32_t value = values_[t.index()][static_cast<std::size_t>((r * v.pixels + p) * v.channels + c)];
          if (write)
            arena_[word(v, r, p, c)] = value;
          else if (arena_[word(v, r, p, c)] != value)
            fail("tensor " + std::to_string(t.index()) + " does not hold its value");
        }
      }
    }
  }

  /// Does a step of `rows` read `row` of an input? A row of a window is asked for by each row of the output in turn, and by each tap of a
  /// transposed one; what is no window and has the output's shape but for channels is asked row by row; all else is read whole.
  bool reads_row(const model::Node& node, std::size_t input, RowRange rows, std::int64_t row) const {
    const TensorId in = node.inputs[input];
    if (node.op == model::OpKind::kConvTranspose) {
      const model::Window& w = node.as<model::ConvAttributes>().window;
      for (std::int64_t tap = 0; tap < w.kernel_h; ++tap)
        for (std::int64_t r = rows.begin; r < rows.end; ++r)
          if (row % w.in_h * w.stride_h - w.pad_top + tap * w.dilation_h == r % w.out_h && r / w.out_h == row / w.in_h) return true;
      return false;
    }
    if (node.op == model::OpKind::kAttention && input > 0) return true;
    const bool conv = node.op == model::OpKind::kConv;
    if (conv || node.op == model::OpKind::kPool) {
      const model::Window& w = conv ? node.as<model::ConvAttributes>().window : node.as<model::PoolAttributes>().window;
      for (std::int64_t r = rows.begin; r < rows.end; ++r)
        for (std::int64_t tap = 0; tap < w.kernel_h && r / w.out_h == row / w.in_h; ++tap)
          if (r % w.out_h * w.stride_h - w.pad_top + tap * w.dilation_h == row % w.in_h) return true;
      return false;
    }
    const RowExtents from = row_extents(graph_.tensor(in).shape);
    const RowExtents to = row_extents(graph_.tensor(node.outputs[0]).shape);
    const bool moves = node.op == model::OpKind::kSlice || node.op == model::OpKind::kReshape;
    return moves || from.rows != to.rows || from.pixels != to.pixels || rows.contains(row);
  }

  void run_step(std::size_t i) {
    const Step& step = plan_.steps[i];
    const model::Node& node = graph_.node(step.node);
    step_ = i;
    poison_workspace(i);
    for (const PassingBlock& block : plan_.blocks)
      if (block.step == i && block.passage == Passage::kFetched) pass(block, true);
    for (std::size_t k = 0; k < node.inputs.size() && !step.prepare; ++k) {
      const TensorId in = node.inputs[k];
      if (constant(in)) continue;
      const bool residual = node.epilogue.has_residual && k + 1 == node.inputs.size();
      if (residual)
        move(in, step.rows, step.channels, false);
      else
        for (std::int64_t row = 0; row < view_of(in).rows; ++row)
          if (reads_row(node, k, step.rows, row)) move(in, {row, row + 1}, {0, view_of(in).channels}, false);
    }
    for (std::uint32_t o = step.first_operand; o < step.first_operand + step.operand_count; ++o) {
      const WeightOperand& operand = plan_.operands[o];
      const Load& load = plan_.loads[operand.load.index()];
      const model::FileRange range = model::panel_range(graph_.weight(operand.weight), operand.panels);
      if (!inside(plan_.buffer(load.target)) || range.offset < load.file.offset || range.end() > load.file.end())
        return fail("a load does not bring a weight");
      const std::uint64_t at = (plan_.buffer(load.target).offset + (range.offset - load.file.offset)).count();
      for (std::uint64_t x = 0; x < range.size.count(); x += 4)
        if (arena_[(at + x) / 4] != (static_cast<std::uint32_t>((range.offset.count() + x) / 4) | 0x80000000u))
          fail("a weight is not in memory");
    }
    if (step.derived.buffer.valid()) touch_derived(step);
    if (step.prepare) return;
    if (step.sums.valid()) touch_sums(step);
    const bool unfinished = step.sums.valid() && step.reduction.end < model::reduction_of(graph_, node);
    if (!unfinished) move(node.outputs[0], step.rows, step.channels, true);
    poison_workspace(i);
    for (const PassingBlock& block : plan_.blocks) {
      if (block.step != i) continue;
      if (block.passage == Passage::kStored) pass(block, false);
      if (block.passage == Passage::kHandedOver) move(block.tensor, block.rows, block.channels, false);
    }
  }

  /// A step may write its workspace before it reads anything, and after it has written its output.
  void poison_workspace(std::size_t i) {
    if (!plan_.steps[i].workspace.valid()) return;
    const Buffer& workspace = plan_.buffer(plan_.steps[i].workspace);
    if (!inside(workspace)) return fail("a workspace ends outside the arena");
    Bytes own = workspace.size;
    for (const PassingBlock& block : plan_.blocks)
      if (block.step == i) own = std::min(own, block.offset);
    for (std::uint64_t x = 0; x < own.count(); x += 4) arena_[(workspace.offset.count() + x) / 4] = kPoison;
  }

  /// Rows of the scratch file, to and from a workspace.
  void pass(const PassingBlock& block, bool fetched) {
    if (!inside(plan_.buffer(plan_.steps[block.step].workspace))) return fail("a workspace ends outside the arena");
    const View v = view_of(block.tensor);
    std::vector<std::uint32_t>& file = scratch_[block.tensor.index()];
    file.resize(static_cast<std::size_t>(v.rows * v.pixels * v.channels), kPoison);
    for (std::int64_t r = block.rows.begin; r < block.rows.end; ++r)
      for (std::int64_t p = 0; p < v.pixels; ++p)
        for (std::int64_t c = block.channels.begin; c < block.channels.end; ++c) {
          std::uint32_t& stored = file[static_cast<std::size_t>((r * v.pixels + p) * v.channels + c)];
          std::uint32_t& there = arena_[word(v, r, p, c)];
          (fetched ? there : stored) = fetched ? stored : there;
        }
  }

  /// Unfinished sums: the name of each word says which they are and how many products they have.
  void touch_sums(const Step& step) {
    const Buffer& buffer = plan_.buffer(step.sums);
    if (!inside(buffer)) return fail("unfinished sums end outside the arena");
    const auto node = static_cast<std::uint32_t>(step.node.index());
    const std::uint32_t name = 0x20000000u + node * 0x10001u + static_cast<std::uint32_t>(step.rows.begin * 31 + step.channels.begin);
    for (std::uint64_t x = 0; x < buffer.size.count() / 4; ++x) {
      std::uint32_t& word = arena_[buffer.offset.count() / 4 + x];
      const auto named = [&](std::int64_t products) { return name + static_cast<std::uint32_t>(products) * 0x1000193u; };
      if (step.reduction.begin > 0 && word != named(step.reduction.begin)) fail("unfinished sums are not in memory");
      word = named(step.reduction.end);
    }
  }

  /// A transform: each word of the buffer has a name of its own, made of weight, first panel and place.
  void touch_derived(const Step& step) {
    const Buffer& buffer = plan_.buffer(step.derived.buffer);
    if (!inside(buffer)) return fail("a transform ends outside the arena");
    const auto weight = static_cast<std::uint32_t>(graph_.node(step.node).weights.front().index());
    const std::uint32_t name = 0x40000000u + weight * 0x10001u + static_cast<std::uint32_t>(step.derived.panels.begin) * 0x1000193u;
    for (std::uint64_t x = 0; x < buffer.size.count() / 4; ++x) {
      std::uint32_t& word = arena_[buffer.offset.count() / 4 + x];
      const std::uint32_t value = name + static_cast<std::uint32_t>(x) * 31u;
      if (step.prepare)
        word = value;
      else if (word != value)
        fail("a transform is not in memory");
    }
  }

  void poison_dead(std::int64_t now) {
    const auto steps = static_cast<std::int64_t>(plan_.steps.size());
    std::vector<Interval<std::uint64_t>> live;  // in words
    for (const Buffer& b : plan_.buffers)
      if (b.whole_period || b.lifetime.contains(now) || (now == steps && b.lifetime.end == steps) ||
          (b.lifetime.begin < 0 && b.lifetime.contains(now - steps)))
        live.push_back({b.offset.count() / 4, (b.offset + b.size).count() / 4});
    std::sort(live.begin(), live.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::uint64_t from = 0;
    for (const auto& run : live) {
      if (run.begin > from) std::fill(arena_.begin() + from, arena_.begin() + run.begin, kPoison);
      from = std::max(from, run.end);
    }
    if (from < arena_.size()) std::fill(arena_.begin() + from, arena_.end(), kPoison);
  }

  void fail(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }

  const Plan& plan_;
  const model::Graph& graph_;
  const Loads loads_;
  std::uint32_t coins_ = 1;
  std::vector<std::uint32_t> arena_;
  std::vector<std::vector<std::uint32_t>> values_;             // by tensor: the names of its elements, dense
  std::size_t step_ = 0;                                       // under way
  std::map<std::size_t, std::vector<std::uint32_t>> scratch_;  // by tensor: what is spilled
  std::string failure_;
  std::size_t next_load_ = 0;
  std::size_t wrapped_ = 0;  // loads of the next run that ran already, and those before them
};

}  // namespace sluice::plan

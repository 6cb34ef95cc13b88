// How large slices and loads may be: by the rule's aim, and by the room beside the node that is being cut.
//
//     room     |-------------------------------|          depth x (slice + rounding) + beside + workspace of a slice <= room
//              |beside|workspace| slice | slice|          beside: the node's other weights, and what it holds of this one
//
// Invariant: sizes are whole stretches; where the room is too small for one, one it is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight.h"
#include "sluice/planner/cut/schedule.h"
#include "sluice/planner/cut/weight_pieces.h"
#include "sluice/planner/order/chain.h"
#include "sluice/planner/order/select_kernels.h"

namespace sluice::planner {

/// Reads of this size run at half the disk's rate (0.08 ms of latency, 0.09 ms of bytes): smaller ones would not come sooner.
inline constexpr std::uint64_t kFirstLoadBytes = 128u << 10;

/// An aim for slices, a power of two from 64 KiB on: 4 MiB, less where that leaves a model few of them.
inline std::uint64_t middle_target(const Pieces& pieces) noexcept {
  constexpr std::uint64_t kLeast = 64u << 10, kLargest = 4u << 20, kSlices = 32;
  const std::uint64_t bytes = weight_bytes(pieces);
  std::uint64_t target = kLeast;
  while (target < kLargest && 2 * target * kSlices <= bytes) target *= 2;
  return target;
}

/// How large loads may be.
struct SliceRule {
  std::uint64_t target = 4u << 20;  // aim; 1 cuts as finely as the format allows
  bool span_nodes = true;           // one load may serve several nodes
  bool ramp = true;                 // the first loads are small, each twice the one before: compute starts early
  /// By position: the bytes beside its activations, for `depth` loads, its other weights and its workspace; empty: no limit.
  std::vector<std::uint64_t> room = {};
  std::uint64_t depth = 1;
  /// Weights that a node reads again each turn (model::rows_of_turn) are held while the node runs, as far as the room allows.
  bool hold = true;
  int threads = 1;                 // that workspaces are asked for
  std::vector<bool> derived = {};  // by position: its first weight is kept transformed; empty: none is
  const Pieces* pieces = nullptr;
  std::vector<bool> kept = {};                 // by piece; empty: none is
  bool keeps_all = false;                      // every load will be kept: nothing is read in a step
  const std::vector<Chain>* chains = nullptr;  // none: every node's rows stay together
  bool sample = false;                         // of slices alike only the largest is listed: enough to know what memory all of them take
};

namespace detail {

/// A run of stretches of the weight being cut.
struct Part {
  std::size_t begin;
  std::size_t end;
  std::uint32_t load;  // that brings it, or kNoLoad
};
inline constexpr std::uint32_t kNoLoad = ~0u;

class SliceSizes {
 public:
  SliceSizes(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order, const SliceRule& rule)
      : graph_(graph), kernels_(kernels), order_(order), rule_(rule) {}

  /// Bytes that a region takes beyond its content: it is rounded up at both ends; one that expands is rounded at its end alone, and has two
  /// blocks more.
  std::uint64_t rounding() const noexcept { return (graph_.codes.empty() ? 2 : 3) * kBlockBytes; }

  /// The node that is cut next, and what it reads.
  void begin(std::size_t position, const std::vector<WeightId>& reads) {
    position_ = position;
    beside_ = bytes_beside(reads);
  }

  /// The same for a node that looks the first `own` of them up, or whose subgraphs read them: what else it reads lies beside them.
  void begin_bodies(std::size_t position, const std::vector<WeightId>& reads, std::size_t own) {
    position_ = position;
    beside_ = regions_from(own, reads);
  }

  /// Bytes that its own weights may take.
  std::uint64_t room_of_bodies() const {
    if (rule_.room.empty()) return ~std::uint64_t{0};
    const std::uint64_t taken = beside_ + workspace(all_channels()) + kBlockBytes;
    return rule_.room[position_] - std::min(rule_.room[position_], taken);
  }

  /// Bytes of a weight that is whole in memory.
  std::uint64_t held_region(const model::Weight& weight) const noexcept { return weight.bytes.count() + rounding(); }

  /// `bytes` more lie beside each slice.
  void hold(std::uint64_t bytes) noexcept { beside_ += bytes + rounding(); }

  /// What a load may have by the rule's aim when it is the `turn`-th of the run.
  std::uint64_t aim(std::size_t turn) const noexcept {
    return rule_.ramp && turn < 16 ? std::min(rule_.target, kFirstLoadBytes << turn) : rule_.target;
  }

  /// Do loads of `bytes` and the workspace of a step of `channels` find room?
  bool fits(std::uint64_t bytes, ChannelRange channels) const {
    if (rule_.room.empty()) return true;
    return rule_.depth * (bytes + rounding()) + beside_ + workspace(channels) <= rule_.room[position_];
  }

  /// Bytes that small weights may fill together.
  std::uint64_t limit(std::size_t turn) const {
    if (rule_.room.empty()) return aim(turn);
    const std::uint64_t taken = beside_ + workspace(all_channels()) + rule_.depth * rounding();
    const std::uint64_t room = rule_.room[position_];
    return std::min(aim(turn), (room - std::min(room, taken)) / rule_.depth);
  }

  ChannelRange all_channels() const { return {0, model::step_channels(graph_, node())}; }

  /// Can the node's first weight come slice by slice?
  bool may_cut() const { return cuts_channels(graph_, node(), kernel()); }

  /// How often a node that is cut reads its first weight.
  std::int64_t turns() const {
    const std::int64_t rows = model::rows_of_turn(graph_, node());
    return rows == 0 ? 1 : row_extents(graph_.tensor(node().outputs[0]).shape).rows / rows;
  }

  /// How much of its first weight a node may hold while slices of `streamed` bytes come and go.
  std::uint64_t held_bytes(std::uint64_t streamed) const {
    if (rule_.room.empty()) return ~std::uint64_t{0};
    const std::uint64_t taken =
        beside_ + workspace(all_channels()) + rounding() + (streamed == 0 ? 0 : rule_.depth * (streamed + rounding()));
    return rule_.room[position_] - std::min(rule_.room[position_], taken);
  }

  /// What a slice of a weight that is read again each turn aims at: at least as much as the plan's tables of all its loads take.
  std::uint64_t turn_aim() const {
    constexpr double kTableBytes = 1024;  // of a load, its step, operand and buffers
    const std::int64_t all = turns();
    if (all <= 1) return 0;
    const double balanced = std::sqrt(kTableBytes * static_cast<double>(first_weight().bytes.count()) * static_cast<double>(all));
    return std::max(std::min<std::uint64_t>(rule_.target, 1u << 20), static_cast<std::uint64_t>(balanced));
  }

  /// Makes known where the stretches of the first weight begin: what follows is asked after this.
  void measure_stretches() {
    first_panel_.assign(1, 0);
    const model::Weight& weight = first_weight();
    const auto each = static_cast<std::int64_t>(std::max<std::uint64_t>(1, model::kStretchBytes.count() / weight.panel_bytes.count()));
    for (std::uint32_t s = 0; s < weight.stretch_count; ++s) first_panel_.push_back(std::min(first_panel_.back() + each, weight.panels));
  }

  /// The size of the largest stretch: all but the last are equal, except those of sparse panels.
  std::uint64_t stretch_bytes() const {
    std::uint64_t most = 0;
    for (const model::Stretch& s : graph_.stretches_of(first_weight())) most = std::max(most, Bytes(s.raw_size).count());
    return most;
  }
  PanelRange panels_of(std::size_t begin, std::size_t end) const { return {first_panel_[begin], first_panel_[end]}; }
  ChannelRange channels_of(PanelRange panels) const {
    return model::channels_of_panels(panels, model::outputs_per_group(node()), all_channels().end);
  }

  bool slice_fits(const Part& part, Interval<std::size_t> slice) const {
    const std::uint64_t bytes = part.load == kNoLoad ? slice.size() * stretch_bytes() : 0;
    return fits(bytes, channels_of(panels_of(slice.begin, slice.end)));
  }

  /// Runs of stretches of a part: as large as the aim lets each be at its turn and the room allows, and as even as that leaves them.
  std::vector<Interval<std::size_t>> slices_of(const Part& part, std::size_t turn) const {
    if (!may_cut()) return {{part.begin, part.end}};
    const std::uint64_t stretch = stretch_bytes();
    const bool pairs = first_panel_[1] % 2 != 0 && 2 * stretch <= slice_target(turn) && fits(2 * stretch, channels_of({0, 2}));
    const std::size_t unit = pairs ? 2 : 1;
    const std::size_t units = (part.end - part.begin + unit - 1) / unit;
    const std::size_t most = most_units(part, unit, units);
    std::vector<Interval<std::size_t>> slices;
    for (std::size_t done = 0; done < units;) {
      std::size_t each = most;
      if (part.load == kNoLoad)
        each = std::min(each, std::max<std::size_t>(1, static_cast<std::size_t>(slice_target(turn + slices.size()) / (unit * stretch))));
      const std::size_t left = (units - done + each - 1) / each;
      const std::size_t next = done + (units - done + left - 1) / left;
      slices.push_back({part.begin + done * unit, std::min(part.begin + next * unit, part.end)});
      done = next;
    }
    return slices;
  }

  /// The workspace of a step of these channels.
  std::uint64_t workspace(ChannelRange channels) const {
    const RowRange rows{0, row_extents(graph_.tensor(node().outputs[0]).shape).rows};
    const bool derived = !rule_.derived.empty() && rule_.derived[position_];
    return kernels_.workspace_bytes(order_[position_], {rows, channels, rule_.threads, derived});
  }

 private:
  const model::Node& node() const noexcept { return graph_.node(order_[position_]); }
  const kernels::KernelDescriptor& kernel() const noexcept { return *kernels_[order_[position_].index()]; }
  const model::Weight& first_weight() const noexcept { return graph_.weight(node().weights[0]); }

  /// Bytes that must be in memory besides a slice of the node's first weight.
  std::uint64_t bytes_beside(const std::vector<WeightId>& reads) const { return regions_from(node().weights.empty() ? 0 : 1, reads); }

  std::uint64_t regions_from(std::size_t first, const std::vector<WeightId>& reads) const {
    std::uint64_t bytes = 0;
    for (std::size_t i = first; i < reads.size(); ++i)
      if (!graph_.weight(reads[i]).always_resident && !kernels_.held_outside(reads[i])) bytes += held_region(graph_.weight(reads[i]));
    return bytes;
  }

  std::uint64_t slice_target(std::size_t turn) const {
    const std::uint64_t by_turns = turn_aim();
    return by_turns == 0 ? aim(turn) : by_turns;
  }

  /// How many units of stretches the room lets a slice have.
  std::size_t most_units(const Part& part, std::size_t unit, std::size_t units) const {
    for (std::size_t slices = 1; slices < units; slices += 1 + slices / 8) {
      const std::size_t each = (units + slices - 1) / slices;
      if (slice_fits(part, {part.begin, std::min(part.begin + each * unit, part.end)})) return each;
    }
    return 1;
  }

  const model::Graph& graph_;
  const KernelChoice& kernels_;
  const std::vector<NodeId>& order_;
  const SliceRule& rule_;
  std::size_t position_ = 0;               // of the node being cut
  std::uint64_t beside_ = 0;               // bytes beside a slice of it
  std::vector<std::int64_t> first_panel_;  // of each stretch of its first weight, and the end
};

}  // namespace detail

}  // namespace sluice::planner

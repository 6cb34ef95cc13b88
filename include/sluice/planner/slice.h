// Pass: cuts streamed weights into loads, and the nodes that they belong to into steps.
//
//     file     | conv1 |  conv2          | bias2 | conv3 | conv4 |        weights in the file
//     loads    [   0   ][  1  ][  2  ][3]        [       4       ]        whole stretches, up to a target size
//     steps    [ conv1 ][conv2 c0-64][conv2 c64-128][conv3][conv4]
//
// Small weights share a load; a weight that is too large for one becomes several, and its node as many steps, if its kernel takes slices
// of the output channels. Slices are equal runs of stretches, pairs of panels where that costs nothing (a lone panel runs at 86 %).
// A node whose weights are kept transformed gets a prepare step before each of its steps:
//
//     prologue [load raw p0-8][prepare: raw -> derived 0][conv c0-128 reads derived 0][load raw p8-16][prepare] ...
//     period                                             [conv c0-128 reads derived 0]                          ...
//
// Nodes of a chain (planner/chain.h) are not cut by channels: each of their bands reads the whole weight, which stays until the last one
// has. A piece that is kept (planner/pieces.h) is one resident load, and its node is cut no further than its workspace asks for.
// The weights of a node with bodies are held while it runs, as far as they find room; its step reads the others by itself, in each turn, into
// a window beside its workspace (ADR 0013).
// Invariants: a step's panels of a weight lie whole in one load; loads are ordered by first use; a load's payload is adjacent in the file;
// steps follow the execution order; rows and channels of a node's steps tile its output; what a prepare step reads is prologue-only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight.h"
#include "sluice/planner/chain.h"
#include "sluice/planner/derive.h"
#include "sluice/planner/pieces.h"
#include "sluice/planner/select_kernels.h"

namespace sluice::planner {

/// Reads of this size run at half the disk's rate (0.08 ms of latency, 0.09 ms of bytes): smaller ones would not come sooner.
inline constexpr std::uint64_t kFirstLoadBytes = 128u << 10;
inline constexpr std::uint32_t kNotDerived = ~0u;
inline constexpr std::uint32_t kNoPiece = ~0u;
inline constexpr std::uint32_t kReadInStep = ~0u;  // as a load: the step reads the weight by itself

struct OperandSpec {
  WeightId weight;
  PanelRange panels;
  std::uint32_t load = 0;
};

struct StepSpec {
  std::size_t position = 0;  // in the order of nodes that have steps
  ChannelRange channels;
  std::uint32_t first_operand = 0;
  std::uint32_t operand_count = 0;
  std::uint32_t loads_needed = 0;
  bool prepare = false;
  RowRange rows = {};                   // of the output; empty: all
  std::uint32_t derived = kNotDerived;  // index into Schedule::derived: what a prepare step writes and another reads
  std::uint64_t far_bytes = 0;          // see BandStep
  std::uint64_t window = 0;             // bytes beside its workspace for weights that it reads by itself
};

/// The rows of the output that a step writes.
inline RowRange rows_of(const model::Graph& graph, const model::Node& node, const StepSpec& step) noexcept {
  return step.rows.empty() ? RowRange{0, row_extents(graph.tensor(node.outputs[0]).shape).rows} : step.rows;
}

/// Transformed panels of one step, kept in place of the raw ones.
struct DerivedSpec {
  PanelRange panels;
  std::uint64_t bytes = 0;  // of the buffer
};

struct LoadSpec {
  std::uint32_t first_stretch = 0;
  std::uint32_t stretch_count = 0;
  model::FileRange payload;
  Interval<std::int64_t> uses;  // steps
  bool resident = false;
  bool prologue_only = false;      // for a prepare step
  std::uint32_t piece = kNoPiece;  // resident: the piece that it keeps, if it is one

  bool streamed() const noexcept { return !resident && !prologue_only; }
  std::uint64_t file_begin() const noexcept { return align_down(payload.offset.count(), kBlockBytes); }
  std::uint64_t region_bytes() const noexcept { return align_up(payload.end().count(), kBlockBytes) - file_begin(); }
};

/// Steps and loads without gates and addresses.
struct Schedule {
  std::vector<StepSpec> steps;
  std::vector<OperandSpec> operands;
  std::vector<LoadSpec> loads;
  std::vector<DerivedSpec> derived;
  std::vector<Interval<std::int64_t>> steps_of;  // by position; those of a chain have the chain's in common

  std::int64_t step_count() const noexcept { return static_cast<std::int64_t>(steps.size()); }
};

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
  const std::vector<Chain>* chains = nullptr;  // none: every node's rows stay together
};

namespace detail {

class Cutter {
 public:
  Cutter(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order, const SliceRule& rule)
      : graph_(graph),
        kernels_(kernels),
        order_(order),
        rule_(rule),
        load_of_(graph.weights.size(), kNoLoad),
        readers_(graph.weights.size(), 0),
        slices_of_(graph.weights.size()) {}

  Schedule cut() {
    std::vector<std::vector<WeightId>> reads(order_.size());
    for (std::size_t p = 0; p < order_.size(); ++p) {
      model::weights_read_by(graph_, graph_.node(order_[p]), reads[p]);
      for (WeightId w : reads[p]) ++readers_[w.index()];
    }
    load_resident_segment();
    for (std::size_t p = 0; p < order_.size();) {
      const std::int64_t first = schedule_.step_count();
      const Chain* chain = rule_.chains == nullptr ? nullptr : chain_of(*rule_.chains, p);
      const std::size_t next = chain == nullptr ? p + 1 : chain->end;
      chain == nullptr ? cut_node(p, reads[p]) : run_chain(*chain, reads);
      for (; p < next; ++p) schedule_.steps_of.push_back({first, schedule_.step_count()});
    }
    return std::move(schedule_);
  }

 private:
  static constexpr std::uint32_t kNoLoad = ~0u;
  static constexpr std::uint64_t kRounding = 2 * kBlockBytes;  // a region is rounded at both ends

  /// What a load may have by the rule's aim when `more` others are made before it.
  std::uint64_t aim(std::size_t more = 0) const noexcept {
    const std::size_t turn = streamed_ + more;
    return rule_.ramp && turn < 16 ? std::min(rule_.target, kFirstLoadBytes << turn) : rule_.target;
  }

  /// Do loads of `bytes` and the workspace of a step of `channels` find room at the position?
  bool fits(std::size_t position, std::uint64_t bytes, ChannelRange channels) const {
    if (rule_.room.empty()) return true;
    return rule_.depth * (bytes + kRounding) + beside_ + workspace(position, channels) <= rule_.room[position];
  }

  std::uint64_t workspace(std::size_t position, ChannelRange channels) const {
    const NodeId id = order_[position];
    const kernels::KernelDescriptor& kernel = *kernels_[id.index()];
    if (kernel.workspace == nullptr) return 0;
    const model::Node& node = graph_.node(id);
    return kernel.workspace(graph_, node, {all_rows(position), channels, rule_.threads, derives(position)}).count();
  }

  /// What small weights may fill together.
  std::uint64_t limit(std::size_t position) const {
    if (rule_.room.empty()) return aim();
    const std::uint64_t taken = beside_ + workspace(position, all_channels(position)) + rule_.depth * kRounding;
    const std::uint64_t room = rule_.room[position];
    return std::min(aim(), (room - std::min(room, taken)) / rule_.depth);
  }

  RowRange all_rows(std::size_t position) const {
    return {0, row_extents(graph_.tensor(graph_.node(order_[position]).outputs[0]).shape).rows};
  }

  ChannelRange all_channels(std::size_t position) const { return {0, model::step_channels(graph_, graph_.node(order_[position]))}; }

  // Weights of less than 16 KiB lie together: one load, or a few so that the first step need not wait for all of them.
  void load_resident_segment() {
    std::vector<std::size_t> weights;
    for (std::size_t w = 0; w < graph_.weights.size(); ++w)
      if (graph_.weights[w].always_resident && readers_[w] > 0) weights.push_back(w);
    std::sort(weights.begin(), weights.end(),
              [&](std::size_t a, std::size_t b) { return graph_.weights[a].offset < graph_.weights[b].offset; });
    open_limit_ = 4u << 20;
    for (std::size_t w : weights) {
      const model::Weight& weight = graph_.weights[w];
      load_of_[w] = append(weight.first_stretch, weight.stretch_count, weight.range(), open_limit_, true);
      schedule_.loads[load_of_[w]].resident = true;
    }
    open_ = false;
    streamed_ = 0;
  }

  /// Puts stretches into the open load if they continue it and fit, else into a new one. Returns the load.
  std::uint32_t append(std::uint32_t first_stretch, std::uint32_t count, model::FileRange range, std::uint64_t most, bool may_join) {
    if (open_ && may_join) {
      LoadSpec& load = schedule_.loads.back();
      const std::uint64_t joined_limit = std::min(open_limit_, most);
      const bool adjacent = load.first_stretch + load.stretch_count == first_stretch && range.offset >= load.payload.end() &&
                            (range.offset - load.payload.end()).count() < kBlockBytes;
      if (adjacent && (range.end() - load.payload.offset).count() <= joined_limit) {
        load.stretch_count += count;
        load.payload.size = range.end() - load.payload.offset;
        open_limit_ = joined_limit;
        return static_cast<std::uint32_t>(schedule_.loads.size() - 1);
      }
    }
    schedule_.loads.push_back({first_stretch, count, range, {0, 0}, false});
    ++streamed_;
    open_limit_ = most;
    open_ = true;
    return static_cast<std::uint32_t>(schedule_.loads.size() - 1);
  }

  bool derives(std::size_t position) const noexcept { return !rule_.derived.empty() && rule_.derived[position]; }

  bool kept(std::uint32_t piece) const noexcept { return !rule_.kept.empty() && rule_.kept[piece]; }

  Interval<std::uint32_t> pieces_of(WeightId w) const noexcept {
    return rule_.pieces == nullptr ? Interval<std::uint32_t>{} : rule_.pieces->of_weight[w.index()];
  }

  /// Bytes that must lie in memory beside a slice of the node's first weight.
  std::uint64_t bytes_beside(std::size_t position, const std::vector<WeightId>& reads) const {
    const bool first_is_cut = !graph_.node(order_[position]).weights.empty();
    std::uint64_t bytes = 0;
    for (std::size_t i = first_is_cut ? 1 : 0; i < reads.size(); ++i) {
      const model::Weight& weight = graph_.weight(reads[i]);
      if (!weight.always_resident) bytes += weight.bytes.count() + kRounding;
    }
    return bytes;
  }

  /// Is the node's first weight taken slice by slice? Its loads or its workspace may ask for that, or pieces of which some are kept.
  bool sliced(std::size_t position) const {
    const model::Node& node = graph_.node(order_[position]);
    if (node.weights.empty() || graph_.weight(node.weights[0]).always_resident) return false;
    if (derives(position)) return true;
    if (!cuts_channels(graph_, node, *kernels_[order_[position].index()])) return false;
    if (turns(position) > 1 && rule_.hold) return held_bytes(position, 0) < graph_.weight(node.weights[0]).bytes.count();
    const Interval<std::uint32_t> pieces = pieces_of(node.weights[0]);
    if (pieces.size() > 1 && std::any_of(rule_.kept.begin() + (rule_.kept.empty() ? 0 : pieces.begin),
                                         rule_.kept.begin() + (rule_.kept.empty() ? 0 : pieces.end), [](bool k) { return k; }))
      return true;
    const std::uint64_t bytes = graph_.weight(node.weights[0]).bytes.count();
    const bool stays = pieces.size() == 1 && kept(pieces.begin);
    return (!stays && bytes > aim()) || !fits(position, stays ? 0 : bytes, all_channels(position));
  }

  /// How often a node that is cut reads its first weight.
  std::int64_t turns(std::size_t position) const {
    const model::Node& node = graph_.node(order_[position]);
    const std::int64_t rows = model::rows_of_turn(graph_, node);
    return rows == 0 ? 1 : row_extents(graph_.tensor(node.outputs[0]).shape).rows / rows;
  }

  /// How much of its first weight a node may hold while slices of `streamed` bytes come and go.
  std::uint64_t held_bytes(std::size_t position, std::uint64_t streamed) const {
    if (rule_.room.empty()) return ~std::uint64_t{0};
    const std::uint64_t taken =
        beside_ + workspace(position, all_channels(position)) + kRounding + (streamed == 0 ? 0 : rule_.depth * (streamed + kRounding));
    return rule_.room[position] - std::min(rule_.room[position], taken);
  }

  void cut_node(std::size_t position, const std::vector<WeightId>& reads) {
    if (weight_turns(graph_, graph_.node(order_[position]), *kernels_[order_[position].index()]) > 0) return run_bodies(position, reads);
    beside_ = bytes_beside(position, reads);
    const bool cut = sliced(position);
    for (std::size_t i = 0; i < reads.size(); ++i)
      if (i > 0 || !cut) load_whole(position, reads[i]);
    if (!cut) {
      add_step(position, all_channels(position), reads, WeightId::invalid(), {}, 0);
      return;
    }
    cut_weight(position, reads);
    open_ = false;
  }

  /// Bytes that a held weight takes.
  std::uint64_t held_region(WeightId w) const { return graph_.weight(w).bytes.count() + kRounding; }

  /// Of a node with bodies: chooses what is held, in the order of use, and what its step reads by itself.
  void run_bodies(std::size_t position, const std::vector<WeightId>& reads) {
    const std::size_t own = graph_.node(order_[position]).weights.size();
    beside_ = 0;
    for (std::size_t i = own; i < reads.size(); ++i)
      if (!graph_.weight(reads[i]).always_resident) beside_ += held_region(reads[i]);
    std::uint64_t all = 0, least = 0, largest = 0;
    std::vector<bool> in_step(reads.size(), false);
    for (std::size_t i = 0; i < own; ++i) {
      const model::Weight& weight = graph_.weight(reads[i]);
      const Interval<std::uint32_t> pieces = pieces_of(reads[i]);
      in_step[i] = !weight.always_resident && (pieces.empty() || !kept(pieces.begin));
      if (!in_step[i] || first_of(reads, i) < i) continue;
      all += held_region(reads[i]);
      least = std::max(least, model::least_piece(graph_, weight).count());
      largest = std::max(largest, model::piece_region(weight.bytes).count());
    }
    const std::uint64_t taken = beside_ + workspace(position, all_channels(position)) + kBlockBytes;
    const bool limited = !rule_.room.empty();
    std::uint64_t room = limited ? rule_.room[position] - std::min(rule_.room[position], taken) : ~std::uint64_t{0};
    std::uint64_t window = 0;
    if (!rule_.hold || room < all) {
      const std::uint64_t good = 2 * std::min(largest, std::max(least, align_up(rule_.target, kBlockBytes)));
      window = rule_.hold && room >= good ? good : rule_.hold && room >= 2 * least ? 2 * least : least;
      room = rule_.hold ? room - std::min(room, window) : 0;
    }
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const std::size_t first = first_of(reads, i);
      if (first < i && i < own) {
        in_step[i] = in_step[first];
        continue;
      }
      if (in_step[i] && room >= held_region(reads[i])) {
        in_step[i] = false;
        room -= held_region(reads[i]);
      }
      if (!in_step[i]) load_whole(position, reads[i]);
    }
    StepSpec step{position, all_channels(position), static_cast<std::uint32_t>(schedule_.operands.size()), 0, 0};
    step.window = std::find(in_step.begin(), in_step.end(), true) == in_step.end() ? 0 : window;
    for (std::size_t i = 0; i < reads.size(); ++i)
      add_operand(step, {reads[i], {0, graph_.weight(reads[i]).panels}, in_step[i] ? kReadInStep : load_of_[reads[i].index()]});
    schedule_.steps.push_back(step);
  }

  static std::size_t first_of(const std::vector<WeightId>& reads, std::size_t i) {
    return static_cast<std::size_t>(std::find(reads.begin(), reads.end(), reads[i]) - reads.begin());
  }

  /// Brings the weights of all its nodes, then lists its steps.
  void run_chain(const Chain& chain, const std::vector<std::vector<WeightId>>& reads) {
    std::vector<std::uint32_t> derived(chain.end - chain.first, kNotDerived);
    for (std::size_t p = chain.first; p < chain.end; ++p) {
      beside_ = bytes_beside(p, reads[p]);
      for (std::size_t i = derives(p) ? 1 : 0; i < reads[p].size(); ++i) load_whole(p, reads[p][i]);
      if (!derives(p)) continue;
      const model::Weight& weight = graph_.weight(reads[p][0]);
      const std::uint32_t load = append(weight.first_stretch, weight.stretch_count, weight.range(), aim(), false);
      schedule_.loads[load].prologue_only = true;
      open_ = false;
      derived[p - chain.first] = static_cast<std::uint32_t>(schedule_.derived.size());
      add_prepare_step(p, all_channels(p), {reads[p][0], {0, weight.panels}, load});
    }
    open_ = false;
    for (const BandStep& step : chain.steps) {
      const std::size_t p = step.position;
      const std::uint32_t from = derived[p - chain.first];
      rows_ = step.rows;
      add_step(p, all_channels(p), reads[p], from == kNotDerived ? WeightId::invalid() : reads[p][0], {}, 0, from);
      schedule_.steps.back().far_bytes = step.far_bytes;
    }
    rows_ = {};
  }

  void load_whole(std::size_t position, WeightId w) {
    const model::Weight& weight = graph_.weight(w);
    if (weight.always_resident) return;
    const Interval<std::uint32_t> pieces = pieces_of(w);
    if (!pieces.empty() && kept(pieces.begin)) {
      load_of_[w.index()] = load_piece(pieces.begin);
      return;
    }
    const bool shared = readers_[w.index()] > 1;
    // The same weight twice in one node, or again in the very next one, is still there.
    if (load_of_[w.index()] != kNoLoad && load_of_[w.index()] + 1 == schedule_.loads.size() && shared) return;
    const bool first_of_node = node_of_open_load_ != position;
    const bool may_join = !shared && (rule_.span_nodes || !first_of_node);
    load_of_[w.index()] = append(weight.first_stretch, weight.stretch_count, weight.range(), limit(position), may_join);
    node_of_open_load_ = position;
    if (shared) open_ = false;
  }

  /// The load that keeps a piece; made where the piece is first needed.
  std::uint32_t load_piece(std::uint32_t p) {
    if (load_of_piece_.empty()) load_of_piece_.resize(rule_.pieces->all.size(), kNoLoad);
    if (load_of_piece_[p] != kNoLoad) return load_of_piece_[p];
    const Piece& piece = rule_.pieces->all[p];
    load_of_piece_[p] = static_cast<std::uint32_t>(schedule_.loads.size());
    schedule_.loads.push_back({piece.first_stretch, piece.stretch_count, piece.payload, {0, 0}, true, false, p});
    open_ = false;
    return load_of_piece_[p];
  }

  /// A run of stretches of the weight being cut.
  struct Part {
    std::size_t begin;
    std::size_t end;
    std::uint32_t load;  // that brings it, or kNoLoad
  };

  /// Pieces that are kept, and what lies between them.
  std::vector<Part> parts_of(std::size_t position, WeightId cut) {
    const model::Weight& weight = graph_.weight(cut);
    const Interval<std::uint32_t> pieces = derives(position) ? Interval<std::uint32_t>{} : pieces_of(cut);
    std::vector<Part> parts;
    if (pieces.size() == 1 && kept(pieces.begin)) return {{0, weight.stretch_count, load_piece(pieces.begin)}};
    for (std::uint32_t p = pieces.begin; p < pieces.end && pieces.size() > 1; ++p) {
      const std::size_t begin = rule_.pieces->all[p].first_stretch - weight.first_stretch;
      const std::size_t end = begin + rule_.pieces->all[p].stretch_count;
      if (kept(p) || parts.empty() || parts.back().load != kNoLoad)
        parts.push_back({begin, end, kept(p) ? p : kNoLoad});
      else
        parts.back().end = end;
    }
    if (parts.empty()) parts.push_back({0, weight.stretch_count, kNoLoad});
    return parts;
  }

  void cut_weight(std::size_t position, const std::vector<WeightId>& reads) {
    const model::Weight& weight = graph_.weight(reads[0]);
    first_panel_.assign(1, 0);  // of each stretch, and the end
    for (const model::Stretch& s : graph_.stretches_of(weight))
      first_panel_.push_back(first_panel_.back() + static_cast<std::int64_t>(s.raw_size.count() / weight.panel_bytes.count()));
    const bool whole_piece = pieces_of(reads[0]).size() == 1;
    std::vector<Part> parts = parts_of(position, reads[0]);
    for (Part& part : parts)
      if (part.load != kNoLoad && !whole_piece) part.load = load_piece(part.load);
    if (turns(position) <= 1) {
      for (const Part& part : parts) cut_part(position, reads, part);
      return;
    }
    hold_first(position, weight, parts);
    const model::Node& node = graph_.node(order_[position]);
    const std::int64_t each = model::rows_of_turn(graph_, node), all = turns(position);
    for (std::int64_t i = 0; i < all; ++i) {
      const std::int64_t turn = node.as<model::RecurrentAttributes>().reverse ? all - 1 - i : i;
      rows_ = {turn * each, (turn + 1) * each};
      for (const Part& part : parts) cut_part(position, reads, part);
    }
    rows_ = {};
  }

  /// Gives what finds room of a weight that each turn would read one load for all turns.
  void hold_first(std::size_t position, const model::Weight& weight, std::vector<Part>& parts) {
    if (!rule_.hold || rule_.room.empty()) return;
    const std::uint64_t stretch_bytes = graph_.stretches_of(weight).front().stored_size.count();
    std::uint64_t left = held_bytes(position, std::max(stretch_bytes, slice_aim(position)));
    std::vector<Part> split;
    for (const Part& part : parts) {
      const std::size_t held = std::min<std::size_t>(part.end - part.begin, static_cast<std::size_t>(left / stretch_bytes));
      if (part.load != kNoLoad || held == 0) {
        split.push_back(part);
        continue;
      }
      const PanelRange panels = panels_of(part.begin, part.begin + held);
      const std::uint32_t load = append(weight.first_stretch + static_cast<std::uint32_t>(part.begin), static_cast<std::uint32_t>(held),
                                        model::panel_range(weight, panels), ~std::uint64_t{0}, false);
      open_ = false;
      split.push_back({part.begin, part.begin + held, load});
      if (part.begin + held < part.end) split.push_back({part.begin + held, part.end, kNoLoad});
      beside_ += held * stretch_bytes + kRounding;
      left -= std::min<std::uint64_t>(left, held * stretch_bytes + kRounding);
    }
    parts = std::move(split);
  }

  /// What a slice of a weight that is read again each turn aims at: at least as much as the plan's tables of all its loads take.
  std::uint64_t slice_aim(std::size_t position) const {
    constexpr double kTableBytes = 1024;  // of a load, its step, operand and buffers
    const std::uint64_t bytes = graph_.weight(graph_.node(order_[position]).weights[0]).bytes.count();
    const std::int64_t all = turns(position);
    if (all <= 1) return 0;
    const double balanced = std::sqrt(kTableBytes * static_cast<double>(bytes) * static_cast<double>(all));
    return std::max(std::min<std::uint64_t>(rule_.target, 1u << 20), static_cast<std::uint64_t>(balanced));
  }

  PanelRange panels_of(std::size_t begin, std::size_t end) const { return {first_panel_[begin], first_panel_[end]}; }

  ChannelRange channels_of(std::size_t position, PanelRange panels) const {
    return model::channels_of_panels(panels, model::outputs_per_group(graph_.node(order_[position])), all_channels(position).end);
  }

  std::uint64_t slice_target(std::size_t position, std::size_t more) const {
    const std::uint64_t by_turns = slice_aim(position);
    return by_turns == 0 ? aim(more) : by_turns;
  }

  /// How many units of stretches the room lets a slice have.
  std::size_t most_units(std::size_t position, const Part& part, std::size_t unit, std::size_t units, std::uint64_t stretch_bytes) const {
    for (std::size_t slices = 1; slices < units; slices += 1 + slices / 8) {
      const std::size_t each = (units + slices - 1) / slices;
      if (slice_fits(position, part, {part.begin, std::min(part.begin + each * unit, part.end)}, stretch_bytes)) return each;
    }
    return 1;
  }

  bool slice_fits(std::size_t position, const Part& part, Interval<std::size_t> slice, std::uint64_t stretch_bytes) const {
    const std::uint64_t bytes = part.load == kNoLoad ? slice.size() * stretch_bytes : 0;
    return fits(position, bytes, channels_of(position, panels_of(slice.begin, slice.end)));
  }

  /// Runs of stretches of a part: as large as the aim lets each be at its turn and the room allows, and as even as that leaves them.
  std::vector<Interval<std::size_t>> slices_of(std::size_t position, const Part& part, std::uint64_t stretch_bytes) const {
    if (!cuts_channels(graph_, graph_.node(order_[position]), *kernels_[order_[position].index()])) return {{part.begin, part.end}};
    const bool pairs = first_panel_[1] % 2 != 0 && 2 * stretch_bytes <= slice_target(position, 0) &&
                       fits(position, 2 * stretch_bytes, channels_of(position, {0, 2}));
    const std::size_t unit = pairs ? 2 : 1;
    const std::size_t units = (part.end - part.begin + unit - 1) / unit;
    const std::size_t most = most_units(position, part, unit, units, stretch_bytes);
    std::vector<Interval<std::size_t>> slices;
    for (std::size_t done = 0; done < units;) {
      std::size_t each = most;
      if (part.load == kNoLoad)
        each = std::min(each,
                        std::max<std::size_t>(1, static_cast<std::size_t>(slice_target(position, slices.size()) / (unit * stretch_bytes))));
      const std::size_t left = (units - done + each - 1) / each;
      const std::size_t next = done + (units - done + left - 1) / left;
      slices.push_back({part.begin + done * unit, std::min(part.begin + next * unit, part.end)});
      done = next;
    }
    return slices;
  }

  void cut_part(std::size_t position, const std::vector<WeightId>& reads, const Part& part) {
    const model::Weight& weight = graph_.weight(reads[0]);
    const std::uint64_t stretch_bytes = graph_.stretches_of(weight).front().stored_size.count();
    // Readers of one weight cut it alike where they can: what is kept in memory is then kept once.
    std::vector<Interval<std::size_t>>& slices = slices_of_[reads[0].index()];
    const bool again =
        part.load == kNoLoad && !slices.empty() && slices.front().begin == part.begin && slices.back().end == part.end &&
        std::all_of(slices.begin(), slices.end(), [&](const auto& slice) { return slice_fits(position, part, slice, stretch_bytes); });
    if (!again) slices = slices_of(position, part, stretch_bytes);
    for (const Interval<std::size_t>& slice : slices) {
      const PanelRange panels = panels_of(slice.begin, slice.end);
      std::uint32_t load = part.load;
      if (load == kNoLoad)
        load = append(weight.first_stretch + static_cast<std::uint32_t>(slice.begin), static_cast<std::uint32_t>(slice.size()),
                      model::panel_range(weight, panels), aim(), false);
      if (derives(position)) {
        schedule_.loads[load].prologue_only = true;
        add_prepare_step(position, channels_of(position, panels), {reads[0], panels, load});
      }
      const std::uint32_t derived = derives(position) ? static_cast<std::uint32_t>(schedule_.derived.size() - 1) : kNotDerived;
      add_step(position, channels_of(position, panels), reads, reads[0], panels, load, derived);
    }
  }

  void add_prepare_step(std::size_t position, ChannelRange channels, OperandSpec raw) {
    const std::uint64_t payload = derived_bytes(graph_, order_[position], *kernels_[order_[position].index()], raw.panels);
    StepSpec step{position, channels, static_cast<std::uint32_t>(schedule_.operands.size()), 0, 0};
    step.prepare = true;
    step.derived = static_cast<std::uint32_t>(schedule_.derived.size());
    schedule_.derived.push_back({raw.panels, payload});
    add_operand(step, raw);
    schedule_.steps.push_back(step);
  }

  void add_operand(StepSpec& step, OperandSpec operand) {
    const std::int64_t index = schedule_.step_count();
    if (operand.load == kReadInStep) {
      ++step.operand_count;
      schedule_.operands.push_back(operand);
      return;
    }
    LoadSpec& load = schedule_.loads[operand.load];
    load.uses = load.uses.empty() ? Interval<std::int64_t>{index, index + 1} : load.uses.hull({index, index + 1});
    step.loads_needed = std::max(step.loads_needed, operand.load + 1);
    ++step.operand_count;
    schedule_.operands.push_back(operand);
  }

  void add_step(std::size_t position, ChannelRange channels, const std::vector<WeightId>& reads, WeightId cut, PanelRange panels,
                std::uint32_t cut_load, std::uint32_t derived = kNotDerived) {
    StepSpec step{position, channels, static_cast<std::uint32_t>(schedule_.operands.size()), 0, 0};
    step.derived = derived;
    step.rows = rows_;
    for (WeightId w : reads) {
      if (w == cut && derived != kNotDerived) continue;  // it reads the transform instead
      add_operand(step, w == cut ? OperandSpec{w, panels, cut_load} : OperandSpec{w, {0, graph_.weight(w).panels}, load_of_[w.index()]});
    }
    schedule_.steps.push_back(step);
  }

  const model::Graph& graph_;
  const KernelChoice& kernels_;
  const std::vector<NodeId>& order_;
  const SliceRule& rule_;
  Schedule schedule_;
  std::vector<std::uint32_t> load_of_;                         // by weight: where its last reader finds it whole
  std::vector<std::uint32_t> readers_;                         // by weight
  std::vector<std::vector<Interval<std::size_t>>> slices_of_;  // by weight: runs of stretches, as its last reader cut it
  std::vector<std::uint32_t> load_of_piece_;
  std::vector<std::int64_t> first_panel_;  // of the stretches of the weight being cut
  RowRange rows_;                          // of the turn or band that steps are made for; empty: all
  std::uint64_t beside_ = 0;               // bytes beside a slice of the node being cut
  unsigned streamed_ = 0;                  // loads made so far, those of the resident segment apart
  bool open_ = false;                      // may the last load grow?
  std::uint64_t open_limit_ = 0;
  std::size_t node_of_open_load_ = ~std::size_t{0};
};

}  // namespace detail

/// Cuts all weights that the nodes of `order` read by one rule. O(stretches).
inline Schedule cut_weights(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order,
                            const SliceRule& rule) {
  return detail::Cutter(graph, kernels, order, rule).cut();
}

}  // namespace sluice::planner

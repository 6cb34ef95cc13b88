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
// Nodes of a chain (planner/order/chain.h) are not cut by channels: each of their bands reads the whole weight, which stays until the last one
// has. A piece that is kept (planner/cut/weight_pieces.h) is one resident load, and its node is cut no further than its workspace asks for.
// The weights of a node's subgraphs are held while it runs, as far as they find room; the others the plans of the subgraphs bring, turn by
// turn, into a window beside its workspace (ADR 0047). Invariants: those of planner/cut/schedule.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/core/sort.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight.h"
#include "sluice/planner/cut/derive.h"
#include "sluice/planner/cut/schedule.h"
#include "sluice/planner/cut/slice_sizes.h"

namespace sluice::planner {

namespace detail {

class Cutter {
 public:
  Cutter(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order, const SliceRule& rule)
      : graph_(graph),
        kernels_(kernels),
        order_(order),
        rule_(rule),
        sizes_(graph, kernels, order, rule),
        load_of_(graph.weights.size(), kNoLoad),
        readers_(graph.weights.size(), 0),
        slices_of_(graph.weights.size()) {}

  Schedule cut() {
    std::vector<std::vector<WeightId>> reads(order_.size());
    for (std::size_t p = 0; p < order_.size(); ++p) {
      model::weights_read_by(graph_, graph_.node(order_[p]), reads[p]);
      for (std::size_t i = looks_up_in_step(p) ? 1 : 0; i < reads[p].size(); ++i)
        if (!kernels_.held_outside(reads[p][i])) ++readers_[reads[p][i].index()];
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
  // Weights of less than 16 KiB lie together: one load, or a few so that the first step need not wait for all of them.
  void load_resident_segment() {
    std::vector<std::size_t> weights;
    for (std::size_t w = 0; w < graph_.weights.size(); ++w)
      if (graph_.weights[w].always_resident && readers_[w] > 0) weights.push_back(w);
    sluice::sort(weights.begin(), weights.end(),
                 [&](std::size_t a, std::size_t b) { return graph_.weights[a].offset < graph_.weights[b].offset; });
    open_limit_ = 4u << 20;
    for (std::size_t w : weights) {
      const model::Weight& weight = graph_.weights[w];
      load_of_[w] = append(weight.first_stretch, weight.stretch_count, payload_of(graph_, weight), open_limit_, true);
      schedule_.loads[load_of_[w]].resident = true;
    }
    open_ = false;
    streamed_ = 0;
  }

  /// Puts stretches into the open load if they continue it and fit, else into a new one. Returns the load.
  std::uint32_t append(std::uint32_t first_stretch, std::uint32_t count, const Payload& payload, std::uint64_t most, bool may_join) {
    if (open_ && may_join) {
      LoadSpec& load = schedule_.loads.back();
      const std::uint64_t joined_limit = std::min(open_limit_, most);
      const bool adjacent = load.first_stretch + load.stretch_count == first_stretch && load.payload.adjoins(payload);
      if (adjacent && load.payload.joined(payload).held_bytes() <= joined_limit) {
        load.stretch_count += count;
        load.payload = load.payload.joined(payload);
        open_limit_ = joined_limit;
        return static_cast<std::uint32_t>(schedule_.loads.size() - 1);
      }
    }
    schedule_.loads.push_back({first_stretch, count, payload, {0, 0}, false});
    ++streamed_;
    open_limit_ = most;
    open_ = true;
    return static_cast<std::uint32_t>(schedule_.loads.size() - 1);
  }

  ChannelRange all_channels(std::size_t position) const { return {0, model::step_channels(graph_, graph_.node(order_[position]))}; }

  bool derives(std::size_t position) const noexcept { return !rule_.derived.empty() && rule_.derived[position]; }

  bool kept(std::uint32_t piece) const noexcept { return !rule_.kept.empty() && rule_.kept[piece]; }

  Interval<std::uint32_t> pieces_of(WeightId w) const noexcept {
    return rule_.pieces == nullptr ? Interval<std::uint32_t>{} : rule_.pieces->of_weight[w.index()];
  }

  /// Is the node's first weight taken slice by slice? The reason may be its loads, its workspace, or pieces of which some are kept.
  bool sliced(std::size_t position) const {
    const model::Node& node = graph_.node(order_[position]);
    if (node.weights.empty() || graph_.weight(node.weights[0]).always_resident || kernels_.held_outside(node.weights[0])) return false;
    if (derives(position)) return true;
    if (!sizes_.may_cut()) return false;
    if (sizes_.turns() > 1 && rule_.hold) return sizes_.held_bytes(0) < graph_.weight(node.weights[0]).bytes.count();
    const Interval<std::uint32_t> pieces = pieces_of(node.weights[0]);
    if (pieces.size() > 1 && std::any_of(rule_.kept.begin() + (rule_.kept.empty() ? 0 : pieces.begin),
                                         rule_.kept.begin() + (rule_.kept.empty() ? 0 : pieces.end), [](bool k) { return k; }))
      return true;
    const std::uint64_t bytes = graph_.weight(node.weights[0]).bytes.count();
    const bool stays = pieces.size() == 1 && kept(pieces.begin);
    return (!stays && bytes > sizes_.aim(streamed_)) || !sizes_.fits(stays ? 0 : bytes, sizes_.all_channels());
  }

  void cut_node(std::size_t position, const std::vector<WeightId>& reads) {
    if (looks_up_in_step(position) && !all_kept(reads[0])) return look_up(position, reads);
    if (runs_bodies(position)) return run_bodies(position, reads);
    sizes_.begin(position, reads);
    const bool cut = sliced(position);
    for (std::size_t i = 0; i < reads.size(); ++i)
      if (i > 0 || !cut) load_whole(position, reads[i]);
    if (!cut) {
      add_step(position, sizes_.all_channels(), reads, WeightId::invalid(), {}, 0);
      return;
    }
    cut_weight(position, reads);
    open_ = false;
  }

  /// Of a node that runs subgraphs: chooses what is held, in the order of use, and what their plans bring.
  void run_bodies(std::size_t position, const std::vector<WeightId>& reads) {
    const std::size_t own = model::count_own_weights(graph_, graph_.node(order_[position]));
    const std::uint64_t least = kernels_.body(order_[position]).window;
    sizes_.begin_bodies(position, reads, own);
    std::uint64_t all = 0, largest = 0;
    std::vector<bool> in_step(reads.size(), false);
    for (std::size_t i = 0; i < own; ++i) {
      const model::Weight& weight = graph_.weight(reads[i]);
      const Interval<std::uint32_t> pieces = pieces_of(reads[i]);
      in_step[i] = !weight.always_resident && (pieces.empty() || !kept(pieces.begin));
      if (!in_step[i]) continue;
      all += sizes_.held_region(weight);
      largest = std::max(largest, model::piece_region(weight.bytes).count());
    }
    std::uint64_t room = sizes_.room_of_bodies();
    std::uint64_t window = 0;
    if (!rule_.hold || room < all) {
      const std::uint64_t good = 2 * std::min(largest, std::max(least, align_up(rule_.target, kBlockBytes)));
      window = rule_.hold && room >= good ? good : rule_.hold && room >= 2 * least ? 2 * least : least;
      room = rule_.hold ? room - std::min(room, window) : 0;
    }
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (in_step[i] && room >= sizes_.held_region(graph_.weight(reads[i]))) {
        in_step[i] = false;
        room -= sizes_.held_region(graph_.weight(reads[i]));
      }
      if (!in_step[i]) load_whole(position, reads[i]);
    }
    const bool reads_any = std::find(in_step.begin(), in_step.end(), true) != in_step.end();
    add_step_that_reads(position, reads, in_step, reads_any ? window : 0);
  }

  /// The one step of a node that reads some weights, `in_step`, by itself; the others are loaded.
  void add_step_that_reads(std::size_t position, const std::vector<WeightId>& reads, const std::vector<bool>& in_step,
                           std::uint64_t window) {
    StepSpec step{position, all_channels(position), static_cast<std::uint32_t>(schedule_.operands.size()), 0, 0};
    step.window = window;
    for (std::size_t i = 0; i < reads.size(); ++i)
      add_operand(step, {reads[i], {0, graph_.weight(reads[i]).panels}, in_step[i] ? kReadInStep : load_of_[reads[i].index()]});
    schedule_.steps.push_back(step);
  }

  /// Does the node run subgraphs whose plans may bring weights? Within a subgraph they hold what they read.
  bool runs_bodies(std::size_t position) const { return kernels_.body(order_[position]).window > 0; }

  /// If not all of its table is kept. In a subgraph the loads of each turn bring it.
  bool looks_up_in_step(std::size_t position) const {
    return !rule_.keeps_all && !kernels_.in_body() && looks_up(graph_, graph_.node(order_[position]), *kernels_[order_[position].index()]);
  }

  bool all_kept(WeightId weight) const {
    const Interval<std::uint32_t> pieces = pieces_of(weight);
    for (std::uint32_t p = pieces.begin; p < pieces.end; ++p)
      if (!kept(p)) return false;
    return !pieces.empty();
  }

  /// For a lookup: its step reads the parts of the table that are asked for, into a read buffer of two parts or one.
  void look_up(std::size_t position, const std::vector<WeightId>& reads) {
    sizes_.begin_bodies(position, reads, 1);
    for (std::size_t i = 1; i < reads.size(); ++i) load_whole(position, reads[i]);
    const std::uint64_t least = model::least_piece(graph_, graph_.weight(reads[0])).count();
    std::vector<bool> in_step(reads.size(), false);
    in_step[0] = true;
    add_step_that_reads(position, reads, in_step, rule_.hold && sizes_.room_of_bodies() >= 2 * least ? 2 * least : least);
  }

  /// Brings the weights that it holds, then lists its steps. Where some are read again for each band, or nodes begin in another order,
  /// those that it holds come when their node's turn comes first: loads are in the order of need.
  void run_chain(const Chain& chain, const std::vector<std::vector<WeightId>>& reads) {
    std::vector<std::uint32_t> derived(chain.end - chain.first, kNotDerived);
    if (!rule_.span_nodes) open_ = false;
    const auto held = [&](std::size_t p) { return chain.holds_weights(p) || derives(p); };
    const bool at_once = chain.reads_again.empty() && begins_in_order(chain);
    std::uint64_t held_bytes = 0;
    for (std::size_t p = chain.first; p < chain.end; ++p) {
      if (!held(p)) continue;
      if (at_once || derives(p)) hold_of_chain(p, reads[p]);
      for (std::size_t i = derives(p) ? 1 : 0; i < reads[p].size(); ++i)
        if (const model::Weight& weight = graph_.weight(reads[p][i]); !weight.always_resident) held_bytes += sizes_.held_region(weight);
      if (derives(p)) derived[p - chain.first] = prepare_of_chain(p, reads[p]);
    }
    open_ = false;
    std::vector<bool> begun(chain.end - chain.first, at_once);
    for (std::size_t i = 0; i < chain.steps.size(); ++i) {
      const BandStep& step = chain.steps[i];
      const std::size_t p = step.position;
      const std::uint32_t from = derived[p - chain.first];
      const auto first = schedule_.steps.size();
      if (!begun[p - chain.first] && held(p) && !derives(p)) hold_of_chain(p, reads[p]);
      begun[p - chain.first] = true;
      rows_ = step.rows;
      if (held(p)) {
        add_step(p, all_channels(p), reads[p], from == kNotDerived ? WeightId::invalid() : reads[p][0], {}, 0, from);
      } else {
        read_again(p, reads[p], held_bytes);
      }
      for (auto s = first; s < schedule_.steps.size(); ++s) {
        schedule_.steps[s].far_bytes = step.far_bytes;
        schedule_.steps[s].round_bytes = step.round_bytes;
        schedule_.steps[s].there_bytes = step.there_bytes;
        if (!chain.workspaces.empty()) schedule_.steps[s].inside = chain.workspaces[i];
      }
    }
    open_ = false;
    rows_ = {};
  }

  /// Brings what a node of a chain reads, to stay until its last band.
  void hold_of_chain(std::size_t position, const std::vector<WeightId>& reads) {
    sizes_.begin(position, reads);
    in_chain_ = true;
    for (std::size_t i = derives(position) ? 1 : 0; i < reads.size(); ++i) load_whole(position, reads[i]);
    in_chain_ = false;
  }

  /// The transform of a whole weight. Returns its number.
  std::uint32_t prepare_of_chain(std::size_t position, const std::vector<WeightId>& reads) {
    const model::Weight& weight = graph_.weight(reads[0]);
    const std::uint32_t load = append(weight.first_stretch, weight.stretch_count, payload_of(graph_, weight), sizes_.aim(streamed_), false);
    schedule_.loads[load].prologue_only = true;
    open_ = false;
    add_prepare_step(position, all_channels(position), {reads[0], {0, weight.panels}, load});
    return static_cast<std::uint32_t>(schedule_.derived.size() - 1);
  }

  /// One band of a node whose weights are not held: slice by slice, beside what the chain holds.
  void read_again(std::size_t position, const std::vector<WeightId>& reads, std::uint64_t held_bytes) {
    sizes_.begin(position, reads);
    sizes_.hold(held_bytes);
    open_ = false;
    if (!sizes_.may_cut()) {
      for (WeightId w : reads) load_again(position, w);
      add_step(position, sizes_.all_channels(), reads, WeightId::invalid(), {}, 0);
    } else {
      for (std::size_t i = 1; i < reads.size(); ++i) load_again(position, reads[i]);
      cut_weight(position, reads);
    }
    open_ = false;
  }

  /// The whole weight, whether an earlier band has read it or not.
  void load_again(std::size_t position, WeightId w) {
    if (!graph_.weight(w).always_resident) load_of_[w.index()] = kNoLoad;
    load_whole(position, w);
  }

  void load_whole(std::size_t position, WeightId w) {
    const model::Weight& weight = graph_.weight(w);
    if (weight.always_resident || kernels_.held_outside(w)) return;
    const Interval<std::uint32_t> pieces = pieces_of(w);
    if (!pieces.empty() && kept(pieces.begin)) {
      load_of_[w.index()] = load_piece(pieces.begin);
      return;
    }
    const bool shared = readers_[w.index()] > 1;
    // The same weight twice in one node, or again in the very next one, is still there.
    if (load_of_[w.index()] != kNoLoad && load_of_[w.index()] + 1 == schedule_.loads.size() && shared) return;
    const bool first_of_node = node_of_open_load_ != position;
    const bool may_join = !shared && (rule_.span_nodes || !first_of_node || in_chain_);
    // All that a chain reads is in memory at once: separate loads would only take more blocks.
    const std::uint64_t most = in_chain_ && !rule_.span_nodes ? sizes_.aim(streamed_) : sizes_.limit(streamed_);
    load_of_[w.index()] = append(weight.first_stretch, weight.stretch_count, payload_of(graph_, weight), most, may_join);
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

  /// Kept pieces, and the bytes between them.
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
    sizes_.measure_stretches();
    const bool whole_piece = pieces_of(reads[0]).size() == 1;
    std::vector<Part> parts = parts_of(position, reads[0]);
    for (Part& part : parts)
      if (part.load != kNoLoad && !whole_piece) part.load = load_piece(part.load);
    if (sizes_.turns() <= 1) {
      for (const Part& part : parts) cut_part(position, reads, part);
      return;
    }
    hold_first(weight, parts);
    const model::Node& node = graph_.node(order_[position]);
    const std::int64_t each = model::rows_of_turn(graph_, node), all = sizes_.turns();
    for (std::int64_t i = 0; i < all; ++i) {
      const std::int64_t turn = node.as<model::RecurrentAttributes>().reverse ? all - 1 - i : i;
      rows_ = {turn * each, (turn + 1) * each};
      for (const Part& part : parts) cut_part(position, reads, part);
    }
    rows_ = {};
  }

  /// Gives what finds room of a weight that each turn would read one load for all turns.
  void hold_first(const model::Weight& weight, std::vector<Part>& parts) {
    if (!rule_.hold || rule_.room.empty()) return;
    const std::uint64_t stretch_bytes = sizes_.stretch_bytes();
    std::uint64_t left = sizes_.held_bytes(std::max(stretch_bytes, sizes_.turn_aim()));
    std::vector<Part> split;
    for (const Part& part : parts) {
      const std::size_t held = std::min<std::size_t>(part.end - part.begin, static_cast<std::size_t>(left / stretch_bytes));
      if (part.load != kNoLoad || held == 0) {
        split.push_back(part);
        continue;
      }
      const std::uint32_t load = append(weight.first_stretch + static_cast<std::uint32_t>(part.begin), static_cast<std::uint32_t>(held),
                                        payload_of(graph_, weight, part.begin, held), ~std::uint64_t{0}, false);
      open_ = false;
      split.push_back({part.begin, part.begin + held, load});
      if (part.begin + held < part.end) split.push_back({part.begin + held, part.end, kNoLoad});
      sizes_.hold(held * stretch_bytes);
      left -= std::min<std::uint64_t>(left, held * stretch_bytes + sizes_.rounding());
    }
    parts = std::move(split);
  }

  void cut_part(std::size_t position, const std::vector<WeightId>& reads, const Part& part) {
    // Readers of one weight cut it alike where they can: what is kept in memory is then kept once.
    std::vector<Interval<std::size_t>>& slices = slices_of_[reads[0].index()];
    const bool again = part.load == kNoLoad && !slices.empty() && slices.front().begin == part.begin && slices.back().end == part.end &&
                       std::all_of(slices.begin(), slices.end(), [&](const auto& slice) { return sizes_.slice_fits(part, slice); });
    if (!again) slices = sizes_.slices_of(part, streamed_);
    if (!rule_.sample) {
      for (const Interval<std::size_t>& slice : slices) add_slice(position, reads, part, slice);
      return;
    }
    // The slice whose region is largest, and the one whose workspace is, if that is another.
    const auto region = [&](const Interval<std::size_t>& slice) {
      return payload_of(graph_, graph_.weight(reads[0]), slice.begin, slice.size()).region_bytes();
    };
    const auto large = std::max_element(slices.begin(), slices.end(), [&](const auto& a, const auto& b) { return region(a) < region(b); });
    // Threads share a narrow slice by rows, so that it may ask for more than a wide one.
    const auto workspace = [&](const Interval<std::size_t>& slice) {
      return std::pair(sizes_.workspace(sizes_.channels_of(sizes_.panels_of(slice.begin, slice.end))), slice.size());
    };
    const auto wide =
        std::max_element(slices.begin(), slices.end(), [&](const auto& a, const auto& b) { return workspace(a) < workspace(b); });
    add_slice(position, reads, part, *std::min(large, wide));
    schedule_.steps.back().alike = static_cast<std::uint32_t>(slices.size() - (large == wide ? 0 : 1));
    if (large != wide) add_slice(position, reads, part, *std::max(large, wide));
    const std::size_t unlisted = slices.size() - (large == wide ? 1 : 2);
    if (part.load != kNoLoad) return;
    schedule_.unlisted_loads += unlisted;
    streamed_ += static_cast<unsigned>(unlisted);
  }

  void add_slice(std::size_t position, const std::vector<WeightId>& reads, const Part& part, Interval<std::size_t> slice) {
    const model::Weight& weight = graph_.weight(reads[0]);
    const PanelRange panels = sizes_.panels_of(slice.begin, slice.end);
    std::uint32_t load = part.load;
    if (load == kNoLoad)
      load = append(weight.first_stretch + static_cast<std::uint32_t>(slice.begin), static_cast<std::uint32_t>(slice.size()),
                    payload_of(graph_, weight, slice.begin, slice.size()), sizes_.aim(streamed_), false);
    if (derives(position)) {
      schedule_.loads[load].prologue_only = true;
      add_prepare_step(position, sizes_.channels_of(panels), {reads[0], panels, load});
    }
    const std::uint32_t derived = derives(position) ? static_cast<std::uint32_t>(schedule_.derived.size() - 1) : kNotDerived;
    add_step(position, sizes_.channels_of(panels), reads, reads[0], panels, load, derived);
  }

  void add_prepare_step(std::size_t position, ChannelRange channels, OperandSpec raw) {
    const std::uint64_t payload = derived_bytes(kernels_, order_[position], raw.panels);
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
  SliceSizes sizes_;
  Schedule schedule_;
  std::vector<std::uint32_t> load_of_;                         // by weight: where its last reader finds it whole
  std::vector<std::uint32_t> readers_;                         // by weight
  std::vector<std::vector<Interval<std::size_t>>> slices_of_;  // by weight: runs of stretches, as its last reader cut it
  std::vector<std::uint32_t> load_of_piece_;
  RowRange rows_;          // of the turn or band that steps are made for; empty: all
  unsigned streamed_ = 0;  // loads made so far, those of the resident segment apart
  bool open_ = false;      // may the last load grow?
  bool in_chain_ = false;
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

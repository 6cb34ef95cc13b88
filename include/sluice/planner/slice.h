// Pass: cuts streamed weights into loads, and the nodes that they belong to into steps.
//
//     file     | conv1 |  conv2          | bias2 | conv3 | conv4 |        weights in the file
//     loads    [   0   ][  1  ][  2  ][3]        [       4       ]        whole stretches, up to a target size
//     steps    [ conv1 ][conv2 c0-64][conv2 c64-128][conv3][conv4]
//
// Small weights share a load; a weight that is too large for one becomes several, and its node as many steps, if its kernel takes slices
// of the output channels. Slices are even runs of stretches, pairs of panels where that costs nothing (a lone panel runs at 86 %).
// A node whose weights are kept transformed gets a prepare step before each of its steps:
//
//     prologue [load raw p0-8][prepare: raw -> derived 0][conv c0-128 reads derived 0][load raw p8-16][prepare] ...
//     period                                             [conv c0-128 reads derived 0]                          ...
//
// Invariants: a step's panels of a weight lie whole in one load; loads are ordered by first use; a load's payload is adjacent in the file;
// steps follow the execution order; channels of a node's steps tile its output; what a prepare step reads is prologue-only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight.h"
#include "sluice/planner/derive.h"
#include "sluice/planner/select_kernels.h"

namespace sluice::planner {

inline constexpr std::uint64_t kBlockBytes = 4096;  // direct-I/O block of Plan::block
/// Reads of this size run at half the disk's rate (0.08 ms of latency, 0.09 ms of bytes): smaller ones would not come sooner.
inline constexpr std::uint64_t kFirstLoadBytes = 128u << 10;
inline constexpr std::uint32_t kNotDerived = ~0u;

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
  std::uint32_t derived = kNotDerived;  // index into Schedule::derived: what a prepare step writes and another reads
};

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
  bool prologue_only = false;  // for a prepare step

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
  std::vector<Interval<std::int64_t>> steps_of;  // by position

  std::int64_t step_count() const noexcept { return static_cast<std::int64_t>(steps.size()); }
};

/// How large loads may be.
struct SliceRule {
  std::uint64_t target = 4u << 20;       // aim; 1 cuts as finely as the format allows
  bool span_nodes = true;                // one load may serve several nodes
  bool ramp = true;                      // the first loads are small, each twice the one before: compute starts early
  std::vector<std::uint64_t> room = {};  // by position: what finds room beside its activations; empty: no limit
  std::vector<bool> derived = {};        // by position: its first weight is kept transformed; empty: none is
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
        cuts_(graph.weights.size()) {}

  Schedule cut() {
    std::vector<std::vector<WeightId>> reads(order_.size());
    for (std::size_t p = 0; p < order_.size(); ++p) {
      model::weights_read_by(graph_, graph_.node(order_[p]), reads[p]);
      for (WeightId w : reads[p]) ++readers_[w.index()];
    }
    load_resident_segment();
    for (std::size_t p = 0; p < order_.size(); ++p) {
      const std::int64_t first = schedule_.step_count();
      cut_node(p, reads[p]);
      schedule_.steps_of.push_back({first, schedule_.step_count()});
    }
    return std::move(schedule_);
  }

 private:
  static constexpr std::uint32_t kNoLoad = ~0u;

  /// What a load may be when `more` others are made before it.
  std::uint64_t limit(std::size_t position, unsigned more = 0) const noexcept {
    std::uint64_t most = rule_.target;
    if (rule_.ramp && streamed_ + more < 16) most = std::min(most, kFirstLoadBytes << (streamed_ + more));
    return rule_.room.empty() ? most : std::min(most, rule_.room[position]);
  }

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

  bool sliced(std::size_t position, WeightId w) const {
    const kernels::KernelDescriptor& kernel = *kernels_[order_[position].index()];
    const model::Node& node = graph_.node(order_[position]);
    const model::Weight& weight = graph_.weight(w);
    return kernel.slices_channels && !node.weights.empty() && node.weights[0] == w && !weight.always_resident && weight.stretch_count > 1 &&
           weight.panel_layout.layout != model::WeightLayout::kPlain && (weight.bytes.count() > limit(position) || fits(position, w));
  }

  void cut_node(std::size_t position, const std::vector<WeightId>& reads) {
    WeightId cut = WeightId::invalid();
    for (WeightId w : reads) {
      if (sliced(position, w) || (derives(position) && w == reads.front()))
        cut = w;
      else
        load_whole(position, w);
    }
    const model::Node& node = graph_.node(order_[position]);
    const std::int64_t channels = model::step_channels(graph_, node);
    if (!cut.valid()) {
      add_step(position, {0, channels}, reads, WeightId::invalid(), {}, 0);
      return;
    }
    cut_weight(position, reads, cut, channels);
    open_ = false;
  }

  void load_whole(std::size_t position, WeightId w) {
    const model::Weight& weight = graph_.weight(w);
    if (weight.always_resident) return;
    const bool shared = readers_[w.index()] > 1;
    // The same weight twice in one node, or again in the very next one, is still there.
    if (load_of_[w.index()] != kNoLoad && load_of_[w.index()] + 1 == schedule_.loads.size() && shared) return;
    const bool first_of_node = node_of_open_load_ != position;
    const bool may_join = !shared && (rule_.span_nodes || !first_of_node);
    load_of_[w.index()] = append(weight.first_stretch, weight.stretch_count, weight.range(), limit(position), may_join);
    node_of_open_load_ = position;
    if (shared) open_ = false;
  }

  void cut_weight(std::size_t position, const std::vector<WeightId>& reads, WeightId cut, std::int64_t channels) {
    const model::Weight& weight = graph_.weight(cut);
    const model::Node& node = graph_.node(order_[position]);
    const auto stretches = graph_.stretches_of(weight);
    std::vector<std::int64_t> first_panel{0};  // of each stretch, and the end
    for (const model::Stretch& s : stretches)
      first_panel.push_back(first_panel.back() + static_cast<std::int64_t>(s.raw_size.count() / weight.panel_bytes.count()));
    std::vector<Interval<std::size_t>>& cuts = cuts_[cut.index()];
    // Readers of one weight cut it alike where they can: what is kept in memory is then kept once.
    if (!fits(position, cut)) cuts = sliced(position, cut) ? even_cuts(position, cut, first_panel[1]) : whole_cut(cut);
    for (const auto& [begin, end] : cuts) {
      const PanelRange panels{first_panel[begin], first_panel[end]};
      const std::uint32_t load = append(weight.first_stretch + static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - begin),
                                        model::panel_range(weight, panels), limit(position), false);
      const ChannelRange part = model::channels_of_panels(panels, model::outputs_per_group(node), channels);
      if (derives(position)) {
        schedule_.loads[load].prologue_only = true;
        add_prepare_step(position, part, {cut, panels, load});
      }
      add_step(position, part, reads, cut, panels, load);
    }
  }

  std::vector<Interval<std::size_t>> whole_cut(WeightId w) const { return {{0, graph_.weight(w).stretch_count}}; }

  /// Runs of stretches of a weight, as large as loads may be at their turn and as even as that allows.
  std::vector<Interval<std::size_t>> even_cuts(std::size_t position, WeightId w, std::int64_t panels_of_stretch) const {
    const auto stretches = graph_.stretches_of(graph_.weight(w));
    const std::uint64_t stretch_bytes = stretches.front().stored_size.count();
    const std::size_t unit = panels_of_stretch % 2 != 0 && 2 * stretch_bytes <= limit(position) ? 2 : 1;
    const std::size_t units = (stretches.size() + unit - 1) / unit;
    std::vector<Interval<std::size_t>> cuts;
    for (std::size_t done = 0; done < units;) {
      const std::uint64_t most = limit(position, static_cast<unsigned>(cuts.size()));
      const std::size_t units_each = std::max<std::size_t>(1, static_cast<std::size_t>(most / (unit * stretch_bytes)));
      const std::size_t slices = (units - done + units_each - 1) / units_each;
      const std::size_t next = done + (units - done + slices - 1) / slices;
      cuts.push_back({done * unit, std::min(next * unit, stretches.size())});
      done = next;
    }
    return cuts;
  }

  /// Has an earlier reader cut the weight, and into runs that are small enough here?
  bool fits(std::size_t position, WeightId w) const {
    const std::vector<Interval<std::size_t>>& cuts = cuts_[w.index()];
    if (cuts.empty()) return false;
    const std::uint64_t stretch_bytes = graph_.stretches_of(graph_.weight(w)).front().stored_size.count();
    return std::all_of(cuts.begin(), cuts.end(),
                       [&](const auto& cut) { return cut.size() == 1 || cut.size() * stretch_bytes <= limit(position); });
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
    LoadSpec& load = schedule_.loads[operand.load];
    load.uses = load.uses.empty() ? Interval<std::int64_t>{index, index + 1} : load.uses.hull({index, index + 1});
    step.loads_needed = std::max(step.loads_needed, operand.load + 1);
    ++step.operand_count;
    schedule_.operands.push_back(operand);
  }

  void add_step(std::size_t position, ChannelRange channels, const std::vector<WeightId>& reads, WeightId cut, PanelRange panels,
                std::uint32_t cut_load) {
    StepSpec step{position, channels, static_cast<std::uint32_t>(schedule_.operands.size()), 0, 0};
    if (derives(position)) step.derived = static_cast<std::uint32_t>(schedule_.derived.size() - 1);
    for (WeightId w : reads) {
      if (w == cut && derives(position)) continue;  // it reads the transform instead
      add_operand(step, w == cut ? OperandSpec{w, panels, cut_load} : OperandSpec{w, {0, graph_.weight(w).panels}, load_of_[w.index()]});
    }
    schedule_.steps.push_back(step);
  }

  const model::Graph& graph_;
  const KernelChoice& kernels_;
  const std::vector<NodeId>& order_;
  const SliceRule& rule_;
  Schedule schedule_;
  std::vector<std::uint32_t> load_of_;                    // by weight: where its last reader finds it whole
  std::vector<std::uint32_t> readers_;                    // by weight
  std::vector<std::vector<Interval<std::size_t>>> cuts_;  // by weight: runs of stretches, as its last reader cut it
  unsigned streamed_ = 0;                                 // loads made so far, those of the resident segment apart
  bool open_ = false;                                     // may the last load grow?
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

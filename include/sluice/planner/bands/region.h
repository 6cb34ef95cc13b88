// Regions: runs of the order of nodes that are to go in bands, branches and joins among them, and which tensors then stay inside.
//
//     order     conv | pool | conv a | conv b | concat | conv | ...          a region is a run of the order, not of a chain:
//                      [============ region ===============)                 residuals, joins and dense blocks belong to it
//     inside    what is made and read in it, row by row: it becomes a ring, and lies apart from all else (no place in a concatenation, not
//               in place of another), because a ring holds other rows than what it would share bytes with
//     in place  unless it stands between an input of the region and an output of it that takes the input's place: then all three are one
//
// Way to here: planner/bands/memory_partition.h chooses regions, planner/bands/band_chain.h cuts them into bands.
// Invariants: regions of one partition are disjoint; neither a node outside nor the caller reads a tensor inside.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"
#include "sluice/planner/order/row_needs.h"
#include "sluice/planner/order/select_kernels.h"

namespace sluice::planner {

/// Nodes [first, end) of the order, in `bands` bands of the last one's rows.
struct Region {
  std::size_t first = 0;
  std::size_t end = 0;
  std::int64_t bands = 1;
  bool rings = true;                               // false: views stay as they are, as where bands are for time
  std::uint64_t reread_above = ~std::uint64_t{0};  // weights of more bytes are read again for each band
  bool in_place = false;                           // its output takes an input's place where it does without the region

  bool meets(const Region& other) const noexcept { return first < other.end && other.first < end; }
  friend bool operator==(const Region&, const Region&) = default;
};

/// The maker and the readers of each tensor, as positions of the order.
class Uses {
 public:
  static constexpr std::size_t kNobody = ~std::size_t{0};  // the caller, or a constant

  struct Reader {
    std::size_t at;
    std::size_t input;
  };

  Uses(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order)
      : graph_(graph),
        kernels_(kernels),
        order_(order),
        maker_(graph.tensors.size(), kNobody),
        readers_(graph.tensors.size()),
        wanted_(graph.tensors.size(), false) {
    for (const model::Port& port : graph.outputs) wanted_[port.tensor.index()] = true;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const model::Node& n = node(i);
      for (TensorId out : n.outputs) maker_[out.index()] = i;
      for (std::size_t k = 0; k < n.inputs.size(); ++k) readers_[n.inputs[k].index()].push_back({i, k});
    }
  }

  std::size_t size() const noexcept { return order_.size(); }
  const model::Node& node(std::size_t at) const noexcept { return graph_.node(order_[at]); }
  std::size_t maker(TensorId t) const noexcept { return maker_[t.index()]; }
  const std::vector<Reader>& readers(TensorId t) const noexcept { return readers_[t.index()]; }
  bool caller_reads(TensorId t) const noexcept { return wanted_[t.index()]; }

  /// A node that mostly has no step: its output is a view of its input.
  bool is_view(std::size_t at) const noexcept { return node(at).op == model::OpKind::kReshape || node(at).op == model::OpKind::kSlice; }

  /// Can its steps take part of the rows, from views of any kind?
  bool takes_bands(std::size_t at) const {
    const kernels::KernelDescriptor& kernel = *kernels_[order_[at].index()];
    return kernel.slices_rows && kernel.takes_pitches && node(at).outputs.size() == 1 && model::rows_of_turn(graph_, node(at)) == 0;
  }

  /// Marks in `apart`, by tensor, what stays inside a region.
  void mark_inside(const Region& region, std::vector<bool>& apart) const {
    for (std::size_t i = region.end; i-- > region.first;)  // a concatenation before its parts
      if (stays_inside(i, region, apart)) apart[node(i).outputs[0].index()] = true;
  }

  /// Takes back what stands between an input and an output of the region that are the same bytes in `plain`, the views without regions. False:
  /// there is none.
  bool keep_in_place(const Region& region, const std::vector<plan::TensorPlacement>& plain, std::vector<bool>& apart) const {
    std::vector<TensorId> enter;
    std::vector<BufferId> leave;
    for (std::size_t i = region.first; i < region.end; ++i) {
      for (TensorId in : node(i).inputs)
        if ((maker(in) == kNobody || maker(in) < region.first) && !has_views(in)) enter.push_back(in);
      for (TensorId out : node(i).outputs)
        if (!apart[out.index()] && !has_views(out)) leave.push_back(plain[out.index()].buffer);
    }
    bool any = false;
    for (std::size_t i = region.first; i < region.end; ++i) {
      const TensorId out = node(i).outputs[0];
      const plan::TensorPlacement& at = plain[out.index()];
      if (!apart[out.index()] || !at.buffer.valid() || has_views(out) || std::find(leave.begin(), leave.end(), at.buffer) == leave.end())
        continue;
      const bool enters = std::any_of(enter.begin(), enter.end(), [&](TensorId in) {
        return plain[in.index()].buffer == at.buffer && plain[in.index()].offset == at.offset &&
               graph_.tensor(in).shape == graph_.tensor(out).shape;
      });
      if (enters) apart[out.index()] = false;
      any = any || enters;
    }
    return any;
  }

 private:
  /// May it be a view of another, or another of it?
  bool has_views(TensorId t) const {
    const auto views = [&](std::size_t at) { return is_view(at) || node(at).op == model::OpKind::kConcat; };
    return (maker(t) != kNobody && views(maker(t))) ||
           std::any_of(readers(t).begin(), readers(t).end(), [&](const Reader& reader) { return views(reader.at); });
  }

  bool stays_inside(std::size_t at, const Region& region, const std::vector<bool>& apart) const {
    if (is_view(at) || !takes_bands(at)) return false;
    const TensorId out = node(at).outputs[0];
    if (wanted_[out.index()] || readers(out).empty()) return false;
    for (const Reader& reader : readers(out)) {
      if (reader.at >= region.end || is_view(reader.at) || !takes_bands(reader.at)) return false;
      // If it goes to a concatenation that leaves the region, it is written there directly.
      if (node(reader.at).op == model::OpKind::kConcat && !apart[node(reader.at).outputs[0].index()]) return false;
      if (!row_relation(graph_, node(reader.at), reader.input, Connected::kDeclared)) return false;
    }
    return true;
  }

  const model::Graph& graph_;
  const KernelChoice& kernels_;
  const std::vector<NodeId>& order_;
  std::vector<std::size_t> maker_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<bool> wanted_;
};

}  // namespace sluice::planner

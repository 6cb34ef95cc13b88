// What the bands of a plan cost: its steps, priced as the search for regions prices them (planner/bands/step_costs.h).
//
//     steps     a 0-4 | b 0-2 | a 4-8 | b 2-4 | c 0-8 | d 0-8        bands that take turns are a region; what stands between two of
//               [========= region ==========]   c       d            them are whole nodes
//
// A plan does not list its regions, and its steps may be slices of a band: both are found again here.
// Invariant: of a plan for all weights held, the same seconds as Partitioned::seconds of the partition that it was made of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/plan/plan.h"
#include "sluice/planner/bands/banded.h"
#include "sluice/planner/bands/region.h"
#include "sluice/planner/bands/step_costs.h"

namespace sluice::planner {

class BandsOfPlan {
 public:
  BandsOfPlan(const Problem& whole, const plan::Plan& plan) : whole_(whole), plan_(plan) {
    const std::size_t nodes = whole.graph->nodes.size();
    std::vector<RowRange> latest(nodes);
    last_.assign(nodes, 0);
    for (const plan::Step& step : plan.steps) {
      const std::size_t n = step.node.index();
      if (step.prepare || latest[n] == step.rows) continue;  // slices of one band
      latest[n] = step.rows;
      last_[n] = bands_.size();
      bands_.push_back({step.node, step.rows});
    }
  }

  /// Of all bands.
  double seconds(StepCosts& costs) const {
    double sum = 0;
    for (std::size_t first = 0, end = 0; first < bands_.size(); first = end) {
      end = end_of_region(first);
      if (end == first + 1) {
        sum += costs.whole(bands_[first].node).seconds;
        continue;
      }
      const std::uint64_t round = round_bytes(first, end);
      for (std::size_t b = first; b < end; ++b) {
        const auto [node, rows] = bands_[b];
        sum += costs.seconds(node, {0, rows, far_bytes(node, rows), rows.begin == 0 ? 0 : round, there_bytes(node, rows)});
      }
    }
    return sum;
  }

 private:
  struct Band {
    NodeId node;
    RowRange rows;
  };

  std::size_t end_of_region(std::size_t first) const {
    std::size_t last = first;
    for (std::size_t b = first; b <= last; ++b) last = std::max(last, last_[bands_[b].node.index()]);
    return last + 1;
  }

  const plan::TensorPlacement& placement(TensorId t) const noexcept { return plan_.tensors[t.index()]; }

  /// See `note_round_bytes`.
  std::uint64_t round_bytes(std::size_t first, std::size_t end) const {
    std::uint64_t round = 0;
    for (std::size_t b = first; b < end; ++b) {
      const model::Node& node = whole_.graph->node(bands_[b].node);
      if (last_[bands_[b].node.index()] != b) continue;
      for (const WeightId w : node.weights) round += whole_.graph->weight(w).bytes.count();
      round += ring_bytes(*whole_.graph, node.outputs[0], placement(node.outputs[0]).ring_rows);
    }
    return round;
  }

  /// See BandCutter: the rows that a band reads or writes of large tensors that are not rings.
  std::uint64_t far_bytes(NodeId id, RowRange rows) const {
    const model::Graph& graph = *whole_.graph;
    const model::Node& node = graph.node(id);
    std::uint64_t bytes = far_row_bytes(node.outputs[0]) * static_cast<std::uint64_t>(rows.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::uint64_t row = far_row_bytes(node.inputs[i]);
      if (row == 0) continue;
      const auto by = row_relation(graph, node, i, Connected::kDeclared);
      const std::int64_t all = row_extents(graph.tensor(node.inputs[i]).shape).rows;
      bytes += row * static_cast<std::uint64_t>(by ? rows_read(*by, whole_.kernels[id.index()]->row_granule, rows).size() : all);
    }
    return bytes;
  }

  /// Of a concatenation's band: the parts that lie in its ring, at their place.
  std::uint64_t there_bytes(NodeId id, RowRange rows) const {
    const model::Node& node = whole_.graph->node(id);
    const plan::TensorPlacement& whole = placement(node.outputs[0]);
    if (node.op != model::OpKind::kConcat || whole.ring_rows == 0) return 0;
    std::uint64_t bytes = 0;
    for_each_part(*whole_.graph, node, [&](TensorId in, std::uint64_t offset) {
      const plan::TensorPlacement& part = placement(in);
      const bool at_its_place = part.offset.count() == whole.offset.count() + offset && part.row_pitch == whole.row_pitch;
      if (part.buffer == whole.buffer && part.ring_rows > 0 && at_its_place) bytes += ring_bytes(*whole_.graph, in, rows.size());
    });
    return bytes;
  }

  std::uint64_t far_row_bytes(TensorId t) const {
    const model::Tensor& tensor = whole_.graph->tensor(t);
    if (tensor.weight.valid() || tensor.bytes().count() <= kNearTensor || placement(t).ring_rows > 0) return 0;
    return tensor.bytes().count() / static_cast<std::uint64_t>(row_extents(tensor.shape).rows);
  }

  const Problem& whole_;
  const plan::Plan& plan_;
  std::vector<Band> bands_;
  std::vector<std::size_t> last_;  // by node: its last band
};

/// The extra time of a plan's bands over whole nodes, as a share of all computing; below 0 if they save time. `finest`: see StepCosts.
inline double overhead_of(const Problem& whole, const plan::Plan& plan, bool finest) {
  StepCosts costs(whole, finest);
  double all = 0;
  for (const NodeId id : whole.views.order) all += costs.whole(id).seconds;
  return all > 0 ? BandsOfPlan(whole, plan).seconds(costs) / all - 1 : 0;
}

}  // namespace sluice::planner

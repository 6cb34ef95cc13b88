// (I6) The steps at which each row of a tensor matters, for tensors that lie on the same bytes and take turns there.
//
//     bytes | a: row 0 ###      a: row 2 ###          a row matters from the first step that writes a part of it to the last that may read
//           |   b: row 0   ####                       it, both included
//           +-------------------------- steps
//
// One pair of tensors has rows in common all the time: a concatenation in a ring, and a part of it that is made where the whole has it. Rows of
// one number are then the same bytes with the same values; the step that puts the parts together finds them there.
//
//     ring of 2 | a: row 0 #### | b | whole: row 0    ####   |        row 2 of a comes behind the last read of row 0 of the whole
//               | a: row 1   ## | b | whole: row 1      ##   |
//
// The steps of a plan are walked once for each tensor that is asked for, and pairs of rows are compared one by one: there is no cleverness
// here that could be wrong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"
#include "src/plan/verify_parts.h"
#include "src/plan/verify_rows.h"
#include "src/plan/verify_views.h"

namespace sluice::plan {

class RowLives {
 public:
  RowLives(const Plan& plan, const model::Graph& graph) : plan_(plan), graph_(graph) {}

  /// Is there no step at which two rows matter that have a byte in common? Of two placed tensors of one buffer that have no views; what is
  /// read through a view is not seen. Also false where the answer takes too long.
  bool apart(std::size_t a, std::size_t b) {
    const std::vector<Row>& rows = rows_of(a);
    const std::vector<Row>& others = rows_of(b);
    pairs_ += rows.size() * others.size();
    if (pairs_ > kMostPairs) return false;
    for (const Row& row : rows)
      for (const Row& other : others)
        if (row.bytes.overlaps(other.bytes) && row.steps.overlaps(other.steps)) return false;
    return true;
  }

  /// Does `part` lie in the ring of `whole`, which `maker` concatenates along the last axis, where the whole has it? And is there no step at
  /// which two rows of them matter that have other numbers and one slot? Of placed tensors without views that steps make. Also false where the
  /// answer takes too long.
  bool part_of_ring(std::size_t part, std::size_t whole, const model::Node& maker) {
    if (!lies_in_place(part, whole, maker)) return false;
    const std::vector<Row>& rows = rows_of(part);
    const std::vector<Row>& others = rows_of(whole);
    const auto ring = static_cast<std::size_t>(plan_.tensors[whole].ring_rows);
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::size_t k = r % ring; k < others.size(); k += ring)
        if (++pairs_ > kMostPairs || (k != r && rows[r].steps.overlaps(others[k].steps))) return false;
    return true;
  }

  /// Does no row of a placed tensor that matters at one of `steps` have a byte in `bytes` of its buffer?
  bool none_in(std::size_t t, Interval<std::int64_t> bytes, StepRange steps) {
    constexpr std::size_t kMostRows = std::size_t{1} << 27;
    const std::vector<Row>& rows = rows_of(t);
    looked_at_ += rows.size();
    if (looked_at_ > kMostRows) return false;
    return std::none_of(rows.begin(), rows.end(), [&](const Row& row) { return row.bytes.overlaps(bytes) && row.steps.overlaps(steps); });
  }

 private:
  static constexpr std::size_t kMostPairs = std::size_t{1} << 26;

  struct Row {
    Interval<std::int64_t> bytes;  // in the buffer
    StepRange steps;
  };

  const std::vector<Row>& rows_of(std::size_t t) {
    const auto [known, is_new] = rows_.try_emplace(t);
    if (is_new) known->second = find(TensorId(t));
    return known->second;
  }

  /// The same ring, and the part's first channel at its place in a pixel.
  bool lies_in_place(std::size_t part, std::size_t whole, const model::Node& maker) const {
    const TensorPlacement &inner = plan_.tensors[part], &outer = plan_.tensors[whole];
    const model::Tensor& out = graph_.tensors[whole];
    if (maker.op != model::OpKind::kConcat || maker.as<model::AxisAttributes>().axis + 1 != out.shape.rank()) return false;
    if (inner.buffer != outer.buffer || inner.row_pitch != outer.row_pitch || inner.pixel_pitch != outer.pixel_pitch) return false;
    if (inner.ring_rows < 1 || inner.ring_rows != outer.ring_rows || graph_.tensors[part].dtype != out.dtype) return false;
    std::uint64_t at = outer.offset.count();
    bool there = false;
    for (const TensorId in : maker.inputs) {
      if (in == TensorId(part)) {
        if (there || at != inner.offset.count()) return false;  // one tensor is at one place
        there = true;
      }
      at += static_cast<std::uint64_t>(row_extents(graph_.tensor(in).shape).channels) * size_of(out.dtype);
    }
    return there;
  }

  std::vector<Row> find(TensorId t) const {
    std::vector<Row> rows = places_of(t);
    const auto touch = [&](RowRange touched, std::int64_t step) {
      for (std::int64_t r = touched.begin; r < touched.end; ++r) {
        StepRange& steps = rows[static_cast<std::size_t>(r)].steps;
        steps = {std::min(steps.begin, step), std::max(steps.end, step + 1)};
      }
    };
    const RowRange all{0, static_cast<std::int64_t>(rows.size())};
    const auto steps = static_cast<std::int64_t>(plan_.steps.size());
    for (const model::Port& port : graph_.inputs) {
      if (port.tensor != t) continue;
      touch(all, -1);
      if (plan_.buffer(plan_.tensors[t.index()].buffer).whole_period) touch(all, steps);
    }
    for (const model::Port& port : graph_.outputs)
      if (port.tensor == t) touch(all, steps);
    for (std::int64_t i = 0; i < steps; ++i) {
      const Step& step = plan_.steps[static_cast<std::size_t>(i)];
      if (step.prepare) continue;
      const model::Node& node = graph_.node(step.node);
      if (node.outputs[0] == t)
        touch(step.rows, i);
      else if (std::find(node.outputs.begin(), node.outputs.end(), t) != node.outputs.end())
        touch(all, i);
      for (std::size_t k = 0; k < node.inputs.size(); ++k)
        if (node.inputs[k] == t) touch(rows_of_input(graph_, node, k, step.rows).value_or(all), i);
    }
    return rows;
  }

  std::vector<Row> places_of(TensorId t) const {
    const TensorPlacement& place = plan_.tensors[t.index()];
    const model::Tensor& tensor = graph_.tensor(t);
    const RowExtents extents = row_extents(tensor.shape);
    const std::int64_t bytes =
        (extents.pixels - 1) * place.pixel_pitch + extents.channels * static_cast<std::int64_t>(size_of(tensor.dtype));
    std::vector<Row> rows;
    for (std::int64_t r = 0; r < extents.rows; ++r) {
      const std::int64_t slot = place.ring_rows > 0 ? r % place.ring_rows : r;
      const std::int64_t begin = static_cast<std::int64_t>(place.offset.count()) + slot * place.row_pitch;
      rows.push_back({{begin, begin + bytes}, {INT64_MAX, INT64_MIN}});
    }
    return rows;
  }

  const Plan& plan_;
  const model::Graph& graph_;
  std::map<std::size_t, std::vector<Row>> rows_;  // by tensor
  std::size_t pairs_ = 0;
  std::size_t looked_at_ = 0;
};

}  // namespace sluice::plan

// Rings of a region in the block of what it makes whole: where the last rows of that are not made yet.
//
//     output  |row 0|row 1| ... ->          |###########|      rings that nobody needs any more when the last rows of the output come
//     input             <- ... |row 6|row 7|                   and the input that dies under it (planner/bands/shared_rows.h)
//
// In ResNet-50 the region from the image to the first map of 28 x 28 x 512 has 0.26 MiB of rings there.
// Invariant: whatever lies on the same bytes, tails that kernels may read included, is never needed at the same step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/bands/band_chain.h"
#include "sluice/planner/bands/row_places.h"
#include "sluice/planner/place/layout.h"

namespace sluice::planner {
namespace detail {

/// The rows of what a chain makes whole and of the input that dies under it, in their one block: when each is needed.
struct RowsOfOutput {
  SlotUse growing, dying;

  RowsOfOutput(const model::Graph& graph, const Views& views, const BandCutter& cutter, const Banded& banded, BufferId block) {
    const auto end = static_cast<std::int64_t>(banded.chain.steps.size());
    const TensorId under = banded.overlaid ? banded.overlaid->dying : TensorId();
    if (under.valid())
      dying = {static_cast<std::uint64_t>(views.tensors[under.index()].row_pitch),
               {static_cast<std::size_t>(row_extents(graph.tensor(under).shape).rows), {{0, 1}}}};
    for (std::int64_t s = 0; s < end; ++s) {
      const BandStep& step = banded.chain.steps[static_cast<std::size_t>(s)];
      const model::Node& node = graph.node(views.order[step.position]);
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (under.valid() && node.inputs[i] == under) read(*cutter.reads(step.position, i, step.rows), s);
      if (cutter.block_of(step.position) == block)
        make(step.rows, cutter.all_rows(step.position).end, cutter.row_bytes(step.position), {s, end + 1});
    }
  }

 private:
  void read(RowRange rows, std::int64_t step) {
    for (std::int64_t r = rows.begin; r < rows.end; ++r) dying.busy[static_cast<std::size_t>(r)][0].end = step + 1;
  }

  /// Rows are needed from the first step that makes them to the end.
  void make(RowRange rows, std::int64_t all, std::uint64_t row_bytes, Interval<std::int64_t> steps) {
    growing.slot_bytes = row_bytes;
    growing.busy.resize(static_cast<std::size_t>(all), {{steps.end - 1, steps.end}});
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      Interval<std::int64_t>& busy = growing.busy[static_cast<std::size_t>(r)][0];
      busy.begin = std::min(busy.begin, steps.begin);
    }
  }
};

}  // namespace detail

/// Takes from `rings` (by position - chain.first) those that fit there, the largest first, but not the last one.
inline std::optional<UnderOutput> place_under_output(const model::Graph& graph, const Views& views, const BandCutter& cutter,
                                                     const Banded& banded, std::vector<SlotUse>& rings) {
  constexpr std::uint64_t kTail = kernels::kReadTail.count();
  constexpr std::size_t kMostRows = 1024;
  const BufferId block = cutter.growing_in(banded);
  if (!block.valid()) return std::nullopt;
  const detail::RowsOfOutput rows(graph, views, cutter, banded, block);
  if (rows.growing.busy.size() + rows.dying.busy.size() > kMostRows) return std::nullopt;
  RowPlaces places(kBufferAlignment, kTail);
  places.put(rows.growing, 0);
  if (banded.overlaid) places.put(rows.dying, banded.overlaid->offset);
  std::vector<std::size_t> order(rings.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sluice::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rings[a].bytes() > rings[b].bytes(); });
  while (!order.empty() && rings[order.back()].busy.empty()) order.pop_back();
  if (order.empty()) return std::nullopt;
  order.pop_back();  // a block for workspaces stays
  UnderOutput under{block, std::vector<std::uint64_t>(rings.size(), UnderOutput::kNowhere)};
  std::vector<SlotUse> there;
  there.reserve(order.size());
  for (const std::size_t r : order) {
    const std::uint64_t at = places.lowest(rings[r]);
    if (at + rings[r].bytes() + kTail > views.blocks[block.index()].bytes) continue;
    there.push_back(std::exchange(rings[r], {}));
    places.put(there.back(), at);
    under.offsets[r] = at;
  }
  if (there.empty()) return std::nullopt;
  return under;
}

}  // namespace sluice::planner

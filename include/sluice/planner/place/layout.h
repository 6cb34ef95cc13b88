// Pass: offsets of what does not stream: activations and workspaces, packed once for a schedule (planner/place/place.h).
//
//     arena   | resident weights | activations and workspaces, packed | ...        streamed loads lie above and in the gaps
//             0                  base                                 base + height
//
// A node's steps share one workspace address, and so do those of a chain, if they have none between the rows of its rings; each step has a
// buffer of its own there, which lives for that step. Invariant: sizes include kernels::kReadTail and are multiples of 64.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/cut/schedule.h"
#include "sluice/planner/order/views.h"
#include "sluice/planner/place/place.h"
#include "sluice/planner/place/place_loads.h"

namespace sluice::planner {

inline constexpr std::uint64_t kBufferAlignment = 64;

/// Offsets are relative to the base; there are none before SharedPrices::pack (planner/stream/shared_prices.h) has found them.
struct FixedLayout {
  std::vector<Rectangle> items;        // blocks, then one workspace for each position (size 0: none)
  std::vector<std::uint64_t> offsets;  // by item
  std::uint64_t height = 0;
  std::size_t blocks = 0;  // how many of the items are blocks

  const Rectangle& workspace(std::size_t position) const noexcept { return items[blocks + position]; }
  std::uint64_t workspace_offset(std::size_t position) const noexcept { return offsets[blocks + position]; }
};

inline std::uint64_t buffer_bytes(std::uint64_t payload) noexcept {
  return align_up(payload + kernels::kReadTail.count(), kBufferAlignment);
}

inline std::uint64_t workspace_bytes(const model::Graph& graph, const KernelChoice& kernels, NodeId id, const StepSpec& step, int threads) {
  if (step.prepare) return 0;
  const RowRange rows = rows_of(graph, graph.node(id), step);
  const std::uint64_t own = kernels.workspace_bytes(id, {rows, step.channels, threads, step.derived != kNotDerived});
  return step.window == 0 ? own : own + kBlockBytes + step.window;  // the window begins on a block
}

/// Where a position's workspace is listed: with the first of its chain.
inline std::size_t workspace_home(const Views& views, std::size_t position) noexcept {
  const Chain* chain = chain_of(views.chains, position);
  return chain == nullptr ? position : chain->first;
}

/// Does a workspace of `bytes` lie where the step's chain has room for it, between the rows of its rings?
inline bool lies_between_rows(const StepSpec& step, std::uint64_t bytes) noexcept {
  return bytes > 0 && step.window == 0 && buffer_bytes(bytes) <= static_cast<std::uint64_t>(step.inside.size());
}

/// The largest workspace of each position's steps, as the kernels state it (0: none, or listed elsewhere).
inline std::vector<std::uint64_t> workspaces(const model::Graph& graph, const KernelChoice& kernels, const Views& views,
                                             const Schedule& schedule, int threads) {
  std::vector<std::uint64_t> bytes(views.order.size(), 0);
  for (const StepSpec& step : schedule.steps) {
    const std::size_t home = workspace_home(views, step.position);
    const std::uint64_t own = workspace_bytes(graph, kernels, views.order[step.position], step, threads);
    if (!lies_between_rows(step, own)) bytes[home] = std::max(bytes[home], own);
  }
  return bytes;
}

/// The blocks to place, with lifetimes in positions.
inline std::vector<Rectangle> fixed_items(const Views& views, const std::vector<std::uint64_t>& workspace_bytes) {
  const auto positions = static_cast<std::int64_t>(views.order.size());
  std::vector<Rectangle> items;
  for (const Block& block : views.blocks) {
    const std::int64_t end = block.to_end || block.whole_period ? positions : block.last + 1;
    items.push_back({{block.whole_period ? 0 : block.first, end}, buffer_bytes(block.bytes), kBufferAlignment});
  }
  for (std::int64_t p = 0; p < positions; ++p) {
    const std::uint64_t bytes = workspace_bytes[static_cast<std::size_t>(p)];
    items.push_back({{p, p + 1}, bytes == 0 ? 0 : buffer_bytes(bytes), kBufferAlignment});
  }
  return items;
}

/// The layout as rectangles in steps and arena bytes, sorted by begin of time: what `place_loads` goes round.
inline std::vector<FixedRect> fixed_rects(const FixedLayout& layout, const Schedule& schedule, std::uint64_t base) {
  std::vector<FixedRect> rects;
  for (std::size_t i = 0; i < layout.items.size(); ++i) {
    const Rectangle& item = layout.items[i];
    if (item.size == 0) continue;
    const Interval<std::int64_t> steps{schedule.steps_of[static_cast<std::size_t>(item.time.begin)].begin,
                                       schedule.steps_of[static_cast<std::size_t>(item.time.end - 1)].end};
    const std::uint64_t at = base + layout.offsets[i];
    rects.push_back({steps, {at, at + item.size}});
  }
  sluice::stable_sort(rects.begin(), rects.end(), [](const FixedRect& a, const FixedRect& b) { return a.time.begin < b.time.begin; });
  return rects;
}

}  // namespace sluice::planner

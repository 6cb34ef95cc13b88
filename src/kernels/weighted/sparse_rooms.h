// The lists of blocks of the threads of a step over sparse panels, in the workspace (sparse.h has the picture). Walks ask for those of a
// block of panels; a thread keeps the lists that it made last.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/sparse_panels.h"
#include "src/kernels/weighted/sparse_tile.h"

namespace sluice::kernels::weighted {

/// Panels whose lists a thread keeps at once: all of a step, fewer where their places would fill the second cache.
inline constexpr std::int64_t kMostPlaces = 32 * 1024;
inline constexpr std::int64_t kMostListedPanels = 64;
inline std::int64_t panels_of_room(std::int64_t values, std::int64_t panels) noexcept {
  return std::clamp<std::int64_t>(kMostPlaces / std::max<std::int64_t>(1, values), 1, std::min(panels, kMostListedPanels));
}

/// A thread's part of the workspace: this, then the places, then the strip.
struct alignas(64) ListRoom {
  std::int64_t held;        // the first panel of those listed; -1: none
  std::int64_t held_strip;  // the run of pixels that lies there; -1: none
  BlockList lists[kMostListedPanels];

  std::uint32_t* places() noexcept { return reinterpret_cast<std::uint32_t*>(this + 1); }
};

inline std::uint64_t list_bytes(std::int64_t values, std::int64_t panels) noexcept {
  return sizeof(ListRoom) + align_up(static_cast<std::uint64_t>(values * panels + kPlacesBehind) * sizeof(std::uint32_t), kWeightAlignment);
}

/// The rooms of a step's threads, and what lies in them.
class ListRooms {
 public:
  /// Lists of so many panels, and behind them a strip of `strip_bytes`.
  ListRooms(const KernelCall& call, const SparseTiles& tiles, const std::uint32_t* ends, std::int64_t panels, int threads,
            std::uint64_t strip_bytes = 0) noexcept
      : call_(call), tiles_(tiles), ends_(ends), lists_(list_bytes(weighted_of(call).panels.values, panels)), each_(lists_ + strip_bytes) {
    for (int thread = 0; thread < threads; ++thread) room(thread).held = room(thread).held_strip = -1;
  }

  /// A thread's strip. `fill(strip)` is called if another run of pixels lies in it.
  template <class Fill>
  const float* strip(int thread, std::int64_t run, const Fill& fill) const noexcept {
    ListRoom& room = this->room(thread);
    auto* const strip = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(&room) + lists_);
    if (room.held_strip != run) fill(strip);
    room.held_strip = run;
    return strip;
  }

  /// Lists the blocks of values [products) of a block's panels. `first_place(segment)` says where the input of the first of `depth` values
  /// lies, and behind each 16 values `skip` floats are skipped. The lists stay until another block's are wanted: segments and products are
  /// the same for all units of a step.
  template <class FirstPlace>
  const BlockList* lists(int thread, const Block& block, Interval<std::int64_t> products, std::int64_t depth, const FirstPlace& first_place,
                         std::int64_t skip = 0) const noexcept {
    ListRoom& room = this->room(thread);
    if (room.held == block.first_panel) return room.lists;
    room.held = block.first_panel;
    const operators::PanelGeometry& geometry = weighted_of(call_).panels;
    for (std::int64_t p = 0; p < block.panels; ++p) {
      const SparsePanel panel = sparse_panel(call_.weights[0], geometry, ends_, block.first_panel + p);
      std::uint32_t* const places = room.places() + p * geometry.values;
      const std::int64_t before = panel.count_before(products.begin);
      std::int64_t count = 0;
      for (std::int64_t segment = products.begin / depth; segment * depth < products.end; ++segment) {
        const std::int64_t place = first_place(segment) - segment * depth;
        const Interval<std::int64_t> values{std::max(products.begin, segment * depth), std::min(products.end, (segment + 1) * depth)};
        count += tiles_.list(panel, values, before + count, place, skip, places + count);
      }
      room.lists[p] = {places, panel.block(before), count};
    }
    fetch_bitmaps(block.first_panel + block.panels, block.panels);
    return room.lists;
  }

  /// Of a block's panels.
  std::int64_t bytes_of(const Block& block) const noexcept {
    return begin_of(block.first_panel + block.panels) - begin_of(block.first_panel);
  }

 private:
  /// Of the panels that are listed next: they come while tiles multiply by these, or each list would wait for memory.
  void fetch_bitmaps(std::int64_t panel, std::int64_t count) const noexcept {
    const WeightOperand& weight = call_.weights[0];
    const std::int64_t bytes = SparsePanel::bitmap_bytes_of(weighted_of(call_).panels.values);
    for (const std::int64_t end = std::min(panel + count, weight.panels.end); panel < end; ++panel)
      for (std::int64_t at = 0; at < bytes; at += static_cast<std::int64_t>(kWeightAlignment))
        __builtin_prefetch(weight.data + begin_of(panel) - begin_of(weight.panels.begin) + at);
  }
  std::int64_t begin_of(std::int64_t panel) const noexcept {
    return panel == 0 ? 0 : std::int64_t{ends_[panel - 1]} * static_cast<std::int64_t>(kWeightAlignment);
  }

  ListRoom& room(int thread) const noexcept {
    return *reinterpret_cast<ListRoom*>(call_.workspace + static_cast<std::uint64_t>(thread) * each_);
  }

  const KernelCall& call_;
  const SparseTiles& tiles_;
  const std::uint32_t* ends_;
  std::uint64_t lists_;  // bytes
  std::uint64_t each_;
};

}  // namespace sluice::kernels::weighted

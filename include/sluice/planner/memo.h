// What the drafts of one request have in common, computed once: prices of steps, and layouts of activations and workspaces.
//
// Drafts differ in how weights are cut; most of their steps and nearly all of their layouts are alike. Not shared between threads.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sluice/planner/layout.h"
#include "sluice/planner/simulate.h"

namespace sluice::planner {

class Memo {
 public:
  /// Packs the items of a layout that has no offsets yet.
  void pack(FixedLayout& layout) {
    std::vector<std::uint64_t> sizes;
    sizes.reserve(layout.items.size());
    for (const Rectangle& item : layout.items) sizes.push_back(item.size);
    const auto [known, is_new] = layouts_.try_emplace(std::move(sizes));
    if (is_new) known->second = place({layout.items}).placement;
    layout.offsets = known->second.offsets;
    layout.height = known->second.height;
  }

  /// price_step, remembered.
  double step_seconds(const StepSpec& step, auto&& compute) {
    const Key key{static_cast<std::uint64_t>(step.position) << 2 | (step.prepare ? 2u : 0u) | (step.derived != kNotDerived ? 1u : 0u),
                  static_cast<std::uint64_t>(step.channels.begin), static_cast<std::uint64_t>(step.channels.end),
                  static_cast<std::uint64_t>(step.rows.size()), step.far_bytes};
    const auto [known, is_new] = seconds_.try_emplace(key, 0.0);
    if (is_new) known->second = compute();
    return known->second;
  }

 private:
  struct Key {
    std::uint64_t what, begin, end, rows, far_bytes;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const noexcept {
      return ((k.what * 0x9e3779b97f4a7c15u) ^ (k.begin * 0xc2b2ae3d27d4eb4fu)) + (k.end * 0x165667b19e3779f9u >> 7) +
             (k.rows * 0xff51afd7ed558ccdu >> 5) + k.far_bytes;
    }
  };

  std::map<std::vector<std::uint64_t>, Placement> layouts_;  // by the sizes of the items; their times are the views'
  std::unordered_map<Key, double, Hash> seconds_;
};

}  // namespace sluice::planner

// What the drafts of one request have in common, computed once: prices of steps, and layouts of activations and workspaces.
//
// Drafts differ in how weights are cut; most of their steps and nearly all of their layouts are alike. Not shared between threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sluice/planner/place/layout.h"
#include "sluice/planner/stream/simulate.h"

namespace sluice::planner {

/// Seconds of steps, remembered by what they depend on. Holds so many at most: then it forgets all of them and begins anew, because a search in
/// a graph of many nodes comes back to few of them.
class StepMemory {
 public:
  explicit StepMemory(std::size_t most) : most_(most) {}

  /// price_step, remembered. A slice's price follows from how many channels and rows it has, not from which: kernels state work by panels.
  double seconds(const StepSpec& step, auto&& compute) {
    const Key key{static_cast<std::uint64_t>(step.position) << 2 | (step.prepare ? 2u : 0u) | (step.derived != kNotDerived ? 1u : 0u),
                  static_cast<std::uint64_t>(step.channels.size()),
                  static_cast<std::uint64_t>(step.rows.size()),
                  step.far_bytes,
                  step.round_bytes,
                  step.there_bytes};
    if (key == last_key_) return last_seconds_;  // slices of a node are mostly alike
    const auto known = seconds_.find(key);
    last_seconds_ = known != seconds_.end() ? known->second : compute();
    last_key_ = key;
    if (known != seconds_.end()) return last_seconds_;
    if (seconds_.size() >= most_) seconds_.clear();
    seconds_.emplace(key, last_seconds_);
    return last_seconds_;
  }

 private:
  struct Key {
    std::uint64_t what = ~std::uint64_t{0};
    std::uint64_t channels = 0;
    std::uint64_t rows = 0;
    std::uint64_t far_bytes = 0;
    std::uint64_t round_bytes = 0;
    std::uint64_t there_bytes = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const noexcept {
      return ((k.what * 0x9e3779b97f4a7c15u) ^ (k.channels * 0xc2b2ae3d27d4eb4fu)) + (k.rows * 0xff51afd7ed558ccdu >> 5) + k.far_bytes +
             k.round_bytes + k.there_bytes * 31;
    }
  };

  std::size_t most_;
  std::unordered_map<Key, double, Hash> seconds_;
  Key last_key_;
  double last_seconds_ = 0;
};

class SharedPrices {
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
  double step_seconds(const StepSpec& step, auto&& compute) { return steps_.seconds(step, compute); }

  /// profiler::load_seconds of whole blocks, remembered up to the size from which on it only grows in proportion.
  double load_seconds(const profiler::DeviceProfile& profile, std::uint64_t bytes) {
    const std::uint64_t piece = align_up(std::max<std::uint64_t>(profile.read_piece_bytes, kBlockBytes), kBlockBytes);
    if (bytes > piece) return load_seconds(profile, piece) * static_cast<double>(bytes) / static_cast<double>(piece);
    if (loads_.empty()) loads_.resize(piece / kBlockBytes + 1, 0.0);
    double& seconds = loads_[bytes / kBlockBytes];
    if (seconds == 0) seconds = profiler::load_seconds(profile, Bytes(bytes));
    return seconds;
  }

 private:
  static constexpr std::size_t kMostSteps = 1 << 15;  // of drafts, each of which goes through all nodes

  std::map<std::vector<std::uint64_t>, Placement> layouts_;  // by the sizes of the items; their times are the views'
  StepMemory steps_{kMostSteps};
  std::vector<double> loads_;  // by blocks; 0: not asked for yet
};

}  // namespace sluice::planner

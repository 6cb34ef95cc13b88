// step_seconds (latency.h), remembered: a net repeats its layers, and who searches for a net asks about the same ones again and again. A third
// of a prediction is in the field of samples, which this asks once for each kernel and work.
//
// Not thread-safe. Invariant: what is given is what step_seconds would give.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sluice/profiler/latency.h"

namespace sluice::profiler {

class WorkPrices {
 public:
  /// `profile` is copied. Remembers at most `most` prices, 120 bytes each, and begins anew then.
  explicit WorkPrices(DeviceProfile profile, std::size_t most = 1 << 14) : profile_(std::move(profile)), most_(most) { make_room(); }
  WorkPrices(const WorkPrices&) = delete;
  WorkPrices& operator=(const WorkPrices&) = delete;

  const DeviceProfile& profile() const noexcept { return profile_; }

  double seconds(const UsedKernel& kernel, const model::Node& node, const StepWork& work) {
    // Of the node a price needs no more than this, and only where nothing was measured.
    const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
    const bool depthwise = conv != nullptr && conv->depthwise(), int8 = node.numeric == model::NumericClass::kInt8;
    const Key key{static_cast<std::uint64_t>(kernel.kernel) << 32 | static_cast<std::uint64_t>(kernel.use) << 16 |
                      static_cast<std::uint64_t>(depthwise) << 8 | static_cast<std::uint64_t>(int8),
                  work};
    const std::uint64_t hash = hash_of(key);
    std::size_t slot = slot_of(key, hash);
    if (places_[slot] != 0) return known_[places_[slot] - 1].seconds;
    if (known_.size() >= most_ || 2 * known_.size() >= places_.size()) {
      make_room();
      slot = slot_of(key, hash);
    }
    const double seconds = step_seconds(profile_, kernel, node, work);
    Known& known = known_.emplace_back();
    known.key = key;
    known.hash = hash;
    known.seconds = seconds;
    places_[slot] = static_cast<std::uint32_t>(known_.size());
    return seconds;
  }

 private:
  struct Key {
    std::uint64_t kernel = 0;  // with its use, and what a price needs of its node
    StepWork work;
    friend bool operator==(const Key& a, const Key& b) noexcept {
      return a.kernel == b.kernel && a.work.cost == b.work.cost && a.work.shape == b.work.shape && a.work.variant == b.work.variant &&
             a.work.run_bytes == b.work.run_bytes && a.work.shared_bytes == b.work.shared_bytes;
    }
  };
  struct Known {
    Key key;
    std::uint64_t hash = 0;
    double seconds = 0;
  };

  static std::uint64_t hash_of(const Key& k) noexcept {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;
    std::uint64_t hash = k.kernel, factor = kOdd;
    const StepShape& shape = k.work.shape;
    for (const std::uint64_t part : {k.work.cost.flops, k.work.cost.input_bytes, k.work.cost.output_bytes, k.work.cost.weight_bytes,
                                     std::uint64_t{shape.rows} << 32 | shape.columns, std::uint64_t{shape.channels} << 32 | shape.depth,
                                     std::uint64_t{shape.taps} << 32 | shape.stride, k.work.run_bytes})
      hash += part * factor, factor *= kOdd;  // products that wait for no other
    hash = (hash ^ hash >> 32) * kOdd;
    return hash ^ hash >> 29;
  }
  /// Where the key is, or the free slot that it would take.
  std::size_t slot_of(const Key& key, std::uint64_t hash) const noexcept {
    const std::size_t mask = places_.size() - 1;
    std::size_t slot = static_cast<std::size_t>(hash) & mask;
    for (; places_[slot] != 0; slot = (slot + 1) & mask)
      if (const Known& known = known_[places_[slot] - 1]; known.hash == hash && known.key == key) break;
    return slot;
  }

  /// Twice as many slots, or, where `most` are known, none known.
  void make_room() {
    constexpr std::size_t kFirst = 1024;
    if (known_.size() >= most_) known_.clear();
    places_.assign(known_.empty() ? kFirst : 2 * places_.size(), 0);
    known_.reserve(places_.size() / 2);
    for (std::size_t k = 0; k < known_.size(); ++k) places_[slot_of(known_[k].key, known_[k].hash)] = static_cast<std::uint32_t>(k + 1);
  }

  const DeviceProfile profile_;
  const std::size_t most_;
  std::vector<Known> known_;
  std::vector<std::uint32_t>
      places_;  // slots by hash, or the next free ones: 1 + place in known_, 0: free. A power of two, half of them free
};

}  // namespace sluice::profiler

// step_seconds (latency.h), remembered: a net repeats its layers, and who searches for a net asks about the same ones again and again. Half of a
// prediction is in the field of samples, which this asks once for each kernel and work.
//
// Not thread-safe. Invariant: what is given is what step_seconds would give.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "sluice/profiler/latency.h"

namespace sluice::profiler {

class WorkPrices {
 public:
  /// `profile` is copied. Remembers at most `most` prices, 160 bytes each, and begins anew then.
  explicit WorkPrices(DeviceProfile profile, std::size_t most = 1 << 14) : profile_(std::move(profile)), most_(most) {}
  WorkPrices(const WorkPrices&) = delete;
  WorkPrices& operator=(const WorkPrices&) = delete;

  const DeviceProfile& profile() const noexcept { return profile_; }

  double seconds(UsedKernel kernel, const model::Node& node, const StepWork& work) {
    // Of the node a price needs no more than this, and only where nothing was measured.
    const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
    const Key key{kernel, work, conv != nullptr && conv->depthwise(), node.numeric == model::NumericClass::kInt8};
    if (const auto known = seconds_.find(key); known != seconds_.end()) return known->second;
    if (seconds_.size() >= most_) seconds_.clear();
    return seconds_[key] = step_seconds(profile_, kernel, node, work);
  }

 private:
  struct Key {
    UsedKernel kernel;
    StepWork work;
    bool depthwise = false, int8 = false;
    friend bool operator==(const Key& a, const Key& b) noexcept {
      return a.kernel == b.kernel && a.work.cost == b.work.cost && a.work.shape == b.work.shape && a.work.variant == b.work.variant &&
             a.work.run_bytes == b.work.run_bytes && a.depthwise == b.depthwise && a.int8 == b.int8;
    }
  };
  struct Hash {
    std::size_t operator()(const Key& k) const noexcept {
      std::uint64_t hash = static_cast<std::uint64_t>(k.kernel.kernel) << 8 | static_cast<std::uint64_t>(k.kernel.use);
      const StepShape& shape = k.work.shape;
      for (const std::uint64_t part : {k.work.cost.flops, k.work.cost.input_bytes, k.work.cost.output_bytes, k.work.cost.weight_bytes,
                                       std::uint64_t{shape.rows} << 32 | shape.columns, std::uint64_t{shape.channels} << 32 | shape.depth,
                                       std::uint64_t{shape.taps} << 32 | shape.stride, k.work.run_bytes})
        hash = (hash ^ part) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
      return hash;
    }
  };

  const DeviceProfile profile_;
  const std::size_t most_;
  std::unordered_map<Key, double, Hash> seconds_;
};

}  // namespace sluice::profiler

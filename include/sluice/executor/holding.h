// What of an arena still holds for a plan after another plan had it.
//
//     plan A    |resident a0|resident a1|........|activations, streamed weights|      A ran, then B: a0 holds, a1 does not
//     plan B    ............|resident b0|resident b1|activations|
//
// A plan that has the arena may write into every byte of its own buffers and into no other. So a resident weight of A outlives B where no
// byte of it lies in a buffer of B, or where B's resident weights are, at that address, the same stretches of the same model. What B has
// loaded serves A in the same way, though A has never run: plans of one model agree on the addresses of what is resident.
//
// Invariant (H1): a load that holds has all its stretches, verified, at its plan's addresses. Where that cannot be proven, it does not
// hold.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/plan/plan.h"

namespace sluice::executor {

/// What the arena holds for a plan.
struct Holding {
  std::vector<bool> loads;  // by load: a resident one's weights are there
  bool derived = false;     // all derived weights are there

  static Holding none(const plan::Plan& plan) { return {std::vector<bool>(plan.loads.size(), false), false}; }
};

/// Where a plan writes: made once for it. Keeps no reference.
class Footprint {
 public:
  explicit Footprint(const plan::Plan& plan);

  using ByteRange = Interval<std::uint64_t>;
  /// One resident load's target.
  struct Region {
    ByteRange bytes;
    std::uint32_t load = 0;
  };
  bool writes(ByteRange bytes) const noexcept;              // into anything but resident regions
  const Region* region_at(ByteRange bytes) const noexcept;  // the lowest resident region that these bytes touch, or nullptr
  bool touches(ByteRange bytes) const noexcept { return writes(bytes) || region_at(bytes) != nullptr; }
  std::uint64_t end() const noexcept;

 private:
  std::vector<ByteRange> written_;  // disjoint, sorted
  std::vector<Region> resident_;    // disjoint, sorted
};

/// A plan, its footprint, and what the arena holds for it.
struct Tenure {
  const plan::Plan& plan;
  const Footprint& footprint;
  const Holding& holding;
};

/// Brings up to date what holds for `mine` after `other` had the arena and left `other.holding` there. `same_model`: both plans are for the
/// same bytes of a model file, whose stretches these are. Allocates nothing.
void outlive(const plan::Plan& mine, Holding& holding, const Tenure& other, bool same_model,
             const std::vector<model::Stretch>& stretches) noexcept;

}  // namespace sluice::executor

// The layout of the emitted code's arena: stages cut into regions, rings, addresses.
//
// The network is cut into regions of stages that follow each other; what crosses a cut is held whole, what does not is a ring. All cuts
// are looked at: the need of a region depends on its ends alone, so the best way to each stage follows from the best ways to those before
// it. Two questions are answered in that way: the least RAM, with pieces of a single pixel; and, in given RAM, the fewest pieces, since
// each costs a round of the walk. Where multiply-adds may be spent, regions may run in strips (strips.h): then the least RAM is what the
// cheapest cuts within them still fit in, and, in given RAM, fewer multiply-adds come before fewer pieces. Addresses come from the
// planner's placement (planner/place/place.h), in bytes, not in blocks.
//
// Invariants: (M1) storages, scratch and places that live in one region do not overlap, but a pair of RegionCost::overlap; (M2)
// multiply-adds are at most the network's own and those that may be spent: without any, nothing is computed twice; (M3) the same network
// and limits give the same plan.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/emit/network.h"
#include "sluice/emit/region_cost.h"
#include "sluice/emit/walk.h"

namespace sluice::emit {

struct StoragePlace {
  std::uint64_t offset = 0;
  std::uint64_t ring = 0;       // bytes behind which it begins again: all of it, or fewer
  std::int64_t row_pixels = 0;  // from one row to the next, of a ring in strips; 0: as many as the tensor has
};

struct MemoryPlan {
  std::vector<Region> regions;
  std::vector<StoragePlace> storages;
  std::vector<std::uint64_t> scratch;  // by stage
  std::vector<std::uint64_t> kept;     // by stage
  std::vector<std::uint64_t> places;   // by region
  std::uint64_t arena_bytes = 0;
  std::uint64_t macs = 0;               // of all strips
  std::uint64_t lower_bound_bytes = 0;  // of the tensors alone, with rings of pixels: no cuts that compute nothing twice need less
};

struct MemoryLimits {
  std::uint64_t arena_bytes = 0;
  std::uint64_t extra_macs = 0;  // beyond the network's own
};

/// The plan with the fewest multiply-adds, then pieces, within the limits. Errors: kBudgetTooSmall with the least arena that works.
Result<MemoryPlan> plan_memory(const Network& network, const MemoryLimits& limits);
/// The plan with the least arena.
MemoryPlan plan_smallest(const Network& network, std::uint64_t extra_macs = 0);

}  // namespace sluice::emit

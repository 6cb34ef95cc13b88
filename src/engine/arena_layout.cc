#include "src/engine/arena_layout.h"

#include <algorithm>
#include <limits>

#include "sluice/core/interval.h"
#include "sluice/core/sort.h"
#include "sluice/core/units.h"

namespace sluice::engine {
namespace {

using ByteRange = Interval<std::uint64_t>;

/// What all plans of one model ask of the place where it keeps its weights.
struct ModelNeeds {
  std::size_t model = 0;
  std::uint64_t kept = 0;     // the most of its plans
  std::uint64_t highest = 0;  // the highest address at which it may begin, so that each plan's transient part has room above
};

std::vector<ModelNeeds> needs_of_models(std::span<const PlanToPlace> plans, std::uint64_t end) {
  std::vector<ModelNeeds> needs;
  for (const PlanToPlace& plan : plans) {
    const std::uint64_t highest = align_down(end - plan.parts.bytes(), kArenaPage);
    const auto known = std::find_if(needs.begin(), needs.end(), [&](const ModelNeeds& need) { return need.model == plan.model; });
    if (known == needs.end()) {
      needs.push_back({plan.model, plan.parts.kept, highest});
    } else {
      known->kept = std::max(known->kept, plan.parts.kept);
      known->highest = std::min(known->highest, highest);
    }
  }
  return needs;
}

std::uint64_t overlap(const std::vector<ByteRange>& taken, ByteRange bytes) noexcept {
  std::uint64_t sum = 0;
  for (const ByteRange& other : taken)
    if (other.overlaps(bytes)) sum += std::min(other.end, bytes.end) - std::max(other.begin, bytes.begin);
  return sum;
}

/// The lowest of those addresses at which the fewest bytes are taken: 0, after each placed plan, or as high as possible.
std::uint64_t best_address(const std::vector<ByteRange>& taken, const ModelNeeds& need) {
  std::vector<std::uint64_t> addresses = {0, need.highest};
  for (const ByteRange& other : taken)
    if (align_up(other.end, kArenaPage) <= need.highest) addresses.push_back(align_up(other.end, kArenaPage));
  sluice::sort(addresses.begin(), addresses.end());
  std::uint64_t best = 0;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t at : addresses) {
    const std::uint64_t bytes = overlap(taken, {at, at + need.kept});
    if (bytes >= least) continue;
    least = bytes;
    best = at;
  }
  return best;
}

bool is_kept(const plan::Buffer& buffer) noexcept {
  return buffer.kind == plan::BufferKind::kDerived || (buffer.kind == plan::BufferKind::kWeight && buffer.whole_period);
}

}  // namespace

PlanParts parts_of(const plan::Plan& plan) noexcept {
  std::uint64_t kept_end = 0;
  std::uint64_t passing_begin = plan.arena_bytes.count();
  for (const plan::Buffer& buffer : plan.buffers) {
    if (is_kept(buffer)) {
      kept_end = std::max(kept_end, (buffer.offset + buffer.size).count());
    } else if (buffer.size > Bytes()) {
      passing_begin = std::min(passing_begin, buffer.offset.count());
    }
  }
  const std::uint64_t kept = align_up(kept_end, kArenaPage);
  if (kept > passing_begin) return {plan.arena_bytes.count(), 0};
  return {kept, plan.arena_bytes.count() - kept};
}

std::vector<PlanPlace> lay_out(std::span<const PlanToPlace> plans, std::uint64_t capacity) {
  std::uint64_t most_passing = 0;
  for (const PlanToPlace& plan : plans) most_passing = std::max(most_passing, plan.parts.passing);
  std::uint64_t wanted = most_passing;
  for (const ModelNeeds& need : needs_of_models(plans, capacity)) wanted += align_up(need.kept, kArenaPage);
  const std::uint64_t end = std::min(capacity, wanted);
  const std::vector<ModelNeeds> needs = needs_of_models(plans, end);
  std::vector<ByteRange> taken;
  for (const ModelNeeds& need : needs) {
    const std::uint64_t at = best_address(taken, need);
    taken.push_back({at, at + need.kept});
  }
  std::vector<PlanPlace> places;
  for (const PlanToPlace& plan : plans) {
    const auto need = std::find_if(needs.begin(), needs.end(), [&](const ModelNeeds& n) { return n.model == plan.model; });
    const std::uint64_t kept = taken[static_cast<std::size_t>(need - needs.begin())].begin;
    places.push_back({kept, align_down(end - plan.parts.passing, kArenaPage)});
  }
  return places;
}

void move_plan(plan::Plan& plan, const PlanParts& parts, PlanPlace from, PlanPlace to) noexcept {
  if (from == to) return;
  for (plan::Buffer& buffer : plan.buffers) {
    // Buffers of no bytes may lie anywhere; they stay within the arena with the passing ones.
    const bool kept = parts.passing == 0 || is_kept(buffer);
    const std::uint64_t begin = kept ? from.kept : from.passing;
    buffer.offset = Bytes(buffer.offset.count() - begin + (kept ? to.kept : to.passing));
  }
  plan.arena_bytes = Bytes(std::max(to.kept + parts.kept, parts.passing == 0 ? 0 : to.passing + parts.passing));
  plan.capacity = std::max(plan.capacity, plan.arena_bytes);
}

}  // namespace sluice::engine

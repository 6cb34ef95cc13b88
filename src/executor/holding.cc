#include "sluice/executor/holding.h"

#include <algorithm>

#include "sluice/core/sort.h"

namespace sluice::executor {
namespace {

using ByteRange = Footprint::ByteRange;

ByteRange bytes_of(const plan::Buffer& buffer) noexcept { return {buffer.offset.count(), (buffer.offset + buffer.size).count()}; }

/// What is added to a file offset to give the arena's, modulo 2^64.
std::uint64_t shift_of(const plan::Plan& plan, const plan::Load& load) noexcept {
  return plan.buffer(load.target).offset.count() - load.file.offset.count();
}

bool brings(const plan::Load& load, std::uint32_t stretch) noexcept {
  return load.first_stretch <= stretch && stretch - load.first_stretch < load.stretch_count;
}

/// The first of sorted, disjoint ranges that ends behind `at`.
template <class Ranges, class BytesOf>
auto first_behind(const Ranges& ranges, std::uint64_t at, const BytesOf& bytes) noexcept {
  return std::partition_point(ranges.begin(), ranges.end(), [&](const auto& range) { return bytes(range).end <= at; });
}

class Outliving {
 public:
  Outliving(const plan::Plan& mine, const Tenure& other, bool same_model, const std::vector<model::Stretch>& stretches) noexcept
      : mine_(mine), other_(other), same_model_(same_model), stretches_(stretches) {}

  bool load_holds(const plan::Load& load, bool held) const noexcept {
    if (!load.resident || (!held && !same_model_)) return false;
    if (held && !other_.footprint.touches(bytes_of(mine_.buffer(load.target)))) return true;
    if (load.expands()) return region_holds(load, held);
    for (std::uint32_t s = load.first_stretch; s < load.first_stretch + load.stretch_count; ++s)
      if (!stretch_holds(s, shift_of(mine_, load), held)) return false;
    return true;
  }

  bool derived_hold() const noexcept {
    return std::none_of(mine_.buffers.begin(), mine_.buffers.end(), [&](const plan::Buffer& buffer) {
      return buffer.kind == plan::BufferKind::kDerived && other_.footprint.touches(bytes_of(buffer));
    });
  }

 private:
  /// Of a load whose stretches do not lie as in the file: only the very same load leaves them there.
  bool region_holds(const plan::Load& load, bool held) const noexcept {
    const ByteRange bytes = bytes_of(mine_.buffer(load.target));
    if (other_.footprint.writes(bytes)) return false;
    const Footprint::Region* const region = other_.footprint.region_at(bytes);
    if (region == nullptr) return held;
    const plan::Load& theirs = other_.plan.loads[region->load];
    return same_model_ && other_.holding.loads[region->load] && region->bytes == bytes && theirs.first_stretch == load.first_stretch &&
           theirs.stretch_count == load.stretch_count;
  }

  bool stretch_holds(std::uint32_t index, std::uint64_t shift, bool held) const noexcept {
    const model::Stretch& stretch = stretches_[index];
    SLUICE_DCHECK(!model::shrinks(stretch.form), "a load that does not expand brings raw stretches, which lie as in the file (I4)");
    const std::uint64_t at = stretch.offset.count() + shift;
    const ByteRange bytes{at, at + stretch.stored_size.count()};
    if (other_.footprint.writes(bytes)) return false;
    const Footprint::Region* const region = other_.footprint.region_at(bytes);
    if (region == nullptr) return held;
    const plan::Load& load = other_.plan.loads[region->load];
    return same_model_ && other_.holding.loads[region->load] && !load.expands() && brings(load, index) &&
           shift_of(other_.plan, load) == shift;
  }

  const plan::Plan& mine_;
  const Tenure& other_;
  const bool same_model_;
  const std::vector<model::Stretch>& stretches_;
};

}  // namespace

Footprint::Footprint(const plan::Plan& plan) {
  std::vector<bool> resident(plan.buffers.size(), false);
  for (std::uint32_t k = 0; k < plan.loads.size(); ++k) {
    const plan::Load& load = plan.loads[k];
    if (!load.resident) continue;
    resident[load.target.index()] = true;
    resident_.push_back({bytes_of(plan.buffer(load.target)), k});
  }
  sluice::sort(resident_.begin(), resident_.end(), [](const Region& a, const Region& b) { return a.bytes.begin < b.bytes.begin; });
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (!resident[b] && plan.buffers[b].size > Bytes()) written_.push_back(bytes_of(plan.buffers[b]));
  sluice::sort(written_.begin(), written_.end(), [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const ByteRange& range : written_) {
    if (kept > 0 && range.begin <= written_[kept - 1].end) {
      written_[kept - 1].end = std::max(written_[kept - 1].end, range.end);
    } else {
      written_[kept++] = range;
    }
  }
  written_.resize(kept);
  written_.shrink_to_fit();
  resident_.shrink_to_fit();
}

bool Footprint::writes(ByteRange bytes) const noexcept {
  const auto found = first_behind(written_, bytes.begin, [](const ByteRange& range) { return range; });
  return found != written_.end() && found->overlaps(bytes);
}

const Footprint::Region* Footprint::region_at(ByteRange bytes) const noexcept {
  const auto found = first_behind(resident_, bytes.begin, [](const Region& region) { return region.bytes; });
  return found != resident_.end() && found->bytes.overlaps(bytes) ? &*found : nullptr;
}

std::uint64_t Footprint::end() const noexcept {
  return std::max(written_.empty() ? 0 : written_.back().end, resident_.empty() ? 0 : resident_.back().bytes.end);
}

void outlive(const plan::Plan& mine, Holding& holding, const Tenure& other, bool same_model,
             const std::vector<model::Stretch>& stretches) noexcept {
  if (&mine == &other.plan) {
    std::copy(other.holding.loads.begin(), other.holding.loads.end(), holding.loads.begin());
    holding.derived = other.holding.derived;
    return;
  }
  const Outliving outliving(mine, other, same_model, stretches);
  for (std::size_t k = 0; k < mine.loads.size(); ++k) holding.loads[k] = outliving.load_holds(mine.loads[k], holding.loads[k]);
  holding.derived = holding.derived && outliving.derived_hold();
}

}  // namespace sluice::executor

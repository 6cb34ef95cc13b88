#include "sluice/model/weight.h"

#include <algorithm>

#include "sluice/core/check.h"

namespace sluice::model {

FileRange panel_range(const Weight& weight, PanelRange p) noexcept {
  SLUICE_DCHECK(p.begin >= 0 && p.begin <= p.end && p.end <= weight.panels, "a slice is a run of the weight's own panels");
  if (p.begin == 0 && p.end == weight.panels) return weight.range();
  return {weight.offset + static_cast<std::uint64_t>(p.begin) * weight.panel_bytes,
          static_cast<std::uint64_t>(p.size()) * weight.panel_bytes};
}

std::uint64_t values_of_lane(const Weight& weight) noexcept {
  return static_cast<std::uint64_t>(weight.shape.count(1, weight.shape.rank()));
}

}  // namespace sluice::model

#include "sluice/model/weight.h"

#include <algorithm>

#include "sluice/core/check.h"

namespace sluice::model {

namespace {

std::uint64_t end_of_panels(const Weight& weight, std::int64_t count) noexcept {
  if (weight.panel_ends.empty()) return static_cast<std::uint64_t>(count) * weight.panel_bytes.count();
  return count == 0 ? 0 : weight.panel_ends[static_cast<std::size_t>(count - 1)] * kWeightAlignment;
}

}  // namespace

FileRange panel_range(const Weight& weight, PanelRange p) noexcept {
  SLUICE_DCHECK(p.begin >= 0 && p.begin <= p.end && p.end <= weight.panels, "a slice is a run of the weight's own panels");
  if (p.begin == 0 && p.end == weight.panels) return weight.range();
  const std::uint64_t begin = end_of_panels(weight, p.begin);
  return {weight.offset + Bytes(begin), Bytes(end_of_panels(weight, p.end) - begin)};
}

std::uint64_t values_of_lane(const Weight& weight) noexcept {
  const Shape& shape = weight.shape;
  const auto values = static_cast<std::uint64_t>(shape.count(1, shape.rank()));
  const std::uint64_t interleave = weight.panel_layout.k_interleave;
  if (interleave <= 1 || shape.rank() < 2 || shape[shape.rank() - 1] == 0) return values;
  const auto depth = static_cast<std::uint64_t>(shape[shape.rank() - 1]);
  return values / depth * ((depth + interleave - 1) / interleave * interleave);
}

}  // namespace sluice::model

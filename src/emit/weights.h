// Weights as emitted code has them: panels unpacked to [output][tap][input], those of depthwise convolutions to [tap][channel].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/model/model_file.h"
#include "src/kernels/reference/quantised.h"

namespace sluice::emit {

/// The raw bytes of a weight, read, verified and expanded. Errors: those of reading and decoding.
Result<std::vector<std::byte>> read_weight(const model::ModelFile& model, WeightId id);

/// The values of `outputs` output channels of panels of T; floats too of panels of fewer bits, as kernels widen them.
template <class T>
std::vector<T> unpack(const std::vector<std::byte>& raw, const model::Weight& weight, std::int64_t outputs, std::int64_t outputs_per_group,
                      std::int64_t taps, std::int64_t depth, bool taps_first) {
  const PanelLayout& layout = weight.panel_layout;
  const bool narrow = is_narrow(layout);
  const std::int64_t interleave = layout.k_interleave, tap_values = ceil_div(depth, interleave) * interleave;
  std::vector<T> values(static_cast<std::size_t>(outputs * taps * depth));
  for (std::int64_t n = 0; n < outputs; ++n) {
    const std::int64_t lane = (outputs_per_group < kPanelLanes ? n : n % outputs_per_group) % kPanelLanes;
    const std::int64_t panel = panels_of_channels({n - lane, n + 1}, outputs_per_group).begin;
    const std::byte* const bytes = raw.data() + panel * static_cast<std::int64_t>(weight.panel_bytes.count());
    const auto* at = reinterpret_cast<const T*>(bytes);
    for (std::int64_t tap = 0; tap < taps; ++tap)
      for (std::int64_t k = 0; k < depth; ++k) {
        const std::int64_t i = tap * tap_values + k;
        const std::int64_t to = taps_first ? tap * outputs + n : (n * taps + tap) * depth + k;
        values[static_cast<std::size_t>(to)] = narrow ? static_cast<T>(kernels::reference::narrow_value(layout, bytes, i, lane))
                                                      : at[(i / interleave * kPanelLanes + lane) * interleave + i % interleave];
      }
  }
  return values;
}

}  // namespace sluice::emit

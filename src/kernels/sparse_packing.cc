#include "sluice/kernels/sparse_packing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "sluice/core/check.h"
#include "sluice/core/half.h"
#include "sluice/core/units.h"

namespace sluice::kernels {
namespace {

constexpr std::int64_t kSampledInputs = 32;  // of each tap

/// Panels of a source one by one, dense, as its storage has them.
class DensePanels {
 public:
  explicit DensePanels(const PackSource& source)
      : source_(source),
        values_(source.taps * source.depth),
        block_bytes_(static_cast<std::size_t>(kPanelLanes) * size_of(layout_of(source.storage).dtype)),
        bytes_(align_up(static_cast<std::uint64_t>(values_) * block_bytes_, kWeightAlignment)) {}

  std::int64_t values() const noexcept { return values_; }
  std::size_t block_bytes() const noexcept { return block_bytes_; }
  std::int64_t count() const noexcept {
    return model::panel_count(source_.outputs, source_.outputs_per_group > 0 ? source_.outputs_per_group : source_.outputs);
  }

  /// The panel that `block` and `is_zero` speak of.
  void read(std::int64_t panel) {
    std::fill(bytes_.begin(), bytes_.end(), std::byte{0});
    pack_panels(source_, {panel, panel + 1}, bytes_);
  }
  const std::byte* block(std::int64_t i) const noexcept { return bytes_.data() + static_cast<std::size_t>(i) * block_bytes_; }
  /// Zeros of either sign.
  bool is_zero(std::int64_t i) const noexcept {
    const std::size_t each = block_bytes_ / kPanelLanes;
    const std::byte* at = block(i);
    for (std::size_t b = 0; b < block_bytes_; ++b)
      if ((at[b] & ((b + 1) % each == 0 ? std::byte{0x7f} : std::byte{0xff})) != std::byte{0}) return false;
    return true;
  }
  float sum_of_squares(std::int64_t i) const noexcept {
    float sum = 0;
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(kPanelLanes); ++lane) {
      const float value = value_of(block(i), lane);
      sum += value * value;
    }
    return sum;
  }
  bool is_left_out(std::int64_t i, float largest) const noexcept { return is_zero(i) || (largest > 0 && sum_of_squares(i) <= largest); }
  std::int64_t left_out(float largest) const noexcept {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < values_; ++i) count += is_left_out(i, largest);
    return count;
  }

 private:
  float value_of(const std::byte* block, std::size_t lane) const noexcept {
    if (block_bytes_ == static_cast<std::size_t>(kPanelLanes) * sizeof(float)) {
      float value;
      std::memcpy(&value, block + lane * sizeof value, sizeof value);
      return value;
    }
    std::uint16_t half;
    std::memcpy(&half, block + lane * sizeof half, sizeof half);
    return source_.storage == PanelStorage::kBf16 ? float_of_bf16(half) : float_of_f16(half);
  }

  PackSource source_;
  std::int64_t values_;
  std::size_t block_bytes_;
  std::vector<std::byte> bytes_;
};

std::uint64_t bitmap_bytes(std::int64_t values) noexcept {
  return align_up((static_cast<std::uint64_t>(values) + 7) / 8, kWeightAlignment);
}

std::uint64_t sparse_bytes(const DensePanels& panels, std::int64_t blocks) noexcept {
  return bitmap_bytes(panels.values()) + align_up(static_cast<std::uint64_t>(blocks) * panels.block_bytes(), kWeightAlignment);
}

}  // namespace

double share_of_zero_blocks(const PackSource& source, bool sampled) {
  PackSource seen = source;
  if (sampled && seen.depth > kSampledInputs) {
    // An odd distance: patterns of pruning repeat every 2, 4 or 8 inputs, and each place of one must be seen.
    if (seen.k_inner == 1) seen.k_outer_stride *= (seen.depth / kSampledInputs - 1) | 1;
    seen.depth = kSampledInputs;
  }
  DensePanels panels(seen);
  std::int64_t zeros = 0;
  for (std::int64_t p = 0; p < panels.count(); ++p) {
    panels.read(p);
    zeros += panels.left_out(0);
  }
  return static_cast<double>(zeros) / static_cast<double>(std::max<std::int64_t>(1, panels.count() * panels.values()));
}

Pruning prune(const PackSource& source, double share) {
  DensePanels panels(source);
  std::vector<float> sums;
  sums.reserve(static_cast<std::size_t>(panels.count() * panels.values()));
  Pruning pruning;
  for (std::int64_t p = 0; p < panels.count(); ++p) {
    panels.read(p);
    for (std::int64_t i = 0; i < panels.values(); ++i) {
      sums.push_back(panels.sum_of_squares(i));
      pruning.signal += static_cast<double>(sums.back());
    }
  }
  if (!std::isfinite(pruning.signal)) return pruning;  // nobody can say which of such blocks matters
  std::sort(sums.begin(), sums.end());
  const auto count = static_cast<std::size_t>(static_cast<double>(sums.size()) * share);
  auto end = sums.begin() + static_cast<std::ptrdiff_t>(count);
  if (end != sums.end()) end = std::lower_bound(sums.begin(), end, *end);
  if (end != sums.begin()) pruning.largest = *(end - 1);
  end = std::upper_bound(sums.begin(), sums.end(), pruning.largest);
  for (auto sum = sums.begin(); sum != end; ++sum) pruning.error += static_cast<double>(*sum);
  pruning.share = static_cast<double>(end - sums.begin()) / static_cast<double>(std::max<std::size_t>(1, sums.size()));
  return pruning;
}

void describe_sparse(const PackSource& source, model::Weight& weight, float largest) {
  DensePanels panels(source);
  weight.panel_layout.layout = model::WeightLayout::kSparse;
  weight.panel_bytes = model::panel_bytes_of(weight.panel_layout, model::values_of_lane(weight)).value_or(Bytes());
  std::uint64_t end = 0;
  weight.panel_ends.clear();
  for (std::int64_t p = 0; p < panels.count(); ++p) {
    panels.read(p);
    end += sparse_bytes(panels, panels.values() - panels.left_out(largest));
    weight.panel_ends.push_back(static_cast<std::uint32_t>(end / kWeightAlignment));
  }
  weight.bytes = Bytes(end);
}

void pack_sparse(const PackSource& source, PanelRange p, std::span<std::byte> out, float largest) {
  DensePanels panels(source);
  std::fill(out.begin(), out.end(), std::byte{0});
  std::size_t at = 0;
  for (std::int64_t panel = p.begin; panel < p.end; ++panel) {
    panels.read(panel);
    std::byte* const bitmap = out.data() + at;
    std::byte* to = bitmap + bitmap_bytes(panels.values());
    std::int64_t blocks = 0;
    for (std::int64_t i = 0; i < panels.values(); ++i) {
      if (panels.is_left_out(i, largest)) continue;
      bitmap[i / 8] |= std::byte{1} << (i % 8);
      std::memcpy(to, panels.block(i), panels.block_bytes());
      to += panels.block_bytes();
      ++blocks;
    }
    at += sparse_bytes(panels, blocks);
    SLUICE_DCHECK(at <= out.size(), "the run of panels fits the buffer");
  }
}

}  // namespace sluice::kernels

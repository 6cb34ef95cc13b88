#include "src/importer/rewrite/integer_products.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "src/importer/allowance.h"
#include "src/importer/emit.h"
#include "src/importer/quantised.h"

namespace sluice::importer {
namespace {

constexpr std::int64_t kLargestByte = 255;
constexpr std::int64_t kLargestSum = std::numeric_limits<std::int32_t>::max();

/// The integers of one output channel.
struct Channel {
  float scale = 0.0f;
  std::int64_t sum = 0;    // of its values
  std::int64_t sizes = 0;  // of their sizes
  bool sound = true;
};

class Products {
 public:
  explicit Products(const DraftNode& node)
      : node_(node),
        q_(*node.panels->values.quantised),
        where_(pack_source_of(node)),
        first_((node.panels->values.data - q_.base) / static_cast<std::int64_t>(sizeof(float))) {}

  std::optional<IntegerProducts> make(const ByteScale& in, const std::optional<ByteScale>& out) {
    IntegerProducts made;
    keep_values(made);
    for (std::int64_t n = 0; n < where_.outputs; ++n) {
      const Channel channel = channel_of(n);
      const auto at = static_cast<std::size_t>(n);
      const float scale = node_.panels->scale.empty() ? channel.scale : channel.scale * node_.panels->scale[at];
      const float real_bias = node_.bias.empty() ? 0.0f : node_.bias[at];
      float product = in.scale * scale;
      // A channel of zeros has any scale: one that its bias counts in.
      if (channel.sizes == 0) product = std::max(product, std::fabs(real_bias) * 0x1p-20f);
      const float multiplier = out ? product / out->scale : product;
      const float bias = std::nearbyint(real_bias / product);
      if (!channel.sound || !std::isfinite(multiplier) || multiplier == 0.0f || !(std::fabs(bias) < 0x1p31f)) return std::nullopt;
      const std::int64_t with_zero = static_cast<std::int64_t>(bias) - in.zero * channel.sum;
      if (kLargestByte * channel.sizes + std::llabs(with_zero) > kLargestSum) return std::nullopt;
      made.bias.push_back(static_cast<std::int32_t>(with_zero));
      made.multipliers.push_back(multiplier);
    }
    return made;
  }

  std::optional<IntegerProducts> make_for_run_time() {
    IntegerProducts made;
    keep_values(made);
    for (std::int64_t n = 0; n < where_.outputs; ++n) {
      const Channel channel = channel_of(n);
      if (!channel.sound || kLargestByte * channel.sizes > kLargestSum) return std::nullopt;
      made.bias.push_back(static_cast<std::int32_t>(channel.sum));
    }
    made.multipliers.resize(made.bias.size());
    return made;
  }

 private:
  /// The file's own values where no zero point moves them.
  void keep_values(IntegerProducts& made) {
    bool moved = false;
    for (const float zero : q_.zeros) moved = moved || zero != 0.0f;
    if (!moved) {
      made.values = {node_.panels->values.quantised, &q_.values};
      return;
    }
    count_made(q_.values.size(), 1);
    moved_ = std::make_shared<std::vector<std::int8_t>>(q_.values.size());
    made.values = moved_;
  }

  Channel channel_of(std::int64_t n) {
    Channel channel;
    const std::int64_t at = where_.source_output(n);
    const std::int64_t base = at / where_.outputs_per_group * where_.group_stride + at % where_.outputs_per_group * where_.output_stride;
    const std::int64_t order = q_.order.of(first_ + base);
    channel.scale = q_.scales[static_cast<std::size_t>(order)];
    const auto zero = static_cast<std::int32_t>(q_.zeros[static_cast<std::size_t>(order)]);
    channel.sound = static_cast<float>(zero) == q_.zeros[static_cast<std::size_t>(order)];
    for (std::int64_t tap = 0; tap < where_.taps; ++tap)
      for (std::int64_t k = 0; k < where_.depth; ++k) {
        const std::int64_t element = first_ + base + tap * where_.tap_stride + k * where_.k_outer_stride;
        const std::int32_t value = q_.values[static_cast<std::size_t>(element)] - zero;
        channel.sound = channel.sound && value >= -128 && value <= 127 && q_.order.of(element) == order;
        channel.sum += value;
        channel.sizes += std::abs(value);
        if (moved_) (*moved_)[static_cast<std::size_t>(element)] = static_cast<std::int8_t>(value);
      }
    return channel;
  }

  const DraftNode& node_;
  const QuantisedValues& q_;
  const kernels::PackSource where_;
  const std::int64_t first_;
  std::shared_ptr<std::vector<std::int8_t>> moved_;
};

}  // namespace

namespace {

bool has_bytes(const DraftNode& node) noexcept {
  return node.panels && node.panels->values.quantised != nullptr && node.panels->values.dtype == DType::kF32;
}

}  // namespace

std::optional<IntegerProducts> run_time_products(const DraftNode& node) {
  return has_bytes(node) ? Products(node).make_for_run_time() : std::nullopt;
}

std::optional<IntegerProducts> integer_products(const DraftNode& node, const ByteScale& in, const std::optional<ByteScale>& out) {
  if (!has_bytes(node)) return std::nullopt;
  return Products(node).make(in, out);
}

std::optional<ByteConstant> byte_constant(const Constant& constant) {
  if (constant.quantised == nullptr || constant.dtype != DType::kF32 || constant.elements() > kMaxFoldedElements) return std::nullopt;
  const QuantisedValues& q = *constant.quantised;
  const auto zero = static_cast<std::int32_t>(q.zeros[0]);
  if (q.bits != 8 || q.scales.size() != 1 || !std::isnormal(q.scales[0]) || static_cast<float>(zero) != q.zeros[0]) return std::nullopt;
  if (q.scales[0] < 0.0f || zero < -128 || zero > 127) return std::nullopt;
  count_made(static_cast<std::uint64_t>(constant.elements()), 1);
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>();
  const std::int64_t first = (constant.data - q.base) / static_cast<std::int64_t>(sizeof(float));
  for_each_offset(constant.shape, constant.strides, [&](std::int64_t offset) {
    bytes->push_back(static_cast<std::uint8_t>(q.values[static_cast<std::size_t>(first + offset)] + 128));
  });
  const auto* data = reinterpret_cast<const std::byte*>(bytes->data());
  return ByteConstant{make_view(DType::kU8, constant.shape, data, bytes), {q.scales[0], zero + 128}};
}

}  // namespace sluice::importer

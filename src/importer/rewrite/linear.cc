#include "src/importer/rewrite/linear.h"

#include <algorithm>
#include <cmath>

#include "sluice/kernels/plain.h"

namespace sluice::importer {
namespace {

bool is_plain(const DraftNode& node, std::string_view name) noexcept {
  const auto* plain = std::get_if<model::PlainAttributes>(&node.attributes);
  if (plain == nullptr) return false;
  const kernels::PlainOperator* op = kernels::find_plain(plain->op);
  return op != nullptr && op->name == name;
}

/// Scales for blocks of an axis: the second argument, behind the axis (each is its length, then its values).
bool in_blocks(const DraftNode& node) noexcept {
  const auto& arguments = std::get_if<model::PlainAttributes>(&node.attributes)->arguments;
  return arguments.size() >= 4 && arguments[3] != 0;
}

std::optional<double> only_value(const Draft& draft, ValueId value) {
  const auto& constant = draft.value(value).constant;
  if (!constant || constant->elements() != 1) return std::nullopt;
  return uniform_value(*constant);
}

}  // namespace

bool is_quantise(const DraftNode& node) noexcept { return is_plain(node, "QuantizeLinear"); }
bool is_dequantise(const DraftNode& node) noexcept { return is_plain(node, "DequantizeLinear"); }

std::optional<ByteScale> byte_scale_of(const Draft& draft, const DraftNode& node) {
  const bool quantises = is_quantise(node);
  if ((!quantises && !is_dequantise(node)) || in_blocks(node) || node.inputs.size() < 2) return std::nullopt;
  const DType integers = draft.value(quantises ? node.output : node.inputs[0]).dtype;
  const DType reals = draft.value(quantises ? node.inputs[0] : node.output).dtype;
  if ((integers != DType::kU8 && integers != DType::kI8) || !is_float(reals)) return std::nullopt;
  const auto scale = only_value(draft, node.inputs[1]);
  const auto zero = node.inputs.size() > 2 ? only_value(draft, node.inputs[2]) : std::optional<double>(0.0);
  if (!scale || !zero) return std::nullopt;
  const auto factor = static_cast<float>(*scale);
  if (!std::isnormal(factor) || factor < 0.0f) return std::nullopt;
  return ByteScale{factor, static_cast<std::int32_t>(*zero) + (integers == DType::kI8 ? 128 : 0)};
}

std::uint8_t byte_of(float real, const ByteScale& scale) noexcept {
  const auto low = static_cast<float>(-scale.zero), high = static_cast<float>(255 - scale.zero);
  const float scaled = real / scale.scale;
  const float above = scaled > low ? scaled : low;
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(std::nearbyint(above < high ? above : high)) + scale.zero);
}

}  // namespace sluice::importer

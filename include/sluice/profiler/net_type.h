// What a net's layers multiply: a profile measures nets of each type by themselves, since kernels differ, and so does what stands beside them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::profiler {

/// Floats by weights of f32, or of fewer bits as `convert --weights` stores them; or integers, as nets with QuantizeLinear have them.
enum class NetType : std::uint8_t { kF32, kBf16, kF16, kInt8, kInt4, kIntegers };

/// By NetType: what `sluice profile --types` calls them.
inline constexpr std::array<std::string_view, 6> kNetTypeNames{"f32", "bf16", "f16", "int8", "int4", "integers"};

constexpr std::string_view name_of(NetType type) noexcept { return kNetTypeNames[static_cast<std::size_t>(type)]; }

/// Nothing of another name.
constexpr std::optional<NetType> net_type_of(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kNetTypeNames.size(); ++i)
    if (kNetTypeNames[i] == name) return static_cast<NetType>(i);
  return std::nullopt;
}

}  // namespace sluice::profiler

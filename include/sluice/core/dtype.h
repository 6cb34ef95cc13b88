// Element types of tensors and weights.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

/// The numbers are stored in model files: append only.
enum class DType : std::uint8_t {
  kF32 = 0,
  kF16 = 1,
  kI8 = 2,
  kU8 = 3,
  kI32 = 4,
  kI64 = 5,
  kBool = 6,  // one byte, 0 or 1
  kF64 = 7,
  kI16 = 8,
  kU16 = 9,
  kU32 = 10,
  kU64 = 11,
  kBF16 = 12,  // the upper half of an f32
};
inline constexpr int kDTypeCount = 13;

/// Bytes of one element.
constexpr std::uint32_t size_of(DType dtype) noexcept {
  constexpr std::uint8_t kSizes[kDTypeCount] = {4, 2, 1, 1, 4, 8, 1, 8, 2, 2, 4, 8, 2};
  return kSizes[static_cast<int>(dtype)];
}

/// The name users see and write: `f32`, `i64`, `bool`.
constexpr std::string_view name_of(DType dtype) noexcept {
  constexpr std::string_view kNames[kDTypeCount] = {"f32", "f16", "i8",  "u8",  "i32", "i64", "bool",
                                                    "f64", "i16", "u16", "u32", "u64", "bf16"};
  return kNames[static_cast<int>(dtype)];
}

}  // namespace sluice

// Byte counts, and the arithmetic that untrusted sizes need.
//
// `Bytes` is a 64-bit count that converts to and from plain integers only when asked. Its operators are for numbers that are known to
// be sane (a debug check guards them); sizes that come from a file go through `checked_add` and `checked_mul`, which say when the true
// result does not fit.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/core/check.h"

namespace sluice {

/// A number of bytes, or a position counted in bytes.
class Bytes {
 public:
  constexpr Bytes() noexcept = default;
  constexpr explicit Bytes(std::uint64_t count) noexcept : count_(count) {}

  constexpr std::uint64_t count() const noexcept { return count_; }

  friend constexpr bool operator==(Bytes, Bytes) noexcept = default;
  friend constexpr auto operator<=>(Bytes, Bytes) noexcept = default;

  friend constexpr Bytes operator+(Bytes a, Bytes b) noexcept {
    SLUICE_DCHECK(a.count_ + b.count_ >= a.count_, "a sum of sane byte counts does not overflow");
    return Bytes(a.count_ + b.count_);
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) noexcept {
    SLUICE_DCHECK(a.count_ >= b.count_, "a byte count is never negative");
    return Bytes(a.count_ - b.count_);
  }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) noexcept { return Bytes(a.count_ * n); }
  friend constexpr Bytes operator*(std::uint64_t n, Bytes a) noexcept { return a * n; }
  constexpr Bytes& operator+=(Bytes b) noexcept { return *this = *this + b; }
  constexpr Bytes& operator-=(Bytes b) noexcept { return *this = *this - b; }

 private:
  std::uint64_t count_ = 0;
};

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) noexcept { return Bytes(n); }
constexpr Bytes operator""_KiB(unsigned long long n) noexcept { return Bytes(n << 10); }
constexpr Bytes operator""_MiB(unsigned long long n) noexcept { return Bytes(n << 20); }
constexpr Bytes operator""_GiB(unsigned long long n) noexcept { return Bytes(n << 30); }
}  // namespace literals

inline constexpr Bytes kUnlimitedBytes{std::numeric_limits<std::uint64_t>::max() / 2};

/// a + b, or nothing when the true sum does not fit 64 bits.
constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

/// a * b, or nothing when the true product does not fit 64 bits.
constexpr std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// The smallest multiple of `alignment` (a power of two) that is not below `value`. `value` must be at most 2^63.
constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) noexcept {
  return (value + alignment - 1) & ~(alignment - 1);
}
constexpr std::uint64_t align_down(std::uint64_t value, std::uint64_t alignment) noexcept { return value & ~(alignment - 1); }
constexpr Bytes align_up(Bytes value, std::uint64_t alignment) noexcept { return Bytes(align_up(value.count(), alignment)); }
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }
/// Of any `a`, and `b` above 0.
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) noexcept { return a / b - (a % b < 0 ? 1 : 0); }

/// Reads `48MiB`, `48M`, `1.5GiB`, `300MB`, `4096` (bytes) or `unlimited`. Units: B, KB, MB, GB (powers of 1000), KiB, MiB, GiB and K, M, G
/// (of 1024), in any case. Nothing when the text is not a size or does not fit 63 bits.
std::optional<Bytes> parse_bytes(std::string_view text);

/// Prints for people: `63.9 MiB`, `12 B`, `unlimited`.
std::string format_bytes(Bytes bytes);

}  // namespace sluice

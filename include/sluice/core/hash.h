// XXH3-64, the checksum of stretches, headers and plans. It finds damage, not forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

/// The hash of contiguous bytes. Runs at memory speed.
std::uint64_t xxh3_64(std::span<const std::byte> bytes) noexcept;

/// The hash of bytes that come in parts: call `update` in order, then `digest`. Starts empty; allocates nothing.
class Xxh3 {
 public:
  Xxh3() noexcept { reset(); }
  void reset() noexcept;
  void update(std::span<const std::byte> bytes) noexcept;
  std::uint64_t digest() const noexcept;

 private:
  alignas(64) std::byte state_[576];  // XXH3_state_t, which stays out of this header
};

}  // namespace sluice

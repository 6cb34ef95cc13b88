// The one buffer of a session: an address range reserved once, of which a part is committed.
//
//     |<------------- reserved ------------->|
//     |<---- committed ---->|   no access    |
//
// Invariants: the base never moves while the arena lives; bytes beyond `committed` are not accessible and hold no memory; shrinking gives
// pages back to the system at once. No huge pages below 64 MiB (they would round a small budget up). Base aligned to 4096.
#pragma once

#include <cstddef>
#include <utility>

#include "sluice/core/error.h"
#include "sluice/core/units.h"

namespace sluice {

class Arena {
 public:
  Arena() noexcept = default;
  Arena(Arena&& other) noexcept { swap(other); }
  Arena& operator=(Arena&& other) noexcept {
    swap(other);
    return *this;
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  /// Reserves addresses, no memory. Errors: kOutOfMemory with the size.
  static Result<Arena> reserve(Bytes size);

  /// Makes exactly the first `size` bytes (rounded up to a page) usable; gives the rest back. New bytes read as zero.
  /// Errors: kOutOfMemory; kInvalidArgument beyond the reservation.
  Status commit(Bytes size);

  std::byte* data() const noexcept { return base_; }
  Bytes committed() const noexcept { return committed_; }
  Bytes reserved() const noexcept { return reserved_; }

 private:
  void swap(Arena& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(reserved_, other.reserved_);
    std::swap(committed_, other.committed_);
  }
  std::byte* base_ = nullptr;
  Bytes reserved_;
  Bytes committed_;
};

}  // namespace sluice

// The one buffer of a session, or of several that take turns: an address range reserved once, of which a part is committed.
//
//     |<------------- reserved ------------->|
//     |<---- committed ---->|   no access    |
//
// Invariants: the base never moves while the arena lives; bytes beyond `committed` are not accessible and hold no memory; shrinking gives
// pages back to the system at once. Base aligned to a page of the size asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "sluice/core/error.h"
#include "sluice/core/interval.h"
#include "sluice/core/units.h"

namespace sluice {

/// Huge pages round every touched region up to 2 MiB (never past what is committed: the mapping ends there). That would cost a tight budget
/// more than the TLB gives back; with room, models run 1 to 9 % faster.
enum class PageSize : std::uint8_t { kSmall, kHuge };

/// What to ask for within a budget.
constexpr PageSize page_size_within(Bytes budget) noexcept { return budget < Bytes(64ull << 20) ? PageSize::kSmall : PageSize::kHuge; }

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
  static Result<Arena> reserve(Bytes size, PageSize pages = PageSize::kSmall);

  /// Makes exactly the first `size` bytes (rounded up to a page) usable; gives the rest back. New bytes read as zero.
  /// Errors: kOutOfMemory; kInvalidArgument beyond the reservation.
  Status commit(Bytes size);

  /// Gives the memory of these bytes back, as far as they are whole pages; they read as zero then.
  void discard(Interval<std::uint64_t> bytes) noexcept;
  /// What of the arena holds memory now.
  Bytes resident() const noexcept;

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

// The one buffer of a session, or of several that take turns: an address range reserved once, of which a part is committed.
//
//     |<------------- reserved ------------->|
//     |<---- committed ---->|   no access    |
//
// Where the system has huge pages, an arena of 2 MiB and more begins on one and has its memory in them: reads from the disk go into few
// large pieces of memory instead of one for each small page, and weights stream through fewer entries of the TLB. They round what is
// touched up to 2 MiB, but never beyond the committed part, where the accessible mapping ends; and budgets count all that is committed.
// (docs/adr/0016)
//
// Invariants: the base never moves while the arena lives; bytes beyond `committed` are not accessible and hold no memory of this process;
// what is given back leaves the process at once; a secret arena's bytes are overwritten first. A part of a huge page stays charged to its
// cgroup until the system splits the page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "sluice/core/error.h"
#include "sluice/core/interval.h"
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

  /// From now on the system writes the arena into no core dump, and its bytes are overwritten before they leave it or it ends.
  void keep_secret() noexcept;
  /// Overwrites what of the arena holds memory, with zeros.
  void wipe() noexcept { wipe({0, committed_.count()}); }
  void wipe(Interval<std::uint64_t> bytes) noexcept;

  /// Gives the memory of these bytes back, as far as they are whole pages; they read as zero then.
  void discard(Interval<std::uint64_t> bytes) noexcept;
  /// Bytes of the arena that hold memory now.
  Bytes resident() const noexcept;

  std::byte* data() const noexcept { return base_; }
  Bytes committed() const noexcept { return committed_; }
  Bytes reserved() const noexcept { return reserved_; }

 private:
  void swap(Arena& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(reserved_, other.reserved_);
    std::swap(committed_, other.committed_);
    std::swap(secret_, other.secret_);
  }
  std::byte* base_ = nullptr;
  Bytes reserved_;
  Bytes committed_;
  bool secret_ = false;
};

}  // namespace sluice

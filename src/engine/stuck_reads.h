// Arenas whose last session was closed while the system did not end a read of it: a disk that is gone, a network that hangs.
//
// Closing does not wait for such a read, and its target addresses must not be used for anything else. So the tenancy is kept here, its
// memory given back, and looked at again whenever a session is made or closed. At the end of the process what is here is left to the
// system.
#pragma once

#include <memory>

#include "src/engine/tenancy.h"

namespace sluice::engine {

class StuckReads {
 public:
  /// Keeps `tenancy` if it is stuck, and sweeps. The caller has no Occupation.
  static void keep(std::shared_ptr<Tenancy> tenancy) noexcept;
  /// Removes sessions whose reads have ended.
  static void sweep() noexcept;
};

}  // namespace sluice::engine

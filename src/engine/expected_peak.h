// What a process will hold at its peak, as near as can be told beforehand. A budget counts its overhead from above, since it must hold
// whatever pages of code the system brings; most runs touch 0.2 to 0.7 MiB less, and where the budget leaves plenty they keep 2.5 MiB of
// code that nobody gives back.
#pragma once

#include "sluice/core/units.h"
#include "sluice/engine/engine.h"

namespace sluice::engine {

/// Of a process that makes a session with this plan and these options, and runs it. `overhead`: what the budget counts beside the arena,
/// the plan's tables included. In the scope of the library what it counts is what is held, and the sum of both.
Bytes expected_peak(const Model& model, const plan::Plan& plan, Bytes overhead, const SessionOptions& options);

}  // namespace sluice::engine

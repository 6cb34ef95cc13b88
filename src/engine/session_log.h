// What a session tells its program's log (core/log.h). Nothing here allocates; without a hook nothing is done.
#pragma once

#include "sluice/core/log.h"
#include "sluice/engine/engine.h"

namespace sluice::engine {

/// A plan was taken, at opening or for another budget.
void tell_plan(const LogHook& log, const Model& model, const plan::Plan& plan, const MemoryReport& memory) noexcept;
/// Logs what keeps a session with these options from its best. `source` is what it reads.
void tell_doubts(const LogHook& log, const SessionOptions& options, const plan::Plan& plan, const model::WeightSource& source) noexcept;
/// A call of the session ended with an error: told as such, a cancellation as what was wanted. Gives the status back.
Status tell_failure(const LogHook& log, const char* call, Status status) noexcept;
void tell_run(const LogHook& log, const executor::RunStats& stats) noexcept;

}  // namespace sluice::engine

// Plans as files (schema/plan.fbs): made on one machine, run on another. Untrusted like model files.
#pragma once

#include <string>

#include "sluice/core/error.h"
#include "sluice/plan/plan.h"

namespace sluice::plan {

/// Writes under a temporary name, syncs, renames. The same plan gives the same bytes. Errors: kIo.
Status save_plan(const Plan& plan, const std::string& path);

/// Errors: kIo, kInvalidPlan, kUnsupportedVersion. The result is well-formed, not yet proven: `verify` does that.
Result<Plan> load_plan(const std::string& path);

}  // namespace sluice::plan

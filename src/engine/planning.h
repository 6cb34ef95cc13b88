// Plans for sessions: budget arithmetic and planner together.
#pragma once

#include "sluice/engine/engine.h"

namespace sluice::engine {

/// A plan that fits the budget, and the overhead it leaves room for. Errors: kInvalidArgument; kBudgetTooSmall with the smallest budget
/// that works in the scope of the options; those of make_plan and verify.
Result<PlannedBudget> plan_within(const Model& model, const SessionOptions& options);

/// The same for a session that exists, whose overhead is known. Makes a plan even where the options have one.
Result<PlannedBudget> plan_again(const Model& model, const SessionOptions& options, Bytes overhead);

}  // namespace sluice::engine

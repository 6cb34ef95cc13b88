// Plans for sessions: budget arithmetic and planner together.
#pragma once

#include "sluice/engine/engine.h"

namespace sluice::engine {

inline constexpr double kMilliseconds = 1e3;  // of a second

/// Errors: kInvalidArgument. All else here and in budget.h wants options that passed.
Status check_options(const SessionOptions& options) noexcept;

/// How to read: as the options say, or, where they leave it open, as the profile found best.
executor::ReadOptions reads_of(const SessionOptions& options);
/// The device's profile, changed as the options say: threads, reads, emulated slowness.
profiler::DeviceProfile profile_for(const SessionOptions& options);
/// Whether two models are the same bytes of one file.
bool same_file(const Model& a, const Model& b) noexcept;
/// Whether sessions of one model with these options have the same plans in the same budgets.
bool same_plans(const SessionOptions& a, const SessionOptions& b) noexcept;

/// A plan that fits the budget where Sluice holds `overhead` (budget.h) beside the arena; the overhead of the result is larger where the
/// plan's tables are. Errors: kBudgetTooSmall with the smallest budget that works in the scope of the options; those of
/// make_plan and verify.
Result<PlannedBudget> plan_within(const Model& model, const SessionOptions& options, Bytes overhead);

}  // namespace sluice::engine

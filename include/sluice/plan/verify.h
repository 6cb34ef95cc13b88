// The independent judge of plans: checks (I1) to (I8) and uses none of the planner's code.
//
// Every plan passes here before it runs, whether the planner has just made it or it came from an untrusted file. An error's
// reason begins with the rule's name ("I2: ..."), so that tests can show that each kind of broken plan is refused by its own rule. "I0" is
// the form: a plan whose ids, counts or model do not fit cannot even be asked about the others.
#pragma once

#include "sluice/core/error.h"
#include "sluice/core/units.h"
#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"

namespace sluice::plan {

/// Facts that `verify` cannot see from the plan and the graph alone, because `plan` does not include `kernels`.
struct VerifyContext {
  Bytes file_size;               // of the model file
  std::uint64_t model_hash = 0;  // of the model the plan is to run
  Bytes read_tail{64};           // kernels::kReadTail
  const Outside* outside = nullptr;
};

/// Of the plans of subgraphs too, each as the plan of the graph that it is (model/body.h).
/// Errors: kInvalidPlan, naming the rule and the buffer, load or step. O((buffers + loads) * log + overlaps).
Status verify(const Plan& plan, const model::Graph& graph, const VerifyContext& context);

}  // namespace sluice::plan

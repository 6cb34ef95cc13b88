// The verifier in parts, in the order in which `verify` calls them. Each relies on what the earlier ones have shown:
//
//   form      every id is in range, every count bounded: later parts may index freely
//   memory    (I2) (I3) (I4) (I8): buffers in time x bytes, regions, alignment
//   sums      (I1) (I3) (I6): parts of sums follow each other, and nobody else touches what is unfinished
//   loads     (I1) (I5) (I8): operands, payloads, gates
//   derived   (I1) (I6): transformed weights are written once, before they are read
//   passing   (I2) (I3) (I6): tensors without a buffer: blocks in workspaces, the scratch file
//   content   (I1) (I3) (I6): order and coverage of steps, what lies where and for how long it must stay
//   subplans  (I0) (I3) (I5): plans of subgraphs lie in the workspaces of the steps that run them; then each is verified as a plan of its own
//
// (I0) is the form itself: a plan that breaks it cannot even be read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sluice/plan/verify.h"

namespace sluice::plan {

Status check_form(const Plan& plan, const model::Graph& graph, const VerifyContext& context);
/// A workspace in a buffer of tensors, by number.
struct InnerBuffer {
  std::size_t workspace;
  std::size_t outer;
};

/// Lists those in `inner`.
Status check_memory(const Plan& plan, const model::Graph& graph, const VerifyContext& context, std::vector<InnerBuffer>& inner);
Status check_sums(const Plan& plan, const model::Graph& graph);
Status check_loads(const Plan& plan, const model::Graph& graph, const VerifyContext& context);
Status check_derived(const Plan& plan, const model::Graph& graph);
Status check_passing(const Plan& plan, const model::Graph& graph, const VerifyContext& context);
Status check_content(const Plan& plan, const model::Graph& graph, const VerifyContext& context, const std::vector<InnerBuffer>& inner);
Status check_subplans(const Plan& plan, const model::Graph& graph, const VerifyContext& context);

/// Does the step write its output? Parts of a sum do not, but for the last. `check_sums` has passed.
inline bool writes_output(const model::Graph& graph, const Step& step) noexcept {
  return !step.prepare && (!adds_part(step) || step.reduction.end == model::reduction_of(graph, graph.node(step.node)));
}

/// A refusal: the reason names the rule, the subject the thing.
inline tl::unexpected<Error> broken(const char* what, std::size_t index, const char* reason) {
  return fail(ErrorCode::kInvalidPlan, std::string(what) + " " + std::to_string(index), reason);
}

}  // namespace sluice::plan

#include "sluice/plan/needs.h"

#include <algorithm>

namespace sluice::plan {

std::string_view name_of(Need need) noexcept {
  constexpr std::string_view kNames[kNeedCount] = {"tensors that pass", "cut sums", "transformed weights", "weights that steps read"};
  return kNames[static_cast<std::size_t>(need)];
}

Needs needs_of(const Plan& plan) noexcept {
  Needs needs = 0;
  if (!plan.passing.empty() || !plan.blocks.empty()) needs |= bit_of(Need::kPassing);
  for (const Step& step : plan.steps) {
    if (adds_part(step) || step.sums.valid()) needs |= bit_of(Need::kSums);
    if (step.prepare || step.derived.buffer.valid()) needs |= bit_of(Need::kDerived);
  }
  for (const Buffer& buffer : plan.buffers)
    if (buffer.kind == BufferKind::kDerived) needs |= bit_of(Need::kDerived);
  if (std::any_of(plan.operands.begin(), plan.operands.end(), [](const WeightOperand& operand) { return !operand.load.valid(); }))
    needs |= bit_of(Need::kReads);
  for (const Plan& sub : plan.subplans) needs |= needs_of(sub);
  return needs;
}

}  // namespace sluice::plan

// (I1) (I6): transformed weights. One prepare step writes the whole of a derived buffer in the prologue; every step that reads it comes
// later, means the same panels of the same weight, and runs the kernel that wrote them: only that one knows their form.
#include <vector>

#include "src/plan/verify_parts.h"

namespace sluice::plan {
namespace {

WeightId weight_of(const model::Graph& graph, const Step& step) { return graph.node(step.node).weights.front(); }

Status check_buffer(const Plan& plan, std::size_t b) {
  const Buffer& buffer = plan.buffers[b];
  if (!buffer.whole_period || buffer.lifetime != StepRange{0, static_cast<std::int64_t>(plan.steps.size())})
    return broken("buffer", b, "I1: it holds derived weights, but does not live for the whole period");
  return {};
}

}  // namespace

Status check_derived(const Plan& plan, const model::Graph& graph) {
  constexpr std::size_t kNobody = ~std::size_t{0};
  std::vector<std::size_t> writer(plan.buffers.size(), kNobody);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (plan.buffers[b].kind == BufferKind::kDerived) SLUICE_RETURN_IF_ERROR(check_buffer(plan, b));
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (!step.derived.buffer.valid()) continue;
    const std::size_t b = step.derived.buffer.index();
    if (plan.buffers[b].kind != BufferKind::kDerived) return broken("step", i, "I6: its derived weights lie in a buffer of another kind");
    if (step.prepare) {
      if (step.workspace.valid()) return broken("step", i, "I6: a prepare step has no workspace");
      if (writer[b] != kNobody) return broken("step", i, "I6: it writes derived weights that are written already");
      writer[b] = i;
      continue;
    }
    if (writer[b] == kNobody) return broken("step", i, "I6: it reads derived weights before they are written");
    const Step& prepare = plan.steps[writer[b]];
    if (prepare.derived.panels != step.derived.panels || weight_of(graph, prepare) != weight_of(graph, step) ||
        prepare.kernel != step.kernel)
      return broken("step", i, "I6: it reads derived weights of other panels, or in the form of another kernel");
  }
  return {};
}

}  // namespace sluice::plan

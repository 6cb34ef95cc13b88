// (I1) (I3) (I6): the steps of cut sums. The parts of the same rows x channels follow each other in rising k, from 0 to the last product,
// without gap or overlap, and in one buffer: a chain of additions has one order, which is that of the undivided step. From the first part
// to the last the buffer is theirs alone: another chain may not begin there (here), and nothing else may lie there (memory: buffers that
// live at one time are apart; content: no tensor lies in a buffer of sums; loads fill buffers of weights).
#include <optional>
#include <vector>

#include "src/plan/verify_parts.h"

namespace sluice::plan {
namespace {

/// What the unfinished sums take: an f32 each, channels in whole panels, pixel after pixel. Nothing where that overflows.
std::optional<std::uint64_t> bytes_of_sums(const model::Graph& graph, const Step& step) {
  const RowExtents extents = row_extents(graph.tensor(graph.node(step.node).outputs[0]).shape);
  const auto lanes = align_up(static_cast<std::uint64_t>(step.channels.size()), static_cast<std::uint64_t>(model::kPanelLanes));
  const auto pixels = checked_mul(static_cast<std::uint64_t>(step.rows.size()), static_cast<std::uint64_t>(extents.pixels));
  const auto sums = pixels ? checked_mul(*pixels, lanes) : std::nullopt;
  return sums ? checked_mul(*sums, sizeof(float)) : std::nullopt;
}

/// The part for itself.
Status check_part(const Plan& plan, const model::Graph& graph, std::size_t i) {
  const Step& step = plan.steps[i];
  const std::int64_t products = model::reduction_of(graph, graph.node(step.node));
  if (products == 0) return broken("step", i, "I6: it takes a part of sums whose node does not add them in order of its inputs");
  if (step.reduction.begin < 0 || step.reduction.empty() || step.reduction.end > products || step.reduction.size() == products)
    return broken("step", i, "I6: its part of the sums is empty, the whole, or more than there is");
  if (step.prepare || step.derived.buffer.valid()) return broken("step", i, "I6: parts of sums are of raw panels only");
  if (!step.sums.valid()) return broken("step", i, "I6: its unfinished sums lie in no buffer");
  const Buffer& sums = plan.buffer(step.sums);
  if (sums.kind != BufferKind::kSums) return broken("step", i, "I6: its unfinished sums lie in a buffer of another kind");
  const auto needed = bytes_of_sums(graph, step);
  if (!needed || *needed > sums.size.count()) return broken("step", i, "I3: its unfinished sums end beyond their buffer");
  if (!sums.whole_period && !sums.lifetime.contains(static_cast<std::int64_t>(i)))
    return broken("step", i, "I1: the buffer of its unfinished sums does not live at that time");
  return {};
}

}  // namespace

Status check_sums(const Plan& plan, const model::Graph& graph) {
  std::vector<std::optional<std::size_t>> open(plan.buffers.size());  // by buffer: the latest part of the sums that lie there
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (!adds_part(step)) {
      if (step.sums.valid()) return broken("step", i, "I0: it has a buffer for unfinished sums and finishes them all");
      continue;
    }
    SLUICE_RETURN_IF_ERROR(check_part(plan, graph, i));
    std::optional<std::size_t>& chain = open[step.sums.index()];
    if (step.reduction.begin == 0) {
      if (chain) return broken("step", i, "I6: it overwrites sums that are not finished");
    } else {
      if (!chain) return broken("step", i, "I6: it goes on from sums that no part began");
      const Step& before = plan.steps[*chain];
      if (before.node != step.node || before.rows != step.rows || before.channels != step.channels || before.kernel != step.kernel)
        return broken("step", i, "I6: it goes on from sums of other rows, channels or kernels");
      if (before.reduction.end != step.reduction.begin) return broken("step", i, "I6: its part of the sums does not follow the one before");
    }
    chain = i;
    if (writes_output(graph, step)) chain.reset();
  }
  for (std::size_t b = 0; b < open.size(); ++b)
    if (open[b]) return broken("step", *open[b], "I6: nobody finishes its sums");
  return {};
}

}  // namespace sluice::plan

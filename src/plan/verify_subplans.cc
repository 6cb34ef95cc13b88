// (I0) (I3) (I5): the plans of subgraphs. Each is judged as the plan of the graph that it is; here, that it fits the step that runs it.
#include <map>
#include <span>

#include "sluice/model/body.h"
#include "src/model/built_features.h"
#include "src/plan/verify_parts.h"

namespace sluice::plan {
namespace {

class SubplanVerifier {
 public:
  SubplanVerifier(const Plan& plan, const model::Graph& graph, const VerifyContext& context)
      : plan_(plan), graph_(graph), context_(context), step_of_(graph.nodes.size(), kNone) {}

  Status run() {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      std::size_t& step = step_of_[plan_.steps[i].node.index()];
      if (graph_.node(plan_.steps[i].node).subgraph_count > 0 && step != kNone)
        return broken("step", i, "I0: a node that runs subgraphs is cut");
      step = i;
    }
    const std::vector<const model::Node*> runners = model::runners_of(graph_);
    for (std::size_t s = 0; s < runners.size(); ++s) {
      if (runners[s] == nullptr ? !plan_.subplans[s].steps.empty() : plan_.subplans[s].steps.empty())
        return broken("sub-plan", s, "I0: a subgraph is not planned with the node that runs it");
      if (runners[s] != nullptr) SLUICE_RETURN_IF_ERROR(check(s, *runners[s]));
    }
    return {};
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  Status check(std::size_t s, const model::Node& node) const {
    const Plan& sub = plan_.subplans[s];
    const Step& step = plan_.steps[step_of_[static_cast<std::size_t>(&node - graph_.nodes.data())]];
    if (sub.block != plan_.block || sub.threads != plan_.threads)
      return broken("sub-plan", s, "I0: it is for another disk or number of threads");
    if (!sub.passing.empty()) return broken("sub-plan", s, "I0: a tensor passes within a subgraph");
    for (const Step& inner : sub.steps)
      if (inner.prepare || inner.derived.buffer.valid()) return broken("sub-plan", s, "I0: a subgraph has transformed weights");
    if (context_.outside != nullptr && !sub.loads.empty()) return broken("sub-plan", s, "I5: a subgraph within a subgraph reads weights");
    SLUICE_RETURN_IF_ERROR(check_room(s, step));
    const model::Body body = model::body_of(graph_, node, s);
    const Outside outside = held_by(step, body);
    VerifyContext inside = context_;
    inside.outside = &outside;
    SLUICE_RETURN_IF_ERROR(verify(sub, body.graph, inside));
    return check_ports(s, body);
  }

  /// The arena of a plan with loads begins on a block of the workspace.
  Status check_room(std::size_t s, const Step& step) const {
    if (!step.workspace.valid()) return broken("sub-plan", s, "I3: the step that runs it has no workspace");
    const Plan& sub = plan_.subplans[s];
    const Buffer& workspace = plan_.buffer(step.workspace);
    const std::uint64_t begin = align_up(workspace.offset.count(), sub.loads.empty() ? 64 : sub.block);
    const auto end = checked_add(begin, sub.arena_bytes.count());
    if (!end || *end > (workspace.offset + workspace.size).count())
      return broken("sub-plan", s, "I3: its arena lies beyond the workspace of the step that runs it");
    return {};
  }

  Outside held_by(const Step& step, const model::Body& body) const {
    Outside outside{std::vector<bool>(body.graph.tensors.size(), false), std::vector<bool>(body.weights.size(), false)};
    for (std::size_t i = 0; i < body.count_captures(); ++i) outside.tensors[body.captured(i).index()] = true;
    std::map<WeightId, LoadId> loads;  // of several operands of a weight the first, as whoever binds them takes it
    for (const WeightOperand& operand : std::span(plan_.operands).subspan(step.first_operand, step.operand_count))
      loads.try_emplace(operand.weight, operand.load);
    for (std::size_t w = 0; w < body.weights.size(); ++w) {
      const auto found = loads.find(body.weights[w]);
      if (found == loads.end()) continue;
      outside.weights[w] = found->second.valid() || (context_.outside != nullptr && context_.outside->weights[found->first.index()]);
    }
    return outside;
  }

  /// Whoever runs it copies its inputs and outputs as they lie.
  Status check_ports(std::size_t s, const model::Body& body) const {
    const Plan& sub = plan_.subplans[s];
    for (const auto* ports : {&body.graph.inputs, &body.graph.outputs})
      for (const model::Port& port : *ports) {
        const TensorPlacement& place = sub.tensors[port.tensor.index()];
        const model::Tensor& tensor = body.graph.tensor(port.tensor);
        const RowView dense = dense_view(nullptr, tensor.shape, tensor.dtype);
        if (place.buffer.valid() && (place.row_pitch != dense.row_pitch || place.pixel_pitch != dense.pixel_pitch))
          return broken("sub-plan", s, "I6: an input or output of a subgraph is not dense");
      }
    return {};
  }

  const Plan& plan_;
  const model::Graph& graph_;
  const VerifyContext& context_;
  std::vector<std::size_t> step_of_;  // by node; of several the last
};

}  // namespace

Status check_subplans(const Plan& plan, const model::Graph& graph, const VerifyContext& context) {
  if (!model::kRunsSubgraphs || graph.subgraphs.empty()) return {};
  return SubplanVerifier(plan, graph, context).run();
}

}  // namespace sluice::plan

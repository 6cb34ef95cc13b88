#include "sluice/operators/validate.h"
#include "src/operators/node_check.h"

namespace sluice::operators {

Status validate_node(const model::Graph& graph, const model::Node& node) {
  const NodeCheck check(graph, node);
  if (static_cast<int>(node.op) >= model::kOpKindCount) return check.invalid("G2: an operator that this build does not know");
  SLUICE_RETURN_IF_ERROR(check.epilogue());
  return definition_of(node.op).validate(graph, node);
}

}  // namespace sluice::operators

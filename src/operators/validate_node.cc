#include <string>

#include "sluice/operators/validate.h"
#include "src/operators/node_check.h"

namespace sluice::operators {

Status validate_node(const model::Graph& graph, const model::Node& node) {
  const NodeCheck check(graph, node);
  if (static_cast<int>(node.op) >= model::kOpKindCount) return check.invalid("G2: an operator that this build does not know");
  if (definition_of(node.op).validate == nullptr) {
    return fail(ErrorCode::kUnsupported, std::string(node.name) + " (" + std::string(model::name_of(node.op)) + ")",
                "this build was trimmed to models that do without this operator: trim it to this model too");
  }
  if (node.subgraph_count > 0 && node.op != OpKind::kPlain) return check.invalid("G2: its operator runs no subgraphs");
  SLUICE_RETURN_IF_ERROR(check.epilogue());
  return definition_of(node.op).validate(graph, node);
}

}  // namespace sluice::operators

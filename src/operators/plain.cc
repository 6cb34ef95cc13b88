// The long tail: what holds of every plain operator. Types, shapes and arguments are checked by code that knows the operator: by its
// kernel, which the planner and the executor ask (operators/generic.h).
#include <bit>

#include "src/operators/families.h"
#include "src/operators/node_check.h"
#include "src/operators/subgraphs.h"

namespace sluice::operators {
namespace {

Status validate_plain(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<PlainAttributes>();
  if (a == nullptr) return check.invalid("G2: a plain operator has its attributes");
  if (!node.weights.empty()) return check.invalid("G4: a plain operator has no weights of its own", 0, node.weights.size());
  const auto present = static_cast<std::size_t>(std::popcount(a->present));
  if (present != node.inputs.size())
    return check.invalid("G2: a plain operator has not the inputs that it names", present, node.inputs.size());
  std::size_t at = 0;
  while (at < a->arguments.size()) {
    const std::int64_t count = a->arguments[at];
    if (count < 0 || static_cast<std::uint64_t>(count) >= a->arguments.size() - at)
      return check.invalid("G2: a plain operator's arguments are cut short");
    at += static_cast<std::size_t>(count) + 1;
  }
  return validate_subgraphs(graph, node);
}

AxisRelations relate_plain(const Graph& graph, const Node& node, std::size_t input) noexcept {
  return AxisRelations(shape_of_input(graph, node, input).rank());
}
AxisRelations relate_weight(const Graph&, const Node&, std::size_t) noexcept { return AxisRelations(kPanelAxes); }

}  // namespace

constexpr OperatorDefinition kPlain = {
    .kind = OpKind::kPlain,
    .attributes = kAlternative<PlainAttributes>,
    .inputs = 0,
    .validate = validate_plain,
    .infer = infer_nothing,
    .relate_input = relate_plain,
    .relate_weight = relate_weight,
};

}  // namespace sluice::operators

#include "src/importer/rewrite/perm.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {

void drop_reshapes(Draft& draft) {
  const Uses uses(draft);
  std::vector<ValueId> source(draft.values.size());  // of a reshape's output: the value before it and all reshapes before that
  std::vector<ValueId> same(draft.values.size());    // the value that may be read instead
  const auto bytes_of = [&](ValueId value) { return physical(draft.value(value).shape, draft.value(value).layout); };
  for (DraftNode& node : draft.nodes) {
    for (ValueId& input : node.inputs)
      if (same[input.index()].valid()) input = same[input.index()];
    if (node.op != model::OpKind::kReshape || draft.value(node.inputs[0]).constant) continue;
    const ValueId before = source[node.inputs[0].index()];
    const ValueId first = before.valid() ? before : node.inputs[0];
    source[node.output.index()] = first;
    node.inputs[0] = first;
    // Ports name the value by which they are known.
    if (uses.is_output[node.output.index()] || bytes_of(first) != bytes_of(node.output)) continue;
    same[node.output.index()] = first;
  }
}

}  // namespace sluice::importer

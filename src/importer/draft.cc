#include "src/importer/draft.h"

#include <algorithm>

namespace sluice::importer {

Uses::Uses(const Draft& draft) : maker(draft.values.size(), kNone), readers(draft.values.size()), is_output(draft.values.size(), false) {
  for (std::size_t n = 0; n < draft.nodes.size(); ++n) {
    const DraftNode& node = draft.nodes[n];
    if (node.dead) continue;
    maker[node.output.index()] = n;
    for (const ValueId input : node.inputs) readers[input.index()].push_back(n);
  }
  for (const DraftPort& port : draft.outputs) is_output[port.value.index()] = true;
}

void compact(Draft& draft) {
  std::vector<bool> read(draft.values.size(), false);
  for (const DraftPort& port : draft.outputs) {
    const ValueId storage = draft.value(port.value).storage;
    read[storage.valid() ? storage.index() : port.value.index()] = true;
  }
  for (auto node = draft.nodes.rbegin(); node != draft.nodes.rend(); ++node) {
    node->dead = node->dead || !read[node->output.index()];
    if (node->dead) continue;
    for (const ValueId input : node->inputs) read[input.index()] = true;
  }
  draft.nodes.erase(std::remove_if(draft.nodes.begin(), draft.nodes.end(), [](const DraftNode& node) { return node.dead; }),
                    draft.nodes.end());
}

}  // namespace sluice::importer

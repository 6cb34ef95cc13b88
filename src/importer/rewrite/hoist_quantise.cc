// QuantizeLinear moves in front of what only moves values, so that it meets the operator that made them:
//
//     conv -> Concat -> Q          conv -> Q --+
//     conv ------^          =>     conv -> Q --+-> Concat over bytes
//
// Rounding is done to each element alone and never falls as the element grows, so the bytes are the same, the largest of a window too.
#include "src/importer/rewrite/linear.h"
#include "src/importer/rewrite/movement.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

class Hoist {
 public:
  explicit Hoist(Draft& draft) : draft_(draft), uses_(draft), before_(draft.nodes.size()) {}

  void run() {
    const std::size_t count = draft_.nodes.size();
    for (std::size_t n = count; n-- > 0;)
      if (!draft_.nodes[n].dead) hoist_over(n);
    std::vector<DraftNode> nodes;
    for (std::size_t n = 0; n < count; ++n) {
      for (const std::size_t quantiser : before_[n]) nodes.push_back(std::move(draft_.nodes[quantiser]));
      nodes.push_back(std::move(draft_.nodes[n]));
    }
    draft_.nodes = std::move(nodes);
  }

 private:
  /// The nodes that read a value, where all of them quantise it alike.
  const std::vector<std::size_t>* quantisers_of(ValueId value) const {
    const std::vector<std::size_t>& readers = uses_.readers[value.index()];
    if (uses_.is_output[value.index()] || readers.empty()) return nullptr;
    const auto scale = byte_scale_of(draft_, draft_.nodes[readers[0]]);
    for (const std::size_t reader : readers) {
      const DraftNode& node = draft_.nodes[reader];
      if (!is_quantise(node) || node.dead || !scale || byte_scale_of(draft_, node) != scale ||
          draft_.value(node.output).dtype != draft_.value(draft_.nodes[readers[0]].output).dtype)
        return nullptr;
    }
    return &readers;
  }

  void hoist_over(std::size_t n) {
    if (!moves(draft_, draft_.nodes[n])) return;
    const auto* quantisers = quantisers_of(draft_.nodes[n].output);
    if (quantisers == nullptr) return;
    const std::vector<std::size_t> readers = *quantisers;
    const DraftNode quantiser = draft_.nodes[readers[0]];
    if (!move_bytes(draft_.nodes[n], *byte_scale_of(draft_, quantiser), draft_.value(quantiser.output).dtype)) return;
    for (std::size_t i = 0; i < draft_.nodes[n].inputs.size(); ++i) {
      const ValueId input = draft_.nodes[n].inputs[i];
      draft_.nodes[n].inputs[i] = add_quantiser(quantiser, input, n);
    }
    draft_.nodes[n].output = quantiser.output;
    for (const std::size_t reader : readers) {
      draft_.nodes[reader].dead = true;
      if (reader != readers[0]) read_instead(draft_.nodes[reader].output, quantiser.output);
    }
  }

  /// `input` quantised before node `n`; the quantiser takes the node's place among its readers.
  ValueId add_quantiser(const DraftNode& like, ValueId input, std::size_t n) {
    Value bytes = draft_.value(like.output);
    bytes.shape = draft_.value(input).shape;
    bytes.name = draft_.value(input).name + ":bytes";
    bytes.constant.reset();
    DraftNode made = like;
    made.name = bytes.name;
    made.inputs[0] = input;
    made.output = draft_.add_value(std::move(bytes));
    uses_.readers.push_back({n});
    uses_.is_output.push_back(false);
    uses_.maker.push_back(draft_.nodes.size());
    for (std::size_t& reader : uses_.readers[input.index()])
      if (reader == n) {
        reader = draft_.nodes.size();
        break;
      }
    before_[n].push_back(draft_.nodes.size());
    draft_.nodes.push_back(std::move(made));
    return draft_.nodes.back().output;
  }

  void read_instead(ValueId was, ValueId now) {
    for (const std::size_t reader : uses_.readers[was.index()]) {
      for (ValueId& input : draft_.nodes[reader].inputs)
        if (input == was) input = now;
      uses_.readers[now.index()].push_back(reader);
    }
    uses_.readers[was.index()].clear();
    for (DraftPort& port : draft_.outputs)
      if (port.value == was) port.value = now;
  }

  Draft& draft_;
  Uses uses_;
  std::vector<std::vector<std::size_t>> before_;  // quantisers that come right before a node
};

}  // namespace

void hoist_quantise(Draft& draft) { Hoist(draft).run(); }

}  // namespace sluice::importer

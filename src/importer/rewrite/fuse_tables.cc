#include <algorithm>

#include "src/importer/rewrite/linear.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::Function;
using model::OpKind;

bool is_table(const DraftNode& node) noexcept { return node.op == OpKind::kUnary && !node.table.empty(); }

/// The ends of a range of bytes.
struct Range {
  std::uint8_t low = 0;
  std::uint8_t high = 255;
  std::uint8_t cut(std::uint8_t byte) const noexcept { return std::clamp(byte, low, high); }
};

/// A table that leaves bytes of a range as they are and cuts the others at its ends.
std::optional<Range> range_of_table(const std::vector<std::uint8_t>& table) {
  const Range range{table.front(), table.back()};
  if (range.low > range.high) return std::nullopt;
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i] != range.cut(static_cast<std::uint8_t>(i))) return std::nullopt;
  return range;
}

class FuseTables {
 public:
  explicit FuseTables(Draft& draft) : draft_(draft), uses_(draft) {}

  void run() {
    for (std::size_t n = 0; n < draft_.nodes.size(); ++n) {
      DraftNode& table = draft_.nodes[n];
      if (!is_table(table)) continue;
      const std::size_t maker = uses_.maker[table.inputs[0].index()];
      if (maker == Uses::kNone || !uses_.single_reader(table.inputs[0])) continue;
      is_table(draft_.nodes[maker]) ? join(maker, n) : absorb(draft_.nodes[maker], maker, table);
    }
  }

 private:
  void join(std::size_t maker, std::size_t n) {
    DraftNode &first = draft_.nodes[maker], &second = draft_.nodes[n];
    for (std::size_t i = 0; i < first.table.size(); ++i) first.table[i] = second.table[first.table[i]];
    second.table = std::move(first.table);
    second.inputs = first.inputs;
    first.dead = true;
    std::replace(uses_.readers[second.inputs[0].index()].begin(), uses_.readers[second.inputs[0].index()].end(), maker, n);
  }

  /// Into the range that the node rounds to.
  void absorb(DraftNode& node, std::size_t maker, DraftNode& table) {
    const auto &from = draft_.value(table.inputs[0]).bytes, &to = draft_.value(table.output).bytes;
    const auto cut = range_of_table(table.table);
    const bool takes = node.op == OpKind::kConv || node.op == OpKind::kDense || node.op == OpKind::kBinary || node.op == OpKind::kPool;
    if (!takes || node.numeric != model::NumericClass::kInt8 || !cut || from != to) return;
    const Range before = range_of(node.epilogue.activation, *to);
    set_range(node, {cut->cut(before.low), cut->cut(before.high)}, *to);
    node.output = table.output;
    uses_.maker[table.output.index()] = maker;
    table.dead = true;
  }

  static Range range_of(const model::Activation& activation, const ByteScale& scale) {
    if (activation.function == Function::kRelu) return {static_cast<std::uint8_t>(scale.zero), 255};
    if (activation.function != Function::kClip) return {};
    const std::uint8_t high = byte_of(activation.b, scale);
    return {std::min(byte_of(activation.a, scale), high), high};
  }
  static void set_range(DraftNode& node, const Range& range, const ByteScale& scale) {
    node.epilogue.activation = {Function::kClip, real_of(range.low, scale), real_of(range.high, scale)};
    if (range.low == scale.zero && range.high == 255) node.epilogue.activation = {Function::kRelu, 0, 0};
    if (range.low == 0 && range.high == 255) node.epilogue.activation = {};
  }

  Draft& draft_;
  Uses uses_;
};

}  // namespace

void fuse_tables(Draft& draft) { FuseTables(draft).run(); }

}  // namespace sluice::importer

// i32 sums of integers whose scale comes at run time, as quantisers write it, become reals where they are made:
//
//     kDense --> Cast --> Mul by the scale of x (and w) --> Add constants       =>      kDense of f32
//
// Each operation is rounded as it was, so the bits are the same.
#include "sluice/kernels/plain.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::BinaryFunction;
using model::OpKind;

class ScaleSums {
 public:
  explicit ScaleSums(Draft& draft) : draft_(draft), uses_(draft) {}

  void run() {
    const std::size_t count = draft_.nodes.size();
    std::vector<DraftNode> nodes;
    for (std::size_t n = 0; n < count; ++n) {
      if (!draft_.nodes[n].dead) scale(n);
    }
    for (std::size_t n = 0; n < count; ++n) {
      if (const auto reshape = before_.find(n); reshape != before_.end()) nodes.push_back(std::move(reshape->second));
      nodes.push_back(std::move(draft_.nodes[n]));
    }
    draft_.nodes = std::move(nodes);
  }

 private:
  /// The one node that reads a value.
  std::optional<std::size_t> reader(ValueId value) const {
    if (!uses_.single_reader(value)) return std::nullopt;
    return uses_.readers[value.index()][0];
  }
  const Value& value(ValueId id) const { return draft_.value(id); }

  bool is_cast(const DraftNode& node) const {
    const auto* plain = std::get_if<model::PlainAttributes>(&node.attributes);
    const kernels::PlainOperator* op = plain == nullptr ? nullptr : kernels::find_plain(plain->op);
    return op != nullptr && op->name == "Cast" && value(node.output).dtype == DType::kF32;
  }
  /// The operand that is not `x`, of a function that keeps x's shape.
  std::optional<ValueId> other(const DraftNode& node, BinaryFunction function, ValueId x) const {
    if (node.op != OpKind::kBinary || node.as_binary() != function || node.inputs[0] == node.inputs[1]) return std::nullopt;
    if (node.epilogue.activation.function != model::Function::kNone || value(node.output).shape != value(x).shape) return std::nullopt;
    return node.inputs[node.inputs[0] == x ? 1 : 0];
  }
  /// Has a value one place for each channel of `sums`, or one alone?
  bool is_by_channel(ValueId id, const DraftNode& sums) const {
    const Shape &shape = value(id).shape, &out = value(sums.output).shape;
    if (shape.element_count() == 1) return true;
    const int axis = shape.rank() - 1 - (sums.op == OpKind::kConv ? out.rank() - 2 : 0);
    return axis >= 0 && shape[axis] == shape.element_count() && shape[axis] == channels(sums);
  }
  std::int64_t channels(const DraftNode& sums) const {
    const Shape& out = value(sums.output).shape;
    return sums.op == OpKind::kConv ? out[1] : out.back();
  }

  void scale(std::size_t n) {
    const DraftNode& sums = draft_.nodes[n];
    const bool matrix = sums.op == OpKind::kMatMul;
    if (sums.numeric != model::NumericClass::kInt8 || value(sums.output).dtype != DType::kI32) return;
    if (sums.inputs.size() != (matrix ? 4u : 2u)) return;
    const auto cast = reader(sums.output);
    if (!cast || !is_cast(draft_.nodes[*cast])) return;
    const ValueId reals = draft_.nodes[*cast].output;
    const auto product = reader(reals);
    const auto factor = product ? other(draft_.nodes[*product], BinaryFunction::kMul, reals) : std::nullopt;
    if (!factor || value(*factor).dtype != DType::kF32 || !is_by_channel(*factor, sums)) return;
    DraftNode scaled = sums;
    scaled.inputs.push_back(as_line(*factor, *product));
    scaled.output = draft_.nodes[*product].output;
    std::size_t last = *product;
    if (!matrix) last = add_bias(scaled, last);
    draft_.nodes[n].dead = draft_.nodes[*cast].dead = draft_.nodes[*product].dead = true;
    draft_.nodes[last] = std::move(scaled);
  }

  /// The factor with one axis, made right before node `at`.
  ValueId as_line(ValueId factor, std::size_t at) {
    const Shape line{value(factor).shape.element_count()};
    if (value(factor).shape == line) return factor;
    Value made = value(factor);
    made.name += ":line";
    made.shape = line;
    if (made.constant) made.constant = reshaped(*made.constant, line);
    DraftNode reshape;
    reshape.name = made.name;
    reshape.inputs = {factor};
    const bool known = made.constant.has_value();
    reshape.output = draft_.add_value(std::move(made));
    const ValueId id = reshape.output;
    if (!known) before_[at] = std::move(reshape);
    return id;
  }

  /// Takes the constants that are added to what `scaled` gives; returns the place of the node that did it, or `last`.
  std::size_t add_bias(DraftNode& scaled, std::size_t last) {
    const auto sum = reader(scaled.output);
    const auto addend = sum ? other(draft_.nodes[*sum], BinaryFunction::kAdd, scaled.output) : std::nullopt;
    if (!addend || !value(*addend).constant || !is_float(value(*addend).constant->dtype) || !is_by_channel(*addend, scaled)) return last;
    const std::vector<float> bias = floats(*value(*addend).constant);
    for (std::size_t i = 0; i < scaled.integers->multipliers.size(); ++i) scaled.integers->multipliers[i] = bias[bias.size() == 1 ? 0 : i];
    scaled.output = draft_.nodes[*sum].output;
    draft_.nodes[last].dead = true;
    return *sum;
  }

  Draft& draft_;
  Uses uses_;
  std::map<std::size_t, DraftNode> before_;  // made right before a node
};

}  // namespace

void scale_sums(Draft& draft) { ScaleSums(draft).run(); }

}  // namespace sluice::importer

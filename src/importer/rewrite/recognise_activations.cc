#include <cmath>

#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::Activation;
using model::BinaryFunction;
using model::Function;
using model::OpKind;

bool near(double a, double b) noexcept { return std::fabs(a - b) <= 1e-5 * std::fabs(b); }

/// Looks at the nodes behind a value: small questions from which the patterns are put together.
class Pattern {
 public:
  explicit Pattern(const Draft& draft) : draft_(draft), uses_(draft) {}

  const DraftNode* maker(ValueId value) const {
    const std::size_t n = uses_.maker[value.index()];
    return n == Uses::kNone ? nullptr : &draft_.nodes[n];
  }
  std::optional<double> scalar(ValueId value) const {
    const auto& constant = draft_.value(value).constant;
    return constant ? uniform_value(*constant) : std::nullopt;
  }
  const DraftNode* unary(ValueId value, Function function) const {
    const DraftNode* node = maker(value);
    return node != nullptr && node->op == OpKind::kUnary && node->epilogue.activation.function == function ? node : nullptr;
  }
  const DraftNode* binary(ValueId value, BinaryFunction function) const {
    const DraftNode* node = maker(value);
    return node != nullptr && node->op == OpKind::kBinary && node->as_binary() == function ? node : nullptr;
  }
  /// x in x + c or c + x.
  std::optional<ValueId> minus_constant(ValueId value, double addend) const {
    const DraftNode* add = binary(value, BinaryFunction::kAdd);
    if (add == nullptr) return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i)
      if (const auto c = scalar(add->inputs[1 - i]); c && near(*c, addend)) return same_shape(add->inputs[i], add->output);
    return std::nullopt;
  }
  /// x in x * c, c * x or x / (1 / c).
  std::optional<ValueId> without_factor(ValueId value, double factor) const {
    if (const DraftNode* mul = binary(value, BinaryFunction::kMul)) {
      for (std::size_t i = 0; i < 2; ++i)
        if (const auto c = scalar(mul->inputs[1 - i]); c && near(*c, factor)) return same_shape(mul->inputs[i], mul->output);
    }
    if (const DraftNode* div = binary(value, BinaryFunction::kDiv)) {
      if (const auto c = scalar(div->inputs[1]); c && near(*c, 1 / factor)) return same_shape(div->inputs[0], div->output);
    }
    return std::nullopt;
  }
  /// x where the value is max(0, min(1, x / 6 + 1 / 2)), however written.
  std::optional<ValueId> hard_sigmoid_of(ValueId value) const {
    if (const DraftNode* node = unary(value, Function::kHardSigmoid)) {
      const Activation& f = node->epilogue.activation;
      if (near(f.a, 1.0 / 6) && near(f.b, 0.5)) return node->inputs[0];
    }
    if (const auto inner = without_factor(value, 1.0 / 6)) return relu6_of_three_more(*inner);
    return std::nullopt;
  }
  /// x where the value is clip(x + 3, 0, 6).
  std::optional<ValueId> relu6_of_three_more(ValueId value) const {
    const DraftNode* clip = unary(value, Function::kClip);
    if (clip == nullptr || clip->epilogue.activation.a != 0.0f || clip->epilogue.activation.b != 6.0f) return std::nullopt;
    return minus_constant(clip->inputs[0], 3.0);
  }
  /// x where the value is 1 + erf(x / sqrt 2).
  std::optional<ValueId> erf_factor_of(ValueId value) const {
    const auto inner = minus_constant(value, 1.0);
    const DraftNode* erf = inner ? unary(*inner, Function::kErf) : nullptr;
    return erf != nullptr ? without_factor(erf->inputs[0], std::sqrt(0.5)) : std::nullopt;
  }
  /// The two factors of a product, as f(other) = x: the other factor must be x itself.
  template <class Of>
  std::optional<ValueId> product_with(const DraftNode& mul, Of&& of) const {
    for (std::size_t i = 0; i < 2; ++i)
      if (const auto x = of(mul.inputs[i]); x && *x == mul.inputs[1 - i]) return x;
    return std::nullopt;
  }

 private:
  std::optional<ValueId> same_shape(ValueId input, ValueId output) const {
    if (draft_.value(input).shape == draft_.value(output).shape) return input;
    return std::nullopt;
  }

  const Draft& draft_;
  Uses uses_;
};

struct Match {
  ValueId x;
  Activation activation;
};

std::optional<Match> match(const Pattern& p, const DraftNode& node) {
  if (node.op != OpKind::kBinary) return std::nullopt;
  const BinaryFunction function = node.as_binary();
  if (function != BinaryFunction::kMul && function != BinaryFunction::kDiv) return std::nullopt;
  if (function == BinaryFunction::kMul) {
    const auto sigmoid_of = [&](ValueId v) -> std::optional<ValueId> {
      const DraftNode* sigmoid = p.unary(v, Function::kSigmoid);
      return sigmoid != nullptr ? std::optional(sigmoid->inputs[0]) : std::nullopt;
    };
    if (const auto x = p.product_with(node, sigmoid_of)) return Match{*x, {Function::kSilu}};
    if (const auto x = p.product_with(node, [&](ValueId v) { return p.hard_sigmoid_of(v); })) return Match{*x, {Function::kHardSwish}};
    // (x / 2) * (1 + erf(x / sqrt 2))
    for (std::size_t i = 0; i < 2; ++i) {
      const auto x = p.erf_factor_of(node.inputs[i]);
      const auto half = p.without_factor(node.inputs[1 - i], 0.5);
      if (x && half && *x == *half) return Match{*x, {Function::kGelu}};
    }
  }
  if (const auto x = p.hard_sigmoid_of(node.output)) return Match{*x, {Function::kHardSigmoid, 1.0f / 6.0f, 0.5f}};
  // (x * clip(x + 3, 0, 6)) / 6 and (x * (1 + erf(x / sqrt 2))) / 2
  const auto product_in = [&](double factor) -> const DraftNode* {
    const auto inner = p.without_factor(node.output, factor);
    return inner ? p.binary(*inner, BinaryFunction::kMul) : nullptr;
  };
  if (const DraftNode* product = product_in(1.0 / 6))
    if (const auto x = p.product_with(*product, [&](ValueId v) { return p.relu6_of_three_more(v); }))
      return Match{*x, {Function::kHardSwish}};
  if (const DraftNode* product = product_in(0.5))
    if (const auto x = p.product_with(*product, [&](ValueId v) { return p.erf_factor_of(v); })) return Match{*x, {Function::kGelu}};
  return std::nullopt;
}

}  // namespace

void recognise_activations(Draft& draft) {
  const Pattern pattern(draft);
  for (DraftNode& node : draft.nodes) {
    const auto found = match(pattern, node);
    if (!found) continue;
    node.op = OpKind::kUnary;
    node.attributes = {};
    node.epilogue.activation = found->activation;
    node.inputs = {found->x};
  }
}

}  // namespace sluice::importer

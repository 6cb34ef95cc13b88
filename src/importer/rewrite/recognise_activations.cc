#include "src/importer/rewrite/pattern.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::Activation;
using model::BinaryFunction;
using model::Function;
using model::OpKind;

/// Coefficients of 1, x, x^2, x^3.
using Cubic = std::array<double, 4>;

/// The value as a polynomial of x, if sums and products of x and numbers make it one of degree 3 at most.
class AsCubic {
 public:
  AsCubic(const Pattern& pattern, ValueId x) : pattern_(pattern), x_(x) {}

  std::optional<Cubic> operator()(ValueId value) {
    if (value == x_) return Cubic{0, 1, 0, 0};
    if (const auto c = pattern_.scalar(value)) return Cubic{*c, 0, 0, 0};
    const DraftNode* node = pattern_.maker(value);
    if (node == nullptr || node->op != OpKind::kBinary || ++visits_ > kMaxVisits) return std::nullopt;
    const auto a = (*this)(node->inputs[0]), b = (*this)(node->inputs[1]);
    if (!a || !b) return std::nullopt;
    switch (node->as_binary()) {
      case BinaryFunction::kAdd:
        return Cubic{(*a)[0] + (*b)[0], (*a)[1] + (*b)[1], (*a)[2] + (*b)[2], (*a)[3] + (*b)[3]};
      case BinaryFunction::kMul:
        return product(*a, *b);
      case BinaryFunction::kPow:
        return *b == Cubic{3, 0, 0, 0} ? square_then(*a) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  // A graph of shared factors has more paths than nodes.
  static constexpr int kMaxVisits = 64;

  static std::optional<Cubic> product(const Cubic& a, const Cubic& b) {
    Cubic out{};
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        if (a[i] == 0 || b[j] == 0) continue;
        if (i + j > 3) return std::nullopt;
        out[i + j] += a[i] * b[j];
      }
    }
    return out;
  }
  static std::optional<Cubic> square_then(const Cubic& a) {
    const auto square = product(a, a);
    return square ? product(*square, a) : std::nullopt;
  }

  const Pattern& pattern_;
  const ValueId x_;
  int visits_ = 0;
};

/// Is the value 1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))?
bool is_tangent_factor(const Pattern& p, ValueId value, ValueId x) {
  const auto inner = p.minus_constant(value, 1.0);
  const DraftNode* tangent = inner ? p.unary(*inner, Function::kTanh) : nullptr;
  const auto cubic = tangent != nullptr ? AsCubic(p, x)(tangent->inputs[0]) : std::nullopt;
  const double slope = std::sqrt(2 / std::acos(-1.0));
  return cubic && (*cubic)[0] == 0 && (*cubic)[2] == 0 && near((*cubic)[1], slope) && near((*cubic)[3], slope * 0.044715);
}

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
    // (x / 2) * (1 + erf(x / sqrt 2)), or a tangent in its place
    for (std::size_t i = 0; i < 2; ++i) {
      const auto x = p.erf_factor_of(node.inputs[i]);
      const auto half = p.without_factor(node.inputs[1 - i], 0.5);
      if (x && half && *x == *half) return Match{*x, {Function::kGelu}};
      if (half && is_tangent_factor(p, node.inputs[i], *half)) return Match{*half, {Function::kGeluTanh}};
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
  if (const DraftNode* product = product_in(0.5)) {
    if (const auto x = p.product_with(*product, [&](ValueId v) { return p.erf_factor_of(v); })) return Match{*x, {Function::kGelu}};
    for (std::size_t i = 0; i < 2; ++i)
      if (is_tangent_factor(p, product->inputs[i], product->inputs[1 - i])) return Match{product->inputs[1 - i], {Function::kGeluTanh}};
  }
  return std::nullopt;
}

}  // namespace

void recognise_activations(Draft& draft) {
  const Pattern pattern(draft);
  for (DraftNode& node : draft.nodes) {
    const auto found = match(pattern, node);
    if (!found) continue;
    node.op = OpKind::kUnary;
    node.attributes = model::Attributes();
    node.epilogue.activation = found->activation;
    node.inputs = {found->x};
  }
}

}  // namespace sluice::importer

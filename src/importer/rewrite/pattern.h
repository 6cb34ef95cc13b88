// Looks at the nodes behind a value: small questions from which the patterns of the rewrites are put together.
#pragma once

#include <array>
#include <cmath>
#include <optional>

#include "src/importer/draft.h"

namespace sluice::importer {

inline bool near(double a, double b) noexcept { return std::fabs(a - b) <= 1e-5 * std::fabs(b); }

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
  const DraftNode* unary(ValueId value, model::Function function) const {
    const DraftNode* node = maker(value);
    return node != nullptr && node->op == model::OpKind::kUnary && node->epilogue.activation.function == function ? node : nullptr;
  }
  const DraftNode* binary(ValueId value, model::BinaryFunction function) const {
    const DraftNode* node = maker(value);
    return node != nullptr && node->op == model::OpKind::kBinary && node->as_binary() == function ? node : nullptr;
  }
  /// x in x + c or c + x.
  std::optional<ValueId> minus_constant(ValueId value, double addend) const {
    const DraftNode* add = binary(value, model::BinaryFunction::kAdd);
    if (add == nullptr) return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i)
      if (const auto c = scalar(add->inputs[1 - i]); c && near(*c, addend)) return same_shape(add->inputs[i], add->output);
    return std::nullopt;
  }
  /// x in x * c, c * x or x / (1 / c).
  std::optional<ValueId> without_factor(ValueId value, double factor) const {
    if (const DraftNode* mul = binary(value, model::BinaryFunction::kMul)) {
      for (std::size_t i = 0; i < 2; ++i)
        if (const auto c = scalar(mul->inputs[1 - i]); c && near(*c, factor)) return same_shape(mul->inputs[i], mul->output);
    }
    if (const DraftNode* div = binary(value, model::BinaryFunction::kDiv)) {
      if (const auto c = scalar(div->inputs[1]); c && near(*c, 1 / factor)) return same_shape(div->inputs[0], div->output);
    }
    return std::nullopt;
  }
  /// x where the value is max(0, min(1, x / 6 + 1 / 2)), however written.
  std::optional<ValueId> hard_sigmoid_of(ValueId value) const {
    if (const DraftNode* node = unary(value, model::Function::kHardSigmoid)) {
      const model::Activation& f = node->epilogue.activation;
      if (near(f.a, 1.0 / 6) && near(f.b, 0.5)) return node->inputs[0];
    }
    if (const auto inner = without_factor(value, 1.0 / 6)) return relu6_of_three_more(*inner);
    return std::nullopt;
  }
  /// x where the value is clip(x + 3, 0, 6).
  std::optional<ValueId> relu6_of_three_more(ValueId value) const {
    const DraftNode* clip = unary(value, model::Function::kClip);
    if (clip == nullptr || clip->epilogue.activation.a != 0.0f || clip->epilogue.activation.b != 6.0f) return std::nullopt;
    return minus_constant(clip->inputs[0], 3.0);
  }
  /// x where the value is 1 + erf(x / sqrt 2).
  std::optional<ValueId> erf_factor_of(ValueId value) const {
    const auto inner = minus_constant(value, 1.0);
    const DraftNode* erf = inner ? unary(*inner, model::Function::kErf) : nullptr;
    return erf != nullptr ? without_factor(erf->inputs[0], std::sqrt(0.5)) : std::nullopt;
  }
  /// x and c in x * c, c * x or x / c with one number c; the value itself and 1 otherwise.
  struct Scaled {
    ValueId x;
    double factor = 1.0;
  };
  Scaled scaled(ValueId value) const {
    if (const DraftNode* mul = binary(value, model::BinaryFunction::kMul)) {
      for (std::size_t i = 0; i < 2; ++i) {
        const auto c = scalar(mul->inputs[1 - i]);
        const auto x = c ? same_shape(mul->inputs[i], mul->output) : std::nullopt;
        if (x) return {*x, *c};
      }
    }
    if (const DraftNode* div = binary(value, model::BinaryFunction::kDiv)) {
      const auto c = scalar(div->inputs[1]);
      const auto x = c && *c != 0.0 ? same_shape(div->inputs[0], div->output) : std::nullopt;
      if (x) return {*x, 1.0 / *c};
    }
    return {value, 1.0};
  }
  /// Is the value the mean of x over its last axis, which stays as one of extent 1?
  bool is_last_axis_mean(ValueId value, ValueId x) const {
    Shape kept = draft_.value(x).shape;
    if (kept.rank() == 0) return false;
    const std::int64_t run = kept.back();
    kept[kept.rank() - 1] = 1;
    const DraftNode* pool = maker(unshaped(value));
    if (pool == nullptr || pool->op != model::OpKind::kPool || draft_.value(value).shape != kept) return false;
    const auto& a = *std::get_if<model::PoolAttributes>(&pool->attributes);
    const bool over_run = a.kind == model::PoolKind::kAverage && a.window.in_h == 1 && a.window.in_w == run && a.window.kernel_w == run;
    return over_run && draft_.value(pool->inputs[0]).shape.back() == run && unshaped(pool->inputs[0]) == unshaped(x);
  }
  /// The value before all reshapes.
  ValueId unshaped(ValueId value) const {
    for (const DraftNode* node = maker(value); node != nullptr && node->op == model::OpKind::kReshape; node = maker(value))
      value = node->inputs[0];
    return value;
  }
  bool single_reader(ValueId value) const { return uses_.single_reader(value); }

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

}  // namespace sluice::importer

// The words for operators, functions and numeric classes.
#include "sluice/model/attributes.h"

namespace sluice::model {

std::string_view name_of(OpKind op) noexcept {
  constexpr std::string_view kNames[kOpKindCount] = {
      "conv", "conv_transpose", "dense",     "pool",    "unary",  "binary",     "affine",    "softmax",  "lrn", "concat", "slice",
      "pad",  "resize",         "transpose", "reshape", "matmul", "layer_norm", "attention", "embedding",
      "plain", "recurrent"};
  return kNames[static_cast<int>(op)];
}

std::string_view name_of(Cell cell) noexcept {
  constexpr std::string_view kNames[] = {"rnn", "gru", "lstm"};
  return kNames[static_cast<int>(cell)];
}

std::string_view name_of(NumericClass numeric) noexcept {
  constexpr std::string_view kNames[kNumericClassCount] = {"exact", "winograd4", "int8"};
  return kNames[static_cast<int>(numeric)];
}

std::string_view name_of(Function function) noexcept {
  constexpr std::string_view kNames[kFunctionCount] = {
      "none", "relu", "clip", "leaky_relu", "sigmoid", "hard_sigmoid", "hard_swish", "silu",     "tanh",  "exp",  "sqrt",
      "erf",  "gelu", "neg",  "abs",        "log",     "reciprocal",   "elu",        "softplus", "floor", "ceil", "gelu_tanh"};
  return kNames[static_cast<int>(function)];
}

}  // namespace sluice::model

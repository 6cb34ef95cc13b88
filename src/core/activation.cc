#include "sluice/core/activation.h"

namespace sluice {

std::string_view name_of(Function function) noexcept {
  constexpr std::string_view kNames[kFunctionCount] = {
      "none", "relu", "clip", "leaky_relu", "sigmoid", "hard_sigmoid", "hard_swish", "silu",     "tanh",  "exp",  "sqrt",
      "erf",  "gelu", "neg",  "abs",        "log",     "reciprocal",   "elu",        "softplus", "floor", "ceil", "gelu_tanh"};
  return kNames[static_cast<int>(function)];
}

std::string_view name_of(Cell cell) noexcept {
  constexpr std::string_view kNames[] = {"rnn", "gru", "lstm"};
  return kNames[static_cast<int>(cell)];
}

}  // namespace sluice

// The words for operators and numeric classes.
#include "sluice/model/attributes.h"

namespace sluice::model {

std::string_view name_of(OpKind op) noexcept {
  constexpr std::string_view kNames[kOpKindCount] = {"conv",      "conv_transpose", "dense",     "pool",     "unary",      "binary",
                                                     "affine",    "softmax",        "lrn",       "concat",   "slice",      "pad",
                                                     "resize",    "transpose",      "reshape",   "matmul",   "layer_norm", "attention",
                                                     "embedding", "plain",          "recurrent", "quantize", "dequantize"};
  return kNames[static_cast<int>(op)];
}

std::string_view name_of(NumericClass numeric) noexcept {
  constexpr std::string_view kNames[kNumericClassCount] = {"exact", "winograd4", "int8"};
  return kNames[static_cast<int>(numeric)];
}

}  // namespace sluice::model

// Operations on single values: the functions that a node applies to its results, those that join two operands, and the cells of recurrent
// nodes. The attributes of a graph (model/attributes.h) and the parameters of kernels (operators/parameters) say it with the same words,
// and kernels know no graph.
//
// The numbers are stored in model files: append only.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

/// y = f(x). `a` and `b` as the comment says.
enum class Function : std::uint8_t {
  kNone = 0,
  kRelu = 1,
  kClip = 2,       // min(max(x, a), b): Relu6 too
  kLeakyRelu = 3,  // x < 0 ? a * x : x
  kSigmoid = 4,
  kHardSigmoid = 5,  // max(0, min(1, a * x + b))
  kHardSwish = 6,    // x * max(0, min(1, x / 6 + 1 / 2))
  kSilu = 7,         // x * sigmoid(x)
  kTanh = 8,
  kExp = 9,
  kSqrt = 10,
  kErf = 11,
  kGelu = 12,  // x / 2 * (1 + erf(x / sqrt 2))
  kNeg = 13,
  kAbs = 14,
  kLog = 15,
  kReciprocal = 16,
  kElu = 17,  // x < 0 ? a * (exp(x) - 1) : x
  kSoftplus = 18,
  kFloor = 19,
  kCeil = 20,
  kGeluTanh = 21,  // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
};
inline constexpr int kFunctionCount = 22;
std::string_view name_of(Function function) noexcept;

struct Activation {
  Function function = Function::kNone;
  float a = 0.0f;
  float b = 0.0f;
  friend bool operator==(const Activation&, const Activation&) = default;
};

/// What is done to each output of a node before it is stored, in this order: + bias[c], + residual, activation.
/// Conv, ConvTranspose and Dense take all three; Pool, Binary and Affine take the activation.
struct Epilogue {
  bool has_bias = false;      // the node's second weight: f32, channels padded to whole panels with zeros
  bool has_residual = false;  // the node's last input: same shape as the output
  // How integers are added (operators/parameters/integer.h):
  bool residual_first = false;  // the residual is the addition's first operand
  bool of_i8 = false;           // operands and output are i8 in the ONNX file
  Activation activation;
  friend bool operator==(const Epilogue&, const Epilogue&) = default;
};

enum class BinaryFunction : std::uint8_t { kAdd = 0, kSub = 1, kMul = 2, kDiv = 3, kPrelu = 4, kMax = 5, kMin = 6, kPow = 7 };

enum class Cell : std::uint8_t { kRnn = 0, kGru = 1, kLstm = 2 };
std::string_view name_of(Cell cell) noexcept;

}  // namespace sluice

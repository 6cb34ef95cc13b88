// What a node computes: the operator and its attributes, as plain data.
//
// Shapes in the graph are physical: feature maps are NHWC, so "channels" is always the last axis and an axis counts physical axes.
// Every operator here is one the runtime has a kernel for; what ONNX says in several forms is one form here (`importer/rewrite`).
// To add an operator: docs/adding-an-operator.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "sluice/core/activation.h"
#include "sluice/core/shape.h"
#include "sluice/core/window.h"

namespace sluice::model {

// Words that kernels share (core/activation.h, core/window.h).
using sluice::Activation;
using sluice::BinaryFunction;
using sluice::Cell;
using sluice::Epilogue;
using sluice::Function;
using sluice::kFunctionCount;
using sluice::name_of;
using sluice::PadMode;
using PoolKind = sluice::PoolingKind;  // sluice::PoolKind is a kind of thread pool
using sluice::ResizeCoordinates;
using sluice::ResizeMode;
using sluice::ResizeRounding;
using sluice::Window;

/// The numbers are stored in model files: append only. The comment names the ONNX operators that become it.
enum class OpKind : std::uint8_t {
  kConv = 0,           // Conv (1-D as H = 1), all groups; depthwise too
  kConvTranspose = 1,  // ConvTranspose
  kDense = 2,          // Gemm, MatMul with constant weights: [..., K] x panels -> [..., N]
  kPool = 3,           // MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool
  kUnary = 4,          // Relu, LeakyRelu, Clip, Sigmoid, HardSigmoid, HardSwish, Tanh, ... alone
  kBinary = 5,         // Add, Sub, Mul, Div, PRelu (slope second) with broadcasting
  kAffine = 6,         // BatchNormalization that no convolution took: x * scale[c] + shift[c]
  kSoftmax = 7,        // Softmax over the last axis (others are transposed round)
  kLrn = 8,            // LRN over channels
  kConcat = 9,         // Concat
  kSlice = 10,         // Slice, Split (one node an output)
  kPad = 11,           // Pad
  kResize = 12,        // Resize, Upsample
  kTranspose = 13,     // Transpose
  kReshape = 14,       // Reshape, Flatten, Squeeze, Unsqueeze: the same bytes, another shape
  kMatMul = 15,        // MatMul of two activations
  kLayerNorm = 16,     // LayerNormalization over the last axis, or the nodes that make one
  kAttention = 17,     // softmax(scale * Q K^T) V for each head, as exporters write it; the scores are never stored
  kEmbedding = 18,     // Gather of rows of a constant table by indices known at run time
  kPlain = 19,         // the long tail: PlainAttributes::op says which operator of kernels/plain.h
  kRecurrent = 20,     // RNN, GRU, LSTM behind their input matrix, one direction: see RecurrentAttributes
  kQuantize = 21,      // QuantizeLinear where integers begin: f32 to u8, one scale and zero point
  kDequantize = 22,    // DequantizeLinear where they end: u8 to f32
};
inline constexpr int kOpKindCount = 23;
std::string_view name_of(OpKind op) noexcept;

/// How sums are formed; fixed at convert, a plan never leaves it.
/// kExact: each output is one chain of fused multiply-adds from 0, taps in order (ky, kx), channels rising within a tap; bias, then
/// residual, then activation follow. Thin transposed convolutions have a chain for each tap, and add these (core/transposed_sums.h).
/// kInt8: computes with u8 tensors of one scale and zero point each. Products with i8 weights go into 32-bit sums, which are exact in any
/// order and rounded once to the output's scale; docs/quantisation.md has the rule.
enum class NumericClass : std::uint8_t { kExact = 0, kWinograd4 = 1, kInt8 = 2 };
inline constexpr int kNumericClassCount = 3;
std::string_view name_of(NumericClass numeric) noexcept;

struct ConvAttributes {  // kConv, kConvTranspose
  Window window;
  std::int64_t groups = 1;
  std::int64_t in_channels = 0;   // of the whole tensor
  std::int64_t out_channels = 0;  // of the whole tensor
  /// One input and one output channel a group.
  bool depthwise() const noexcept { return groups > 1 && groups == in_channels && groups == out_channels; }
};

struct DenseAttributes {
  std::int64_t in_features = 0;   // K
  std::int64_t out_features = 0;  // N
};

struct PoolAttributes {
  PoolKind kind = PoolKind::kMax;
  Window window;                   // out_h and out_w already include the effect of ceil_mode
  bool count_include_pad = false;  // averages only: divide by the taps inside the padded image, else by those inside the image
  bool of_i8 = false;              // averages of bytes only: they are i8 in the ONNX file (operators/parameters/integer.h)
};

struct BinaryAttributes {  // numpy broadcasting of the two input shapes
  BinaryFunction function = BinaryFunction::kAdd;
};

struct SoftmaxAttributes {
  bool log = false;
};

struct LrnAttributes {
  std::int64_t size = 5;
  float alpha = 1e-4f, beta = 0.75f, bias = 1.0f;
};

struct AxisAttributes {  // kConcat: the axis
  int axis = 0;
};

struct SliceAttributes {  // out[i] = in[start + i * step], per axis; rank of the input
  std::array<std::int64_t, Shape::kMaxRank> start{};
  std::array<std::int64_t, Shape::kMaxRank> step{1, 1, 1, 1, 1, 1, 1, 1};
};

struct PadAttributes {  // negative amounts crop
  PadMode mode = PadMode::kConstant;
  float value = 0.0f;
  std::array<std::int64_t, Shape::kMaxRank> before{};
  std::array<std::int64_t, Shape::kMaxRank> after{};
};

struct ResizeAttributes {  // one scale an axis; axes that keep their extent have scale 1
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kRoundPreferFloor;
  float cubic_a = -0.75f;
  std::array<float, Shape::kMaxRank> scale{1, 1, 1, 1, 1, 1, 1, 1};
};

struct TransposeAttributes {  // out axis i is in axis perm[i]
  std::array<std::int8_t, Shape::kMaxRank> perm{0, 1, 2, 3, 4, 5, 6, 7};
};

/// (x - mean) / sqrt(variance + epsilon) * scale[c] + shift[c] over the last axis; weights: scale, shift.
struct LayerNormAttributes {
  float epsilon = 1e-5f;
};

/// Q [batch, S, heads * d], K [batch, T, heads * d], V [batch, T, heads * e] to [batch, S, heads * e]; no batch axis when rank is 2.
/// Head h has channels [h * d, (h + 1) * d) of Q and K. With `causal`, row s sees the first T - S + s + 1 keys only (S <= T).
struct AttentionAttributes {
  std::int64_t heads = 1;
  float scale = 1.0f;
  bool causal = false;
};

/// Indices of any shape, i32 or i64, to [..., features]; one weight, kPanels, with a lane for each row of the table. A negative index
/// counts from the end; one outside of the table is a fault of the run. A step's channels count rows of the table: the steps that cut a
/// table each write the output rows whose index they hold, so that each row is written once.
struct EmbeddingAttributes {
  std::int64_t table_rows = 0;
  std::int64_t features = 0;
};

/// From [T, B, gates * hidden], the products with the input matrix for all time steps, to the same shape: the state after each of them.
/// Channels of gate g are [g * hidden, (g + 1) * hidden); what a cell leaves there is
///
///     RNN   | h |              GRU  | z | r, or r * h before | h |             LSTM  | i | f | c | h |
///
/// so each value follows from its own sum, gates before it at the same time step, and the last two gates of the time step before. A step's
/// rows are whole time steps; steps that cut channels take one time step each, gates rising.
/// Inputs: gates; the first h [.., B, hidden] and the first c where they are given, else zero. Weights: kPanels [gates * hidden, hidden],
/// the bias of these sums, peepholes [3 * hidden] of i, f, c.
struct RecurrentAttributes {
  Cell cell = Cell::kLstm;
  std::int64_t hidden = 0;
  bool reverse = false;              // time falls
  bool linear_before_reset = false;  // GRU: r multiplies the finished sum
  bool input_forget = false;         // LSTM: f = 1 - i
  bool first_hidden = false;
  bool first_cell = false;
  bool peepholes = false;
  std::array<Activation, 3> functions{};  // ONNX's f, g, h

  std::int64_t gates() const noexcept { return cell == Cell::kRnn ? 1 : cell == Cell::kGru ? 3 : 4; }
};

/// kPlain: an operator of the table in kernels/plain.h, which alone knows what the arguments mean.
struct PlainAttributes {
  std::uint16_t op = 0;                 // its number there
  std::uint8_t result = 0;              // which of the ONNX node's outputs this node makes
  std::uint32_t present = 0;            // bit i: ONNX input i is there; Node::inputs holds those that are, in order
  std::vector<std::int64_t> arguments;  // for each argument its length, then its values (reals as the bits of a double)
};

namespace detail {

/// monostate: kUnary, kAffine, kReshape, kMatMul, kQuantize, kDequantize need nothing but tensors, weights and the epilogue.
using AnyAttributes = std::variant<std::monostate, ConvAttributes, DenseAttributes, PoolAttributes, BinaryAttributes, SoftmaxAttributes,
                                   LrnAttributes, AxisAttributes, SliceAttributes, PadAttributes, ResizeAttributes, TransposeAttributes,
                                   LayerNormAttributes, AttentionAttributes, EmbeddingAttributes, PlainAttributes, RecurrentAttributes>;

}  // namespace detail

/// What an operator is told beside its tensors. A class for the compiler's sake: how one of so many types is copied, moved and destroyed is
/// compiled once, and not by everybody who copies a graph.
class Attributes : public detail::AnyAttributes {
 public:
  using variant::variant;
  using variant::operator=;
  Attributes() noexcept;
  Attributes(const Attributes& other);
  Attributes(Attributes&& other) noexcept;
  Attributes& operator=(const Attributes& other);
  Attributes& operator=(Attributes&& other) noexcept;
  ~Attributes();
};

}  // namespace sluice::model

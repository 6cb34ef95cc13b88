// The graph while it is being converted: one form for each operator, ONNX axis order until the layout pass, weights still in the file.
//
// Way to here: lowering.h makes a Draft from ONNX nodes; rewrite/*.h improve it; emit.h turns it into a model::Graph and packs its weights.
//
// Invariants:
//  (D1) nodes are in an order in which inputs come before their use; a value has one maker, or is a graph input, or a constant
//  (D2) shapes are fully known and not empty; `shape` counts ONNX axes and `layout` says which of them each physical axis is
//  (D3) a dead node has no effect; nothing reads its output (passes mark, `compact` removes)
//  (D5) a value with bounded axes is made and read by kPlain nodes only
//  (D4) panel weights and biases hang on their node and are no inputs; constants of elementwise operators are values
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/core/ids.h"
#include "sluice/model/attributes.h"
#include "src/importer/constant.h"

namespace sluice::importer {

using ValueId = Id<struct ValueTag>;

/// How u8 values stand for reals: scale * (byte - zero).
struct ByteScale {
  float scale = 1.0f;
  std::int32_t zero = 0;
  friend bool operator==(const ByteScale&, const ByteScale&) = default;
};

struct Value {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;                                        // in ONNX axes
  std::optional<Constant> constant;                   // in ONNX axes, whatever the layout
  Perm layout = kIdentityPerm;                        // physical axis i is ONNX axis layout[i]
  std::uint8_t bounded = 0;                           // bit a: axis a may be shorter in a run (model::Tensor::bounded)
  std::optional<ByteScale> bytes;                     // of the class int8 (u8): its scale
  std::shared_ptr<const std::vector<ValueId>> items;  // a sequence of these; it meets no node (lower_sequence.h)
  bool absent = false;                                // an optional without a value; likewise
  ValueId storage;                                    // after the layout pass: the value whose bytes these are, if another's
  /// A flattened feature map whose features are in physical order: ONNX feature k lies at (k % stride) * inner + k / stride.
  std::int64_t scramble_inner = 1;
  std::int64_t scramble_stride = 0;
};

/// The trained values of a node with panels, as ONNX has them; how they become panels is decided when they are packed.
struct PanelValues {
  std::string name;
  Constant values;           // Conv [N, K, taps...], ConvTranspose [C, N/g, taps...], Dense, Embedding and Recurrent [N, K]
  std::vector<float> scale;  // of output channels; empty: none
  /// Dense only: packed k is ONNX k (k % k_inner) * k_inner_stride + k / k_inner (see Value::scramble_inner).
  std::int64_t k_inner = 1;
  std::int64_t k_inner_stride = 0;
  /// See PackSource::run_order.
  std::vector<std::int32_t> run_order;
  std::int64_t run = 0;
};

/// What a node of the class int8 multiplies by, where `panels` says which values: docs/quantisation.md has the rule.
struct IntegerProducts {
  std::shared_ptr<const std::vector<std::int8_t>> values;  // less their zero points; element e as QuantisedValues counts them
  std::vector<std::int32_t> bias;                          // of output channels, with the input's zero point
  std::vector<float> multipliers;                          // of output channels
};

struct Draft;

/// A subgraph that a node runs. Its inputs are those that the node's operator hands in, then what it captures.
struct DraftBody {
  std::shared_ptr<Draft> draft;       // this node's alone
  std::vector<std::size_t> captured;  // which inputs of the node they are, in the order of the draft's last inputs
};

struct DraftNode {
  std::string name;
  model::OpKind op = model::OpKind::kReshape;
  model::Attributes attributes;
  model::Epilogue epilogue;
  model::NumericClass numeric = model::NumericClass::kExact;  // kInt8, or decided by the graph that is emitted (numerics.h)
  int axis = 0;                                               // kConcat, kSoftmax, kLayerNorm: in ONNX axes
  std::vector<ValueId> inputs;
  ValueId output;
  std::optional<PanelValues> panels;
  std::vector<float> bias;                  // kConv, kConvTranspose, kDense, kRecurrent; kAffine, kLayerNorm: the shift
  std::vector<float> scale;                 // kAffine, kLayerNorm; kRecurrent: the peepholes; kSoftmax of the class int8: its table
  std::optional<IntegerProducts> integers;  // kInt8 with panels
  std::vector<std::uint8_t> table;          // kUnary of the class int8
  std::optional<ByteScale> sums;            // kInt8 with a residual: what the sums are rounded to before it is added
  std::vector<DraftBody> bodies;            // kPlain: the subgraphs that it runs
  bool sums_whole_numbers = false;          // in floats, exactly: no Winograd, and no scale in its weights
  bool dead = false;

  /// The function of a kBinary node.
  model::BinaryFunction as_binary() const noexcept { return std::get_if<model::BinaryAttributes>(&attributes)->function; }
};

struct DraftPort {
  std::string name;
  ValueId value;
  std::optional<DType> dtype = std::nullopt;  // that the ONNX file declares; values of a model are f32 whatever float that is
};

struct Draft {
  std::string name;
  std::vector<Value> values;
  std::vector<DraftNode> nodes;
  std::vector<DraftPort> inputs;
  std::vector<DraftPort> outputs;
  std::set<std::string> value_inputs;   // graph inputs whose values decide shapes: what a refusal asked for
  std::map<std::string, Shape> bounds;  // of values whose extents are known at run only, as the user states them
  bool in_body = false;                 // a subgraph: its inputs and outputs stay in ONNX's order of axes
  bool exact = false;                   // sums keep the order that ONNX's operators state
  bool fails_at_run = false;            // a branch: what can be seen to fail is left to the run that takes it, to plain operators
  std::set<std::string> used_bounds;    // of those, the ones that meant something
  std::set<std::string> wanted_bounds;  // such values without a bound: what a refusal asked for

  Value& value(ValueId id) noexcept { return values[id.index()]; }
  const Value& value(ValueId id) const noexcept { return values[id.index()]; }
  ValueId add_value(Value value) {
    values.push_back(std::move(value));
    return ValueId(values.size() - 1);
  }
};

/// The maker and the readers of each value; rebuilt by each pass, kept up by it while it edits.
struct Uses {
  static constexpr std::size_t kNone = ~std::size_t{0};
  explicit Uses(const Draft& draft);
  std::vector<std::size_t> maker;                 // node index, kNone for inputs and constants
  std::vector<std::vector<std::size_t>> readers;  // node indices, one for each mention
  std::vector<bool> is_output;                    // of the graph

  bool single_reader(ValueId value) const { return readers[value.index()].size() == 1 && !is_output[value.index()]; }
};

/// Removes dead nodes and those whose output is not read.
void compact(Draft& draft);

}  // namespace sluice::importer

// What is computed: a list of nodes in execution order over tensors and weights. The importer makes it, the model file stores it, the
// planner and the executor read it.
//
// Invariants (`validate` checks all of them; a graph from a file passes it before anybody else sees it):
//  (G1) every id is in range; nodes are in an order in which inputs come before their use; each tensor is made by one node, or is a
//       graph input, or is a constant (`weight` valid), never two of these
//  (G2) attributes agree with the operator and with the shapes of inputs, outputs and weights
//  (G3) shapes are physical (feature maps NHWC) and fully known; byte sizes fit 62 bits; only a port may have no elements: no node reads or
//       makes its tensor, and no plan gives it a place
//  (G4) a node's panel weight is weights[0], its bias weights[1]; a kPlain node has none; a residual is the last input; a norm's scale and
//       shift are both weights; a node of the class int8 that multiplies by panels has a bias of i32, the input's zero point in it, and,
//       unless its output is the i32 sums, a multiplier of f32 for each lane as weights[2]; a unary one has a table of 256 u8
//  (G5) weights and stretches satisfy the invariants of model/weight.h and lie inside the file
//  (G6) a bounded tensor, whose extents are known when it has been made (ADR 0009), is made and read by plain nodes only, or is a graph
//       output in ONNX's order of axes; it is no graph input and no constant
//  (G7) a quantised tensor or weight is of integers and has one scale, or one for each index on its axis, finite and above zero, and
//       as many zero points of its type; those of a node of the class int8 are u8 with one scale and zero point, stated as values
//  (G8) each subgraph is run by one node, of the graph or of a subgraph with a lower number, at most kMaxNested deep; what it captures is an
//       input of that node; the graph that it is (model/body.h) obeys G1 to G4 and G6, its inputs and captures being made from the start;
//       only what it captures and gives may be bounded
//  (G9) units, where there are any, are the nodes in runs, none left out; a unit's ports are exactly the tensors that cross its border
// Features that this build has no code for pass these rules first and are then refused as kUnsupported (model/features.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/core/ids.h"
#include "sluice/core/shape.h"
#include "sluice/core/tensor.h"
#include "sluice/model/attributes.h"
#include "sluice/model/code.h"
#include "sluice/model/weight.h"

namespace sluice::model {

/// How integers stand for reals: real = scale * (integer - zero point).
struct Quantisation {
  std::int32_t axis = -1;                 // of the physical shape; -1: one scale for all
  std::vector<float> scales;              // or scale_weight
  std::vector<std::int32_t> zero_points;  // or zero_weight, or none: 0 each
  WeightId scale_weight;                  // plain f32 values
  WeightId zero_weight;                   // plain values of the tensor's type
};

struct Tensor {
  std::string name;  // the ONNX value name
  DType dtype = DType::kF32;
  Shape shape;      // physical
  WeightId weight;  // valid: a constant, stored as that kPlain weight
  /// Bit a: axis a may be shorter in a run than `shape`, which is the most that it can be and what a plan makes room for.
  std::uint8_t bounded = 0;
  std::uint32_t quantisation = kNoQuantisation;  // valid: its values stand for reals, see Graph::quantisations

  Bytes bytes() const noexcept { return Bytes(static_cast<std::uint64_t>(shape.element_count()) * size_of(dtype)); }
};

struct Node {
  std::string name;
  OpKind op = OpKind::kReshape;
  NumericClass numeric = NumericClass::kExact;
  Attributes attributes;
  Epilogue epilogue;
  std::vector<TensorId> inputs;      // constants too
  std::vector<TensorId> outputs;     // one today
  std::vector<WeightId> weights;     // panel weight, bias (kAffine, kLayerNorm: scale, shift)
  std::uint32_t first_subgraph = 0;  // that it runs, in the operator's order: Graph::subgraphs[first, first + count)
  std::uint32_t subgraph_count = 0;
  /// kInt8 with a residual: what the sums are rounded to, as u8, before the residual is added.
  std::uint32_t quantisation = kNoQuantisation;

  template <class T>
  const T& as() const noexcept {
    const T* value = std::get_if<T>(&attributes);
    SLUICE_DCHECK(value != nullptr, "validate() has matched attributes and operator");
    return *value;
  }
};

/// A value that the caller gives or gets. ONNX order and physical order differ by `perm` for feature maps.
struct Port {
  std::string name;
  TensorId tensor;
  Shape onnx_shape;  // what the caller sees (NCHW)
  /// Physical axis i is ONNX axis perm[i]; identity when the orders agree.
  std::array<std::int8_t, Shape::kMaxRank> perm{0, 1, 2, 3, 4, 5, 6, 7};
  /// What the caller sees where that is f16, bf16 or f64 and the tensor f32: values are converted at the border. None: the tensor's type.
  std::optional<DType> dtype = std::nullopt;
};

/// How an image becomes the model's input; optional metadata, a default for `sluice run`.
struct Preprocess {
  bool present = false;
  std::int64_t resize_short_side = 0;  // 0: no resize
  std::int64_t crop = 0;               // 0: no crop; else centre crop to crop x crop
  bool bgr = false;
  float scale = 1.0f;                  // applied to 0..255 values, before mean and std
  std::array<float, 3> mean{0, 0, 0};  // in the model's channel order, after `scale`
  std::array<float, 3> stddev{1, 1, 1};
};

/// A tensor of the graph or subgraph around that a subgraph reads, and what it is called inside.
struct Capture {
  TensorId outer;
  TensorId inner;
};

/// What a node runs as a whole: a branch, or the body of a loop. Tensors are its own, numbered from 0; weights, quantisations and the list
/// of subgraphs are the Graph's. Inputs and outputs go by position, as the node's operator says.
struct Subgraph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;  // in execution order
  std::vector<Capture> captures;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
};

/// A named run of nodes that one processor may take over, with the tensors that cross its border. Says nothing about what is computed.
struct Unit {
  std::string name;
  std::uint32_t first_node = 0;
  std::uint32_t node_count = 0;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
};

struct Graph {
  Graph();
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Weight> weights;
  std::vector<Stretch> stretches;
  std::vector<Node> nodes;  // in execution order
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  Preprocess preprocess;
  std::vector<std::string> labels;
  std::vector<Quantisation> quantisations;
  std::vector<Subgraph> subgraphs;
  std::vector<Unit> units;       // empty: the graph is in one piece
  std::vector<Code> codes;       // tables of coded weights, which may share them
  std::vector<StretchTag> tags;  // one for each stretch where any is encrypted, else none

  const Tensor& tensor(TensorId id) const noexcept { return tensors[id.index()]; }
  const Weight& weight(WeightId id) const noexcept { return weights[id.index()]; }
  const Node& node(NodeId id) const noexcept { return nodes[id.index()]; }
  /// The element type and the bytes that the caller sees at a port.
  DType dtype_of(const Port& port) const noexcept { return port.dtype.value_or(tensor(port.tensor).dtype); }
  Bytes bytes_of(const Port& port) const noexcept {
    return Bytes(static_cast<std::uint64_t>(port.onnx_shape.element_count()) * size_of(dtype_of(port)));
  }
  std::span<const Stretch> stretches_of(const Weight& w) const noexcept {
    return std::span(stretches).subspan(w.first_stretch, w.stretch_count);
  }
};

/// The rules of the operators: what a node's attributes, tensors and weights owe each other (operators/validate.h, which stands above this
/// module). A reference without a default, so that no graph comes in without them.
using NodeRules = Status (&)(const Graph& graph, const Node& node);

/// Checks G1 to G4 and G6 to G9 (G5 too when `file_size` is not zero), then that this build has what the graph needs. The error names the
/// node, tensor or weight and the rule. O(size of the graph), G9 with a logarithm.
Status validate(const Graph& graph, Bytes file_size, NodeRules rules);

/// All weights a node reads: its own, those that its subgraphs read, each once, and those behind constant inputs. Appends to `out` in
/// reading order.
void weights_read_by(const Graph& graph, const Node& node, std::vector<WeightId>& out);

/// The first so many of them, which do not come as inputs.
std::size_t count_own_weights(const Graph& graph, const Node& node);

/// How deep subgraphs may lie in each other.
inline constexpr int kMaxNested = 8;

/// N/g of a node with panels: how its output channels are padded to panels (see `panels_of_channels`).
std::int64_t outputs_per_group(const Node& node) noexcept;

/// Rows that all steps of a node finish together before any step goes on to the next ones (a time step of a recurrent node); 0: any order.
/// A step of all channels may take several such turns.
std::int64_t rows_of_turn(const Graph& graph, const Node& node) noexcept;

/// Bytes of memory that the least piece of a weight takes that a step reads by itself (plan.h): a run of whole panels, as the file has
/// them, with the blocks of 4096 bytes round it. A weight without panels comes whole.
Bytes least_piece(const Graph& graph, const Weight& weight) noexcept;
/// The same for a piece of so many bytes, wherever in the file it lies.
constexpr Bytes piece_region(Bytes bytes) noexcept { return Bytes((bytes.count() + 4095) / 4096 * 4096 + 4096); }

/// Products in each sum of a node that adds them with the input feature outermost, so that its sums may be cut there (plan.h): dense layers
/// and 1x1 convolutions in one group, of the class `exact`, over f32 panels. 0: any other node.
std::int64_t reduction_of(const Graph& graph, const Node& node) noexcept;

/// How many channels the steps of a node share out: its output's, or the rows of an embedding's table.
std::int64_t step_channels(const Graph& graph, const Node& node) noexcept;

}  // namespace sluice::model

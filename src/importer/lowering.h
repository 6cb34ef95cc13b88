// ONNX nodes to Draft nodes: the one place that knows what ONNX operators mean, in all their forms (opsets 7 to 22).
//
// A single walk over the nodes: what is constant is folded (fold.h), what is left becomes Draft nodes through one small function for each
// operator (lower_*.cc, listed in lowering_table.cc). As every input's shape is known when its reader is reached, shape inference
// is part of the walk. A function that cannot take its node refuses; the walk notes the problem and goes on, skipping whatever depends on
// the failed node, so that all problems of a file are reported together.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sluice/importer/importer.h"
#include "src/importer/draft.h"
#include "src/importer/onnx_graph.h"
#include "src/importer/refusal.h"

namespace sluice::importer {

/// What an operator's function works with: one ONNX node, its inputs resolved, and the Draft that grows.
class NodeContext {
 public:
  NodeContext(Draft& draft, const OnnxNode& node, int opset, std::vector<ValueId> inputs, std::string name);

  const OnnxNode& node() const noexcept { return node_; }
  int opset() const noexcept { return opset_; }
  const std::string& name() const noexcept { return name_; }

  // Inputs. An index past the end or an empty name is an absent optional input.
  std::size_t input_count() const noexcept { return inputs_.size(); }
  bool has_input(std::size_t index) const noexcept { return index < inputs_.size() && inputs_[index].valid(); }
  /// Where it is given; else an invalid id.
  ValueId optional_input(std::size_t index) const { return has_input(index) ? input(index) : ValueId(); }
  ValueId input(std::size_t index) const;
  const Shape& shape(ValueId value) const noexcept { return draft_.value(value).shape; }
  const Shape& input_shape(std::size_t index) const { return shape(input(index)); }
  const Constant* constant(ValueId value) const noexcept;
  /// Are some of its extents known at run only?
  bool bounded(ValueId value) const noexcept { return draft_.value(value).bounded != 0; }
  const Constant* input_constant(std::size_t index) const { return constant(input(index)); }
  /// The input as a constant; refuses, with `what` it is for, when it is computed at run time.
  const Constant& require_constant(std::size_t index, const char* what) const;
  /// Notes the graph inputs that `value` is computed from: bound to values (ConvertOptions::values) they would make it constant.
  void note_value_inputs(ValueId value) const;
  std::vector<std::int64_t> constant_integers(std::size_t index, const char* what) const;
  /// The type a value has when the model runs: all reals are f32.
  DType run_time_type(ValueId value) const noexcept;
  /// Refuses a run-time input that is not float.
  ValueId float_input(std::size_t index) const;

  // Attributes. A value of another type than the operator says is refused.
  const OnnxAttribute* attribute(std::string_view name) const noexcept;
  bool has(std::string_view name) const noexcept { return attribute(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  float real(std::string_view name, float otherwise) const;
  std::string_view string(std::string_view name, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  std::vector<std::string_view> strings(std::string_view name) const;
  /// An axis counted from the end when negative; refused outside the rank.
  int axis(std::int64_t value, int rank) const;

  // Results.
  std::size_t output_count() const noexcept { return outputs_.size(); }
  bool wants_output(std::size_t index) const noexcept { return index < node_.outputs.size() && !node_.outputs[index].empty(); }
  void set_output(std::size_t index, ValueId value);
  const std::vector<ValueId>& outputs() const noexcept { return outputs_; }
  void forget_outputs() { outputs_.assign(outputs_.size(), ValueId()); }

  /// Adds a node with one new output of `shape` and returns that output.
  ValueId add(model::OpKind op, std::vector<ValueId> inputs, const Shape& shape, model::Attributes attributes = {});
  DraftNode& last_node() noexcept { return draft_.nodes.back(); }
  ValueId add_constant(Constant constant);
  /// The one value that a tensor without elements can have.
  ValueId add_empty(DType dtype, const Shape& shape);
  ValueId add_unary(ValueId x, model::Activation activation);
  ValueId add_binary(model::BinaryFunction function, ValueId a, ValueId b);
  /// a + b, or `a` where b is not given.
  ValueId add_sum(ValueId a, ValueId b) { return b.valid() ? add_binary(model::BinaryFunction::kAdd, a, b) : a; }
  /// The same values in another shape: a view of a constant, the value itself when the shape is its own, else a kReshape node.
  ValueId add_reshape(ValueId x, const Shape& shape);
  ValueId add_transpose(ValueId x, const Perm& perm);
  /// Places [first, first + extent) of an axis.
  ValueId add_range(ValueId x, int axis, std::int64_t first, std::int64_t extent);
  /// One place of an axis, with the axis gone.
  ValueId add_row(ValueId x, int axis, std::int64_t place);
  /// Values of one shape and type, one after the other along a new axis.
  ValueId add_stack(const std::vector<ValueId>& parts, int axis);
  /// A checked shape of a run-time value: refuses negative, overflowing and empty ones.
  Shape make_shape(std::span<const std::int64_t> dims) const;

  Draft& draft() noexcept { return draft_; }
  const Draft& draft() const noexcept { return draft_; }

  [[noreturn]] void refuse(const std::string& message) const { refuse_unsupported(message); }
  [[noreturn]] void malformed(const std::string& message) const { refuse_malformed(message); }

 private:
  std::string unique_name();

  Draft& draft_;
  const OnnxNode& node_;
  int opset_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::string name_;
  int made_ = 0;
};

/// A body lowered to a draft of its own, for a node that runs it (lower_control.h).
struct ApartBody {
  Draft draft;                    // inputs: those given, then the captured ones
  std::vector<ValueId> outputs;   // of `draft`
  std::vector<ValueId> captured;  // what it reads from outside, as values of the draft outside
  std::string problem;            // why it could not be lowered
};

/// Lowers a body in place: its nodes become nodes of the draft, its inputs are these values. Invalid ids among the results: a node of the
/// body has a problem, which has been reported.
class BodyLowering {
 public:
  virtual std::vector<ValueId> lower_body(const OnnxGraph& body, const std::vector<ValueId>& inputs) = 0;

  /// Whether `lower`, which lowers bodies in place, said so and met no problem; else what it made and reported is forgotten.
  virtual bool try_in_place(const std::function<bool()>& lower) = 0;

  /// Lowers another ONNX operator on values of `c`'s draft, as of operator set 13, and gives its `results`.
  virtual std::vector<ValueId> lower_as(NodeContext& c, std::string_view op, std::vector<ValueId> inputs,
                                        std::vector<OnnxAttribute> attributes, std::size_t results) = 0;

  /// Lowers a body to a draft of its own; `inputs` have type and shape. False: `out.problem` says why not.
  virtual bool lower_apart(const OnnxGraph& body, const std::vector<Value>& inputs, ApartBody& out) = 0;

 protected:
  ~BodyLowering() = default;
};

/// If, Loop and Scan (lower_control.cc): what runs is decided here, at convert.
void lower_control(NodeContext& c, BodyLowering& bodies);

using LowerFunction = void (*)(NodeContext&);

struct OperatorEntry {
  std::string_view op_type;
  LowerFunction lower;
  LowerFunction otherwise = nullptr;  // takes what `lower` refuses as unsupported; none: the plain operator of that name, if there is one
  bool any_extents = false;           // `lower` takes inputs whose extents are known at run only
};
/// All operators that `lower` takes, sorted by name. What folds only (Shape, Range, ...) stands in `fold.h`.
std::span<const OperatorEntry> operator_table() noexcept;

/// Operators of other domains, by their full names, and deprecated ones of ONNX.
std::span<const OperatorEntry> contrib_table() noexcept;

/// MatMul: a dense layer where `b` is a constant matrix.
ValueId add_product(NodeContext& c, ValueId a, ValueId b);
/// One of two run-time values of two axes at least, or of one and a constant that no panel takes.
ValueId add_matmul(NodeContext& c, ValueId a, ValueId b);

/// Rows of a constant table, along its first axis, by indices known at run time; `table` has the values, `name` its initialiser.
ValueId add_embedding(NodeContext& c, const Constant& table, const std::string& name, ValueId indices);

/// A convolution of the node's window and groups, over another input and weight than the node's own.
ValueId add_conv(NodeContext& c, ValueId x, const Constant& weight, const std::string& name);

/// QLinearConv, QLinearMatMul and QGemm as nodes that become integer arithmetic (lower_qlinear.cc). False: not of a form that stays exact.
bool lower_integer_conv(NodeContext& c);
bool lower_whole_conv(NodeContext& c);
bool lower_integer_matmul(NodeContext& c);
bool lower_integer_gemm(NodeContext& c);

/// The convolution that was made last sums whole numbers: its class stays `exact`.
void keep_exact(NodeContext& c);

/// Is the weight at `at` of bytes that stay bytes less their constant zero points, and its sums 32 bits? Channels are places of an axis.
bool bytes_fit(const NodeContext& c, std::size_t at, std::size_t zero_at, int channels);
/// Sums of products of bytes whose zero points come at run time (lower_run_time.cc). Nothing: not of a form that stays exact.
std::optional<ValueId> run_time_matrix_sums(NodeContext& c, std::size_t x_at, std::size_t x_zero, std::size_t w_at, std::size_t w_zero);
std::optional<ValueId> run_time_image_sums(NodeContext& c, std::size_t x_at, std::size_t x_zero, std::size_t w_at, std::size_t w_zero);

/// The shape that numpy broadcasting gives; refuses shapes that do not fit.
Shape broadcast_shape(const Shape& a, const Shape& b);

/// Lowers `onnx` to `draft`. Problems are appended; the draft is whole only when there are none.
void lower(const OnnxGraph& onnx, const ConvertOptions& options, Draft& draft, std::vector<Problem>& problems);

// One function an operator, by theme; see lowering_table.cc.
void lower_conv(NodeContext& c);
void lower_conv_transpose(NodeContext& c);
void lower_max_pool(NodeContext& c);
void lower_average_pool(NodeContext& c);
void lower_global_average_pool(NodeContext& c);
void lower_global_max_pool(NodeContext& c);
void lower_reduce_mean(NodeContext& c);
void lower_contrib_attention(NodeContext& c);
void lower_qattention(NodeContext& c);
void lower_embed_layer_norm(NodeContext& c);
void lower_qembed_layer_norm(NodeContext& c);
void lower_contrib_rotary(NodeContext& c);
void lower_group_query_attention(NodeContext& c);
void lower_multi_head_attention(NodeContext& c);
void lower_matmul_n_bits(NodeContext& c);
void lower_matmul_integer_to_float(NodeContext& c);
void lower_dynamic_quantize_matmul(NodeContext& c);
void lower_qgemm(NodeContext& c);
void lower_qlinear_add(NodeContext& c);
void lower_qlinear_mul(NodeContext& c);
void lower_qlinear_sigmoid(NodeContext& c);
void lower_qlinear_leaky_relu(NodeContext& c);
void lower_qlinear_average_pool(NodeContext& c);
void lower_qlinear_global_average_pool(NodeContext& c);
void lower_qlinear_softmax(NodeContext& c);
void lower_qlinear_reduce_mean(NodeContext& c);
void lower_contrib_qlinear_conv(NodeContext& c);
void lower_qlinear_concat(NodeContext& c);
void lower_qlinear_where(NodeContext& c);
void lower_contrib_linear(NodeContext& c);
void lower_dynamic_quantize_lstm(NodeContext& c);
void lower_gather_block_quantized(NodeContext& c);
void lower_conv_integer(NodeContext& c);
void lower_qlinear_conv(NodeContext& c);
void lower_matmul_integer(NodeContext& c);
void lower_qlinear_matmul(NodeContext& c);
void lower_gemm(NodeContext& c);
void lower_gemm_plain(NodeContext& c);
void lower_matmul(NodeContext& c);
void lower_batch_normalization(NodeContext& c);
void lower_lrn(NodeContext& c);
void lower_layer_normalization(NodeContext& c);
void lower_embedding(NodeContext& c);
void lower_softmax(NodeContext& c);
void lower_log_softmax(NodeContext& c);
void lower_clip(NodeContext& c);
void lower_unary(NodeContext& c);
void lower_binary(NodeContext& c);
void lower_variadic(NodeContext& c);
void lower_mean(NodeContext& c);
void lower_pow(NodeContext& c);
void lower_prelu(NodeContext& c);
void lower_where(NodeContext& c);
void lower_mod(NodeContext& c);
void lower_bit_shift(NodeContext& c);
void lower_cast_like(NodeContext& c);
void lower_identity(NodeContext& c);
void lower_dropout(NodeContext& c);
void lower_cast(NodeContext& c);
void lower_concat(NodeContext& c);
void lower_split(NodeContext& c);
void lower_slice(NodeContext& c);
void lower_gather(NodeContext& c);
void lower_pad(NodeContext& c);
void lower_resize(NodeContext& c);
void lower_resize_plain(NodeContext& c);
void lower_recurrent(NodeContext& c);
void lower_einsum(NodeContext& c);
void lower_flatten(NodeContext& c);
void lower_reshape(NodeContext& c);
void lower_squeeze(NodeContext& c);
void lower_unsqueeze(NodeContext& c);
void lower_transpose(NodeContext& c);
void lower_expand(NodeContext& c);
void lower_constant_of_shape(NodeContext& c);
void lower_depth_to_space(NodeContext& c);
void lower_space_to_depth(NodeContext& c);

}  // namespace sluice::importer

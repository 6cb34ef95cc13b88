// What the rules of several operators have in common (G2, G4). A family's rules ask these in the order in which a mistake is to be named.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/core/error.h"
#include "sluice/operators/definition.h"

namespace sluice::operators {

using namespace model;  // the words that every rule is made of

// No image is a hundredth of this; products of two stay inside 63 bits.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 31;

constexpr bool within(std::int64_t value, std::int64_t least, std::int64_t most) noexcept { return value >= least && value <= most; }

/// The index of an alternative of model::Attributes.
template <class T>
inline constexpr std::size_t kAlternative = [] {
  std::size_t index = 0;
  [&]<class... Ts>(const std::variant<Ts...>*) {
    bool found = false;
    ((found = found || std::is_same_v<T, Ts>, index += found ? 0 : 1), ...);
  }(static_cast<const Attributes*>(nullptr));
  return index;
}();

class NodeCheck {
 public:
  NodeCheck(const Graph& graph, const Node& node) noexcept : graph_(graph), node_(node) {}

  const Tensor& input(std::size_t i) const noexcept { return graph_.tensor(node_.inputs[i]); }
  const Tensor& output() const noexcept { return graph_.tensor(node_.outputs[0]); }
  /// The alternative that the operator demands, or null.
  template <class T>
  const T* attributes() const noexcept {
    return std::get_if<T>(&node_.attributes);
  }

  tl::unexpected<Error> invalid(const char* reason) const { return fail(ErrorCode::kInvalidModel, node_.name, reason); }
  tl::unexpected<Error> invalid(const char* reason, std::uint64_t needed, std::uint64_t found) const {
    return fail(make_error(ErrorCode::kInvalidModel, node_.name, reason, needed, found));
  }

  /// The epilogue's parts are those that the operator takes.
  Status epilogue() const;
  /// Counts of inputs (without a residual) and weights.
  Status operands(std::size_t inputs, std::size_t weights) const;
  /// Nodes that compute are f32.
  Status f32() const;
  /// The node is of the class int8.
  bool integer() const noexcept { return node_.numeric == NumericClass::kInt8; }
  bool is_integer(const Tensor& tensor) const noexcept;
  /// u8 tensors of one scale and zero point each, which are stated as values (G7): all inputs, and the output unless `output_too` is false.
  Status integers(bool output_too = true) const;
  /// f32, or of the class int8 u8.
  Status f32_or_integers() const { return integer() ? integers() : f32(); }
  /// Nodes that move values keep their type, and their scale unless the output has none.
  Status one_dtype() const;
  Status residual() const;
  /// The output has the shape that inputs and attributes give it.
  Status inferred(const char* otherwise) const;
  /// Products with panels: inputs and output of f32; or, of the class int8, u8 to u8, f32 or i32 sums. Counts of inputs and weights.
  Status products() const;
  /// (G4) weights[0] has these panels; weights[1], if there is a bias, a value for each lane, and so the multipliers of the class int8.
  Status panels(WeightLayout layout, std::int64_t outputs, std::int64_t per_group, std::int64_t taps, std::int64_t depth) const;
  /// Biases, scales, shifts, multipliers, tables: `count` values in whole panels.
  Status plain_values(WeightId id, DType dtype, std::int64_t count) const;
  Status plain_f32(WeightId id, std::int64_t floats) const { return plain_values(id, DType::kF32, floats); }

  /// One input of the output's shape and type f32.
  template <class Alternative>
  Status same_shape(std::size_t weights) const {
    if (attributes<Alternative>() == nullptr) return invalid("G2: the attributes are not the operator's");
    SLUICE_RETURN_IF_ERROR(operands(1, weights));
    SLUICE_RETURN_IF_ERROR(f32());
    return inferred("G2: input and output differ in shape");
  }
  /// One input of the output's type and rank, no weights.
  Status moved() const;

  const Graph& graph() const noexcept { return graph_; }
  const Node& node() const noexcept { return node_; }

 private:
  Status integer_activation() const;
  /// Checks a node of the class int8 that has, after the values, inputs for a zero point and perhaps a scale.
  Status run_time_products() const;

  const Graph& graph_;
  const Node& node_;
};

// ---- what several definitions answer

inline const Shape& shape_of_input(const Graph& graph, const Node& node, std::size_t i = 0) noexcept {
  return graph.tensor(node.inputs[i]).shape;
}
inline const Shape& shape_of_output(const Graph& graph, const Node& node) noexcept { return graph.tensor(node.outputs[0]).shape; }

/// The output is shaped as the first input.
std::optional<Shape> infer_same(const Graph& graph, const Node& node) noexcept;
std::optional<Shape> infer_nothing(const Graph& graph, const Node& node) noexcept;
AxisRelations relate_same(const Graph& graph, const Node& node, std::size_t input) noexcept;
/// Every axis but the last, which is reduced.
AxisRelations relate_along_last(const Graph& graph, const Node& node, std::size_t input) noexcept;
/// weights[0] in panels, a lane for each channel of the output, summed over depth and taps; then plain weights with a value a channel.
AxisRelations relate_panels(const Graph& graph, const Node& node, std::size_t weight) noexcept;
/// A weight of which the input's values say what is read.
AxisRelations relate_looked_up(const Graph& graph, const Node& node, std::size_t weight) noexcept;
/// Plain weights with a value for each channel of the output.
AxisRelations relate_channels(const Graph& graph, const Node& node, std::size_t weight) noexcept;

/// Numpy: axes are counted from the last, an extent of 1 is repeated. Of axes before the last `from_last`; nothing where they do not fit.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b, int from_last = 0) noexcept;
/// The extent of the axis that is `from_last` before the last; 1 where there is none.
constexpr std::int64_t extent_from_last(const Shape& shape, int from_last) noexcept {
  const int axis = shape.rank() - 1 - from_last;
  return axis < 0 ? 1 : shape[axis];
}
/// The inputs broadcast to the output, on axes at least `from_last` before the last.
Status check_broadcast(const NodeCheck& check, int from_last);
/// How an axis of an input of numpy's broadcasting is read.
AxisRelation relate_broadcast(const Shape& in, const Shape& out, int axis) noexcept;

/// Each sum of products with weights[0] is one chain of additions, k outermost where there is one tap. Not where scales are applied to sums
/// of groups, nor of integers, whose kernels add four products at a time.
inline bool adds_in_one_chain(const Graph& graph, const Node& node) noexcept {
  return node.numeric != NumericClass::kInt8 && !is_narrow(graph.weight(node.weights[0]).panel_layout);
}

/// Multiply-accumulates where each output is a sum of so many products.
inline std::uint64_t macs_of_outputs(const Graph& graph, const Node& node, std::int64_t each) noexcept {
  return static_cast<std::uint64_t>(shape_of_output(graph, node).element_count()) * static_cast<std::uint64_t>(each);
}

}  // namespace sluice::operators

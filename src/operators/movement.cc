// Operators that move elements and compute nothing.
#include "src/model/permutation.h"
#include "src/operators/families.h"
#include "src/operators/node_check.h"

namespace sluice::operators {
namespace {

/// Output position o is input position start + o * step, of those that there are.
AxisRelation moved_by(int axis, std::int64_t start, std::int64_t step) noexcept {
  return {.kind = AxisKind::kWindow, .output_axis = static_cast<std::int8_t>(axis), .stride = step, .pad_before = -start};
}

// ---- concat

Status validate_concat(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<AxisAttributes>();
  if (a == nullptr || node.inputs.empty()) return check.invalid("G2: a concatenation has an axis and inputs");
  SLUICE_RETURN_IF_ERROR(check.operands(node.inputs.size(), 0));
  SLUICE_RETURN_IF_ERROR(check.one_dtype());
  const Shape& out = check.output().shape;
  if (a->axis < 0 || a->axis >= out.rank()) return check.invalid("G2: the axis is none of the output's");
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Shape& in = check.input(i).shape;
    if (in.rank() != out.rank()) return check.invalid("G2: an input has another rank than the output");
    for (int axis = 0; axis < out.rank(); ++axis) {
      if (axis != a->axis && in[axis] != out[axis]) return check.invalid("G2: the inputs differ beside the axis");
    }
    sum += in[a->axis];  // at most 2^20 inputs of 2^40
  }
  if (sum != out[a->axis]) return check.invalid("G2: the inputs' extents do not add up to the output's", sum, out[a->axis]);
  return {};
}

std::optional<Shape> infer_concat(const Graph& graph, const Node& node) noexcept {
  const int join = node.as<AxisAttributes>().axis;
  Shape out = shape_of_input(graph, node);
  if (join < 0 || join >= out.rank()) return std::nullopt;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const Shape& in = shape_of_input(graph, node, i);
    if (in.rank() != out.rank()) return std::nullopt;
    for (int axis = 0; axis < out.rank(); ++axis)
      if (axis != join && in[axis] != out[axis]) return std::nullopt;
    out[join] += in[join];
  }
  return out;
}

AxisRelations relate_concat(const Graph& graph, const Node& node, std::size_t input) noexcept {
  AxisRelations axes = relate_same(graph, node, input);
  if (node.inputs.size() == 1) return axes;
  const int join = node.as<AxisAttributes>().axis;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < input; ++i) before += shape_of_input(graph, node, i)[join];
  axes[join] = moved_by(join, -before, 1);
  return axes;
}

// ---- slice

Status validate_slice(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<SliceAttributes>();
  if (a == nullptr) return check.invalid("G2: a slice has its attributes");
  SLUICE_RETURN_IF_ERROR(check.moved());
  const Shape& in = check.input(0).shape;
  for (int axis = 0; axis < in.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    std::int64_t last = 0;
    if (a->step[i] == 0 || __builtin_mul_overflow(check.output().shape[axis] - 1, a->step[i], &last) ||
        __builtin_add_overflow(a->start[i], last, &last) || !within(a->start[i], 0, in[axis] - 1) || !within(last, 0, in[axis] - 1)) {
      return check.invalid("G2: a slice reads beside its input");
    }
  }
  return {};
}

AxisRelations relate_slice(const Graph& graph, const Node& node, std::size_t input) noexcept {
  const auto& a = node.as<SliceAttributes>();
  const Shape &in = shape_of_input(graph, node), &out = shape_of_output(graph, node);
  AxisRelations axes = relate_same(graph, node, input);
  for (int axis = 0; axis < axes.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (out[axis] == 1)
      axes[axis] = moved_by(axis, a.start[i], 1);  // whatever the step is
    else if (in[axis] != out[axis] || a.start[i] != 0)
      axes[axis] = moved_by(axis, a.start[i], a.step[i]);
  }
  return axes;
}

// ---- pad

Status validate_pad(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<PadAttributes>();
  if (a == nullptr) return check.invalid("G2: a pad has its attributes");
  SLUICE_RETURN_IF_ERROR(check.moved());
  const Shape& in = check.input(0).shape;
  for (int axis = 0; axis < in.rank(); ++axis) {
    const std::int64_t before = a->before[static_cast<std::size_t>(axis)];
    const std::int64_t after = a->after[static_cast<std::size_t>(axis)];
    if (!within(before, -kMaxExtent, kMaxExtent) || !within(after, -kMaxExtent, kMaxExtent))
      return check.invalid("G2: a padding is out of range");
    if (in[axis] + before + after != check.output().shape[axis])
      return check.invalid("G2: the output's extent does not follow from the padding");
    if (a->mode == PadMode::kReflect && (before >= in[axis] || after >= in[axis]))
      return check.invalid("G2: a padding reflects more than there is");
  }
  return {};
}

std::optional<Shape> infer_pad(const Graph& graph, const Node& node) noexcept {
  const auto& a = node.as<PadAttributes>();
  Shape out = shape_of_input(graph, node);
  for (int axis = 0; axis < out.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (__builtin_add_overflow(out[axis], a.before[i], &out[axis]) || __builtin_add_overflow(out[axis], a.after[i], &out[axis]) ||
        out[axis] < 0)
      return std::nullopt;
  }
  return out;
}

AxisRelations relate_pad(const Graph& graph, const Node& node, std::size_t input) noexcept {
  const auto& a = node.as<PadAttributes>();
  AxisRelations axes = relate_same(graph, node, input);
  for (int axis = 0; axis < axes.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (a.before[i] == 0 && a.after[i] == 0) continue;
    // Elements that a mirror or an edge repeats are not in the window that the output position would see.
    const bool repeats = a.mode != PadMode::kConstant && (a.before[i] > 0 || a.after[i] > 0);
    axes[axis] = repeats ? any() : moved_by(axis, -a.before[i], 1);
  }
  return axes;
}

// ---- transpose

Status validate_transpose(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<TransposeAttributes>();
  if (a == nullptr) return check.invalid("G2: a transposition has its attributes");
  SLUICE_RETURN_IF_ERROR(check.moved());
  if (!is_permutation(a->perm, check.input(0).shape.rank())) return check.invalid("G2: the order of axes is not a permutation");
  return check.inferred("G2: the output is not the input, transposed");
}

std::optional<Shape> infer_transpose(const Graph& graph, const Node& node) noexcept {
  const auto& perm = node.as<TransposeAttributes>().perm;
  const Shape& in = shape_of_input(graph, node);
  if (!is_permutation(perm, in.rank())) return std::nullopt;
  Shape out = in;
  for (int axis = 0; axis < in.rank(); ++axis) out[axis] = in[perm[static_cast<std::size_t>(axis)]];
  return out;
}

AxisRelations relate_transpose(const Graph& graph, const Node& node, std::size_t input) noexcept {
  const auto& perm = node.as<TransposeAttributes>().perm;
  AxisRelations axes(shape_of_input(graph, node, input).rank());
  for (int axis = 0; axis < axes.rank(); ++axis) axes[perm[static_cast<std::size_t>(axis)]] = same(axis);
  return axes;
}

// ---- reshape

Status validate_reshape(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  if (check.attributes<std::monostate>() == nullptr) return check.invalid("G2: a reshape has no attributes");
  SLUICE_RETURN_IF_ERROR(check.operands(1, 0));
  SLUICE_RETURN_IF_ERROR(check.one_dtype());
  if (check.input(0).shape.element_count() != check.output().shape.element_count())
    return check.invalid("G2: a reshape changes the number of elements");
  return {};
}

/// Axes of input and output fall into groups of as many elements each, the shortest that there are. Of a group of one axis each, these are
/// the same. Else the group's outermost input axis goes with its outermost output axis in blocks, where one divides the other:
///
///     [6, 4] -> [24]    row r holds outputs [4 r, 4 r + 4)         blocks {4, 1}; columns may be any
///     [24] -> [6, 4]    row r holds inputs [4 r, 4 r + 4)          blocks {1, 4}
AxisRelations relate_reshape(const Graph& graph, const Node& node, std::size_t) noexcept {
  const Shape &in = shape_of_input(graph, node), &out = shape_of_output(graph, node);
  AxisRelations axes(in.rank());
  int i = 0, o = 0;
  while (i < in.rank() && o < out.rank()) {
    if ((in[i] == 1) != (out[o] == 1)) {  // an axis of one position belongs to no group
      ++(in[i] == 1 ? i : o);
      continue;
    }
    const int first_in = i, first_out = o;
    std::int64_t in_count = in[i++], out_count = out[o++];
    while (in_count != out_count) {
      if (in_count < out_count) {
        in_count *= in[i++];
      } else {
        out_count *= out[o++];
      }
    }
    const std::int64_t in_inner = in_count / in[first_in], out_inner = out_count / out[first_out];
    if (in[first_in] == out[first_out]) {
      axes[first_in] = same(first_out);
    } else if (in_inner % out_inner == 0) {
      axes[first_in] = blocks(first_out, in_inner / out_inner, 1);
    } else if (out_inner % in_inner == 0) {
      axes[first_in] = blocks(first_out, 1, out_inner / in_inner);
    }
  }
  return axes;
}

}  // namespace

constexpr OperatorDefinition kConcat = {
    .kind = OpKind::kConcat,
    .attributes = kAlternative<AxisAttributes>,
    .moves = true,
    .validate = validate_concat,
    .infer = infer_concat,
    .relate_input = relate_concat,
};

constexpr OperatorDefinition kSlice = {
    .kind = OpKind::kSlice,
    .attributes = kAlternative<SliceAttributes>,
    .moves = true,
    .validate = validate_slice,
    .infer = infer_nothing,  // the output says how many it takes
    .relate_input = relate_slice,
};

constexpr OperatorDefinition kPad = {
    .kind = OpKind::kPad,
    .attributes = kAlternative<PadAttributes>,
    .moves = true,
    .validate = validate_pad,
    .infer = infer_pad,
    .relate_input = relate_pad,
};

constexpr OperatorDefinition kTranspose = {
    .kind = OpKind::kTranspose,
    .attributes = kAlternative<TransposeAttributes>,
    .moves = true,
    .validate = validate_transpose,
    .infer = infer_transpose,
    .relate_input = relate_transpose,
};

constexpr OperatorDefinition kReshape = {
    .kind = OpKind::kReshape,
    .attributes = kAlternative<std::monostate>,
    .moves = true,
    .validate = validate_reshape,
    .infer = infer_nothing,  // the output says what it becomes
    .relate_input = relate_reshape,
};

}  // namespace sluice::operators

// Operators that move values without computing: reshapes, transposes, slices, concatenations, padding.
#include <algorithm>

#include "src/importer/fold_arithmetic.h"
#include "src/importer/lowering.h"
#include "src/importer/slice_spec.h"

namespace sluice::importer {
namespace {

using model::OpKind;

/// Axes listed in an input (since opset 13) or in attribute `axes`.
std::vector<std::int64_t> read_axes(const NodeContext& c, std::size_t input) {
  if (c.has_input(input)) return c.constant_integers(input, "the list of axes");
  return c.integers("axes");
}

ValueId add_slice(NodeContext& c, ValueId x, const SliceSpec& spec) {
  model::SliceAttributes attributes;
  const Shape in = c.shape(x);
  Shape out = in;
  bool whole = true;
  for (int axis = 0; axis < in.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    attributes.start[a] = spec.start[a];
    attributes.step[a] = spec.step[a];
    out[axis] = spec.extent[a];
    whole = whole && spec.step[a] == 1 && spec.extent[a] == in[axis];
  }
  if (whole) return x;
  if (out.element_count() == 0) return c.add_empty(c.run_time_type(x), out);
  if (const Constant* constant = c.constant(x)) return c.add_constant(sliced(*constant, spec));
  return c.add(OpKind::kSlice, {x}, out, attributes);
}

}  // namespace

ValueId NodeContext::add_range(ValueId x, int axis, std::int64_t first, std::int64_t extent) {
  SliceSpec spec = SliceSpec::whole(shape(x));
  spec.start[static_cast<std::size_t>(axis)] = first;
  spec.extent[static_cast<std::size_t>(axis)] = extent;
  return add_slice(*this, x, spec);
}

ValueId NodeContext::add_row(ValueId x, int axis, std::int64_t place) {
  const Shape in = shape(x);
  if (axis >= in.rank() || place >= in[axis])
    malformed("a value of shape " + in.to_string() + " has no place " + std::to_string(place) + " of axis " + std::to_string(axis));
  std::vector<std::int64_t> dims(in.dims().begin(), in.dims().end());
  dims.erase(dims.begin() + axis);
  return add_reshape(add_range(x, axis, place, 1), make_shape(dims));
}

ValueId NodeContext::add_stack(const std::vector<ValueId>& parts, int axis) {
  const Shape in = shape(parts[0]);
  std::vector<std::int64_t> dims(in.dims().begin(), in.dims().end());
  dims.insert(dims.begin() + axis, 1);
  const Shape row = make_shape(dims);
  std::vector<ValueId> rows;
  for (const ValueId part : parts) {
    if (!(shape(part) == in) || run_time_type(part) != run_time_type(parts[0])) refuse("its iterations give different shapes or types");
    rows.push_back(add_reshape(part, row));
  }
  if (rows.size() == 1) return rows[0];
  Shape out = row;
  out[axis] = static_cast<std::int64_t>(rows.size());
  if (std::all_of(rows.begin(), rows.end(), [&](ValueId r) { return constant(r) != nullptr; }) &&
      out.element_count() <= kMaxFoldedElements) {
    std::vector<Constant> values;
    for (const ValueId r : rows) values.push_back(*constant(r));
    return add_constant(concatenated(values, axis, make_shape(out.dims())));
  }
  const ValueId y = add(OpKind::kConcat, rows, out, model::AxisAttributes{axis});
  last_node().axis = axis;
  return y;
}

void lower_concat(NodeContext& c) {
  if (c.input_count() == 0) c.malformed("nothing to concatenate");
  std::vector<ValueId> inputs;
  Shape out = c.input_shape(0);
  const int axis = c.axis(c.integer("axis", c.opset() < 4 ? 1 : 0), out.rank());
  std::int64_t extent = 0;
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    const ValueId x = c.input(i);
    const Shape shape = c.shape(x);
    if (shape.rank() != out.rank()) c.malformed("inputs of different rank");
    if (c.run_time_type(x) != c.run_time_type(c.input(0))) c.malformed("inputs of different type");
    for (int a = 0; a < out.rank(); ++a)
      if (a != axis && shape[a] != out[a]) c.malformed("shapes " + out.to_string() + " and " + shape.to_string() + " do not concatenate");
    if (__builtin_add_overflow(extent, shape[axis], &extent)) c.malformed("the output's shape overflows");
    if (shape[axis] > 0) inputs.push_back(x);
  }
  out[axis] = extent;
  if (inputs.empty()) return c.set_output(0, c.add_empty(c.run_time_type(c.input(0)), out));
  if (inputs.size() == 1) return c.set_output(0, inputs[0]);
  c.set_output(0, c.add(OpKind::kConcat, inputs, out, model::AxisAttributes{axis}));
  c.last_node().axis = axis;
}

void lower_split(NodeContext& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.shape(x);
  const int axis = c.axis(c.integer("axis", 0), shape.rank());
  const std::vector<std::int64_t> parts = split_extents(c, shape[axis]);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    SliceSpec spec = SliceSpec::whole(shape);
    spec.start[static_cast<std::size_t>(axis)] = start;
    spec.extent[static_cast<std::size_t>(axis)] = parts[i];
    start += parts[i];
    if (c.wants_output(i)) {
      c.set_output(i, add_slice(c, x, spec));
    }
  }
}

void lower_slice(NodeContext& c) {
  const ValueId x = c.input(0);
  const SliceSpec spec = read_slice(c, c.shape(x));
  c.set_output(0, add_slice(c, x, spec));
}

/// A run-time tensor read at constant places that form a run: a slice. A constant table read at places known at run time: an embedding.
void lower_gather(NodeContext& c) {
  if (c.input_constant(0) != nullptr && c.input_constant(1) == nullptr) return lower_embedding(c);
  const ValueId x = c.input(0);
  const Shape shape = c.shape(x);
  if (shape.rank() == 0) c.malformed("a scalar has no axis to gather from");
  const int axis = c.axis(c.integer("axis", 0), shape.rank());
  if (c.input_constant(1) == nullptr) c.refuse("the indices are computed at run time; supported are constant ones");
  const Shape index_shape = c.input_shape(1);
  std::vector<std::int64_t> index = c.constant_integers(1, "the indices");
  if (index.empty()) c.refuse("no indices");
  for (std::int64_t& i : index) {
    if (i < -shape[axis] || i >= shape[axis]) c.malformed("index " + std::to_string(i) + " is outside axis " + std::to_string(axis));
    if (i < 0) i += shape[axis];
  }
  SliceSpec spec = SliceSpec::whole(shape);
  const auto a = static_cast<std::size_t>(axis);
  spec.start[a] = index[0];
  spec.extent[a] = static_cast<std::int64_t>(index.size());
  spec.step[a] = index.size() > 1 ? index[1] - index[0] : 1;
  for (std::size_t i = 0; i < index.size(); ++i)
    if (spec.step[a] == 0 || index[i] != index[0] + static_cast<std::int64_t>(i) * spec.step[a])
      c.refuse("supported are indices at equal distances");
  const ValueId part = add_slice(c, x, spec);
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().begin() + axis);
  dims.insert(dims.end(), index_shape.dims().begin(), index_shape.dims().end());
  dims.insert(dims.end(), shape.dims().begin() + axis + 1, shape.dims().end());
  c.set_output(0, c.add_reshape(part, c.make_shape(dims)));
}

void lower_pad(NodeContext& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.shape(x);
  model::PadAttributes attributes;
  const std::string_view mode = c.string("mode", "constant");
  if (mode == "constant")
    attributes.mode = model::PadMode::kConstant;
  else if (mode == "reflect")
    attributes.mode = model::PadMode::kReflect;
  else if (mode == "edge")
    attributes.mode = model::PadMode::kEdge;
  else
    c.refuse("mode " + std::string(mode) + "; supported are constant, reflect and edge");

  std::vector<std::int64_t> pads;
  if (c.opset() >= 11) {
    pads = c.constant_integers(1, "the amounts");
    if (c.has_input(2)) {
      const auto value = uniform_value(c.require_constant(2, "the padding value"));
      if (!value) c.malformed("the padding value must be one number");
      attributes.value = static_cast<float>(*value);
    }
  } else {
    pads = c.integers(c.has("pads") ? "pads" : "paddings");
    attributes.value = c.real("value", 0.0f);
  }
  std::vector<std::int64_t> axes = c.has_input(3) ? c.constant_integers(3, "the list of axes") : std::vector<std::int64_t>{};
  if (!c.has_input(3))
    for (int a = 0; a < shape.rank(); ++a) axes.push_back(a);
  if (pads.size() != 2 * axes.size()) c.malformed("the amounts must be two for each axis");
  Shape out = shape;
  bool nothing = true;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = c.axis(axes[i], shape.rank());
    const std::int64_t before = pads[i], after = pads[axes.size() + i], most = std::int64_t{1} << 40;
    if (before < -most || before > most || after < -most || after > most) c.malformed("an amount is out of range");
    if (attributes.mode == model::PadMode::kReflect && std::max(before, after) >= shape[axis])
      c.malformed("a reflection cannot reach further than the tensor");
    if ((before < 0 || after < 0) && attributes.mode != model::PadMode::kConstant)
      c.refuse("negative amounts in mode " + std::string(mode));
    if (shape[axis] > most) c.malformed("the output's shape overflows");
    attributes.before[static_cast<std::size_t>(axis)] = before;
    attributes.after[static_cast<std::size_t>(axis)] = after;
    out[axis] = shape[axis] + before + after;
    nothing = nothing && before == 0 && after == 0;
  }
  if (nothing) return c.set_output(0, x);
  c.set_output(0, c.add(OpKind::kPad, {x}, out, attributes));
}

void lower_flatten(NodeContext& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.shape(x);
  const std::int64_t wanted = c.integer("axis", 1);
  const int axis = wanted == shape.rank() ? shape.rank() : c.axis(wanted, shape.rank());
  c.set_output(0, c.add_reshape(x, Shape{shape.count(0, axis), shape.count(axis, shape.rank())}));
}

void lower_reshape(NodeContext& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.shape(x);
  std::vector<std::int64_t> wanted = c.opset() < 5 ? c.integers("shape") : c.constant_integers(1, "the shape");
  const bool zero_means_zero = c.integer("allowzero", 0) != 0;
  if (wanted.size() > Shape::kMaxRank) c.refuse("more than 8 axes");
  std::int64_t known = 1;
  std::int64_t* rest = nullptr;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0 && !zero_means_zero) {
      if (static_cast<int>(i) >= shape.rank()) c.malformed("a 0 in the shape copies an axis that the input has not");
      wanted[i] = shape[static_cast<int>(i)];
    }
    if (wanted[i] < -1 || (wanted[i] == -1 && rest != nullptr)) c.malformed("the shape has a negative extent, or several -1");
    if (wanted[i] == -1)
      rest = &wanted[i];
    else if (__builtin_mul_overflow(known, wanted[i], &known))
      c.malformed("the shape overflows");
  }
  if (rest != nullptr) {
    if (known == 0 || shape.element_count() % known != 0) c.malformed("the shape does not divide the input's elements");
    *rest = shape.element_count() / known;
  }
  const auto to = Shape::make(wanted);
  if (!to) c.malformed("the shape overflows");
  c.set_output(0, c.add_reshape(x, *to));
}

void lower_squeeze(NodeContext& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.shape(x);
  const std::vector<std::int64_t> axes = read_axes(c, 1);
  std::array<bool, Shape::kMaxRank> gone{};
  for (const std::int64_t a : axes) {
    const int axis = c.axis(a, shape.rank());
    if (shape[axis] != 1)
      c.malformed("axis " + std::to_string(axis) + " has extent " + std::to_string(shape[axis]) + " and cannot be squeezed");
    gone[static_cast<std::size_t>(axis)] = true;
  }
  std::vector<std::int64_t> dims;
  for (int a = 0; a < shape.rank(); ++a)
    if (axes.empty() ? shape[a] != 1 : !gone[static_cast<std::size_t>(a)]) dims.push_back(shape[a]);
  c.set_output(0, c.add_reshape(x, *Shape::make(dims)));
}

void lower_unsqueeze(NodeContext& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.shape(x);
  const std::vector<std::int64_t> axes = read_axes(c, 1);
  const int rank = shape.rank() + static_cast<int>(std::min<std::size_t>(axes.size(), 64));
  if (rank > Shape::kMaxRank) c.refuse("more than 8 axes");
  std::array<bool, Shape::kMaxRank> added{};
  for (const std::int64_t a : axes) {
    bool& place = added[static_cast<std::size_t>(c.axis(a, rank))];
    if (place) c.malformed("an axis is listed twice");
    place = true;
  }
  std::vector<std::int64_t> dims;
  int from = 0;
  for (int a = 0; a < rank; ++a) dims.push_back(added[static_cast<std::size_t>(a)] ? 1 : shape[from++]);
  c.set_output(0, c.add_reshape(x, *Shape::make(dims)));
}

void lower_transpose(NodeContext& c) {
  const ValueId x = c.input(0);
  const int rank = c.shape(x).rank();
  std::vector<std::int64_t> listed = c.integers("perm");
  if (listed.empty())
    for (int a = rank - 1; a >= 0; --a) listed.push_back(a);
  if (static_cast<int>(listed.size()) != rank) c.malformed("attribute perm must name each axis once");
  Perm perm = kIdentityPerm;
  std::array<bool, Shape::kMaxRank> seen{};
  bool moves = false;
  for (int a = 0; a < rank; ++a) {
    const int from = c.axis(listed[static_cast<std::size_t>(a)], rank);
    if (seen[static_cast<std::size_t>(from)]) c.malformed("attribute perm must name each axis once");
    seen[static_cast<std::size_t>(from)] = true;
    perm[static_cast<std::size_t>(a)] = static_cast<std::int8_t>(from);
    moves = moves || from != a;
  }
  c.set_output(0, moves ? c.add_transpose(x, perm) : x);
}

void lower_expand(NodeContext& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.shape(x);
  const auto wanted = Shape::make(c.constant_integers(1, "the shape"));
  if (!wanted) c.malformed("the shape is negative or overflows");
  const Shape out = broadcast_shape(shape, *wanted);
  if (out == shape) return c.set_output(0, x);
  if (out.element_count() == shape.element_count()) return c.set_output(0, c.add_reshape(x, out));
  // Repetition along an axis of one: as many copies side by side.
  ValueId y = c.add_reshape(x, broadcast_shape(shape, *Shape::make(std::vector<std::int64_t>(static_cast<std::size_t>(out.rank()), 1))));
  for (int axis = out.rank() - 1; axis >= 0; --axis) {
    Shape grown = c.shape(y);
    if (grown[axis] == out[axis]) continue;
    if (out[axis] > 256) c.refuse("a run-time tensor expanded more than 256 times along an axis");
    // Single elements, indices mostly: the plain operator fills runs of them.
    if (axis + 1 == out.rank() && out[axis] > 4 && !is_float(c.run_time_type(x))) c.refuse("indices expanded along their last axis");
    grown[axis] = out[axis];
    y = c.add(OpKind::kConcat, std::vector<ValueId>(static_cast<std::size_t>(out[axis]), y), grown, model::AxisAttributes{axis});
    c.last_node().axis = axis;
  }
  c.set_output(0, y);
}

namespace {

struct BlockShape {
  Shape image;
  std::int64_t block = 1;
};

BlockShape read_block(const NodeContext& c, bool to_space) {
  const Shape shape = c.input_shape(0);
  if (shape.rank() != 4) c.malformed("input must be [N, C, H, W]");
  const std::int64_t block = c.integer("blocksize", 0);
  if (block < 1 || block > 1024) c.malformed("attribute blocksize is out of range");
  const bool divides = to_space ? shape[1] % (block * block) == 0 : shape[2] % block == 0 && shape[3] % block == 0;
  if (!divides) c.malformed("attribute blocksize does not divide the input's shape");
  return {shape, block};
}

}  // namespace

void lower_depth_to_space(NodeContext& c) {
  const auto [s, b] = read_block(c, true);
  const std::int64_t channels = s[1] / (b * b);
  const std::string_view mode = c.string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.malformed("attribute mode has an unknown value");
  const ValueId x = c.input(0);
  const ValueId split =
      mode == "DCR" ? c.add_reshape(x, Shape{s[0], b, b, channels, s[2], s[3]}) : c.add_reshape(x, Shape{s[0], channels, b, b, s[2], s[3]});
  const ValueId moved = c.add_transpose(split, mode == "DCR" ? Perm{0, 3, 4, 1, 5, 2, 6, 7} : Perm{0, 1, 4, 2, 5, 3, 6, 7});
  c.set_output(0, c.add_reshape(moved, Shape{s[0], channels, s[2] * b, s[3] * b}));
}

void lower_space_to_depth(NodeContext& c) {
  const auto [s, b] = read_block(c, false);
  const ValueId split = c.add_reshape(c.input(0), Shape{s[0], s[1], s[2] / b, b, s[3] / b, b});
  const ValueId moved = c.add_transpose(split, Perm{0, 3, 5, 1, 2, 4, 6, 7});
  c.set_output(0, c.add_reshape(moved, Shape{s[0], s[1] * b * b, s[2] / b, s[3] / b}));
}

}  // namespace sluice::importer

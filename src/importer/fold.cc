#include "src/importer/fold.h"

#include <algorithm>
#include <cmath>

#include "src/importer/allowance.h"
#include "src/importer/fold_arithmetic.h"
#include "src/importer/slice_spec.h"

namespace sluice::importer {
namespace {

void check_elements(std::int64_t elements) {
  if (elements > kMaxFoldedElements)
    refuse_unsupported("the graph computes more from constants than the importer does (" + std::to_string(kMaxFoldedElements) +
                       " elements in a tensor)");
}

/// The parts of which a constant is joined, before there are any.
void check_parts(std::int64_t parts) {
  check_elements(parts);
  count_made(static_cast<std::uint64_t>(parts), sizeof(Constant));
}

/// A constant of one value in another shape.
std::optional<Constant> refilled(const Constant& data, const Shape& shape) {
  if (!uniform_value(data)) return std::nullopt;
  Constant one = data;
  one.shape = Shape{};
  one.quantised = nullptr;
  return broadcast(one, shape);
}

bool all_constant(const NodeContext& c) {
  for (std::size_t i = 0; i < c.input_count(); ++i)
    if (c.has_input(i) && c.input_constant(i) == nullptr) return false;
  return true;
}

// ---- operators without run-time inputs

/// The tensor of a Constant node, in any of its attribute forms.
Constant read_constant_node(const NodeContext& c) {
  for (const OnnxAttribute& a : c.node().attributes) {
    if (a.name == "value" || a.name == "sparse_value") {
      if (a.type != AttributeType::kTensor) c.malformed("attribute value is no tensor");
      if (!a.tensor_problem.empty()) c.refuse(a.tensor_problem);
      return a.tensor;
    }
    if (a.name == "value_float") return make_constant(Shape{}, std::span<const float>(&a.f, 1));
    if (a.name == "value_int") return make_constant(Shape{}, std::span<const std::int64_t>(&a.i, 1));
    if (a.name == "value_floats") return make_constant(Shape{static_cast<std::int64_t>(a.floats.size())}, a.floats);
    if (a.name == "value_ints") return make_constant(Shape{static_cast<std::int64_t>(a.ints.size())}, a.ints);
  }
  c.refuse("its value has a form that is not supported (string or missing)");
}

Constant fold_constant_of_shape(const NodeContext& c) {
  const auto shape = Shape::make(c.constant_integers(0, "the shape"));
  if (!shape) c.malformed("the shape is negative or overflows");
  const OnnxAttribute* value = c.attribute("value");
  if (value == nullptr) return make_fill(*shape, 0.0f);
  if (value->type != AttributeType::kTensor || !value->tensor_problem.empty() || value->tensor.elements() != 1)
    c.malformed("attribute value must be a tensor of one element");
  // One element, however many are declared: strides of zero.
  return broadcast(*reshaped(value->tensor, Shape{}), *shape);
}

Constant fold_shape(const NodeContext& c) {
  const auto dims = c.input_shape(0).dims();
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto cut = [&](std::int64_t place) { return std::clamp<std::int64_t>(place < 0 ? place + rank : place, 0, rank); };
  const std::int64_t start = cut(c.integer("start", 0)), end = std::max(cut(c.integer("end", rank)), start);
  return make_constant(Shape{end - start}, dims.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(end - start)));
}

Constant fold_range(const NodeContext& c) {
  const Constant start = c.require_constant(0, "start"), limit = c.require_constant(1, "limit"), delta = c.require_constant(2, "delta");
  if (start.elements() != 1 || limit.elements() != 1 || delta.elements() != 1) c.malformed("start, limit and delta must be scalars");
  const double step = read_real(delta, 0);
  const double count = step == 0 ? -1 : std::ceil((read_real(limit, 0) - read_real(start, 0)) / step);
  if (step == 0 || !(count < 1e9)) c.malformed("the range is infinite or too long");
  const auto length = static_cast<std::int64_t>(std::max(count, 0.0));
  check_elements(length);
  count_made(static_cast<std::uint64_t>(length), sizeof(double));
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(length));
  for (std::int64_t i = 0; i < length; ++i) values.push_back(read_real(start, 0) + static_cast<double>(i) * step);
  return from_reals(values, Shape{length}, start.dtype);
}

// ---- views

Constant fold_gather(const NodeContext& c) {
  const Constant data = *c.input_constant(0), index = *c.input_constant(1);
  if (data.shape.rank() == 0) c.malformed("a scalar has no axis to gather from");
  const int axis = c.axis(c.integer("axis", 0), data.shape.rank());
  const std::int64_t extent = data.shape[axis];
  std::vector<std::int64_t> places = integers(index);
  for (std::int64_t& place : places) {
    if (place < -extent || place >= extent) c.malformed("index " + std::to_string(place) + " is outside axis " + std::to_string(axis));
    if (place < 0) place += extent;
  }
  std::vector<std::int64_t> dims(data.shape.dims().begin(), data.shape.dims().begin() + axis);
  dims.insert(dims.end(), index.shape.dims().begin(), index.shape.dims().end());
  dims.insert(dims.end(), data.shape.dims().begin() + axis + 1, data.shape.dims().end());
  const auto shape = Shape::make(dims);
  if (!shape) c.refuse("more than 8 axes, or too many elements");
  SliceSpec spec = SliceSpec::whole(data.shape);
  const auto a = static_cast<std::size_t>(axis);
  if (places.size() == 1) {
    spec.start[a] = places[0];
    spec.extent[a] = 1;
    if (auto view = reshaped(sliced(data, spec), *shape)) return *std::move(view);
  }
  if (auto fill = refilled(data, *shape)) return *std::move(fill);
  check_elements(shape->element_count());
  check_parts(static_cast<std::int64_t>(places.size()));
  std::vector<Constant> parts;
  for (const std::int64_t place : places) {
    spec.start[a] = place;
    spec.extent[a] = 1;
    parts.push_back(sliced(data, spec));
  }
  Shape joined = data.shape;
  joined[axis] = static_cast<std::int64_t>(places.size());
  return *reshaped(concatenated(parts, axis, joined), *shape);
}

Constant fold_concat(const NodeContext& c) {
  std::vector<Constant> parts;
  Shape shape = c.input_shape(0);
  const int axis = c.axis(c.integer("axis", c.opset() < 4 ? 1 : 0), shape.rank());
  std::int64_t extent = 0;
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    const Constant& part = c.require_constant(i, "every input");
    const DType first = c.require_constant(0, "every input").dtype;
    if (part.shape.rank() != shape.rank() || (part.dtype != first && !(is_float(part.dtype) && is_float(first))))
      c.malformed("inputs of different rank or type");
    for (int other = 0; other < shape.rank(); ++other)
      if (other != axis && part.shape[other] != shape[other]) c.malformed("inputs whose shapes do not fit");
    if (__builtin_add_overflow(extent, part.shape[axis], &extent)) c.malformed("the output's shape overflows");
    parts.push_back(part);
  }
  shape[axis] = extent;
  const auto made = Shape::make(shape.dims());
  if (!made) c.malformed("the output's shape overflows");
  check_elements(made->element_count());
  return concatenated(parts, axis, *made);
}

Constant fold_expand(const NodeContext& c) {
  const Constant data = *c.input_constant(0);
  const auto wanted = Shape::make(c.constant_integers(1, "the shape"));
  if (!wanted) c.malformed("the shape is negative or overflows");
  return broadcast(data, broadcast_shape(data.shape, *wanted));
}

Constant fold_tile(const NodeContext& c) {
  Constant data = *c.input_constant(0);
  const std::vector<std::int64_t> repeats = c.constant_integers(1, "the repeats");
  if (static_cast<int>(repeats.size()) != data.shape.rank()) c.malformed("there must be one repeat for each axis");
  for (int axis = 0; axis < data.shape.rank(); ++axis) {
    const std::int64_t times = repeats[static_cast<std::size_t>(axis)];
    if (times < 0 || times > kMaxFoldedElements) c.malformed("a repeat is out of range");
    if (times == 1) continue;
    Shape shape = data.shape;
    if (__builtin_mul_overflow(shape[axis], times, &shape[axis])) c.malformed("the output's shape overflows");
    const auto made = Shape::make(shape.dims());
    if (!made) c.malformed("the output's shape overflows");
    if (auto fill = refilled(data, *made)) {
      data = *std::move(fill);
      continue;
    }
    check_elements(made->element_count());
    check_parts(times);
    data = concatenated(std::vector<Constant>(static_cast<std::size_t>(times), data), axis, *made);
  }
  return data;
}

Constant fold_cast(const NodeContext& c) {
  const Constant data = *c.input_constant(0);
  const auto to = dtype_of(c.integer("to", 0));
  if (data.dtype == *to || (is_float(data.dtype) && is_float(*to))) return data;
  if (const auto one = refilled(data, Shape{})) return broadcast(cast(*one, *to), data.shape);
  check_elements(data.elements());
  return cast(data, *to);
}

void fold_split(NodeContext& c) {
  const Constant data = *c.input_constant(0);
  if (data.shape.rank() == 0) c.malformed("a scalar has no axis to split");
  const int axis = c.axis(c.integer("axis", 0), data.shape.rank());
  std::int64_t start = 0;
  std::size_t output = 0;
  for (const std::int64_t part : split_extents(c, data.shape[axis])) {
    SliceSpec spec = SliceSpec::whole(data.shape);
    spec.start[static_cast<std::size_t>(axis)] = start;
    spec.extent[static_cast<std::size_t>(axis)] = part;
    start += part;
    c.set_output(output++, c.add_constant(sliced(data, spec)));
  }
}

}  // namespace

bool folds_only(std::string_view op_type) noexcept {
  constexpr std::string_view kNames[] = {
      "And", "Constant", "ConstantOfShape", "Equal",     "Greater",    "GreaterOrEqual", "Less",  "LessOrEqual", "Mod",  "Not",  "NonZero",
      "Or",  "Range",    "ReduceMax",       "ReduceMin", "ReduceProd", "ReduceSum",      "Round", "Shape",       "Sign", "Size", "Tile"};
  return std::find(std::begin(kNames), std::end(kNames), op_type) != std::end(kNames);
}

bool fold(NodeContext& c) {
  const std::string_view op = c.node().op_type;
  const auto give = [&](Constant constant) {
    c.set_output(0, c.add_constant(std::move(constant)));
    return true;
  };
  if (op == "Constant") return give(read_constant_node(c));
  if ((op == "Shape" || op == "Size") && c.bounded(c.input(0))) return false;
  if (op == "Shape") return give(fold_shape(c));
  if (op == "Size") {
    const std::int64_t size = c.input_shape(0).element_count();
    return give(make_constant(Shape{}, std::span(&size, 1)));
  }
  if (!all_constant(c) || c.input_count() == 0) return false;
  if (op == "ConstantOfShape") return give(fold_constant_of_shape(c));
  if (op == "Range") return give(fold_range(c));
  if (op == "Gather") {
    c.input(0), c.input(1);
    return give(fold_gather(c));
  }
  if (op == "Concat") return give(fold_concat(c));
  if (op == "Expand") return give(fold_expand(c));
  if (op == "Tile") return give(fold_tile(c));
  if (op == "Cast") return give(fold_cast(c));
  if (op == "Slice") return give(sliced(c.require_constant(0, "the input"), read_slice(c, c.input_shape(0))));
  if (op == "Split") {
    c.input(0);
    fold_split(c);
    return true;
  }
  if (const auto elements = arithmetic_elements(c)) {
    // Too large to compute here: a node of the graph, if the operator is one.
    const bool covered = *elements <= kMaxFoldedElements && may_make(static_cast<std::uint64_t>(*elements), kFoldedElementBytes);
    if (!folds_only(op) && !covered) return false;
    check_elements(*elements);
    return give(fold_arithmetic(c));
  }
  return false;
}

}  // namespace sluice::importer

#include "src/importer/lower_plain.h"
#include "src/importer/lowering.h"

namespace sluice::importer {

using model::OpKind;

NodeContext::NodeContext(Draft& draft, const OnnxNode& node, int opset, std::vector<ValueId> inputs, std::string name)
    : draft_(draft), node_(node), opset_(opset), inputs_(std::move(inputs)), outputs_(node.outputs.size()), name_(std::move(name)) {}

ValueId NodeContext::input(std::size_t index) const {
  if (!has_input(index)) malformed("input " + std::to_string(index) + " is missing");
  return inputs_[index];
}

const Constant* NodeContext::constant(ValueId value) const noexcept {
  const auto& c = draft_.value(value).constant;
  return c ? &*c : nullptr;
}

const Constant& NodeContext::require_constant(std::size_t index, const char* what) const {
  const Constant* c = input_constant(index);
  if (c == nullptr) {
    note_value_inputs(input(index));
    refuse(std::string(what) + " must be constant; here it is computed at run time");
  }
  return *c;
}

void NodeContext::note_value_inputs(ValueId value) const {
  std::set<ValueId> wanted = {value};
  for (auto node = draft_.nodes.rbegin(); node != draft_.nodes.rend(); ++node)
    if (wanted.contains(node->output)) wanted.insert(node->inputs.begin(), node->inputs.end());
  for (const DraftPort& port : draft_.inputs)
    if (wanted.contains(port.value)) draft_.value_inputs.insert(port.name);
}

std::vector<std::int64_t> NodeContext::constant_integers(std::size_t index, const char* what) const {
  const Constant& c = require_constant(index, what);
  if (c.elements() > (1 << 16)) malformed(std::string(what) + " has too many values");
  return sluice::importer::integers(c);
}

ValueId NodeContext::float_input(std::size_t index) const {
  const ValueId value = input(index);
  const DType dtype = draft_.value(value).dtype;
  if (!is_float(dtype))
    refuse("input " + std::to_string(index) + " is of type " + std::string(name_of(dtype)) + "; run-time values must be float");
  return value;
}

DType NodeContext::run_time_type(ValueId value) const noexcept {
  const DType dtype = draft_.value(value).dtype;
  return is_float(dtype) ? DType::kF32 : dtype;
}

const OnnxAttribute* NodeContext::attribute(std::string_view name) const noexcept {
  for (const OnnxAttribute& a : node_.attributes)
    if (a.name == name) return &a;
  return nullptr;
}

std::int64_t NodeContext::integer(std::string_view name, std::int64_t otherwise) const {
  const OnnxAttribute* a = attribute(name);
  if (a == nullptr) return otherwise;
  // proto3 writers leave a zero out, so an attribute without a value is a zero.
  if (a->type != AttributeType::kInt && a->type != AttributeType::kOther) malformed("attribute " + std::string(name) + " is no integer");
  return a->i;
}

float NodeContext::real(std::string_view name, float otherwise) const {
  const OnnxAttribute* a = attribute(name);
  if (a == nullptr) return otherwise;
  if (a->type != AttributeType::kFloat && a->type != AttributeType::kOther) malformed("attribute " + std::string(name) + " is no number");
  return a->f;
}

std::string_view NodeContext::string(std::string_view name, std::string_view otherwise) const {
  const OnnxAttribute* a = attribute(name);
  if (a == nullptr) return otherwise;
  if (a->type != AttributeType::kString) malformed("attribute " + std::string(name) + " is no string");
  return a->s;
}

std::vector<std::int64_t> NodeContext::integers(std::string_view name) const {
  const OnnxAttribute* a = attribute(name);
  if (a == nullptr) return {};
  if (a->type != AttributeType::kInts && a->type != AttributeType::kOther)
    malformed("attribute " + std::string(name) + " is no list of integers");
  return a->ints;
}

std::vector<std::string_view> NodeContext::strings(std::string_view name) const {
  const OnnxAttribute* a = attribute(name);
  if (a == nullptr) return {};
  if (a->type != AttributeType::kStrings && a->type != AttributeType::kOther)
    malformed("attribute " + std::string(name) + " is no list of strings");
  return a->strings;
}

int NodeContext::axis(std::int64_t value, int rank) const {
  if (value < -rank || value >= rank)
    malformed("axis " + std::to_string(value) + " is outside a tensor of " + std::to_string(rank) + " axes");
  return static_cast<int>(value < 0 ? value + rank : value);
}

void NodeContext::set_output(std::size_t index, ValueId value) {
  if (index < outputs_.size()) outputs_[index] = value;
}

std::string NodeContext::unique_name() { return made_++ == 0 ? name_ : name_ + "/" + std::to_string(made_ - 1); }

ValueId NodeContext::add(OpKind op, std::vector<ValueId> inputs, const Shape& shape, model::Attributes attributes) {
  const Shape checked = make_shape(shape.dims());
  DraftNode node;
  node.name = unique_name();
  node.op = op;
  node.attributes = std::move(attributes);
  node.inputs = std::move(inputs);
  Value out;
  out.name = node.name + ":out";
  out.shape = checked;
  // What computes is f32; what only moves values may also carry those that the graph passes through.
  if (const DType moved = draft_.value(node.inputs[0]).dtype; !is_float(moved)) out.dtype = moved;
  node.output = draft_.add_value(std::move(out));
  draft_.nodes.push_back(std::move(node));
  return draft_.nodes.back().output;
}

ValueId NodeContext::add_constant(Constant constant) {
  Value value;
  value.name = name_ + ":constant" + std::to_string(made_++);
  value.dtype = constant.dtype;
  value.shape = constant.shape;
  value.constant = std::move(constant);
  return draft_.add_value(std::move(value));
}

ValueId NodeContext::add_empty(DType dtype, const Shape& shape) {
  const std::int64_t zero = 0;
  return add_constant(broadcast(make_constant(Shape{}, std::span(&zero, 1), dtype), shape));
}

ValueId NodeContext::add_unary(ValueId x, model::Activation activation) {
  if (bounded(x))
    return add_plain(*this, "ApplyFunction", {x},
                     {{static_cast<std::int64_t>(activation.function)}, {real_bits(activation.a)}, {real_bits(activation.b)}});
  const ValueId out = add(OpKind::kUnary, {x}, shape(x));
  last_node().epilogue.activation = activation;
  return out;
}

namespace {

/// A constant that repeats along an axis on which the other operand has the full extent need not be stored repeated.
Constant without_repeats(const Constant& c, const Shape& other, const Shape& out) {
  Constant shrunk = c;
  for (int axis = 0; axis < c.shape.rank(); ++axis) {
    const int out_axis = axis + out.rank() - c.shape.rank();
    const int other_axis = out_axis - (out.rank() - other.rank());
    const bool covered = other_axis >= 0 && other[other_axis] == out[out_axis];
    if (covered && c.strides[static_cast<std::size_t>(axis)] == 0) shrunk.shape[axis] = 1;
  }
  return shrunk;
}

}  // namespace

ValueId NodeContext::add_binary(model::BinaryFunction function, ValueId a, ValueId b) {
  constexpr std::string_view kPlainNames[] = {"Add", "Sub", "Mul", "Div", "PRelu", "Max2", "Min2", "Pow"};  // by BinaryFunction
  if (bounded(a) || bounded(b)) return add_plain(*this, kPlainNames[static_cast<std::size_t>(function)], {a, b});
  const Shape out = broadcast_shape(shape(a), shape(b));
  const Shape shape_a = shape(a), shape_b = shape(b);
  const auto shrink = [&](ValueId value, const Shape& other) {
    const Constant* c = constant(value);
    if (c == nullptr) return value;
    Constant shrunk = without_repeats(*c, other, out);
    if (shrunk.shape == c->shape) return value;
    return add_constant(std::move(shrunk));
  };
  if (constant(b) != nullptr)
    b = shrink(b, shape_a);
  else if (constant(a) != nullptr)
    a = shrink(a, shape_b);
  return add(OpKind::kBinary, {a, b}, out, model::BinaryAttributes{function});
}

ValueId NodeContext::add_reshape(ValueId x, const Shape& to) {
  if (shape(x) == to) return x;
  if (shape(x).element_count() != to.element_count())
    malformed("a tensor of shape " + shape(x).to_string() + " cannot become " + to.to_string());
  if (const Constant* c = constant(x)) {
    if (auto view = reshaped(*c, to)) return add_constant(*std::move(view));
    if (c->elements() <= kMaxFoldedElements) return add_constant(reshaped_or_copied(*c, to));
  }
  return add(OpKind::kReshape, {x}, to);
}

ValueId NodeContext::add_transpose(ValueId x, const Perm& perm) {
  if (const Constant* c = constant(x)) return add_constant(permuted(*c, perm));
  Shape out = shape(x);
  for (int axis = 0; axis < out.rank(); ++axis) out[axis] = shape(x)[perm[static_cast<std::size_t>(axis)]];
  return add(OpKind::kTranspose, {x}, out, model::TransposeAttributes{perm});
}

Shape NodeContext::make_shape(std::span<const std::int64_t> dims) const {
  const auto made = Shape::make(dims);
  if (!made) malformed("the output's shape is negative or overflows");
  if (made->element_count() == 0) refuse("the output is empty (" + made->to_string() + ")");
  // Byte counts of what we make fit 62 bits (graph.h, G3).
  if (made->element_count() > (std::int64_t{1} << 56)) refuse("the output is too large (" + made->to_string() + ")");
  return *made;
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  for (int axis = 0; axis < rank; ++axis) {
    const int axis_a = axis - (rank - a.rank()), axis_b = axis - (rank - b.rank());
    const std::int64_t extent_a = axis_a < 0 ? 1 : a[axis_a], extent_b = axis_b < 0 ? 1 : b[axis_b];
    if (extent_a != extent_b && extent_a != 1 && extent_b != 1)
      refuse_malformed("shapes " + a.to_string() + " and " + b.to_string() + " do not broadcast");
    dims[static_cast<std::size_t>(axis)] = extent_a == 1 ? extent_b : extent_a;
  }
  const auto shape = Shape::make(std::span(dims).first(static_cast<std::size_t>(rank)));
  if (!shape) refuse_malformed("shapes " + a.to_string() + " and " + b.to_string() + " broadcast to more than fits");
  return *shape;
}

}  // namespace sluice::importer

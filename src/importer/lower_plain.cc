#include "src/importer/lower_plain.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "sluice/kernels/kernel.h"
#include "sluice/operators/generic/elements.h"
#include "src/importer/allowance.h"
#include "src/importer/quantised.h"

namespace sluice::importer {
namespace {

using kernels::PlainNode;
using kernels::PlainOperator;
using kernels::PlainTensor;

// A line of the table names so many inputs at the most; a bit each.
constexpr std::size_t kMaxInputs = 32;
constexpr std::uint64_t kMaxScratch = std::uint64_t{256} << 20;

using ArgumentSpec = kernels::PlainArgument;

std::string_view until(std::string_view text, char stop) { return text.substr(0, text.find(stop)); }

std::vector<ArgumentSpec> parse_specs(std::string_view text) {
  std::vector<ArgumentSpec> specs;
  for (ArgumentSpec spec = kernels::next_argument(text); spec.type != '\0'; spec = kernels::next_argument(text)) specs.push_back(spec);
  return specs;
}

/// Comes it from a tensor at run time?
bool is_late(const NodeContext& c, const PlainOperator& op, const ArgumentSpec& spec) {
  const auto input = static_cast<std::size_t>(spec.input);
  return spec.input >= 0 && c.has_input(input) && c.input_constant(input) == nullptr && op.bound != nullptr;
}

std::int64_t word_number(const NodeContext& c, const ArgumentSpec& spec) {
  std::string_view words = spec.otherwise;
  const std::string_view chosen = c.string(spec.name, until(words, '|'));
  for (std::int64_t number = 0; !words.empty(); ++number) {
    const std::string_view word = until(words, '|');
    if (word == chosen) return number;
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  c.refuse("attribute " + std::string(spec.name) + " is `" + std::string(chosen) + "`; supported are " + std::string(spec.otherwise));
}

std::vector<std::int64_t> bits_of(std::span<const double> values) {
  std::vector<std::int64_t> bits;
  for (const double value : values) bits.push_back(real_bits(value));
  return bits;
}

std::vector<std::int64_t> from_input(const NodeContext& c, const ArgumentSpec& spec) {
  const auto input = static_cast<std::size_t>(spec.input);
  const std::string what = "input " + std::to_string(spec.input) + " (" + std::string(spec.name) + ")";
  if (spec.type == 'i' || spec.type == 'I') return c.constant_integers(input, what.c_str());
  const Constant& constant = c.require_constant(input, what.c_str());
  if (constant.elements() > (1 << 16)) c.malformed(what + " has too many values");
  return bits_of(reals(constant));
}

std::vector<std::int64_t> read_argument(const NodeContext& c, const ArgumentSpec& spec) {
  if (spec.input >= 0 && c.has_input(static_cast<std::size_t>(spec.input))) return from_input(c, spec);
  const bool absent = !c.has(spec.name);
  switch (spec.type) {
    case '#':
      return {c.opset()};
    case 's':
      return {word_number(c, spec)};
    case 'I':
      return c.integers(spec.name);
    case 'F': {
      if (absent) return {};
      const OnnxAttribute& a = *c.attribute(spec.name);
      if (a.type != AttributeType::kFloats && a.type != AttributeType::kOther)
        c.malformed("attribute " + std::string(spec.name) + " is no list of numbers");
      return bits_of(std::vector<double>(a.floats.begin(), a.floats.end()));
    }
    case 'f': {
      double otherwise = 0;
      if (absent && spec.otherwise.empty()) return {};
      if (!spec.otherwise.empty()) otherwise = std::stod(std::string(spec.otherwise));
      return {real_bits(absent ? otherwise : static_cast<double>(c.real(spec.name, 0.0f)))};
    }
    default: {
      std::int64_t otherwise = 0;
      if (absent && spec.otherwise.empty()) return {};
      std::from_chars(spec.otherwise.data(), spec.otherwise.data() + spec.otherwise.size(), otherwise);
      const std::int64_t value = c.integer(spec.name, otherwise);
      return {spec.type == 'r' ? real_bits(static_cast<double>(value)) : value};
    }
  }
}

std::vector<std::int64_t> pack(const std::vector<std::vector<std::int64_t>>& lists) {
  std::vector<std::int64_t> packed;
  for (const auto& list : lists) {
    packed.push_back(static_cast<std::int64_t>(list.size()));
    packed.insert(packed.end(), list.begin(), list.end());
  }
  return packed;
}

/// Bytes on 64, however little the allocator promises.
struct AlignedBytes {
  explicit AlignedBytes(std::size_t size) {
    count_made(size);
    bytes.resize(size + 64);
  }
  std::byte* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    return bytes.data() + (64 - address % 64) % 64;
  }
  std::vector<std::byte> bytes;
};

/// The constant's values as the kernels want them: dense and aligned; f16 and f64 as f32.
std::shared_ptr<AlignedBytes> dense_bytes(const Constant& constant, DType dtype) {
  auto bytes = std::make_shared<AlignedBytes>(static_cast<std::size_t>(constant.elements()) * size_of(dtype));
  if (dtype == DType::kF32) {
    write_floats(constant, {reinterpret_cast<float*>(bytes->data()), static_cast<std::size_t>(constant.elements())});
    return bytes;
  }
  write_elements(constant, bytes->data());
  return bytes;
}

/// Runs the operator now.
Constant evaluate(NodeContext& c, const PlainOperator& op, const model::PlainAttributes& attributes, std::vector<PlainTensor> inputs,
                  const std::vector<ValueId>& values, const PlainTensor& result) {
  std::vector<std::shared_ptr<AlignedBytes>> kept;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    kept.push_back(dense_bytes(*c.constant(values[i]), inputs[i].dtype));
    inputs[i].data = kept.back()->data();
  }
  const PlainNode node(op, kernels::form_of(attributes), inputs);
  const kernels::GenericKernel& kernel = kernels::generic_kernel(op);
  const std::uint64_t scratch_bytes = kernel.scratch == nullptr ? 0 : kernel.scratch(node);
  if (scratch_bytes > kMaxScratch) c.refuse("it takes more memory than the importer has for constants");
  AlignedBytes scratch(scratch_bytes);
  auto bytes = std::make_shared<AlignedBytes>(static_cast<std::size_t>(result.count()) * size_of(result.dtype));
  const PlainTensor out{result.dtype, result.shape, bytes->data()};
  PlainTensor sized = out;
  const char* const fault = op.sized_by_values ? kernel.run_sized(node, sized, scratch.data()) : kernel.run(node, out, scratch.data());
  if (fault != nullptr) c.malformed(fault);
  return make_view(result.dtype, sized.shape, out.data, bytes);
}

/// The values behind a DequantizeLinear of 8 bits or fewer, from which `made` was computed; null: of more.
std::shared_ptr<const QuantisedValues> values_behind(const PlainNode& node, const NodeContext& c, const std::vector<ValueId>& values,
                                                     const std::byte* made) {
  const Constant& q = *c.constant(values[0]);
  if (q.dtype != DType::kI8 && q.dtype != DType::kU8) return nullptr;
  std::vector<float> scales(static_cast<std::size_t>(c.constant(values[1])->elements())), zeros(scales.size());
  write_floats(*c.constant(values[1]), scales);
  if (node.has(2)) {
    if (c.constant(values[2])->elements() != static_cast<std::int64_t>(zeros.size())) return nullptr;
    write_floats(*c.constant(values[2]), zeros);
  }
  kernels::ScaleOrder order;
  if (scales.size() > 1 || node.integer(1) != 0) {
    const int rank = q.shape.rank(), axis = static_cast<int>(node.integer(0) < 0 ? node.integer(0) + rank : node.integer(0));
    order = {.inner = q.shape.count(axis + 1, rank), .extent = q.shape[axis], .block = node.integer(1)};
  }
  auto result = std::make_shared<QuantisedValues>(quantised_values(q, std::move(scales), std::move(zeros), order));
  result->base = made;
  return result;
}

bool all_constant(const NodeContext& c, const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(), [&](ValueId value) { return c.constant(value) != nullptr; });
}

/// Is there a byte of the file for each element?
bool is_stored(const Constant& constant) {
  for (int axis = 0; axis < constant.shape.rank(); ++axis)
    if (constant.shape[axis] > 1 && constant.strides[static_cast<std::size_t>(axis)] == 0) return false;
  return true;
}

/// What a node gives: type, shape, and which extents are known at run only.
struct PlainResult {
  PlainTensor tensor;
  std::uint8_t bounded = 0;
};

std::uint8_t all_axes(const Shape& shape) { return static_cast<std::uint8_t>((1u << shape.rank()) - 1u); }

/// Axes that differ from `most` when the bounded axes of the inputs are shorter. Trials, so one that differs in none of them may be missed:
/// then the run, which compares extents with the plan's, ends with an error.
std::uint8_t axes_that_vary(const NodeContext& c, const PlainOperator& op, const model::PlainAttributes& attributes,
                            const std::vector<PlainTensor>& inputs, const std::vector<ValueId>& values, const Shape& most) {
  std::uint8_t vary = 0;
  for (const auto shorter : {+[](std::int64_t n) { return n - 1; }, +[](std::int64_t n) { return n - 2; },
                             +[](std::int64_t n) { return n / 2; }, +[](std::int64_t) { return std::int64_t{1}; }}) {
    std::vector<PlainTensor> trial = inputs;
    for (std::size_t i = 0; i < trial.size(); ++i)
      for (int axis = 0; axis < trial[i].shape.rank(); ++axis)
        if ((c.draft().value(values[i]).bounded >> axis & 1u) != 0)
          trial[i].shape[axis] = std::max<std::int64_t>(shorter(trial[i].shape[axis]), 0);
    PlainTensor out;
    const PlainNode shrunk(op, kernels::form_of(attributes), trial);
    std::uint8_t axes = 0;
    const bool by_values = kernels::needs_bound(op, attributes.present);
    if ((by_values ? op.bound(shrunk, out, axes) : infer_plain(shrunk, out)) != nullptr || out.shape.rank() != most.rank()) continue;
    for (int axis = 0; axis < most.rank(); ++axis)
      if (out.shape[axis] != most[axis]) vary = static_cast<std::uint8_t>(vary | 1u << axis);
  }
  return vary;
}

/// The ONNX name of a result, or nothing where the node is a part of a lowering.
std::string name_of_result(const NodeContext& c, const model::PlainAttributes& attributes, bool whole) {
  const auto& outputs = c.node().outputs;
  return whole && attributes.result < outputs.size() ? std::string(outputs[attributes.result]) : std::string();
}

/// Notes the graph inputs whose values would make the late arguments constant; those of all inputs where values decide the extents.
void note_deciding_inputs(const NodeContext& c, const PlainOperator& op, const model::PlainAttributes& attributes,
                          const std::vector<ValueId>& values) {
  if (op.sized_by_values)
    for (const ValueId value : values) c.note_value_inputs(value);
  for (const ArgumentSpec& spec : parse_specs(op.arguments)) {
    if (spec.input < 0 || (attributes.present >> spec.input & 1u) == 0) continue;
    const std::uint32_t before = attributes.present & ((1u << spec.input) - 1u);
    c.note_value_inputs(values[static_cast<std::size_t>(std::popcount(before))]);
  }
}

/// A refusal that speaks of types says which came.
std::string with_types(const char* refusal, const std::vector<PlainTensor>& inputs) {
  std::string text = refusal;
  if (text != operators::generic::kWrongType) return text;
  for (std::size_t i = 0; i < inputs.size(); ++i) text += (i == 0 ? ": " : ", ") + std::string(name_of(inputs[i].dtype));
  return text;
}

/// `whole`: the node is the ONNX node.
PlainResult infer_result(NodeContext& c, const PlainOperator& op, const model::PlainAttributes& attributes,
                         const std::vector<PlainTensor>& inputs, const std::vector<ValueId>& values, bool whole) {
  PlainResult result;
  const PlainNode node(op, kernels::form_of(attributes), inputs);
  const bool by_values = kernels::needs_bound(op, attributes.present);
  const bool any_bounded = std::any_of(values.begin(), values.end(), [&](ValueId value) { return c.bounded(value); });
  const char* const refusal = by_values ? op.bound(node, result.tensor, result.bounded) : infer_plain(node, result.tensor);
  if (refusal != nullptr && refusal != kernels::kStateBound && !any_bounded) c.refuse(with_types(refusal, inputs));
  if (refusal == nullptr && any_bounded) {
    const std::uint8_t vary = axes_that_vary(c, op, attributes, inputs, values, result.tensor.shape);
    result.bounded = static_cast<std::uint8_t>(result.bounded | vary);
  }
  if (refusal == nullptr && result.bounded == 0) return result;
  const std::string name = name_of_result(c, attributes, whole);
  if (const auto stated = c.draft().bounds.find(name); stated != c.draft().bounds.end()) {
    if (refusal == nullptr && stated->second.rank() != result.tensor.shape.rank())
      c.malformed("its stated bound has another number of axes");
    c.draft().used_bounds.insert(name);
    result.tensor.shape = stated->second;
    result.bounded = all_axes(stated->second);
    return result;
  }
  if (refusal == nullptr) return result;
  if (name.empty()) c.refuse(with_types(refusal, inputs));
  c.draft().wanted_bounds.insert(name);
  note_deciding_inputs(c, op, attributes, values);
  c.refuse(std::string(refusal) + "; supported are extents below a stated bound");
}

ValueId make(NodeContext& c, const PlainOperator& op, model::PlainAttributes attributes, const std::vector<ValueId>& values, bool whole) {
  std::vector<PlainTensor> inputs;
  std::int64_t work = 0;
  bool empty = false;
  for (const ValueId value : values) {
    const DType dtype = c.draft().value(value).dtype;
    inputs.push_back({is_float(dtype) ? DType::kF32 : dtype, c.shape(value), nullptr});
    work += inputs.back().count();
    empty = empty || inputs.back().count() == 0;
  }
  const bool constant = all_constant(c, values);
  if (empty && kernels::has_late_arguments(op, attributes.present)) {
    // What a tensor without elements becomes depends on nothing else, so with those values it is a constant.
    note_deciding_inputs(c, op, attributes, values);
    c.refuse("an input is empty, and arguments come at run time");
  }
  const PlainResult result = infer_result(c, op, attributes, inputs, values, whole);
  const PlainTensor& out = result.tensor;
  work += out.count();
  if (out.count() == 0) return c.add_empty(out.dtype, out.shape);
  // Quantised weights are in the file with all their bytes, so however many there are, making them real is no bomb.
  const bool linear = op.name == "DequantizeLinear" || op.name == "QuantizeLinear";
  const bool weights = linear && constant && is_stored(*c.constant(values[0]));
  const bool covered = work <= kMaxFoldedElements && may_make(static_cast<std::uint64_t>(work), sizeof(double));
  if (weights || (constant && covered)) {
    Constant made = evaluate(c, op, attributes, inputs, values, out);
    if (weights && op.name == "DequantizeLinear")
      made.quantised = values_behind(PlainNode(op, kernels::form_of(attributes), inputs), c, values, made.data);
    return c.add_constant(std::move(made));
  }
  if (empty) c.refuse("an input is empty");
  if (values.empty()) c.refuse("its result is too large to be computed at import");
  const ValueId made = c.add(model::OpKind::kPlain, values, out.shape, std::move(attributes));
  c.draft().value(made).dtype = out.dtype;
  c.draft().value(made).bounded = result.bounded;
  return made;
}

}  // namespace

std::int64_t real_bits(double value) noexcept { return std::bit_cast<std::int64_t>(value); }

/// Of values and their places, both wanted: the places are sorted once, and the values are those that lie there.
bool gathers_values(const NodeContext& c, const PlainOperator& op) {
  return op.name == "TopK" && c.wants_output(0) && c.wants_output(1) && !c.bounded(c.input(0));
}

void lower_plain(NodeContext& c, const PlainOperator& op) {
  model::PlainAttributes attributes;
  attributes.op = op.number;
  std::vector<std::vector<std::int64_t>> arguments;
  std::uint32_t taken = 0;
  for (const ArgumentSpec& spec : parse_specs(op.arguments)) {
    const bool late = is_late(c, op, spec);
    arguments.push_back(late ? std::vector<std::int64_t>() : read_argument(c, spec));
    if (spec.input >= 0 && !late) taken |= 1u << spec.input;
  }
  attributes.arguments = pack(arguments);
  if (c.input_count() > kMaxInputs) c.refuse("more than 32 inputs");
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i) || (taken >> i & 1u) != 0) continue;
    attributes.present |= 1u << i;
    values.push_back(c.input(i));
  }
  for (std::size_t o = gathers_values(c, op) ? 1 : 0; o < c.output_count(); ++o) {
    if (!c.wants_output(o)) continue;
    if (o >= static_cast<std::size_t>(op.outputs)) c.refuse("output " + std::to_string(o) + " is not supported");
    attributes.result = static_cast<std::uint8_t>(o);
    c.set_output(o, make(c, op, attributes, values, true));
  }
  if (!gathers_values(c, op)) return;
  if (c.bounded(c.outputs()[1])) {
    attributes.result = 0;
    return c.set_output(0, make(c, op, attributes, values, true));
  }
  c.set_output(0, add_plain(c, "GatherElements", {c.input(0), c.outputs()[1]},
                            {arguments[1].empty() ? std::vector<std::int64_t>{-1} : arguments[1]}));
}

ValueId add_plain(NodeContext& c, std::string_view name, std::vector<ValueId> inputs, std::vector<std::vector<std::int64_t>> arguments,
                  int result, bool whole) {
  const PlainOperator* op = kernels::find_plain(name);
  if (op == nullptr) c.refuse("no plain operator of the name " + std::string(name));
  model::PlainAttributes attributes;
  attributes.op = op->number;
  attributes.result = static_cast<std::uint8_t>(result);
  attributes.arguments = pack(arguments);
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].valid()) continue;
    attributes.present |= 1u << i;
    values.push_back(inputs[i]);
  }
  return make(c, *op, std::move(attributes), values, whole);
}

ValueId real_input(NodeContext& c, std::size_t at, std::int64_t axis) {
  return add_plain(c, "DequantizeLinear", {c.input(at), c.float_input(at + 1), c.optional_input(at + 2)}, {{axis}, {0}, {0}});
}

void set_quantised(NodeContext& c, ValueId y, std::size_t scale) {
  c.set_output(0, add_plain(c, "QuantizeLinear", {y, c.float_input(scale), c.optional_input(scale + 1)}, {{1}, {0}, {0}, {1}}));
}

}  // namespace sluice::importer

#include "src/importer/lower_sequence.h"

#include <algorithm>

#include "src/importer/allowance.h"
#include "src/importer/lower_control.h"

namespace sluice::importer {
namespace {

using Items = std::vector<ValueId>;

const Items& items_of(const NodeContext& c, std::size_t input) {
  const Value& value = c.draft().value(c.input(input));
  if (value.items == nullptr) c.malformed("input " + std::to_string(input) + " is no sequence");
  return *value.items;
}

void give(NodeContext& c, std::size_t output, Items items) { c.set_output(output, add_sequence(c, std::move(items))); }

/// One of the first `places` places of a sequence of `count`, as an input says, from the end where negative; without one the last place.
std::ptrdiff_t place_of(const NodeContext& c, std::size_t input, std::int64_t count, std::int64_t places) {
  std::int64_t place = places - 1;
  if (c.has_input(input)) {
    const std::vector<std::int64_t> stated = c.constant_integers(input, "the position in a sequence");
    if (stated.size() != 1) c.malformed("the position in a sequence must be one number");
    place = stated[0] < 0 ? stated[0] + count : stated[0];
  }
  if (place < 0 || place >= places)
    c.malformed("position " + std::to_string(place) + " is outside a sequence of " + std::to_string(count) + " tensors");
  return place;
}

void lower_construct(NodeContext& c) {
  Items items;
  for (std::size_t i = 0; i < c.input_count(); ++i) items.push_back(c.input(i));
  give(c, 0, std::move(items));
}

void lower_insert(NodeContext& c) {
  Items items = items_of(c, 0);
  const auto count = static_cast<std::int64_t>(items.size());
  items.insert(items.begin() + place_of(c, 2, count, count + 1), c.input(1));
  give(c, 0, std::move(items));
}

void lower_erase(NodeContext& c) {
  Items items = items_of(c, 0);
  const auto count = static_cast<std::int64_t>(items.size());
  items.erase(items.begin() + place_of(c, 1, count, count));
  give(c, 0, std::move(items));
}

void lower_at(NodeContext& c) {
  const Items& items = items_of(c, 0);
  const auto count = static_cast<std::int64_t>(items.size());
  c.input(1);
  c.set_output(0, items[static_cast<std::size_t>(place_of(c, 1, count, count))]);
}

void lower_length(NodeContext& c) {
  const auto count = static_cast<std::int64_t>(items_of(c, 0).size());
  c.set_output(0, c.add_constant(make_constant(Shape{}, std::span(&count, 1))));
}

OnnxAttribute integer_attribute(std::string_view name, std::int64_t value) {
  OnnxAttribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::kInt;
  attribute.i = value;
  return attribute;
}

ValueId add_integers(NodeContext& c, const std::vector<std::int64_t>& values) {
  const std::int64_t count[] = {static_cast<std::int64_t>(values.size())};
  return c.add_constant(make_constant(*Shape::make(count), values));
}

/// An axis taken out of a tensor, or put in.
ValueId with_axis(NodeContext& c, BodyLowering& bodies, std::string_view op, ValueId x, std::int64_t axis) {
  return bodies.lower_as(c, op, {x, add_integers(c, {axis})}, {}, 1)[0];
}

void lower_concat_from(NodeContext& c, BodyLowering& bodies) {
  Items items = items_of(c, 0);
  if (items.empty()) c.malformed("it joins the tensors of an empty sequence");
  if (!c.has("axis")) c.malformed("attribute axis is missing");
  std::int64_t axis = c.integer("axis", 0);
  if (c.integer("new_axis", 0) != 0) {
    axis = c.axis(axis, c.shape(items[0]).rank() + 1);
    for (ValueId& item : items) item = with_axis(c, bodies, "Unsqueeze", item, axis);
  }
  c.set_output(0, items.size() == 1 ? items[0] : bodies.lower_as(c, "Concat", items, {integer_attribute("axis", axis)}, 1)[0]);
}

void check_lengths(const NodeContext& c, const std::vector<std::int64_t>& lengths, std::int64_t extent) {
  std::int64_t left = extent;
  for (const std::int64_t length : lengths) {
    if (length < 0 || length > left) c.malformed("its pieces are longer than the axis of " + std::to_string(extent) + ", or negative");
    left -= length;
  }
  if (left != 0) c.malformed("its pieces leave " + std::to_string(left) + " of the axis of " + std::to_string(extent) + " out");
}

/// The lengths of the pieces along an axis of `extent`: each one stated, or all as long as one number says, the last being what is left, or
/// a place each. They are counted before there is a list of them: a file states billions of places in a few bytes.
std::vector<std::int64_t> piece_lengths(NodeContext& c, std::int64_t extent) {
  std::int64_t each = 1;
  if (c.has_input(1)) {
    std::vector<std::int64_t> stated = c.constant_integers(1, "where a sequence is split");
    if (c.input_shape(1).rank() == 1) {
      count_made(stated.size(), kUnrolledNodeBytes);
      check_lengths(c, stated, extent);
      return stated;
    }
    if (stated.size() != 1 || stated[0] <= 0) c.malformed("the length of a piece must be one positive number");
    each = std::clamp<std::int64_t>(stated[0], 1, std::max<std::int64_t>(1, extent));
  }
  const std::int64_t count = ceil_div(extent, each);
  count_made(static_cast<std::uint64_t>(count), kUnrolledNodeBytes);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(count), each);
  if (count > 0) lengths.back() = extent - (count - 1) * each;
  return lengths;
}

void lower_split_to(NodeContext& c, BodyLowering& bodies) {
  const ValueId x = c.input(0);
  if (c.bounded(x)) c.refuse("the extents of its input are known at run only, and so is the number of its pieces");
  const int axis = c.axis(c.integer("axis", 0), c.shape(x).rank());
  const std::vector<std::int64_t> lengths = piece_lengths(c, c.shape(x)[axis]);
  Items items;
  if (lengths.size() == 1) items = {x};
  if (lengths.size() > 1)
    items = bodies.lower_as(c, "Split", {x, add_integers(c, lengths)}, {integer_attribute("axis", axis)}, lengths.size());
  if (!c.has_input(1) && c.integer("keepdims", 1) == 0)
    for (ValueId& item : items) item = with_axis(c, bodies, "Squeeze", item, axis);
  give(c, 0, std::move(items));
}

/// The body once for each item: of further inputs that are sequences too their item, others as they are.
void lower_map(NodeContext& c, BodyLowering& bodies) {
  const OnnxGraph& body = body_of(c, "body");
  const std::size_t count = items_of(c, 0).size();
  std::vector<Items> results(c.output_count());
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<ValueId> inputs;
    for (std::size_t input = 0; input < c.input_count(); ++input) {
      const Value& value = c.draft().value(c.input(input));
      if (value.items != nullptr && value.items->size() != count)
        c.malformed("its sequences have " + std::to_string(count) + " and " + std::to_string(value.items->size()) + " tensors");
      inputs.push_back(value.items == nullptr ? c.input(input) : (*value.items)[i]);
    }
    const std::vector<ValueId> outputs = bodies.lower_body(body, inputs);
    if (!all_valid(outputs)) return;
    if (outputs.size() < results.size()) c.malformed("its body gives fewer values than it has outputs");
    for (std::size_t r = 0; r < results.size(); ++r) results[r].push_back(outputs[r]);
  }
  for (std::size_t r = 0; r < results.size(); ++r) give(c, r, std::move(results[r]));
}

/// With a value the optional is the value.
void lower_optional(NodeContext& c) {
  if (c.has_input(0)) return c.set_output(0, c.input(0));
  c.set_output(0, c.draft().add_value(absent_value()));
}

bool has_value(const NodeContext& c) { return c.has_input(0) && !c.draft().value(c.input(0)).absent; }

void lower_get_element(NodeContext& c) {
  if (!has_value(c)) c.malformed("it takes the value of an optional that has none");
  c.set_output(0, c.input(0));
}

void lower_has_element(NodeContext& c) {
  const std::int64_t there = has_value(c) ? 1 : 0;
  c.set_output(0, c.add_constant(make_constant(Shape{}, std::span(&there, 1), DType::kBool)));
}

using Lower = void (*)(NodeContext&, BodyLowering&);
template <void (*kLower)(NodeContext&)>
void alone(NodeContext& c, BodyLowering&) {
  kLower(c);
}

constexpr struct {
  std::string_view op;
  Lower lower;
} kSequenceOperators[] = {
    {"ConcatFromSequence", lower_concat_from},
    {"Optional", alone<lower_optional>},
    {"OptionalGetElement", alone<lower_get_element>},
    {"OptionalHasElement", alone<lower_has_element>},
    {"SequenceAt", alone<lower_at>},
    {"SequenceConstruct", alone<lower_construct>},
    {"SequenceEmpty", alone<lower_construct>},
    {"SequenceErase", alone<lower_erase>},
    {"SequenceInsert", alone<lower_insert>},
    {"SequenceLength", alone<lower_length>},
    {"SequenceMap", lower_map},
    {"SplitToSequence", lower_split_to},
};

}  // namespace

ValueId add_sequence(NodeContext& c, std::vector<ValueId> items) {
  count_made(items.size(), sizeof(ValueId));
  return c.draft().add_value(sequence_of(std::move(items)));
}

bool is_sequence_operator(std::string_view op) noexcept {
  return std::any_of(std::begin(kSequenceOperators), std::end(kSequenceOperators), [&](const auto& line) { return line.op == op; });
}

void lower_sequence(NodeContext& c, BodyLowering& bodies) {
  for (const auto& line : kSequenceOperators)
    if (line.op == c.node().op_type) return line.lower(c, bodies);
}

}  // namespace sluice::importer

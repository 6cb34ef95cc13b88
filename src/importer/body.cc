#include "src/importer/body.h"

#include <algorithm>
#include <cstring>

#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

constexpr std::int64_t kMaxWords = 64;  // of a constant that lies in the body itself
constexpr std::uint64_t kAlignment = 64;

std::uint64_t bytes_of(const Value& value) { return static_cast<std::uint64_t>(value.shape.element_count()) * size_of(run_type(value)); }

model::PlainAttributes plain(std::string_view name, std::vector<std::int64_t> arguments = {}) {
  model::PlainAttributes attributes;
  attributes.op = kernels::find_plain(name)->number;
  attributes.present = 1;
  attributes.arguments = std::move(arguments);
  return attributes;
}

/// Outputs get bytes of their own, and what is the same bytes in another shape becomes a copy.
void make_plain(NodeContext& c, ApartBody& body) {
  Draft& draft = body.draft;
  std::set<ValueId> taken;
  for (const DraftPort& port : draft.inputs) taken.insert(port.value);
  for (ValueId& output : body.outputs) {
    if (!draft.value(output).constant && taken.insert(output).second) continue;
    Value copy = draft.value(output);
    copy.constant.reset();
    copy.dtype = run_type(copy);
    DraftNode node;
    node.op = model::OpKind::kPlain;
    node.attributes = plain("Identity");
    node.inputs = {output};
    output = node.output = draft.add_value(std::move(copy));
    draft.nodes.push_back(std::move(node));
  }
  for (const ValueId output : body.outputs) draft.outputs.push_back({"", output});
  compact(draft);
  for (DraftNode& node : draft.nodes) {
    if (node.op == model::OpKind::kReshape) {
      const auto dims = draft.value(node.output).shape.dims();
      std::vector<std::int64_t> arguments = {static_cast<std::int64_t>(dims.size())};
      arguments.insert(arguments.end(), dims.begin(), dims.end());
      arguments.insert(arguments.end(), {1, 1});
      node.op = model::OpKind::kPlain;
      node.attributes = plain("Reshape", std::move(arguments));
    }
    if (node.op != model::OpKind::kPlain)
      c.refuse("its course is known at run only, and `" + node.name + "` of a body (" + std::string(model::name_of(node.op)) +
               ") has no plain form");
  }
}

/// First and last node at which each value must lie in the arena.
struct Life {
  std::size_t first = 0, last = 0;
};

/// Places for the values that live in the arena: each the lowest that is free for its life. The bytes in all.
std::uint64_t place(const std::vector<ValueId>& values, const std::vector<Life>& lives, const Draft& draft,
                    std::vector<std::int64_t>& places) {
  struct Placed {
    Life life;
    std::uint64_t begin, end;
  };
  std::vector<Placed> placed;  // by rising begin
  std::uint64_t bytes = 0;
  for (const ValueId value : values) {
    const Life life = lives[value.index()];
    const std::uint64_t size = align_up(Bytes(std::max<std::uint64_t>(bytes_of(draft.value(value)), 1)), kAlignment).count();
    std::uint64_t at = 0;
    for (const Placed& other : placed)
      if (other.life.first <= life.last && life.first <= other.life.last && other.begin < at + size && at < other.end) at = other.end;
    const auto before = std::upper_bound(placed.begin(), placed.end(), at, [](std::uint64_t b, const Placed& p) { return b < p.begin; });
    placed.insert(before, {life, at, at + size});
    places[value.index()] = static_cast<std::int64_t>(at);
    bytes = std::max(bytes, at + size);
  }
  return bytes;
}

std::vector<std::int64_t> words_of(const Constant& constant, DType dtype) {
  std::vector<std::int64_t> words((static_cast<std::size_t>(constant.elements()) * size_of(dtype) + 7) / 8);
  if (dtype == DType::kF32) {
    std::vector<float> values(static_cast<std::size_t>(constant.elements()));
    write_floats(constant, values);
    std::memcpy(words.data(), values.data(), values.size() * sizeof(float));
  } else {
    write_elements(constant, reinterpret_cast<std::byte*>(words.data()));
  }
  return words;
}

class Encoder {
 public:
  Encoder(NodeContext& c, ApartBody body, std::size_t own) : c_(c), body_(std::move(body)), draft_(body_.draft), own_(own) {}

  EncodedBody run() {
    make_plain(c_, body_);
    choose_weights();
    gather();
    live();
    const std::uint64_t bytes = place(in_arena_, lives_, draft_, places_);
    for (const std::size_t count : {tensors_.size(), inputs_.size(), body_.outputs.size(), constants_.size(), draft_.nodes.size()})
      add(count);
    add(bytes);
    for (const ValueId value : tensors_) add_tensor(value);
    for (const ValueId value : inputs_) add(number_[value.index()]);
    for (const ValueId value : body_.outputs) add(number_[value.index()]);
    for (const ValueId value : constants_) {
      const std::vector<std::int64_t> words = words_of(*draft_.value(value).constant, run_type(draft_.value(value)));
      add(number_[value.index()]);
      add_list(words);
    }
    for (const DraftNode& node : draft_.nodes) add_node(node);
    return std::move(made_);
  }

 private:
  void add(std::uint64_t word) { made_.words.push_back(static_cast<std::int64_t>(word)); }
  void add_list(const std::vector<std::int64_t>& list) {
    add(list.size());
    made_.words.insert(made_.words.end(), list.begin(), list.end());
  }

  /// Numbers what is used, and says where each comes from.
  void gather() {
    number_.assign(draft_.values.size(), ~std::size_t{0});
    places_.assign(draft_.values.size(), -1);
    std::vector<bool> read(draft_.values.size(), false);
    for (const DraftNode& node : draft_.nodes)
      for (const ValueId input : node.inputs) read[input.index()] = true;
    for (std::size_t i = 0; i < draft_.inputs.size(); ++i) {
      const ValueId value = draft_.inputs[i].value;
      const bool captured = i >= draft_.inputs.size() - body_.captured.size();
      if (captured && !read[value.index()]) continue;
      inputs_.push_back(value);
      number(value);
      if (i < own_) in_arena_.push_back(value);
      if (captured) made_.given.push_back(body_.captured[i - (draft_.inputs.size() - body_.captured.size())]);
    }
    for (const DraftNode& node : draft_.nodes) {
      for (const ValueId input : node.inputs)
        if (number_[input.index()] == ~std::size_t{0}) take_constant(input);
      number(node.output);
      in_arena_.push_back(node.output);
    }
    inputs_.insert(inputs_.end(), weight_inputs_.begin(), weight_inputs_.end());
  }

  std::uint64_t constant_bytes(ValueId value) const { return draft_.value(value).constant ? bytes_of(draft_.value(value)) : 0; }

  /// Constants that become weights: each is the largest of every node that reads it.
  void choose_weights() {
    if (c_.draft().plain_only) return;  // a body within a body has no weights
    std::set<ValueId> others;
    for (const DraftNode& node : draft_.nodes) {
      ValueId largest;
      for (const ValueId input : node.inputs)
        if (constant_bytes(input) >= model::kAlwaysResidentBelow.count() &&
            (!largest.valid() || constant_bytes(input) > constant_bytes(largest)))
          largest = input;
      // A node takes one weight at one place: what it reads twice stays a constant.
      for (const ValueId input : node.inputs)
        if (input != largest || std::count(node.inputs.begin(), node.inputs.end(), input) > 1) others.insert(input);
      if (largest.valid()) weights_.insert({largest, true});
    }
    for (const ValueId other : others) weights_.erase(other);
    // In panels: those that are nothing but the second factor of products.
    for (const DraftNode& node : draft_.nodes)
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (const auto weight = weights_.find(node.inputs[i]); weight != weights_.end() && !is_factor(node, i)) weight->second = false;
    for (DraftNode& node : draft_.nodes) {
      const auto weight = node.inputs.size() == 2 ? weights_.find(node.inputs[1]) : weights_.end();
      if (weight != weights_.end() && weight->second)
        std::get<model::PlainAttributes>(node.attributes).op = kernels::find_plain("BodyDense")->number;
    }
  }

  bool is_factor(const DraftNode& node, std::size_t input) const {
    const Value& value = draft_.value(node.inputs[input]);
    return input == 1 && std::get<model::PlainAttributes>(node.attributes).op == kernels::find_plain("MatMul")->number &&
           run_type(value) == DType::kF32 && value.shape.rank() == 2;
  }

  void take_weight(ValueId id, bool panels) {
    Value& value = draft_.value(id);
    BodyWeight weight{value.name, *value.constant, panels};
    weight.values.quantised = nullptr;  // the panels of bodies hold floats
    if (panels) {
      weight.values = permuted(weight.values, swapped_);
      value.shape = weight.values.shape;
    }
    places_[id.index()] = panels ? -3 : -2;
    number(id);
    weight_inputs_.push_back(id);
    made_.weights.push_back(std::move(weight));
  }

  void number(ValueId value) {
    number_[value.index()] = tensors_.size();
    tensors_.push_back(value);
  }

  void take_constant(ValueId value) {
    if (const auto weight = weights_.find(value); weight != weights_.end()) return take_weight(value, weight->second);
    number(value);
    if (bytes_of(draft_.value(value)) <= kMaxWords * 8) {
      constants_.push_back(value);
      in_arena_.push_back(value);
      return;
    }
    inputs_.push_back(value);
    made_.given.push_back(c_.add_constant(*draft_.value(value).constant));
  }

  /// What the node writes, constants and outputs live from end to end: the body may run many times.
  void live() {
    const std::size_t end = draft_.nodes.size();
    lives_.assign(draft_.values.size(), {0, end});
    for (std::size_t n = 0; n < end; ++n) lives_[draft_.nodes[n].output.index()] = {n, n};
    for (std::size_t n = 0; n < end; ++n)
      for (const ValueId input : draft_.nodes[n].inputs) lives_[input.index()].last = std::max(lives_[input.index()].last, n);
    for (const ValueId output : body_.outputs) lives_[output.index()].last = end;
  }

  void add_tensor(ValueId id) {
    const Value& value = draft_.value(id);
    add(static_cast<std::uint64_t>(run_type(value)));
    add(value.bounded);
    add(static_cast<std::uint64_t>(value.shape.rank()));
    for (int axis = 0; axis < Shape::kMaxRank; ++axis) made_.words.push_back(axis < value.shape.rank() ? value.shape[axis] : 0);
    made_.words.push_back(places_[id.index()]);
  }

  void add_node(const DraftNode& node) {
    const auto& attributes = std::get<model::PlainAttributes>(node.attributes);
    add(attributes.op);
    add(attributes.result);
    add(attributes.present);
    add(node.inputs.size());
    for (const ValueId input : node.inputs) add(number_[input.index()]);
    add(number_[node.output.index()]);
    add_list(attributes.arguments);
  }

  NodeContext& c_;
  ApartBody body_;
  Draft& draft_;
  const std::size_t own_;
  EncodedBody made_;
  std::vector<ValueId> tensors_, inputs_, constants_, in_arena_, weight_inputs_;
  std::map<ValueId, bool> weights_;  // constants that become weights; in panels?
  Perm swapped_ = {1, 0, 2, 3, 4, 5, 6, 7};
  std::vector<std::size_t> number_;  // by value
  std::vector<Life> lives_;
  std::vector<std::int64_t> places_;
};

}  // namespace

EncodedBody encode_body(NodeContext& c, ApartBody body, std::size_t own) { return Encoder(c, std::move(body), own).run(); }

ValueId add_result(NodeContext& c, ValueId packed, std::size_t i, DType dtype, const Shape& most, std::uint8_t bounded) {
  const std::vector<std::int64_t> shape(most.dims().begin(), most.dims().end());
  return add_plain(c, "TakeResult", {packed}, {{static_cast<std::int64_t>(i)}, {static_cast<std::int64_t>(dtype)}, {bounded}, shape});
}

}  // namespace sluice::importer

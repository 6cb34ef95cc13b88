// DequantizeLinear -> operator -> QuantizeLinear becomes one node of the class int8 (docs/quantisation.md).
//
// One walk over the nodes notes what is known of each real value: that it stands for bytes, perhaps through a function of one value.
//
//     bytes --DQ--> x            x stands for the bytes
//     x --HardSwish--> y         y is a function of the bytes: 256 results
//     y --Q--> bytes             a table node; of an operator over several values: that operator over bytes
//
// Nodes over reals stay where they are, reading reals that Dequantize nodes make; `compact` removes those that nobody reads any more.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include "sluice/kernels/kernel.h"
#include "sluice/kernels/plain.h"
#include "sluice/kernels/reference.h"
#include "sluice/operators/parameters/integer.h"
#include "src/importer/rewrite/integer_products.h"
#include "src/importer/rewrite/linear.h"
#include "src/importer/rewrite/movement.h"
#include "src/importer/rewrite/rewrite.h"
#include "src/kernels/generic/arithmetic.h"
#include "src/operators/generic/table.h"

namespace sluice::importer {
namespace {

using model::BinaryFunction;
using model::Function;
using model::NumericClass;
using model::OpKind;

using Results = std::array<float, 256>;  // of a function, for each byte

/// A real value as a function of bytes at the same places.
struct Known {
  ValueId bytes;
  bool itself = true;  // it is what the bytes stand for
  std::shared_ptr<const Results> results;
};

/// Where bytes in place of the ones of the ONNX graph lie, and how to make those again.
struct Held {
  ValueId bytes;
  std::size_t quantiser = 0;  // of the draft before: it made the bytes, or those that were moved here
};

/// What quantises a value, alone.
struct Target {
  std::vector<std::size_t> quantisers;
  std::vector<std::size_t> between;  // an activation
  model::Activation activation;
  ByteScale scale;
};

/// exp((i - 255) * scale) for each byte i, times what leaves a sum of so many of them, and its product with the output's steps, below the
/// largest float.
std::vector<float> exponentials(float scale, std::int64_t count) {
  constexpr double kRoom = 5;
  constexpr int kLast = 255;
  const float most = std::numeric_limits<float>::max() / static_cast<float>(count);
  const double shift = std::max(0.0, std::log(static_cast<double>(most)) - kRoom) / static_cast<double>(scale);
  std::vector<float> values;
  for (int i = 0; i <= kLast; ++i) values.push_back(static_cast<float>(std::exp((i - kLast + shift) * static_cast<double>(scale))));
  return values;
}

class FormInteger {
 public:
  explicit FormInteger(Draft& draft) : draft_(draft), uses_(draft), done_(draft.nodes.size(), false) { source_.swap(draft.nodes); }

  void run() {
    for (std::size_t n = 0; n < source_.size(); ++n)
      if (!done_[n]) place(n);
    for (DraftPort& port : draft_.outputs) give_out(port);
  }

 private:
  void place(std::size_t n) {
    const DraftNode& node = source_[n];
    if (const auto scale = byte_scale_of(draft_, node)) return is_quantise(node) ? place_quantise(n, *scale) : place_dequantise(n, *scale);
    if (move(node) || multiply(node) || multiply_activations(node)) return;
    note_function(node);
    if (combine(node) || average(node) || blend(node) || normalise(node)) return;
    push(node);
  }

  // ---- values

  const Known* known(ValueId value) const {
    const auto found = known_.find(value);
    return found == known_.end() ? nullptr : &found->second;
  }
  /// The bytes that a value stands for, as they are.
  std::optional<ValueId> bytes_of(ValueId value) const {
    const Known* k = known(value);
    return k != nullptr && k->itself ? std::optional(k->bytes) : std::nullopt;
  }
  const ByteScale& scale_of(ValueId bytes) const { return *draft_.value(bytes).bytes; }

  ValueId add_bytes(const Value& like, const ByteScale& scale) {
    Value made;
    made.name = like.name + ":u8";
    made.dtype = DType::kU8;
    made.shape = like.shape;
    made.bytes = scale;
    return draft_.add_value(std::move(made));
  }
  /// The value of ONNX itself where it has the type, else one in its place.
  ValueId bytes_for(ValueId value, const ByteScale& scale) {
    if (draft_.value(value).dtype != DType::kU8) return add_bytes(draft_.value(value), scale);
    draft_.value(value).bytes = scale;
    return value;
  }

  // ---- nodes

  DraftNode border(OpKind op, ValueId from, ValueId to) const {
    DraftNode node;
    node.name = draft_.value(to).name;
    node.op = op;
    node.numeric = NumericClass::kInt8;
    node.inputs = {from};
    node.output = to;
    return node;
  }
  void dequantise(ValueId bytes, ValueId real) {
    draft_.nodes.push_back(border(OpKind::kDequantize, bytes, real));
    known_[real] = {bytes, true, nullptr};
  }

  /// A node that stays as it is: it reads bytes where they lie now.
  void push(DraftNode node) {
    for (ValueId& input : node.inputs) {
      const auto held = held_.find(input);
      if (held == held_.end() || held->second.bytes == input) continue;
      if (draft_.value(input).dtype == DType::kU8)
        input = held->second.bytes;
      else
        give_back(input);
    }
    draft_.nodes.push_back(std::move(node));
  }

  /// Signed bytes of the ONNX graph from unsigned ones, or the reverse: the sign bit is the other one.
  void flip(ValueId from, ValueId to) {
    constexpr int kSign = 128;
    DraftNode node = border(OpKind::kUnary, from, to);
    for (int byte = 0; byte < 256; ++byte) node.table.push_back(static_cast<std::uint8_t>(byte ^ kSign));
    draft_.nodes.push_back(std::move(node));
  }

  /// Makes bytes of the ONNX graph that others stand in for: rounding what bytes stand for gives the bytes.
  void give_back(ValueId value) {
    const auto held = held_.find(value);
    if (held == held_.end() || held->second.bytes == value) return;
    if (draft_.value(value).dtype == DType::kI8) {
      flip(held->second.bytes, value);
      held->second.bytes = value;
      return;
    }
    Value real;
    real.name = draft_.value(value).name + ":real";
    real.shape = draft_.value(value).shape;
    const ValueId reals = draft_.add_value(std::move(real));
    draft_.nodes.push_back(border(OpKind::kDequantize, held->second.bytes, reals));
    DraftNode node = source_[held->second.quantiser];
    node.name = draft_.value(value).name + ":again";
    node.inputs[0] = reals;
    node.output = value;
    held->second.bytes = value;
    draft_.nodes.push_back(std::move(node));
  }

  /// An output of bytes: those that stand for it, where they have its type and are nobody else's.
  void give_out(DraftPort& port) {
    const auto held = held_.find(port.value);
    if (held == held_.end()) return;
    const ValueId bytes = held->second.bytes;
    const auto has = [&](const DraftPort& other) { return other.value == bytes; };
    const bool taken =
        std::any_of(draft_.inputs.begin(), draft_.inputs.end(), has) || std::any_of(draft_.outputs.begin(), draft_.outputs.end(), has);
    if (draft_.value(port.value).dtype != DType::kU8 || taken) return give_back(port.value);
    port.value = bytes;
  }

  // ---- where integers begin and end

  void place_dequantise(std::size_t n, const ByteScale& scale) {
    const DraftNode& node = source_[n];
    const ValueId from = node.inputs[0];
    if (draft_.value(from).bounded != 0) return push(node);
    const auto held = held_.find(from);
    if (held != held_.end()) {
      if (draft_.value(held->second.bytes).bytes == scale) return dequantise(held->second.bytes, node.output);
      return push(node);
    }
    if (draft_.value(from).dtype == DType::kU8 && !draft_.value(from).constant && !draft_.value(from).bytes) {
      draft_.value(from).bytes = scale;
      held_[from] = {from, n};
      return dequantise(from, node.output);
    }
    if (draft_.value(from).dtype == DType::kI8 && !draft_.value(from).constant) {
      const auto [made, first] = flipped_.try_emplace({from, scale.scale, scale.zero});
      if (first) flip(from, made->second = add_bytes(draft_.value(from), scale));
      return dequantise(made->second, node.output);
    }
    push(node);
    if (draft_.value(from).constant) return;
    const ValueId bytes = add_bytes(draft_.value(node.output), scale);
    draft_.nodes.push_back(border(OpKind::kQuantize, node.output, bytes));
    known_[node.output] = {bytes, true, nullptr};
  }

  void place_quantise(std::size_t n, const ByteScale& scale) {
    const DraftNode& node = source_[n];
    const ValueId from = node.inputs[0];
    if (draft_.value(from).constant || draft_.value(from).bounded != 0) return push(node);
    if (const auto same = bytes_of(from); same && scale_of(*same) == scale) {
      held_[node.output] = {*same, n};
      return;
    }
    if (const auto twin = quantised_.find({from, scale.scale, scale.zero}); twin != quantised_.end()) {
      held_[node.output] = {twin->second, n};
      return;
    }
    const ValueId bytes = bytes_for(node.output, scale);
    held_[node.output] = {bytes, n};
    quantised_[{from, scale.scale, scale.zero}] = bytes;
    const Known* k = known(from);
    if (k == nullptr) return draft_.nodes.push_back(border(OpKind::kQuantize, from, bytes));
    DraftNode table = border(OpKind::kUnary, k->bytes, bytes);
    const Results results = results_of(*k);
    for (const float result : results) table.table.push_back(byte_of(result, scale));
    draft_.nodes.push_back(std::move(table));
  }

  // ---- functions of one value

  Results results_of(const Known& k) const {
    if (k.results != nullptr) return *k.results;
    Results results{};
    for (std::size_t i = 0; i < results.size(); ++i) results[i] = real_of(static_cast<std::uint8_t>(i), scale_of(k.bytes));
    return results;
  }

  void note_function(const DraftNode& node) {
    if (node.op == OpKind::kUnary) {
      const Known* k = known(node.inputs[0]);
      if (k == nullptr) return;
      Results results = results_of(*k);
      for (float& result : results) result = kernels::reference_apply(node.epilogue.activation, result);
      known_[node.output] = {k->bytes, false, std::make_shared<Results>(results)};
      return;
    }
    if (node.op == OpKind::kPlain) return note_plain_function(node);
    if (node.op != OpKind::kBinary || node.epilogue.activation.function != Function::kNone) return;
    const Known *a = operand(node, 0), *b = operand(node, 1);
    const auto x = number(node.inputs[0]), y = number(node.inputs[1]);
    if ((a == nullptr && !x) || (b == nullptr && !y) || (a == nullptr && b == nullptr)) return;
    if (a != nullptr && b != nullptr && a->bytes != b->bytes) return;
    const ValueId bytes = a != nullptr ? a->bytes : b->bytes;
    Results left, right;
    a != nullptr ? left = results_of(*a) : (left.fill(*x), left);
    b != nullptr ? right = results_of(*b) : (right.fill(*y), right);
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = kernels::generic::apply(node.as_binary(), left[i], right[i]);
    known_[node.output] = {bytes, false, std::make_shared<Results>(left)};
  }
  /// One of the long tail's functions of one value: its kernel computes the results.
  void note_plain_function(const DraftNode& node) {
    const auto& attributes = *std::get_if<model::PlainAttributes>(&node.attributes);
    const kernels::PlainOperator* op = kernels::find_plain(attributes.op);
    const auto functions = operators::generic::unary_operators();
    const bool of_one = std::any_of(functions.begin(), functions.end(), [&](const kernels::PlainOperator& f) { return &f == op; });
    const Known* k = of_one && draft_.value(node.output).dtype == DType::kF32 ? known(node.inputs[0]) : nullptr;
    if (k == nullptr) return;
    Results from = results_of(*k), results{};
    const Shape shape{static_cast<std::int64_t>(from.size())};
    const kernels::PlainTensor in{DType::kF32, shape, reinterpret_cast<std::byte*>(from.data())};
    const kernels::PlainTensor out{DType::kF32, shape, reinterpret_cast<std::byte*>(results.data())};
    const kernels::PlainNode plain(*op, kernels::form_of(attributes), std::span(&in, 1));
    if (kernels::generic_kernel(*op).run(plain, out, nullptr) != nullptr) return;
    known_[node.output] = {k->bytes, false, std::make_shared<Results>(results)};
  }
  /// An operand that is a function of bytes at the output's places.
  const Known* operand(const DraftNode& node, std::size_t i) const {
    return draft_.value(node.inputs[i]).shape == draft_.value(node.output).shape ? known(node.inputs[i]) : nullptr;
  }
  std::optional<float> number(ValueId value) const {
    const auto& constant = draft_.value(value).constant;
    const auto found = constant && is_float(constant->dtype) ? uniform_value(*constant) : std::nullopt;
    return found ? std::optional(static_cast<float>(*found)) : std::nullopt;
  }

  // ---- operators

  /// The same movement of bytes: those that reals stand for, or those of the ONNX graph.
  bool move(DraftNode node) {
    if (!moves(draft_, node)) return false;
    std::vector<ValueId> bytes;
    const DType dtype = draft_.value(node.inputs[0]).dtype;
    const bool reals = is_float(dtype);
    std::size_t quantiser = 0;
    for (const ValueId input : node.inputs) {
      const auto held = held_.find(input);
      const auto found = reals ? bytes_of(input) : held == held_.end() ? std::nullopt : std::optional(held->second.bytes);
      if (!found || !draft_.value(*found).bytes || (!bytes.empty() && scale_of(*found) != scale_of(bytes[0]))) return false;
      if (!reals) quantiser = held->second.quantiser;
      bytes.push_back(*found);
    }
    const ByteScale scale = scale_of(bytes[0]);
    if (reals && !move_bytes(node, scale, DType::kU8)) return false;
    if (auto* pad = std::get_if<model::PadAttributes>(&node.attributes); pad != nullptr && dtype == DType::kI8) pad->value += 128.0f;
    const ValueId was = node.output;
    node.inputs = bytes;
    node.output = reals ? add_bytes(draft_.value(was), scale) : bytes_for(was, scale);
    const ValueId moved = node.output;
    draft_.nodes.push_back(std::move(node));
    reals ? dequantise(moved, was) : void(held_[was] = {moved, quantiser});
    return true;
  }

  /// The QuantizeLinear that alone reads a value (several of one scale count as one), perhaps behind a Relu or Clip.
  std::optional<Target> target_of(ValueId value, bool may_activate = true) const {
    const std::vector<std::size_t>& readers = uses_.readers[value.index()];
    if (uses_.is_output[value.index()] || readers.empty()) return std::nullopt;
    const DraftNode& first = source_[readers[0]];
    const Function function = first.op == OpKind::kUnary ? first.epilogue.activation.function : Function::kNone;
    if (readers.size() == 1 && may_activate && (function == Function::kRelu || function == Function::kClip)) {
      auto target = target_of(first.output, false);
      if (!target) return std::nullopt;
      target->activation = first.epilogue.activation;
      target->between = {readers[0]};
      return target;
    }
    const auto scale = byte_scale_of(draft_, first);
    if (!scale) return std::nullopt;
    for (const std::size_t reader : readers)
      if (!is_quantise(source_[reader]) || byte_scale_of(draft_, source_[reader]) != scale) return std::nullopt;
    return Target{readers, {}, {}, *scale};
  }

  bool of_i8(const Target& target) const { return draft_.value(source_[target.quantisers[0]].output).dtype == DType::kI8; }

  /// `node` over bytes, its result rounded as `target` says.
  void push_rounded(DraftNode node, const Target& target) {
    const ValueId first = source_[target.quantisers[0]].output;
    node.numeric = NumericClass::kInt8;
    node.output = bytes_for(first, target.scale);
    node.epilogue.activation = target.activation;
    for (const std::size_t n : target.between) done_[n] = true;
    for (const std::size_t n : target.quantisers) {
      done_[n] = true;
      held_[source_[n].output] = {node.output, n};
    }
    draft_.nodes.push_back(std::move(node));
  }

  /// Convolutions and dense layers.
  bool multiply(DraftNode node) {
    if ((node.op != OpKind::kConv && node.op != OpKind::kDense) || node.inputs.size() != 1) return false;
    const auto bytes = bytes_of(node.inputs[0]);
    if (!bytes || node.epilogue.activation.function != Function::kNone) return false;
    const auto target = target_of(node.output);
    auto products = integer_products(node, scale_of(*bytes), target ? std::optional(target->scale) : std::nullopt);
    if (!products) return false;
    node.integers = std::move(products);
    node.inputs = {*bytes};
    node.bias.clear();
    node.epilogue.has_bias = true;
    node.numeric = NumericClass::kInt8;
    target ? push_rounded(std::move(node), *target) : draft_.nodes.push_back(std::move(node));
    return true;
  }

  /// Products of two activations, or of one and a constant of one scale that no panel takes.
  bool multiply_activations(DraftNode node) {
    if (node.op != OpKind::kMatMul || node.numeric == NumericClass::kInt8) return false;
    constexpr std::int64_t kMostProducts = INT32_MAX / (255 * 255);
    if (draft_.value(node.inputs[0]).shape.back() > kMostProducts) return false;
    const auto operands = byte_operands(node);
    const auto target = target_of(node.output, false);
    if (!operands) return false;
    node.inputs = *operands;
    node.numeric = NumericClass::kInt8;
    target ? push_rounded(std::move(node), *target) : draft_.nodes.push_back(std::move(node));
    return true;
  }

  /// The bytes of all inputs, which stand for them as they are; constants of one scale get some.
  std::optional<std::vector<ValueId>> byte_operands(const DraftNode& node) {
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs) {
      const auto bytes = bytes_of(input);
      const auto constant = bytes || !draft_.value(input).constant ? std::nullopt : byte_constant(*draft_.value(input).constant);
      if (!bytes && !constant) return std::nullopt;
      operands.push_back(bytes ? *bytes : add_bytes(draft_.value(input), constant->scale));
      if (constant) draft_.value(operands.back()).constant = constant->values;
    }
    return operands;
  }

  /// Functions of two values.
  bool combine(DraftNode node) {
    if (node.op != OpKind::kBinary || node.epilogue.activation.function != Function::kNone || known(node.output) != nullptr) return false;
    const BinaryFunction function = node.as_binary();
    const auto target = target_of(node.output);
    if (!target || function == BinaryFunction::kPrelu || function == BinaryFunction::kPow) return false;
    const auto operands = byte_operands(node);
    if (!operands) return false;
    node.inputs = *operands;
    node.epilogue.of_i8 = function == BinaryFunction::kAdd && of_i8(*target);
    push_rounded(std::move(node), *target);
    return true;
  }

  /// Averages; the largest is movement.
  bool average(DraftNode node) {
    if (node.op != OpKind::kPool || node.epilogue.activation.function != Function::kNone) return false;
    auto& pool = *std::get_if<model::PoolAttributes>(&node.attributes);
    if (pool.kind != model::PoolKind::kAverage) return false;
    const auto bytes = bytes_of(node.inputs[0]);
    const auto target = bytes ? target_of(node.output) : std::nullopt;
    if (!target || pool.window.taps() > operators::kMostAveragedBytes) return false;
    pool.of_i8 = of_i8(*target);
    node.inputs = {*bytes};
    push_rounded(std::move(node), *target);
    return true;
  }

  /// Images that are resized linearly, in rows and columns; the nearest is movement.
  bool blend(DraftNode node) {
    const auto* resize = std::get_if<model::ResizeAttributes>(&node.attributes);
    if (resize == nullptr || resize->mode != model::ResizeMode::kLinear) return false;
    const Shape &in = draft_.value(node.inputs[0]).shape, &out = draft_.value(node.output).shape;
    for (int axis = 0; axis < 2; ++axis)
      if (in.rank() != 4 || in[axis] != out[axis] || resize->scale[static_cast<std::size_t>(axis)] != 1.0f) return false;
    const auto bytes = bytes_of(node.inputs[0]);
    const auto target = bytes ? target_of(node.output, false) : std::nullopt;
    if (!target) return false;
    node.inputs = {*bytes};
    push_rounded(std::move(node), *target);
    return true;
  }

  /// Softmax.
  bool normalise(DraftNode node) {
    const auto* softmax = std::get_if<model::SoftmaxAttributes>(&node.attributes);
    if (softmax == nullptr || softmax->log) return false;
    const auto bytes = bytes_of(node.inputs[0]);
    const auto target = bytes ? target_of(node.output, false) : std::nullopt;
    if (!target) return false;
    node.scale = exponentials(scale_of(*bytes).scale, draft_.value(node.output).shape[node.axis]);
    if (!std::isfinite(node.scale.back() * std::floor(1.0f / target->scale.scale))) return false;
    node.inputs = {*bytes};
    push_rounded(std::move(node), *target);
    return true;
  }

  Draft& draft_;
  const Uses uses_;  // of the draft before
  std::vector<DraftNode> source_;
  std::vector<bool> done_;  // by node of `source_`: a node before does its work
  std::map<ValueId, Known> known_;
  std::map<ValueId, Held> held_;  // by value of bytes
  std::map<std::tuple<ValueId, float, std::int32_t>, ValueId> quantised_;
  std::map<std::tuple<ValueId, float, std::int32_t>, ValueId> flipped_;
};

}  // namespace

void form_integer(Draft& draft) { FormInteger(draft).run(); }

}  // namespace sluice::importer

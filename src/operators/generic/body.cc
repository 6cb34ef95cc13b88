#include "sluice/operators/generic/body.h"

#include <bit>
#include <bitset>

namespace sluice::operators::generic {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr PlainRefusal kWrongBody = "its body is malformed";

}  // namespace

Planned BodyForm::planned(std::size_t tensor) const noexcept {
  const auto record = words_.subspan(kHead + tensor * kTensorWords, kTensorWords);
  Planned made{static_cast<DType>(record[0]), {}, static_cast<std::uint8_t>(record[1]), 0};
  made.shape = Shape::make(record.subspan(3, static_cast<std::size_t>(record[2]))).value_or(Shape{});
  return made;
}

std::uint64_t BodyForm::bytes(std::size_t tensor) const noexcept {
  const Planned p = planned(tensor);
  return static_cast<std::uint64_t>(p.shape.element_count()) * size_of(p.dtype);
}

bool BodyForm::take(std::size_t& at, std::int64_t words, std::span<const std::int64_t>& out) const noexcept {
  if (at > words_.size() || words < 0 || static_cast<std::uint64_t>(words) > words_.size() - at) return false;
  out = words_.subspan(at, static_cast<std::size_t>(words));
  at += out.size();
  return true;
}

bool BodyForm::next_constant(std::size_t& at, Constant& out) const noexcept {
  std::span<const std::int64_t> head;
  if (!take(at, 2, head)) return false;
  out.tensor = static_cast<std::size_t>(head[0]);
  return take(at, head[1], out.values);
}

bool BodyForm::next_node(std::size_t& at, Node& out) const noexcept {
  std::span<const std::int64_t> head, tail;
  if (!take(at, 4, head) || !take(at, head[3], out.inputs) || !take(at, 2, tail) || !take(at, tail[1], out.form.arguments)) return false;
  out.op = head[0] < 0 || head[0] > 65535 ? nullptr : find_plain(static_cast<std::uint16_t>(head[0]));
  out.form.result = static_cast<std::uint8_t>(head[1]);
  out.form.present = static_cast<std::uint32_t>(head[2]);
  out.output = static_cast<std::size_t>(tail[0]);
  return true;
}

std::span<const PlainTensor> BodyForm::gather(const Node& node, std::span<const PlainTensor> tensors,
                                              std::array<PlainTensor, 32>& inputs) noexcept {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) inputs[i] = tensors[static_cast<std::size_t>(node.inputs[i])];
  return std::span(inputs).first(node.inputs.size());
}

PlainRefusal BodyForm::check() noexcept {
  constexpr std::int64_t kMost[kHead] = {kMaxTensors, 1024, 1024, kMaxTensors, kMaxTensors, kMaxBytes};
  if (bodies_ >= kMaxNested) return "its bodies are nested too deep";
  if (words_.size() < kHead) return kWrongBody;
  for (std::size_t i = 0; i < kHead; ++i)
    if (words_[i] < 0 || words_[i] > kMost[i]) return kWrongBody;
  if (words_.size() < first_constant() || words_[5] % 64 != 0) return kWrongBody;
  if (const PlainRefusal refusal = check_tensors()) return refusal;
  if (const PlainRefusal refusal = check_inputs()) return refusal;
  return check_nodes();
}

PlainRefusal BodyForm::check_tensors() const noexcept {
  for (std::size_t t = 0; t < tensors(); ++t) {
    const auto record = words_.subspan(kHead + t * kTensorWords, kTensorWords);
    if (record[0] < 0 || record[0] >= kDTypeCount || record[1] < 0 || record[1] > 255 || record[2] < 0 || record[2] > Shape::kMaxRank)
      return kWrongBody;
    const auto shape = Shape::make(record.subspan(3, static_cast<std::size_t>(record[2])));
    if (!shape || shape->element_count() > kMaxBytes / 8) return kWrongBody;
    const std::int64_t at = record[11];
    if (at < kPanels || at > kMaxBytes || (at >= 0 && at % 64 != 0)) return kWrongBody;
    if (at == kPanels && (record[0] != static_cast<std::int64_t>(DType::kF32) || record[2] != 2 || record[1] != 0)) return kWrongBody;
    if (at >= 0 && static_cast<std::uint64_t>(at) + bytes(t) > arena_bytes()) return kWrongBody;
  }
  for (std::size_t i = first_input(); i < first_constant(); ++i)
    if (words_[i] < 0 || static_cast<std::size_t>(words_[i]) >= tensors()) return kWrongBody;
  return nullptr;
}

PlainRefusal BodyForm::check_inputs() noexcept {
  weights_ = 0;
  for (std::size_t i = 0; i < inputs(); ++i) {
    const bool weight = is_weight(input(i));
    if (!weight && weights_ > 0) return kWrongBody;
    weights_ += weight ? 1 : 0;
  }
  for (std::size_t o = 0; o < outputs(); ++o)
    if (is_weight(output(o))) return kWrongBody;
  return nullptr;
}

PlainRefusal BodyForm::check_node_weights(const Node& node) const noexcept {
  int weights = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto in = static_cast<std::size_t>(node.inputs[i]);
    weights += is_weight(in) ? 1 : 0;
    const bool takes_panels = node.op->number == kBodyDense && i == 1;
    if (in_panels(in) != takes_panels) return kWrongBody;
  }
  if (weights > 1) return kWrongBody;
  if (node.op->number != kBodyDense) return nullptr;
  // Its tiles write floats, whatever the node says of its output.
  const auto real = [&](std::size_t tensor) { return planned(tensor).dtype == DType::kF32; };
  const bool sound = node.inputs.size() == 2 && real(static_cast<std::size_t>(node.inputs[0])) && real(node.output);
  return sound ? nullptr : kWrongBody;
}

std::size_t BodyForm::weight_of(const Node& node) const noexcept {
  for (const std::int64_t in : node.inputs) {
    if (!is_weight(static_cast<std::size_t>(in))) continue;
    for (std::size_t w = 0; w < weights_; ++w)
      if (input(given() + w) == static_cast<std::size_t>(in)) return w;
  }
  return weights_;
}

PlainRefusal BodyForm::check_nodes() noexcept {
  std::bitset<kMaxTensors> made;
  for (std::size_t i = 0; i < inputs(); ++i) made.set(input(i));
  std::size_t at = first_constant();
  for (std::size_t c = 0; c < count(3); ++c) {
    Constant constant;
    if (!next_constant(at, constant) || constant.tensor >= tensors() || made[constant.tensor] || !in_arena(constant.tensor))
      return kWrongBody;
    if (constant.values.size_bytes() < bytes(constant.tensor)) return kWrongBody;
    made.set(constant.tensor);
  }
  first_node_ = at;
  for (std::size_t n = 0; n < count(4); ++n) {
    Node node;
    if (!next_node(at, node) || node.op == nullptr || node.output >= tensors() || made[node.output] || !in_arena(node.output))
      return kWrongBody;
    if (node.inputs.size() > 32 || static_cast<std::size_t>(std::popcount(node.form.present)) != node.inputs.size()) return kWrongBody;
    std::array<PlainTensor, 32> operands;
    const auto begins = place(node.output), ends = begins + static_cast<std::int64_t>(bytes(node.output));
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto in = static_cast<std::size_t>(node.inputs[i]);
      if (node.inputs[i] < 0 || in >= tensors() || !made[in]) return kWrongBody;
      if (in_arena(in) && place(in) < ends && begins < place(in) + static_cast<std::int64_t>(bytes(in))) return kWrongBody;
      operands[i] = {planned(in).dtype, planned(in).shape, nullptr};
    }
    if (const PlainRefusal refusal = check_node_weights(node)) return refusal;
    std::size_t argument = 0;
    for (std::span<const std::int64_t> list; argument < node.form.arguments.size(); argument += list.size() + 1) {
      const std::int64_t length = node.form.arguments[argument];
      if (length < 0 || static_cast<std::uint64_t>(length) >= node.form.arguments.size() - argument) return kWrongBody;
      list = node.form.arguments.subspan(argument + 1, static_cast<std::size_t>(length));
    }
    made.set(node.output);
  }
  for (std::size_t o = 0; o < outputs(); ++o)
    if (!made[output(o)]) return kWrongBody;
  return nullptr;
}

}  // namespace sluice::operators::generic

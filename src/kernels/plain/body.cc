#include "src/kernels/plain/body.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace sluice::kernels::plain {

PlainRefusal Body::check() noexcept {
  if (const PlainRefusal refusal = BodyForm::check()) return refusal;
  scratch_ = 0;
  std::size_t at = first_node_;
  for (std::size_t n = 0; n < count(4); ++n) {
    Node node;
    next_node(at, node);
    std::array<PlainTensor, 32> operands;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Planned p = planned(static_cast<std::size_t>(node.inputs[i]));
      operands[i] = {p.dtype, p.shape, nullptr};
    }
    const PlainNode plain = PlainNode(*node.op, node.form, std::span(operands).first(node.inputs.size())).in_bodies(bodies_ + 1);
    scratch_ = std::max(scratch_, scratch_of(plain));
  }
  return nullptr;
}

WeightPiece BodyWeights::take(std::size_t weight, std::int64_t first_panel) const noexcept {
  const WeightOperand& operand = call_->weights[first_ + weight];
  if (operand.data == nullptr) return call_->reader == nullptr ? WeightPiece{} : call_->reader->take(first_ + weight, first_panel);
  const std::int64_t panel_bytes = operand.panels.end > 1 ? static_cast<std::int64_t>(operand.panel_bytes.count()) : 0;
  return {operand.data + first_panel * panel_bytes, {first_panel, operand.panels.end}};
}

void BodyWeights::expect_after(std::size_t weight, const WeightPiece& taken) const noexcept {
  if (call_->reader == nullptr) return;
  if (taken.panels.end < call_->weights[first_ + weight].panels.end) {
    call_->reader->expect(first_ + weight, taken.panels.end);
    return;
  }
  // Weights in memory are none of the reader's business.
  for (std::size_t w = weight + 1; w <= weight + count_; ++w) {
    if (w >= count_ && !again_) return;
    if (call_->weights[first_ + w % count_].data != nullptr) continue;
    return call_->reader->expect(first_ + w % count_, 0);
  }
}

bool weights_fit(std::span<const Body* const> bodies, const PlainWeights& weights) noexcept {
  std::size_t at = 0;
  for (const Body* body : bodies) {
    for (std::size_t w = 0; w < body->weights(); ++w, ++at) {
      if (at == weights.count) return false;
      const PlainWeight weight = weights[at];
      const std::size_t tensor = body->input(body->given() + w);
      const Planned planned = body->planned(tensor);
      const PanelLayout& form = weight.layout;
      if (form.dtype != planned.dtype || !(weight.shape == planned.shape)) return false;
      if (!body->in_panels(tensor)) {
        const auto values = static_cast<std::uint64_t>(planned.shape.element_count()) * size_of(planned.dtype);
        if (form.layout != WeightLayout::kPlain || weight.panel_bytes.count() < values) return false;
        continue;
      }
      const std::int64_t panels = (planned.shape[0] + kPanelLanes - 1) / kPanelLanes;
      const auto bytes = static_cast<std::uint64_t>(planned.shape[1] * kPanelLanes) * sizeof(float);
      if (form.layout != WeightLayout::kPanels || form.lanes != kPanelLanes || form.k_block != 1 || form.k_group != 0 ||
          weight.panels != panels || weight.panel_bytes.count() != bytes)
        return false;
    }
  }
  return at == weights.count;
}

std::span<PlainTensor> Body::begin(std::byte* workspace) const noexcept {
  auto* const table = reinterpret_cast<PlainTensor*>(workspace);
  std::byte* const arena = workspace + table_bytes();
  for (std::size_t t = 0; t < tensors(); ++t) {
    const Planned p = planned(t);
    new (table + t) PlainTensor{p.dtype, p.shape, in_arena(t) ? arena + place(t) : nullptr};
  }
  std::size_t at = first_constant();
  for (std::size_t c = 0; c < count(3); ++c) {
    Constant constant;
    next_constant(at, constant);
    std::memcpy(table[constant.tensor].data, constant.values.data(), bytes(constant.tensor));
  }
  return {table, tensors()};
}

PlainRefusal Body::run(std::span<PlainTensor> tensors, std::byte* workspace, const BodyWeights& weights) const noexcept {
  std::byte* const scratch = workspace + table_bytes() + arena_bytes();
  std::size_t at = first_node_;
  for (std::size_t n = 0; n < count(4); ++n) {
    Node node;
    next_node(at, node);
    std::array<PlainTensor, 32> inputs;
    Planned p = planned(node.output);
    p.scratch = scratch_;
    const std::size_t weight = weight_of(node);
    if (weight < weights_ && node.op->number == kBodyDense) {
      const PlainNode dense(*node.op, node.form, gather(node, tensors, inputs));
      PlainTensor made;
      if (const PlainRefusal refusal = infer_plain(dense, made)) return refusal;
      if (!within(made.shape, p)) return kOverBound;
      tensors[node.output].shape = made.shape;
      if (const PlainRefusal fault = run_body_dense(dense.in(0), tensors[node.output], weights, weight)) return fault;
      continue;
    }
    if (weight < weights_) {
      const WeightPiece piece = weights.take(weight, 0);
      if (piece.data == nullptr) return kUnreadWeight;
      tensors[input(given() + weight)].data = const_cast<std::byte*>(piece.data);  // plain operators write to their outputs alone
      weights.expect_after(weight, piece);
    }
    const PlainNode plain = PlainNode(*node.op, node.form, gather(node, tensors, inputs)).in_bodies(bodies_ + 1);
    if (const PlainRefusal fault = run_within(plain, p, tensors[node.output], scratch)) return fault;
  }
  return nullptr;
}

}  // namespace sluice::kernels::plain

// The body of an If, a Loop or a Scan as it runs: what operators/generic/body.h describes, with memory, weights and nodes that compute.
//
// The parent's plan sees one step with a workspace: that holds the body's arena, its tables and the scratch of its nodes. What the body
// reads from outside are inputs of that step. Its large constants are weights of the node: in memory when the step begins, or brought
// piece by piece, each time a node of the body wants one (ADR 0013).
#pragma once

#include "sluice/kernels/call.h"
#include "sluice/operators/generic/body.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/kernel.h"

namespace sluice::kernels::plain {

/// The weights of one body of a node: in memory, or brought by the reader of the call.
class BodyWeights {
 public:
  /// None: the node runs at convert, or in a body.
  BodyWeights() = default;
  /// Those of `call` from `first` on; they are asked for in turns, so after the last comes the first, if the body runs `again`.
  BodyWeights(const KernelCall* call, std::size_t first, std::size_t count, bool again) noexcept
      : call_(call), first_(first), count_(count), again_(again) {}

  /// Are they there?
  bool given() const noexcept { return count_ == 0 || (call_ != nullptr && first_ + count_ <= call_->weights.size()); }
  /// The panels from `first_panel` on, as many as there is room for. Without data: they could not be read.
  WeightPiece take(std::size_t weight, std::int64_t first_panel) const noexcept;
  /// The piece that follows what was taken: the rest of the weight, else the next weight.
  void expect_after(std::size_t weight, const WeightPiece& taken) const noexcept;
  ThreadPool* pool() const noexcept { return call_ == nullptr ? nullptr : call_->pool; }

 private:
  const KernelCall* call_ = nullptr;
  std::size_t first_ = 0, count_ = 0;
  bool again_ = false;
};

inline constexpr PlainRefusal kUnreadWeight = "a weight of its body could not be read";

/// x times a weight in panels: the chains of a dense layer, with its tiles, so the same bits.
PlainRefusal run_body_dense(const PlainTensor& x, const PlainTensor& out, const BodyWeights& weights, std::size_t weight) noexcept;

/// A body that can be run.
class Body : public BodyForm {
 public:
  using BodyForm::BodyForm;
  /// Before anything else is asked.
  PlainRefusal check() noexcept;
  /// Bytes for a run: the tables, the arena, the scratch of its nodes.
  std::uint64_t workspace() const noexcept { return table_bytes() + arena_bytes() + scratch_; }

  /// Lays the tables out at `workspace` and copies the constants. Tensors given from outside have no data yet.
  std::span<PlainTensor> begin(std::byte* workspace) const noexcept;
  /// Runs the nodes once.
  PlainRefusal run(std::span<PlainTensor> tensors, std::byte* workspace, const BodyWeights& weights) const noexcept;

 private:
  std::uint64_t table_bytes() const noexcept { return (tensors() * sizeof(PlainTensor) + 63) / 64 * 64; }
  std::uint64_t scratch_ = 0;  // set by check
};

/// Are the weights of the node those that its bodies want, one body after the other?
bool weights_fit(std::span<const Body* const> bodies, const PlainWeights& weights) noexcept;

}  // namespace sluice::kernels::plain

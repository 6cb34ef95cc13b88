// The body of an If or a Loop: a plan of its own for plain nodes, as a list of numbers in the arguments of one node.
//
// The parent's plan sees one step with a workspace: that holds the body's arena, its tables and the scratch of its nodes. What the body
// reads from outside are inputs of that step. Its large constants are weights of the node: in memory when the step begins, or brought
// piece by piece, each time a node of the body wants one (ADR 0013). The importer writes the list (places included); a file may hold any
// list, so `check` proves what `run` takes for granted.
//
//     [tensors, inputs, outputs, constants, nodes, arena bytes]
//     tensors x [type, bounded, rank, 8 extents, place in the arena; -1: given from outside; -2: a weight; -3: a weight in panels]
//     inputs x [tensor]   outputs x [tensor]
//     constants x [tensor, words, words...]                          values as bits, in the arena
//     nodes x [operator, result, present, inputs, inputs..., output, words, arguments...]
//
// Invariants, after `check`: every index is in range; a tensor is made before it is read and once; places and sizes lie in the arena; the
// bytes of a node's output are not those of an input of it; inputs that are weights are the last, a node reads one of them at the most, and
// one in panels only as the second input of BodyDense.
#pragma once

#include <array>

#include "sluice/kernels/call.h"
#include "src/kernels/plain/kernel.h"

namespace sluice::kernels::plain {

inline constexpr std::uint16_t kBodyDense = 562;  // x [.., K], weight [N, K] in panels: [.., N]

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

class Body {
 public:
  static constexpr std::size_t kMaxTensors = 4096;
  static constexpr std::size_t kTensorWords = 12;
  static constexpr int kMaxNested = 8;  // each level is checked several times by the one around it

  /// Of a node that lies within `bodies` others itself.
  explicit Body(std::span<const std::int64_t> words, int bodies = 0) noexcept : words_(words), bodies_(bodies) {}
  /// Before anything else is asked.
  PlainRefusal check() noexcept;

  std::size_t tensors() const noexcept { return count(0); }
  std::size_t inputs() const noexcept { return count(1); }
  /// Inputs that the node gives, and those behind them that are weights.
  std::size_t given() const noexcept { return inputs() - weights_; }
  std::size_t weights() const noexcept { return weights_; }
  std::size_t outputs() const noexcept { return count(2); }
  std::size_t input(std::size_t i) const noexcept { return static_cast<std::size_t>(words_[first_input() + i]); }
  std::size_t output(std::size_t i) const noexcept { return static_cast<std::size_t>(words_[first_input() + inputs() + i]); }
  /// Type, most extents and bounded axes of a tensor.
  Planned planned(std::size_t tensor) const noexcept;
  bool in_arena(std::size_t tensor) const noexcept { return place(tensor) >= 0; }
  bool is_weight(std::size_t tensor) const noexcept { return place(tensor) < -1; }
  bool in_panels(std::size_t tensor) const noexcept { return place(tensor) == kPanels; }
  /// Bytes for a run: the tables, the arena, the scratch of its nodes.
  std::uint64_t workspace() const noexcept { return table_bytes() + arena_bytes() + scratch_; }

  /// Lays the tables out at `workspace` and copies the constants. Tensors given from outside have no data yet.
  std::span<PlainTensor> begin(std::byte* workspace) const noexcept;
  /// Runs the nodes once.
  PlainRefusal run(std::span<PlainTensor> tensors, std::byte* workspace, const BodyWeights& weights) const noexcept;

 private:
  struct Node {
    const PlainOperator* op = nullptr;
    operators::PlainForm form;
    std::span<const std::int64_t> inputs;
    std::size_t output = 0;
  };
  struct Constant {
    std::size_t tensor = 0;
    std::span<const std::int64_t> values;
  };

  std::size_t count(std::size_t word) const noexcept { return static_cast<std::size_t>(words_[word]); }
  std::uint64_t arena_bytes() const noexcept { return static_cast<std::uint64_t>(words_[5]); }
  std::uint64_t table_bytes() const noexcept { return (tensors() * sizeof(PlainTensor) + 63) / 64 * 64; }
  static constexpr std::size_t kHead = 6;
  static constexpr std::int64_t kGiven = -1, kWhole = -2, kPanels = -3;  // places
  std::size_t first_input() const noexcept { return kHead + tensors() * kTensorWords; }
  std::size_t first_constant() const noexcept { return first_input() + inputs() + outputs(); }
  std::int64_t place(std::size_t tensor) const noexcept { return words_[kHead + tensor * kTensorWords + kTensorWords - 1]; }
  std::uint64_t bytes(std::size_t tensor) const noexcept;

  /// Takes so many words from `at` on; empty and false when there are not as many.
  bool take(std::size_t& at, std::int64_t words, std::span<const std::int64_t>& out) const noexcept;
  bool next_constant(std::size_t& at, Constant& out) const noexcept;
  bool next_node(std::size_t& at, Node& out) const noexcept;
  PlainRefusal check_tensors() const noexcept;
  PlainRefusal check_inputs() noexcept;
  PlainRefusal check_nodes() noexcept;
  PlainRefusal check_node_weights(const Node& node) const noexcept;
  /// The weight that a node reads; `weights()` where it reads none.
  std::size_t weight_of(const Node& node) const noexcept;
  /// The node's inputs, gathered.
  static std::span<const PlainTensor> gather(const Node& node, std::span<const PlainTensor> tensors,
                                             std::array<PlainTensor, 32>& inputs) noexcept;

  std::span<const std::int64_t> words_;
  int bodies_ = 0;
  std::size_t weights_ = 0;  // set by check
  std::size_t first_node_ = 0;
  std::uint64_t scratch_ = 0;
};

/// Are the weights of the node those that its bodies want, one body after the other?
bool weights_fit(std::span<const Body* const> bodies, const PlainWeights& weights) noexcept;

}  // namespace sluice::kernels::plain

// The body of an If or a Loop: plain nodes and the positions of their tensors, as a list of numbers in the arguments of one node.
//
// What the body reads from outside are inputs of the node. Its large constants are weights of the node (ADR 0013). The importer writes the
// list (places included); a file may hold any list, so `check` proves what a run takes for granted (src/kernels/plain/body.h).
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

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic {

inline constexpr std::uint16_t kBodyDense = 562;  // x [.., K], weight [N, K] in panels: [.., N]

class BodyForm {
 public:
  static constexpr std::size_t kMaxTensors = 4096;
  static constexpr std::size_t kTensorWords = 12;
  static constexpr int kMaxNested = 8;  // each level is checked several times by the one around it

  /// For a node that is itself nested in `bodies` bodies.
  explicit BodyForm(std::span<const std::int64_t> words, int bodies = 0) noexcept : words_(words), bodies_(bodies) {}
  /// Before anything else is asked.
  PlainRefusal check() noexcept;

  std::size_t tensors() const noexcept { return count(0); }
  std::size_t inputs() const noexcept { return count(1); }
  /// Inputs that the node gives, followed by those that are weights.
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

 protected:
  struct Node {
    const PlainOperator* op = nullptr;
    PlainForm form;
    std::span<const std::int64_t> inputs;
    std::size_t output = 0;
  };
  struct Constant {
    std::size_t tensor = 0;
    std::span<const std::int64_t> values;
  };

  std::size_t count(std::size_t word) const noexcept { return static_cast<std::size_t>(words_[word]); }
  std::uint64_t arena_bytes() const noexcept { return static_cast<std::uint64_t>(words_[5]); }
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
  /// The weight that a node reads; `weights()` where it reads none.
  std::size_t weight_of(const Node& node) const noexcept;
  /// The node's inputs, gathered.
  static std::span<const PlainTensor> gather(const Node& node, std::span<const PlainTensor> tensors,
                                             std::array<PlainTensor, 32>& inputs) noexcept;

  std::span<const std::int64_t> words_;
  int bodies_ = 0;
  std::size_t weights_ = 0;  // set by check
  std::size_t first_node_ = 0;

 private:
  PlainRefusal check_tensors() const noexcept;
  PlainRefusal check_inputs() noexcept;
  PlainRefusal check_nodes() noexcept;
  PlainRefusal check_node_weights(const Node& node) const noexcept;
};

}  // namespace sluice::operators::generic

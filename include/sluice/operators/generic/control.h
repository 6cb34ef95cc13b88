// If, Loop and Scan whose course is known at run only: one node that runs subgraphs (model/graph.h), and the node that takes one of its
// results out. Its arguments say how its inputs and results are those of the subgraphs; what it captures it has as further inputs.
//
//     RunIf    condition                              then: () -> results                                      else: () -> results
//     RunLoop  count, condition, carried              body: (number, condition, carried) -> (condition, carried, stacked)
//     RunScan  states, sequences                      body: (states, slices) -> (states, slices of what is stacked)
//
//     sequence  [a b c d]      body: (state, b) -> (state, v)      result  [u v w x]        along the axis that each one states, from its
//                  ^ place                                                                  first place on or from its last
//
// Read by the definitions (src/operators/generic/control.cc), by the rules of the graph (src/operators/subgraphs.cc), which see to it that
// all of this fits the subgraphs, and by the generic kernels (src/kernels/plain/control.cc, scan.cc), which run them.
#pragma once

#include "sluice/operators/generic/packed.h"

namespace sluice::operators::generic::control {

inline constexpr std::uint16_t kRunIf = 564, kRunLoop = 565, kRunScan = 571;

/// What the results are at the most, as an argument has them: [type, bounded, rank, extents...] each.
class Results {
 public:
  Results() = default;
  explicit Results(std::span<const std::int64_t> words) noexcept : words_(words) {}

  /// Before anything else is asked.
  PlainRefusal check() noexcept {
    count_ = 0;
    for (std::size_t at = 0; at < words_.size(); ++count_) {
      const std::size_t left = words_.size() - at;
      if (count_ == kMaxResults || left < kHead) return kWrongArgument;
      const std::int64_t type = words_[at], bounded = words_[at + 1], rank = words_[at + 2];
      if (type < 0 || type >= kDTypeCount || bounded < 0 || bounded > 255 || rank < 0 || rank > Shape::kMaxRank) return kWrongArgument;
      if (left - kHead < static_cast<std::size_t>(rank)) return kWrongArgument;
      Shape shape;
      if (!make_shape(words_.subspan(at + kHead, static_cast<std::size_t>(rank)), shape)) return kWrongArgument;
      at += kHead + static_cast<std::size_t>(rank);
    }
    return nullptr;
  }
  std::size_t results() const noexcept { return count_; }
  Planned planned(std::size_t i) const noexcept {
    std::size_t at = 0;
    for (; i > 0; --i) at += kHead + static_cast<std::size_t>(words_[at + 2]);
    Planned made{static_cast<DType>(words_[at]), {}, static_cast<std::uint8_t>(words_[at + 1]), 0};
    make_shape(words_.subspan(at + kHead, static_cast<std::size_t>(words_[at + 2])), made.shape);
    return made;
  }
  bool result(std::size_t i, Planned& out) const noexcept {
    out = planned(i);
    return true;
  }

 private:
  static constexpr std::size_t kHead = 3;
  std::span<const std::int64_t> words_;
  std::size_t count_ = 0;
};

/// The node's results, checked; `argument`: which of its arguments they are.
inline PlainRefusal read_results(const PlainNode& node, std::size_t argument, Results& results) noexcept {
  results = Results(node.list(argument));
  return results.check();
}

/// A loop. The node's inputs: count and condition where it has them, carried values, captured ones. Arguments: these numbers, the results.
struct Loop {
  std::size_t carried = 0;
  bool has_count = false, has_condition = false;
  std::int64_t most = 0;  // turns: that there is room for, where values are stacked; else a guess, or 0
  Results results;

  std::size_t own_inputs() const noexcept { return std::size_t{has_count} + std::size_t{has_condition}; }
  bool stacks() const noexcept { return results.results() > carried; }
};

inline PlainRefusal read_loop(const PlainNode& node, Loop& loop) noexcept {
  const auto what = node.list(0);
  if (what.size() != 4 || what[0] < 0 || what[0] > 32 || what[3] < 0 || what[3] > (std::int64_t{1} << 32)) return kWrongArgument;
  loop.carried = static_cast<std::size_t>(what[0]);
  loop.has_count = what[1] != 0;
  loop.has_condition = what[2] != 0;
  loop.most = what[3];
  if (const PlainRefusal refusal = read_results(node, 1, loop.results)) return refusal;
  const bool fits = loop.results.results() >= loop.carried && node.inputs().size() >= loop.own_inputs() + loop.carried;
  return fits ? nullptr : kWrongArgument;
}

/// Which way a sequence or a stacked result runs.
struct Course {
  int axis = 0;
  bool backward = false;
};

/// A scan. The node's inputs: states, sequences, what is captured. Arguments: [states, most, bounded], axis and direction of each sequence,
/// the same of each stacked result, the results. A sequence may be shorter in a run than planned, along its axis alone.
struct Scan {
  std::span<const std::int64_t> inputs, outputs;
  std::size_t states = 0;
  std::int64_t most = 0;  // places of a sequence
  bool bounded = false;   // may it be shorter?
  Results results;

  std::size_t sequences() const noexcept { return inputs.size() / 2; }
  static Course course(std::span<const std::int64_t> list, std::size_t i) noexcept {
    return {static_cast<int>(list[2 * i]), list[2 * i + 1] != 0};
  }
  Course of_result(std::size_t i) const noexcept { return course(outputs, i - states); }
};

inline PlainRefusal read_scan(const PlainNode& node, Scan& scan) noexcept {
  const auto what = node.list(0);
  scan.inputs = node.list(1);
  scan.outputs = node.list(2);
  if (what.size() != 3 || what[0] < 0 || what[0] > 32 || what[1] < 0 || what[1] > (std::int64_t{1} << 32)) return kWrongArgument;
  scan.states = static_cast<std::size_t>(what[0]);
  scan.most = what[1];
  scan.bounded = what[2] != 0;
  if (scan.inputs.empty() || scan.inputs.size() % 2 != 0 || scan.outputs.size() % 2 != 0) return kWrongArgument;
  for (const auto list : {scan.inputs, scan.outputs})
    for (std::size_t i = 0; i + 1 < list.size(); i += 2)
      if (list[i] < 0 || list[i] >= Shape::kMaxRank) return kWrongAxis;
  if (const PlainRefusal refusal = read_results(node, 3, scan.results)) return refusal;
  const bool fits =
      scan.results.results() == scan.states + scan.outputs.size() / 2 && node.inputs().size() >= scan.states + scan.sequences();
  return fits ? nullptr : kWrongArgument;
}

/// Is `slice` a sequence without the axis, which has `length` places?
inline bool is_slice(const Shape& slice, int axis, const Shape& sequence) noexcept {
  if (sequence.rank() != slice.rank() + 1 || axis < 0 || axis > slice.rank()) return false;
  for (int a = 0; a < slice.rank(); ++a)
    if (sequence[a < axis ? a : a + 1] != slice[a]) return false;
  return true;
}

enum TakeArgument : std::size_t { kNumber, kType, kAxes, kShape };

inline bool is_scalar(const PlainTensor& t, DType dtype) noexcept { return t.dtype == dtype && t.count() == 1; }

}  // namespace sluice::operators::generic::control

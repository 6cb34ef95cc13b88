// The bookkeeping behind views: which tensors are the same bytes, and which lie inside another.
//
//     class A: {x, reshape(x)}  --whole: P, channel 0-->  class P: {concat(x, y)}   <- one block of memory: the root of the tree
//     class B: {y}              --whole: P, channel 3-->
//
// A class is a set of tensors that share all their bytes (reshapes, in-place results). A class may lie inside one other (a concatenated
// input, a slice). Invariants: the parents form a forest; a class that must be dense lies in a slot that is dense, up to its root.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sluice/core/ids.h"
#include "sluice/model/graph.h"
#include "sluice/planner/order/fold_box.h"

namespace sluice::planner {

class AliasForest {
 public:
  explicit AliasForest(const model::Graph& graph) : graph_(graph), leader_(graph.tensors.size()), classes_(graph.tensors.size()) {
    std::iota(leader_.begin(), leader_.end(), std::size_t{0});
    for (std::size_t t = 0; t < classes_.size(); ++t) {
      classes_[t].members.push_back(TensorId(t));
      classes_[t].fixed = graph.tensors[t].weight.valid();
    }
    for (const model::Port& port : graph.inputs) classes_[port.tensor.index()].fixed = true;
    for (const model::Port& port : graph.outputs) classes_[port.tensor.index()].fixed = true;
  }

  struct Class {
    std::vector<TensorId> members;
    std::vector<std::size_t> inside;  // classes that lie in this one
    TensorId whole;                   // valid: the tensor this class lies in ...
    FoldedOrigin origin;              // ... and where
    bool dense_slot = false;          // the slot has no gaps (given that `whole` is dense)
    bool needs_dense = false;         // a reshape, or a kernel that takes no pitches
    std::int64_t last_need = -1;      // position of the last read of any member (views.h fills it in)
    bool fixed = false;               // holds a graph input, a graph output or a constant: never placed inside another
  };

  std::size_t class_of(TensorId tensor) const noexcept { return leader_[tensor.index()]; }
  const Class& get(std::size_t c) const noexcept { return classes_[c]; }
  Class& get(std::size_t c) noexcept { return classes_[c]; }

  /// Makes two classes one. At most one of them may lie in another class.
  void unite(std::size_t a, std::size_t b) {
    if (a == b) return;
    if (classes_[a].members.size() < classes_[b].members.size()) std::swap(a, b);
    Class& into = classes_[a];
    Class& from = classes_[b];
    for (TensorId t : from.members) leader_[t.index()] = a;
    into.members.insert(into.members.end(), from.members.begin(), from.members.end());
    into.inside.insert(into.inside.end(), from.inside.begin(), from.inside.end());
    into.needs_dense |= from.needs_dense;
    into.fixed |= from.fixed;
    into.last_need = std::max(into.last_need, from.last_need);
    if (from.whole.valid()) {
      into.whole = from.whole;
      into.origin = from.origin;
      into.dense_slot = from.dense_slot;
      for (std::size_t& child : classes_[class_of(from.whole)].inside)
        if (child == b) child = a;
    }
    from = Class{};
  }

  /// Can `part` (a tensor) become a view of `whole` at `origin`?
  bool can_place(TensorId part, TensorId whole) const {
    const Class& c = classes_[class_of(part)];
    if (c.whole.valid() || class_of(part) == class_of(whole)) return false;
    if (graph_.tensor(part).dtype != graph_.tensor(whole).dtype) return false;
    for (TensorId up = whole; up.valid(); up = classes_[class_of(up)].whole)
      if (class_of(up) == class_of(part)) return false;
    if (!c.needs_dense) return true;
    return slot_is_dense(part, whole) && dense_up_to_root(class_of(whole));
  }

  void place(TensorId part, TensorId whole, FoldedOrigin origin) {
    Class& c = classes_[class_of(part)];
    c.whole = whole;
    c.origin = origin;
    c.dense_slot = slot_is_dense(part, whole);
    classes_[class_of(whole)].inside.push_back(class_of(part));
    if (!c.needs_dense) return;
    for (TensorId up = whole; up.valid(); up = classes_[class_of(up)].whole) classes_[class_of(up)].needs_dense = true;
  }

  /// May tensors of the class be laid out without gaps?
  bool dense_up_to_root(std::size_t c) const {
    for (TensorId up = classes_[c].whole; up.valid(); up = classes_[c].whole) {
      if (!classes_[c].dense_slot) return false;
      c = class_of(up);
    }
    return true;
  }

  /// All classes that share bytes with class `c`: itself, those around it, those inside it.
  std::vector<std::size_t> sharing(std::size_t c) const {
    std::vector<std::size_t> found;
    for (TensorId up = classes_[c].whole; up.valid(); up = classes_[class_of(up)].whole) found.push_back(class_of(up));
    std::size_t next = found.size();
    found.push_back(c);
    for (; next < found.size(); ++next) found.insert(found.end(), classes_[found[next]].inside.begin(), classes_[found[next]].inside.end());
    return found;
  }

 private:
  bool slot_is_dense(TensorId part, TensorId whole) const noexcept {
    const RowExtents p = row_extents(graph_.tensor(part).shape);
    const RowExtents w = row_extents(graph_.tensor(whole).shape);
    if (p.rows * p.pixels <= 1) return true;
    if (p.channels != w.channels) return false;
    return p.rows == 1 || p.pixels == w.pixels;
  }

  const model::Graph& graph_;
  std::vector<std::size_t> leader_;
  std::vector<Class> classes_;
};

}  // namespace sluice::planner

// The generic kernels of plain operators, one for each, correct and short; their definitions are in operators/generic.h.
//
// The kernel of kPlain finds a node's definition by number and hands its generic kernel dense tensors (src/kernels/plain/kernel.h). A
// kernel takes what `infer` has let pass, so it checks no shape again; it checks values that come from tensors (indices) and names what is
// wrong with them instead of following them; it neither allocates nor throws. To begin reading: src/kernels/plain/cast.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sluice/operators/generic.h"

namespace sluice::kernels {

using operators::find_plain;
using operators::has_late_arguments;
using operators::infer_plain;
using operators::kOverBound;
using operators::kStateBound;
using operators::needs_bound;
using operators::next_argument;
using operators::plain_operators;
using operators::PlainArgument;
using operators::PlainNode;
using operators::PlainOperator;
using operators::PlainRefusal;
using operators::PlainTensor;

/// How one of them is computed: its one kernel, which every other implementation has to agree with.
struct GenericKernel {
  std::string_view name;  // the operator's
  /// Computes `out`. Scratch is what `scratch` asked for, 64-byte aligned.
  PlainRefusal (*run)(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept = nullptr;
  std::uint64_t (*scratch)(const PlainNode& node) noexcept = nullptr;
  /// In place of `run` where values decide the extents. On entry `out` has the largest extents that there is room for; it writes the actual
  /// extents there, and refuses a result that does not fit with kOverBound before it writes a value. Inputs may be empty.
  PlainRefusal (*run_sized)(const PlainNode& node, PlainTensor& out, std::byte* scratch) noexcept = nullptr;
  /// An operator that runs subgraphs: how often, as far as is known. nullptr: any other.
  std::int64_t (*turns)(const PlainNode& node) noexcept = nullptr;
};

/// The kernel of an operator of the table.
const GenericKernel& generic_kernel(const PlainOperator& op) noexcept;

/// The arguments of one run, late ones from their tensors. On the stack: a run allocates nothing.
class LateArguments {
 public:
  /// `stated`: the node with the arguments of the graph.
  PlainRefusal read(const PlainNode& stated) noexcept;
  std::span<const std::int64_t> span() const noexcept { return {values_.data(), count_}; }

 private:
  bool add(std::int64_t value) noexcept;
  std::array<std::int64_t, 256> values_{};
  std::size_t count_ = 0;
};

}  // namespace sluice::kernels

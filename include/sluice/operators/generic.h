// The long tail: operators that are known by their ONNX names and numbers, each a line of a table that says what it is. How it runs is one
// generic kernel each (kernels/plain.h). Adding an operator is adding a line and a kernel (docs/adding-an-operator.md).
//
// Way to here: the importer finds an ONNX operator's line by name, reads its attributes as `arguments` says, asks `infer` for type and
// shape of the result and makes a kPlain node. Planner and executor ask the kernel of kPlain, which finds the line by number, asks `infer`
// again (so no file can state another shape) and runs it. What depends on constants only is run at import, by the same functions. Start
// reading at src/operators/generic/cast.cc; families share their geometry with their kernels in include/sluice/operators/generic.
//
// Invariants: tensors are dense, in ONNX's order of axes; an operator with several outputs is a node for each one that is used; `infer`
// refuses whatever the kernel cannot take, and depends on types, shapes and arguments only; it neither allocates nor throws, and sees no
// graph. Tensors whose extents are known at run only are dense in those extents; every operator here takes them, because `infer` is asked
// again with what they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sluice/core/dtype.h"
#include "sluice/core/shape.h"
#include "sluice/operators/parameters/plain.h"

namespace sluice::kernels {
struct KernelCall;
}

namespace sluice::operators {

/// An operand: type and shape, and its bytes when the operator runs.
struct PlainTensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::byte* data = nullptr;

  std::int64_t count() const noexcept { return shape.element_count(); }
  template <class T>
  T* as() const noexcept {
    return reinterpret_cast<T*>(data);
  }
};

struct PlainOperator;

/// A node as its operator sees it: ONNX inputs by their ONNX numbers, arguments by their place in the operator's list.
class PlainNode {
 public:
  PlainNode(const PlainOperator& op, const PlainForm& form, std::span<const PlainTensor> inputs) noexcept
      : op_(op), form_(form), inputs_(inputs) {}

  const PlainOperator& op() const noexcept { return op_; }
  /// Which of the ONNX node's outputs is asked for.
  int result() const noexcept { return form_.result; }

  bool has(int input) const noexcept { return input >= 0 && input < 32 && (form_.present >> input & 1u) != 0; }
  /// Only where `has`.
  const PlainTensor& in(int input) const noexcept;
  /// Inputs that are there.
  std::span<const PlainTensor> inputs() const noexcept { return inputs_; }

  /// Does it have arguments that are read from tensors at run time?
  bool late() const noexcept;
  /// Makes the same node with other arguments.
  PlainNode with(std::span<const std::int64_t> arguments) const noexcept {
    return PlainNode(op_, {form_.result, form_.present, arguments}, inputs_).in_call(call_);
  }
  /// The same node as a step: with what runs its subgraphs.
  PlainNode in_call(const kernels::KernelCall* call) const noexcept {
    PlainNode made = *this;
    made.call_ = call;
    return made;
  }
  /// nullptr: it runs at convert.
  const kernels::KernelCall* call() const noexcept { return call_; }

  std::size_t argument_count() const noexcept;
  std::span<const std::int64_t> list(std::size_t argument) const noexcept;
  bool given(std::size_t argument) const noexcept { return !list(argument).empty(); }
  std::int64_t integer(std::size_t argument) const noexcept;
  double real(std::size_t argument, std::size_t at = 0) const noexcept;

 private:
  const PlainOperator& op_;
  PlainForm form_;
  std::span<const PlainTensor> inputs_;
  const kernels::KernelCall* call_ = nullptr;
};

/// Why not: a clause for the user, or nullptr when all is well.
using PlainRefusal = const char*;

/// What an operator of the long tail is.
struct PlainOperator {
  std::uint16_t number = 0;  // stored in model files: never reuse one, append only
  std::string_view name;     // the ONNX operator; with a domain: "com.microsoft::FastGelu"
  /// Arguments in their order, separated by blanks. `axis:i=0` an integer attribute with its default, `alpha:f=1` a real one (`r`: an
  /// integer stored as a real), `axes:I` and `scales:F` lists, `mode:s=linear|nearest` one of some words (the first is the default; its
  /// place in the list is stored).
  /// `@2` after the type: read from the constant input 2 where the node has it, so that the input is no tensor of the node; `shape:I@1`.
  /// Computed at run time, it is a tensor of the node and a late argument: empty in `infer` of the graph, read from the tensor at run.
  /// `#` the opset.
  std::string_view arguments;
  /// Type and shape of the result that the node asks for.
  PlainRefusal (*infer)(const PlainNode& node, PlainTensor& out) noexcept = nullptr;
  const void* detail = nullptr;  // what tells the operators of one family apart
  int outputs = 1;               // of the ONNX node

  // Extents that are known at run only (docs/adr/0009-extents-at-run-time.md).
  /// What the graph says in place of `infer` when arguments are late or values decide the extents: the most that the result can be, and in
  /// `axes` a bit for each axis that may be shorter. nullptr: it takes no late arguments. A refusal of kStateBound leaves the extents to
  /// the user and has set the type.
  PlainRefusal (*bound)(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept = nullptr;
  bool sized_by_values = false;  // values decide the extents: `infer` gives the most
  bool takes_empty = false;      // it takes inputs without elements, as every operator that is sized by values does
};

/// Do values decide the extents of the node's result?
bool needs_bound(const PlainOperator& op, std::uint32_t present) noexcept;

inline constexpr PlainRefusal kStateBound = "the extents of its result come at run time";
inline constexpr PlainRefusal kOverBound = "the extents that its result has are over the plan's bound";

/// One word of PlainOperator::arguments.
struct PlainArgument {
  std::string_view name;
  char type = 'i';
  int input = -1;              // `@`: the input that may hold it
  std::string_view otherwise;  // default, or words
};
/// Removes the first word of `list` and returns it; at the end of the list its name is empty and its type 0.
PlainArgument next_argument(std::string_view& list) noexcept;

/// Does the node have arguments that are read from tensors at run time?
bool has_late_arguments(const PlainOperator& op, std::uint32_t present) noexcept;

/// All of them, by rising number.
std::span<const PlainOperator* const> plain_operators() noexcept;
const PlainOperator* find_plain(std::uint16_t number) noexcept;
const PlainOperator* find_plain(std::string_view name) noexcept;

/// `infer`, and what it takes for granted: the arguments are those of the operator's list, inputs are there as `present` says.
PlainRefusal infer_plain(const PlainNode& node, PlainTensor& out) noexcept;

/// What a plan says of a result.
struct Planned {
  DType dtype = DType::kF32;
  Shape shape;               // the most
  std::uint8_t bounded = 0;  // bit a: axis a may be shorter
  std::uint64_t scratch = 0;
};

/// Do the extents fit the plan's? Only bounded axes may be shorter.
bool within(const Shape& extents, const Planned& planned) noexcept;

/// Type and the most that the extents can be, as far as that follows from the graph.
PlainRefusal infer_bound(const PlainNode& node, PlainTensor& out) noexcept;

}  // namespace sluice::operators

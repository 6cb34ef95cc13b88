// The call that a step becomes: addresses, ranges, and what the kernel must know of its node. Inner loops include this and nothing above
// it.
//
// Way to here: `resolve` (kernels/kernel.h) chooses code and parameters for a node, the executor adds the addresses of a step.
//
// What a kernel promises:
//  (K1) it writes exactly rows x channels of its output, each element once; nothing beyond but the tail stated by `kReadTail`
//  (K2) its result does not depend on rows, channels, threads, pitches or rings: the same bits for every cut.
//       A chain of parts of sums, of a kernel that takes them (KernelDescriptor::cuts_sums), gives those of the step that was not cut
//  (K3) it allocates nothing, throws nothing, and touches only the views, weights, workspace and unfinished sums of the call
//  (K4) where `KernelDescriptor::in_place_inputs` has an input, that input's tensor may be the output's: each element is read before it
//       is written. Kernels of concatenations, whatever that says, must find each part that already lies where the output has it, and leave it
#pragma once

#include <cstdint>
#include <span>

#include "sluice/core/interval.h"
#include "sluice/core/tensor.h"
#include "sluice/core/threads.h"
#include "sluice/core/units.h"
#include "sluice/operators/parameters/parameters.h"

namespace sluice::kernels {

/// Bytes past the end of a buffer that a kernel may read (never write): one vector of the widest ISA. Buffers are sized with it.
inline constexpr Bytes kReadTail{64};

/// A tensor operand: its view and its full physical shape.
struct Operand {
  RowView view;
  Shape shape;
  /// The extents of a bounded tensor (model/graph.h, G6) in this run; its values are dense at `view.data`. The step that makes it writes
  /// them. Else null.
  Shape* extents = nullptr;
};

/// Weight bytes of a step: some panels of a weight, contiguous at `data`, 64-byte aligned (kPanels, kDepthwise) or aligned to the element
/// (kPlain). Where `data` is null the step takes them from elsewhere: from derived panels, or from the reader, and `panels` are all.
struct WeightOperand {
  const std::byte* data = nullptr;
  PanelRange panels;
  Bytes panel_bytes;  // of each
};

/// Panels of a weight in memory; no data where they could not be read.
struct WeightPiece {
  const std::byte* data = nullptr;
  PanelRange panels;
};

/// Brings weights that a step reads while it runs, as often as it wants them: those of its operands that have no data (ADR 0015). A
/// piece is the run of panels from `first_panel` on that there is room for; it stays until the next one is taken. Called by one thread.
class WeightReader {
 public:
  virtual WeightPiece take(std::size_t weight, std::int64_t first_panel) noexcept = 0;
  /// What will most likely be taken next: it may be read meanwhile.
  virtual void expect(std::size_t weight, std::int64_t first_panel) noexcept = 0;

 protected:
  ~WeightReader() = default;
};

/// Runs the subgraphs of a node for its step (ADR 0047). `body` counts the node's subgraphs, `i` their inputs and outputs (what they capture is
/// there by itself). Called by one thread.
class BodyRunner {
 public:
  /// Where input i is to lie before a turn: dense, of the operand's type and shape. A turn may overwrite it.
  virtual const Operand& input(std::size_t body, std::size_t i) const noexcept = 0;
  /// Where output i lies after a turn, dense in its extents, until the next one or the end of the step. No data where it has no elements.
  virtual const Operand& output(std::size_t body, std::size_t i) const noexcept = 0;
  /// Runs the subgraph once. Why it could not, or nullptr.
  virtual const char* run(std::size_t body) noexcept = 0;

 protected:
  ~BodyRunner() = default;
};

/// Transformed panels of weights[0] (Winograd), one after the other at `data`, each `derived_panel_bytes` long, 64-byte aligned.
struct DerivedOperand {
  std::byte* data = nullptr;  // nullptr: the step works from the raw panels
  PanelRange panels;
};

/// Of a step that takes a part of the products of its sums (plan.h). Unfinished sums lie at `sums`, an f32 for each pixel of `rows` and
/// each channel of `channels` padded to 16, 64-byte aligned, in an order of the kernel's own: all parts of a chain are of one kernel, rows,
/// channels and number of threads. A part that begins behind 0 goes on from them, one that ends before the last product leaves them there
/// and writes no output; the last one finishes its sums and writes.
struct SumsPart {
  ReductionRange products;
  float* sums = nullptr;
};

/// What a kernel found in its input values that it cannot compute with, such as an index outside a table. It still writes some output; the
/// run goes on to its end and then fails.
struct StepFault {
  const char* reason = nullptr;  // a string literal; nullptr: nothing
};

/// One step, addresses resolved. Constant inputs appear in `inputs` as dense views (they are weights read into the arena).
struct KernelCall {
  const std::byte* parameter_data = nullptr;  // ResolvedCall::parameters of the node, which all its steps share
  std::span<const Operand> inputs;            // as Node::inputs
  std::span<const Operand> outputs;           // as Node::outputs; whole views, of which `rows` x `channels` are to be written
  std::span<const WeightOperand> weights;     // as Node::weights: panels, then bias (all of the bias, whatever the slice)
  std::span<const std::byte> next_weights;    // a hint: what the next step with weights of some size will read, perhaps not loaded yet
  DerivedOperand derived;                     // `prepare` writes it; `run` reads it instead of weights[0], whose data may then be null
  RowRange rows;                              // of outputs[0]
  ChannelRange channels;                      // of outputs[0]; of a lookup: rows of the table
  const SumsPart* part = nullptr;             // null: all products of each sum
  std::byte* workspace = nullptr;             // as many bytes as `workspace` asked for, 64-byte aligned
  ThreadPool* pool = nullptr;
  union {
    WeightReader* reader = nullptr;  // where weights have no data and are not derived
    BodyRunner* bodies;              // of a node that runs subgraphs, which has no weights of its own
  };
  StepFault* fault = nullptr;  // never null for a step of a plan

  /// Of the kind that the kernel's `resolve` made.
  template <class T>
  const T& parameters() const noexcept {
    static_assert(operators::kIsParameters<T>);
    return *reinterpret_cast<const T*>(parameter_data);
  }
};

/// The code of a kernel for one instruction set and one choice of element types.
using KernelEntry = void (*)(const KernelCall&) noexcept;

}  // namespace sluice::kernels

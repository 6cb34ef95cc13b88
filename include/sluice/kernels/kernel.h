// How one operator runs: the descriptor that planner and executor read, and the call that a step becomes.
//
// Way to here: the planner asks `KernelRegistry` for the kernels that support a node, prices them with `cost` and `workspace`, and writes
// steps {node, kernel, rows, channels}. The executor turns a step into a `KernelCall` (addresses resolved) and calls `run`.
// Start reading at kernels/reference.h: every kernel computes what the reference computes.
//
// What a kernel promises:
//  (K1) it writes exactly rows x channels of its output, each element once; nothing beyond but the tail stated by `kReadTail`
//  (K2) its result does not depend on rows, channels, threads, pitches or rings: the same bits for every cut (design: section 3.2)
//  (K3) it allocates nothing, throws nothing, and touches only the views, weights and workspace of the call
//  (K4) where `in_place_input` names an input, that input's tensor may be the output's: each element is read before it is written
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sluice/core/cpu.h"
#include "sluice/core/ids.h"
#include "sluice/core/interval.h"
#include "sluice/core/tensor.h"
#include "sluice/core/threads.h"
#include "sluice/core/units.h"
#include "sluice/model/graph.h"
#include "sluice/operators/cost.h"

namespace sluice::kernels {

/// Bytes past the end of a buffer that a kernel may read (never write): one vector of the widest ISA. Buffers are sized with it.
inline constexpr Bytes kReadTail{64};

/// A tensor operand: its view and its full physical shape.
struct Operand {
  RowView view;
  Shape shape;
  /// Of a bounded tensor (graph.h, G6): its extents in this run, dense at `view.data`. The step that makes it writes them. Else null.
  Shape* extents = nullptr;
};

/// Weight bytes of a step: the panels [panels.begin, panels.end) of `weight`, contiguous at `data`, 64-byte aligned (kPanels,
/// kDepthwise) or aligned to the element (kPlain).
struct WeightOperand {
  const std::byte* data = nullptr;
  PanelRange panels;
  const model::Weight* weight = nullptr;
};

/// Panels of a weight in memory; no data where they could not be read.
struct WeightPiece {
  const std::byte* data = nullptr;
  PanelRange panels;
};

/// Brings weights that a step reads while it runs, as often as it wants them: those of its operands that have no data (ADR 0013, 0015). A
/// piece is the run of panels from `first_panel` on that there is room for; it stays until the next one is taken. Called by one thread.
class WeightReader {
 public:
  virtual WeightPiece take(std::size_t weight, std::int64_t first_panel) noexcept = 0;
  /// What will most likely be taken next: it may be read meanwhile.
  virtual void expect(std::size_t weight, std::int64_t first_panel) noexcept = 0;

 protected:
  ~WeightReader() = default;
};

/// Transformed panels of weights[0] (Winograd), one after the other at `data`, each `derived_panel_bytes` long, 64-byte aligned.
struct DerivedOperand {
  std::byte* data = nullptr;  // nullptr: the step works from the raw panels
  PanelRange panels;
};

/// What a kernel found in its input values that it cannot compute with, such as an index outside a table. It writes something all the
/// same; the run goes on to its end and is then an error.
struct StepFault {
  const char* reason = nullptr;  // a string literal; nullptr: nothing
};

/// One step, addresses resolved. Constant inputs appear in `inputs` as dense views (they are weights read into the arena).
struct KernelCall {
  const model::Graph* graph = nullptr;
  const model::Node* node = nullptr;
  std::span<const Operand> inputs;          // as Node::inputs
  std::span<const Operand> outputs;         // as Node::outputs; whole views, of which `rows` x `channels` are to be written
  std::span<const WeightOperand> weights;   // as Node::weights: panels, then bias (all of the bias, whatever the slice)
  std::span<const std::byte> next_weights;  // a hint: what the next step with weights of some size will read, perhaps not loaded yet
  DerivedOperand derived;                   // `prepare` writes it; `run` reads it instead of weights[0], whose data may then be null
  RowRange rows;                            // of outputs[0]
  ChannelRange channels;                    // of outputs[0]; kEmbedding: rows of the table
  std::byte* workspace = nullptr;           // as many bytes as `workspace` asked for, 64-byte aligned
  ThreadPool* pool = nullptr;
  WeightReader* reader = nullptr;  // where weights have no data and are not derived
  StepFault* fault = nullptr;  // never null for a step of a plan
};

/// The question that `workspace` and `cost` answer, and the answer of `cost`.
using operators::CostFeatures;
using operators::StepExtent;

/// One way to run one operator.
struct KernelDescriptor {
  KernelId id = KernelId::kNone;
  std::string_view name;  // "conv/direct", "depthwise", "reference/softmax"
  model::OpKind op = model::OpKind::kReshape;
  model::NumericClass numeric = model::NumericClass::kExact;

  /// Can it run this node on this machine?
  bool (*supports)(const model::Graph&, const model::Node&) noexcept = nullptr;
  /// May steps take part of the output channels? Slices begin and end at whole panels. Then weights[0] may stream by panels.
  bool slices_channels = false;
  /// May steps take part of the output rows?
  bool slices_rows = false;
  /// A step reads the input rows that its output rows need after they are widened to multiples of this within their image (Winograd's
  /// squares are 4 rows high). Bands cut at multiples compute nothing twice.
  std::int64_t row_granule = 1;
  /// Bit i: the output may be the same tensor as input i (K4), given equal shapes.
  std::uint32_t (*in_place_inputs)(const model::Graph&, const model::Node&) noexcept = nullptr;
  /// Do all inputs and the output take any pitch? If not, the planner keeps them dense.
  bool takes_pitches = true;
  Bytes (*workspace)(const model::Graph&, const model::Node&, const StepExtent&) noexcept = nullptr;
  CostFeatures (*cost)(const model::Graph&, const model::Node&, const StepExtent&) noexcept = nullptr;
  void (*run)(const KernelCall&) noexcept = nullptr;

  /// A kernel that can read the weights of its node while it runs (KernelCall::reader), where a plan does not hold them: how often it then
  /// reads each of them, as far as is known; 0: this node has none. nullptr: a plan brings every weight before the step.
  std::int64_t (*weight_turns)(const model::Graph&, const model::Node&) noexcept = nullptr;
  /// Of a kernel that reads only the parts of weights[0] that its inputs' values ask for: at most how many least pieces
  /// (model::least_piece) that is in a run, each once. nullptr: every turn reads each weight whole.
  std::int64_t (*pieces_wanted)(const model::Graph&, const model::Node&) noexcept = nullptr;

  /// A kernel that can work from transformed panels kept in place of the raw ones: bytes of one panel's transform, a multiple of 64.
  /// nullptr: it has none. The result of `run` is the same bits with and without them.
  Bytes (*derived_panel_bytes)(const model::Graph&, const model::Node&) noexcept = nullptr;
  /// Transforms the panels of `channels` from weights[0] into `derived`. Needs no workspace, reads no input.
  void (*prepare)(const KernelCall&) noexcept = nullptr;
  CostFeatures (*prepare_cost)(const model::Graph&, const model::Node&, const StepExtent&) noexcept = nullptr;
};

}  // namespace sluice::kernels

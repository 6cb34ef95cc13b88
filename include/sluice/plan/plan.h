// What the planner hands the executor: data only. Steps in order, loads in order, one address for each buffer.
//
//     loads   [0: resident][1: conv2 p0-8][2: conv2 p8-16] ...       one loader runs them in order
//     steps     [0: conv1]    [1: conv2 c0-128][2: conv2 c128-256]   the pool runs them in order
//
// Two counters are the whole synchronisation. A load may start when `gate` steps are over; a step may start when the loads before
// `loads_needed` have ended. Both are counts within one period:
//
//     prologue: the first run. Every load runs.          counts: Load::gate, Step::loads_needed
//     period:   each later run. Resident loads are out.  the executor skips them; counts follow from Load::resident
//
// A gate may be negative: gate -k of a streamed load means "k steps before the end of the previous period" (wrap-around: the first loads
// of the next run go in this one's tail; only where `repeat`). In the prologue a negative gate counts as 0. Gates of streamed loads never
// fall; what only the prologue runs may have any gate, because a load waits for those before it anyway.
//
// Addresses: buffers have offsets in the arena; a tensor is a view of a buffer; the bytes of a weight lie inside the region of a load, at
// the same place modulo the direct-I/O block as in the file:
//
//     file    ....|----block----|----block----|....          Load::file = block-rounded range
//                     [== payload stretches ==]
//     arena       |----------region-----------|              address of file byte x = region + (x - Load::file.offset)
//
// A tensor that passes has no buffer. What a step makes of it lies in that step's workspace, behind the kernel's own, and is gone when the
// next step begins; what a step reads of it comes there from the scratch file (ADR 0040):
//
//     workspace   |kernel's own ... |rows fetched|rows x channels made|      made -> the caller, or the scratch file
//
// The invariants are (I1) to (I8) of docs/architecture.md; `plan/verify.h` checks them and shares no code with the planner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/core/ids.h"
#include "sluice/core/interval.h"
#include "sluice/core/tensor.h"
#include "sluice/core/units.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight.h"

namespace sluice::plan {

enum class BufferKind : std::uint8_t { kInput, kOutput, kActivation, kWeight, kDerived, kWorkspace, kState, kSums };
std::string_view name_of(BufferKind kind) noexcept;

/// A run of steps, counted within the period. May begin below 0 for a wrapped load.
using StepRange = Interval<std::int64_t>;

/// Bytes with a lifetime.
struct Buffer {
  BufferKind kind = BufferKind::kActivation;
  Bytes size;                    // includes the tail that a kernel may read past the end
  std::uint64_t alignment = 64;  // power of two
  Bytes offset;                  // in the arena
  StepRange lifetime;            // half-open, in steps. Resident weights and state: [0, steps). A streamed weight: [gate, last use + 1)
  bool whole_period = false;     // lives always, across periods: resident weights, state, kept inputs
};

/// The memory of a tensor: a view of a buffer, with the meaning of core/tensor.h.
struct TensorPlacement {
  BufferId buffer;               // invalid: a constant (see its weight), what a subgraph captures, or a tensor that no step touches
  Bytes offset;                  // of row 0, pixel 0, channel 0 within the buffer
  std::int64_t row_pitch = 0;    // bytes
  std::int64_t pixel_pitch = 0;  // bytes
  std::int64_t ring_rows = 0;
};

/// Panels of one weight that a step reads, and the load that brings them. They lie whole inside that one load's payload.
/// Without a load it is one of three. The table of a lookup, which the step reads by itself, piece by piece and as often as it wants it, into
/// what its workspace has beyond the kernel's need (ADR 0015). A weight of the subgraphs that the step runs, which the loads of their plans
/// bring, turn by turn (ADR 0047). In the plan of a subgraph, a weight that the step which runs it holds.
struct WeightOperand {
  WeightId weight;
  PanelRange panels;
  LoadId load;
};

/// Transformed panels that a step writes (a prepare step) or reads: the whole content of a kDerived buffer, which lives for the whole
/// period. One prepare step writes it, later steps of the same weight, channels and kernel read it.
struct DerivedPanels {
  BufferId buffer;    // invalid: none
  PanelRange panels;  // of the node's first weight, in panel order from the start of the buffer
};

/// One execution of one node's rows x channels, or of a part of the products of their sums.
///
/// Parts of a sum: where products are added with the input feature k outermost (dense layers and 1x1 convolutions of the class `exact`,
/// over f32 panels), a step may take k in [begin, end) only. The parts of the same rows x channels follow each other in rising k, without
/// gap, from 0 to the number of inputs, and one kernel runs them all. Between them the unfinished sums lie in a buffer of kind kSums: a
/// part that does not begin at 0 goes on from them, all but the last leave theirs there. The last part alone adds bias and residual,
/// applies the activation and writes the output. Each part's operands are those of the undivided step: in panels of outputs, [K][16], the
/// weights of a range of k are a run inside each panel, and stretches hold whole panels. So a panel is brought whole: once for all parts
/// that its load's uses cover, or again for each. (Panels of inputs would make a range of k a run of panels; model/features.h.)
///
/// A prepare step {raw panels of `channels` -> derived} runs in the prologue only; in a period it is over as soon as its turn comes, so
/// that counts are the same in both. The loads of its raw panels run in the prologue only too (Load::prologue_only), or are resident. Its
/// one operand is the raw panels. A step that reads derived panels has no operand for them: its operands are the other weights of the node.
struct Step {
  NodeId node;
  KernelId kernel = KernelId::kNone;
  RowRange rows;                    // of the output (see core/tensor.h)
  ChannelRange channels;            // of the output; all of them unless the kernel slices channels
  BufferId workspace;               // invalid: none
  std::uint32_t first_operand = 0;  // weights in the order of `model::weights_read_by`: Plan::operands[first, first + count)
  std::uint32_t operand_count = 0;
  std::uint32_t loads_needed = 0;  // loads [0, loads_needed) must have ended, counted over Plan::loads
  DerivedPanels derived;
  bool prepare = false;
  bool alone = false;                          // too short to be shared: the calling thread runs it alone
  BufferId sums;                               // of a part of a sum: where unfinished sums lie; else invalid
  ReductionRange reduction = kWholeReduction;  // products of each sum: all of them, or a part
};

/// The destination of a passing tensor: its blocks go to the caller as they are made (an output), or to the scratch file, from which they
/// come back.
struct PassingTensor {
  TensorId tensor;
  bool spilled = false;
  Bytes file_offset;  // spilled: of its first row in the scratch file, where its rows lie dense
};

/// How a block of a passing tensor comes into the workspace of a step, and what becomes of it behind the step.
enum class Passage : std::uint8_t {
  kFetched,     // read from the scratch file before the step
  kStillThere,  // the step before, which runs the same node at the same place, fetched it
  kMade,        // made here; the next step makes other channels of the same block
  kStored,      // made here, as the last of its channels: written to the scratch file behind the step
  kHandedOver,  // made here, given to the caller behind the step
};

/// Rows x channels of a passing tensor in a step's workspace: row after row, pixel after pixel, without gaps.
struct PassingBlock {
  std::uint32_t step = 0;
  TensorId tensor;
  RowRange rows;
  ChannelRange channels;  // all of them, unless it is handed over
  Bytes offset;           // in the workspace's buffer
  Passage passage = Passage::kFetched;
};

/// Does the step take a part of the products of its sums?
inline bool adds_part(const Step& step) noexcept { return step.reduction != kWholeReduction; }

/// One read into the arena.
struct Load {
  model::FileRange file;            // block-rounded: both ends multiples of Plan::block (the last may be cut by the end of the file)
  BufferId target;                  // of `file.size` bytes, rounded up to the block; where it expands, of the raw size so, and two blocks
  std::uint32_t first_stretch = 0;  // payload: whole stretches of the model, adjacent in the file, inside `file`
  std::uint32_t stretch_count = 0;
  bool resident = false;       // runs in the prologue only; its target lives for the whole period
  std::int64_t gate = 0;       // may start when this many steps of the period are over; negative: see the head of this file
  StepRange uses;              // first step that needs it, one past the last
  bool prologue_only = false;  // runs in the prologue only, for prepare steps; its target lives like a streamed one's
  model::StretchForm form = model::StretchForm::kRaw;  // what any of its stretches has

  bool streamed() const noexcept { return !resident && !prologue_only; }
  /// Some of its stretches are stored smaller than they are: then all lie back to back from the target's begin on, not as in the file.
  bool expands() const noexcept { return shrinks(form); }
};

/// What the planner expects.
struct Prediction {
  double cold_ms = 0;        // the prologue
  double period_ms = 0;      // a repeated run
  double bound_ms = 0;       // T_LB at this budget, addresses ignored (of the cold run, or of the period when planned for repeats)
  double pipe_bound_ms = 0;  // max(all compute, all streamed reading)
  double compute_ms = 0;
  double unbounded_ms =
      0;  // with these loads, were there room for all: what is above compute is the disk's doing, below the plan the budget's
};

struct Plan {
  std::string policy;            // resident, on_demand, flexnn, sluice
  std::uint64_t model_hash = 0;  // XXH3-64 of the model's header: a plan fits one model
  std::uint32_t threads = 1;     // workspaces are sized for it
  std::uint32_t block = 4096;    // direct-I/O block that regions are congruent to
  bool repeat = false;           // planned for repeated runs
  Bytes capacity;                // of the arena that the plan may use: the budget less the overhead (engine/budget.h)
  Bytes arena_bytes;             // highest offset + size: what it does use
  Bytes resident_bytes;          // weights kept, derived ones too
  Bytes streamed_bytes;          // weights that loads read each period; what steps read by themselves comes on top
  Bytes minimum_capacity;        // the least that the search for this plan found one for; a longer search may find less
  std::vector<Buffer> buffers;
  std::vector<TensorPlacement> tensors;  // one for each tensor of the graph
  std::vector<Step> steps;
  std::vector<WeightOperand> operands;
  std::vector<Load> loads;
  std::vector<PassingTensor> passing;  // tensors without a buffer
  std::vector<PassingBlock> blocks;    // of these, by step; within one, what it reads before what it makes
  /// By subgraph of the graph: the plan of the graph that it is (model/body.h), whose arena lies in the workspace of the step that runs it.
  /// One that a subgraph runs has its plan in that one's, and an empty one here.
  std::vector<Plan> subplans;
  Prediction prediction;

  const Buffer& buffer(BufferId id) const noexcept { return buffers[id.index()]; }
};

/// Is there a step that all threads of the plan share, here or in a subgraph?
inline bool shares_steps(const Plan& plan) noexcept {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) { return !step.alone; }) ||
         std::any_of(plan.subplans.begin(), plan.subplans.end(), shares_steps);
}

/// Of the plan of a subgraph: what the step that runs it holds, so that no buffer and no load of this plan has it. By tensor and by weight.
struct Outside {
  std::vector<bool> tensors;
  std::vector<bool> weights;
};

/// The block of a tensor that a step has in its workspace; null: the tensor does not pass.
inline const PassingBlock* block_of(const Plan& plan, std::size_t step, TensorId tensor) noexcept {
  const auto before = [](const PassingBlock& block, std::size_t at) { return block.step < at; };
  for (auto block = std::lower_bound(plan.blocks.begin(), plan.blocks.end(), step, before);
       block != plan.blocks.end() && block->step == step; ++block)
    if (block->tensor == tensor) return &*block;
  return nullptr;
}

/// Bytes of a block; each lies inside its step's workspace.
inline Bytes bytes_of(const PassingBlock& block, const model::Tensor& tensor) noexcept {
  return Bytes(static_cast<std::uint64_t>(block.rows.size() * row_extents(tensor.shape).pixels * block.channels.size()) *
               size_of(tensor.dtype));
}

}  // namespace sluice::plan

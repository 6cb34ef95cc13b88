// How one operator runs: the descriptor that planner and executor read, and the call that a step becomes.
//
// Way to here: the planner asks `KernelRegistry` for the kernels that support a node, prices them with `cost` and `workspace`, and writes
// steps {node, kernel, rows, channels}. The executor turns a step into a `KernelCall` (addresses resolved) and calls `run`.
// Start reading at kernels/reference.h: every kernel computes what the reference computes.
#pragma once

#include <cstdint>
#include <string_view>

#include "sluice/core/cpu.h"
#include "sluice/core/ids.h"
#include "sluice/core/units.h"
#include "sluice/core/work.h"
#include "sluice/kernels/call.h"
#include "sluice/model/graph.h"

namespace sluice::kernels {

using sluice::CostFeatures;
using sluice::StepExtent;

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

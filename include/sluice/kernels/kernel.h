// How one operator runs: the descriptor that planner, profiler and executor read. It is the only part of the kernels' interface that sees a
// graph.
//
// Way to here: the planner asks `kernels_for` for the kernels that support a node, takes the first, prices its steps with `cost` and
// `workspace`, and writes steps {node, kernel, rows, channels}. The executor resolves each node once and turns its steps into calls (kernels/call.h):
//
//     node --resolve--> {entry, parameters} --+ views, ranges, workspace of a step--> KernelCall --> entry(call)
//
// Start reading at kernels/reference.h: every kernel computes what the reference computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sluice/core/cpu.h"
#include "sluice/core/ids.h"
#include "sluice/core/units.h"
#include "sluice/core/work.h"
#include "sluice/kernels/call.h"
#include "sluice/model/graph.h"
#include "sluice/operators/parameters/plain.h"

namespace sluice::kernels {

using sluice::CostFeatures;
using sluice::StepExtent;

/// A node as code and data, without addresses: what each of its steps runs, and what planner and profiler price.
struct ResolvedCall {
  KernelEntry run = nullptr;
  KernelEntry prepare = nullptr;  // transforms the panels of `channels` from weights[0] into `derived`: no workspace, no input
  operators::Parameters parameters;
};

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
  /// Whether steps may take a part of the products of their sums (KernelCall::part), if the node allows it (model::reduction_of).
  bool cuts_sums = false;
  /// A step reads the input rows that its output rows need after they are widened to multiples of this within their image (Winograd's
  /// squares are 4 rows high). Bands cut at multiples compute nothing twice.
  std::int64_t row_granule = 1;
  /// Bit i: the output may be the same tensor as input i (K4), given equal shapes; of a concatenation, input i may be a part of the output.
  std::uint32_t (*in_place_inputs)(const model::Graph&, const model::Node&) noexcept = nullptr;
  /// Whether all inputs and the output may have any pitch. If not, the planner keeps them dense.
  bool takes_pitches = true;
  /// Code for an instruction set, which must be one that the CPU has, and parameters for a node that it supports.
  ResolvedCall (*resolve)(const model::Graph&, const model::Node&, Isa) noexcept = nullptr;
  std::size_t parameter_bytes = 0;  // of what `resolve` gives
  /// nullptr: none.
  Bytes (*workspace)(const operators::Parameters&, const StepExtent&) noexcept = nullptr;
  CostFeatures (*cost)(const model::Graph&, const model::Node&, const StepExtent&) noexcept = nullptr;

  /// A kernel whose step can read the weights of its node while it runs, by itself (KernelCall::reader) or by the plans of its subgraphs,
  /// where a plan does not hold them: how often each is read then, as far as is known; 0: this node has none. nullptr: a plan brings every
  /// weight before the step.
  std::int64_t (*weight_turns)(const model::Graph&, const model::Node&) noexcept = nullptr;
  /// Of a kernel that reads only the parts of weights[0] that its inputs' values ask for: at most how many least pieces
  /// (model::least_piece) that is in a run, each once. nullptr: every turn reads each weight whole.
  std::int64_t (*pieces_wanted)(const model::Graph&, const model::Node&) noexcept = nullptr;

  /// A kernel that can work from transformed panels kept in place of the raw ones: bytes of one panel's transform, a multiple of 64.
  /// nullptr: it has none, and `resolve` gives no `prepare`. The result is the same bits with and without them.
  Bytes (*derived_panel_bytes)(const operators::Parameters&) noexcept = nullptr;
  CostFeatures (*prepare_cost)(const model::Graph&, const model::Node&, const StepExtent&) noexcept = nullptr;
};

/// The kernel of a number; nullptr: there is none.
using FindKernel = const KernelDescriptor* (*)(KernelId) noexcept;

/// The attributes of a node of the long tail, as its operator reads them.
inline operators::PlainForm form_of(const model::PlainAttributes& attributes) noexcept {
  return {attributes.result, attributes.present, attributes.arguments};
}

/// Answers of a kernel about a node, for which the node is resolved.
inline Bytes workspace_bytes(const KernelDescriptor& kernel, const model::Graph& graph, const model::Node& node,
                             const StepExtent& extent) noexcept {
  return kernel.workspace == nullptr ? Bytes() : kernel.workspace(kernel.resolve(graph, node, active_isa()).parameters, extent);
}
inline Bytes derived_panel_bytes(const KernelDescriptor& kernel, const model::Graph& graph, const model::Node& node) noexcept {
  return kernel.derived_panel_bytes(kernel.resolve(graph, node, active_isa()).parameters);
}

}  // namespace sluice::kernels

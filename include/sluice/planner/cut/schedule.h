// A schedule: steps and the loads that they need, without gates and addresses. What slicing (planner/cut/slice.h) makes and every later
// pass reads.
//
//     loads    [   0   ][  1  ][  2  ][3]        [       4       ]        whole stretches
//     steps    [ conv1 ][conv2 c0-64][conv2 c64-128][conv3][conv4]
//
// Invariants: a step's panels of a weight lie whole in one load; loads are ordered by first use; a load's payload is adjacent in the file;
// steps follow the execution order; rows and channels of a node's steps tile its output; what a prepare step reads is prologue-only. A
// sampled schedule (SliceRule::sample) tiles nothing: it lists one step for each run of steps alike.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight.h"
#include "sluice/planner/cut/payload.h"
#include "sluice/planner/cut/weight_pieces.h"

namespace sluice::planner {

inline constexpr std::uint32_t kNotDerived = ~0u;
inline constexpr std::uint32_t kNoPiece = ~0u;
inline constexpr std::uint32_t kReadInStep = ~0u;  // as a load: the step reads the weight by itself

struct OperandSpec {
  WeightId weight;
  PanelRange panels;
  std::uint32_t load = 0;
};

struct StepSpec {
  std::size_t position = 0;  // in the order of nodes that have steps
  ChannelRange channels;
  std::uint32_t first_operand = 0;
  std::uint32_t operand_count = 0;
  std::uint32_t loads_needed = 0;
  bool prepare = false;
  RowRange rows = {};                   // of the output; empty: all
  std::uint32_t derived = kNotDerived;  // index into Schedule::derived: what a prepare step writes and another reads
  std::uint64_t far_bytes = 0;          // see BandStep
  std::uint64_t round_bytes = 0;        // see BandStep
  std::uint64_t there_bytes = 0;        // see BandStep
  Interval<std::uint64_t> inside = {};  // where its workspace lies in the block of its chain's rings; empty: elsewhere
  std::uint64_t window = 0;             // bytes in addition to its workspace for weights that it reads by itself
  std::uint32_t alike = 1;              // of a sampled schedule: how many steps it stands for
};

/// The rows of the output that a step writes.
inline RowRange rows_of(const model::Graph& graph, const model::Node& node, const StepSpec& step) noexcept {
  return step.rows.empty() ? RowRange{0, row_extents(graph.tensor(node.outputs[0]).shape).rows} : step.rows;
}

/// Transformed panels of one step, kept in place of the raw ones.
struct DerivedSpec {
  PanelRange panels;
  std::uint64_t bytes = 0;  // of the buffer
};

struct LoadSpec {
  std::uint32_t first_stretch = 0;
  std::uint32_t stretch_count = 0;
  Payload payload;
  Interval<std::int64_t> uses;  // steps
  bool resident = false;
  bool prologue_only = false;      // for a prepare step
  std::uint32_t piece = kNoPiece;  // of a resident load: the piece that it keeps, or kNoPiece

  bool streamed() const noexcept { return !resident && !prologue_only; }
  std::uint64_t region_bytes() const noexcept { return payload.region_bytes(); }
};

/// Steps and loads without gates and addresses.
struct Schedule {
  std::vector<StepSpec> steps;
  std::vector<OperandSpec> operands;
  std::vector<LoadSpec> loads;
  std::vector<DerivedSpec> derived;
  std::vector<Interval<std::int64_t>> steps_of;  // by position; those of a chain have the chain's in common
  std::size_t unlisted_loads = 0;                // of a sampled schedule

  std::int64_t step_count() const noexcept { return static_cast<std::int64_t>(steps.size()); }
};

}  // namespace sluice::planner

// Which nodes a run needs only when a condition goes one way: what an If does not take is not computed, and its weights are not read.
//
// The importer makes an If of the run time into the nodes of both branches and one node Choose for each result. A node whose every use
// leads to the same side of Chooses of one condition has that side as its guard:
//
//     condition ----------------------+
//     x -> conv -> relu -> [then] -- Choose -> y      conv and relu: guard {condition, then}; pool: {condition, else}
//     x -> pool ---------> [else] ----+
//
// Nothing of this is stored: the graph says it, whatever the rewrites made of it. The executor passes over steps whose guard is not met and
// the loader over loads that only such steps wanted; the planner keeps a condition before what it guards, and else plans as if all ran.
//
// Invariants: the node of a guard's condition comes before every node that it guards. A node is met wherever one of its readers is: the
// guard of a node is that of each reader, or one around it. (Readers of the other kind are Chooses: they read the side that is taken.)
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/model/graph.h"

namespace sluice::operators {

/// The plain operator Choose: condition, then, else -> the one that is taken, with the extents that it has.
inline constexpr std::uint16_t kChoose = 563;

/// It is met if the guard `around` is met and the condition is true (`wanted`) or false (not `wanted`).
struct Guard {
  TensorId condition;
  bool wanted = true;
  std::uint32_t around = 0;  // a guard with a lower number
  std::uint32_t depth = 0;   // how many are around it
};
inline constexpr std::uint32_t kAlways = 0;

struct Guards {
  std::vector<Guard> guards;           // the first is always met; empty: the graph chooses nothing
  std::vector<std::uint32_t> of_node;  // by node; empty like `guards`

  bool empty() const noexcept { return guards.empty(); }
  std::uint32_t of(NodeId node) const noexcept { return empty() ? kAlways : of_node[node.index()]; }
  /// The innermost guard that is met wherever one of the two is.
  std::uint32_t common(std::uint32_t a, std::uint32_t b) const noexcept;
};

/// O(nodes and their inputs), times the depth at which Chooses are nested, of which as many count as a Guards can have around each other.
Guards find_guards(const model::Graph& graph);

}  // namespace sluice::operators

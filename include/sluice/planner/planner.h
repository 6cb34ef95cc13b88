// The entry point of the planner: takes a graph, a budget and a device profile, gives a Plan. Reads no weight.
//
// The passes are headers in the folders beside this one (docs/planner.md has the table). Every plan that leaves here
// has passed plan::verify.
#pragma once

#include <cstdint>
#include <string_view>

#include "sluice/core/error.h"
#include "sluice/core/units.h"
#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"
#include "sluice/planner/search_parameters.h"
#include "sluice/profiler/device_profile.h"

namespace sluice::planner {

/// kResident: all weights kept. kOnDemand: each load starts when the step before its first use is over; the least memory. kFlexnn: the
/// paper's rule (planner/choose/flexnn.h); where it finds no plan, one on demand, which says so (Plan::policy). kSluice: the best by
/// simulated latency.
enum class Policy : std::uint8_t { kSluice, kResident, kOnDemand, kFlexnn };
std::string_view name_of(Policy policy) noexcept;

/// How far activations go in bands (docs/planner.md). kAuto: for time, and for memory as far as the budget asks for it. kOff: not at all.
/// kLeast: until activations and workspaces take the least memory that the overhead limit allows, whatever the budget.
enum class Partition : std::uint8_t { kAuto, kOff, kLeast };
std::string_view name_of(Partition partition) noexcept;

/// Heap bytes of the executor's tables for a plan: what a long plan takes beyond `set_aside` is not left for its arena.
struct TableCosts {
  std::uint64_t set_aside = kUnlimitedBytes.count();
  std::uint64_t any_plan = 0;
  std::uint64_t buffer = 0;
  std::uint64_t step = 0;     // its operands apart
  std::uint64_t load = 0;     // its buffer apart
  std::uint64_t tensor = 0;   // that a step reads or writes
  std::uint64_t weight = 0;   // that a step's node has
  std::uint64_t operand = 0;  // plan::WeightOperand
  std::uint64_t block = 0;    // of a passing tensor, beside a step
  std::uint64_t node = 0;     // set aside for each node of a subgraph
};

struct PlanRequest {
  Bytes capacity = kUnlimitedBytes;  // of the arena
  int threads = 1;
  Policy policy = Policy::kSluice;
  bool repeat = false;       // optimise the period rather than the cold run
  bool read_ahead = true;    // of repeated runs: the first weights of the next are read in this one
  bool keep_inputs = false;  // inputs survive the run: they are set once for many runs
  std::uint64_t model_hash = 0;
  TableCosts tables{};
  std::uint64_t search_ms = 50;  // how much work, counted, may go into better plans beyond the quick ways (planner/choose/stream_draft.h)
  Partition partition = Partition::kAuto;
  bool hand_over_outputs = false;  // the caller takes blocks of outputs as they are made: no room is kept for the whole
  bool may_spill = false;          // where nothing fits otherwise, activations may go to a scratch file
  double max_overhead = 0.05;      // that bands for memory may cost, of the predicted time without them
  SearchParameters search{};
  const plan::Outside* outside = nullptr;  // of a subgraph: what the step that runs it holds
};

/// The plan's arena, and its tables as far as they count, take no more than the capacity.
/// Errors: kBudgetTooSmall with needed = the least capacity that works for this policy; kUnsupported when a node has no kernel here.
Result<plan::Plan> make_plan(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request);

/// The least capacity for which `make_plan` finds a plan (request.capacity is ignored). The same for one run and for repeated runs.
Result<Bytes> minimum_capacity(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request);

/// How good a plan's partition is.
struct PartitionReport {
  Bytes lower_bound;    // of activations: no plan of these kernels holds less at its peak (planner/bands/bounds.h)
  double overhead = 0;  // what its bands take more than whole nodes, of all computing; below 0 where they save time
};

/// Errors: those of make_plan that do not depend on capacity.
Result<PartitionReport> report_partition(const model::Graph& graph, const profiler::DeviceProfile& profile, const PlanRequest& request,
                                         const plan::Plan& plan);

}  // namespace sluice::planner

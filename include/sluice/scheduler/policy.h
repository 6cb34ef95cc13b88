// The policies by name. A policy is a function of the state: it reads, it may remember, and it says what is to be done; it starts nothing
// itself, so the real scheduler and the simulator run the very same one.
//
// A new policy: one function of this type in policies/, one line in `kPolicies`. Cost: at 32 jobs, 5 processors and 64 units an incremental
// decision takes at most 5 us and a full one 1 ms (`sluice-bench-scheduler decisions`); deciding allocates nothing.
#pragma once

#include <array>
#include <string_view>

#include "sluice/scheduler/policies/expected.h"
#include "sluice/scheduler/policies/simple.h"
#include "sluice/scheduler/policies/sluice.h"

namespace sluice::scheduler {

using PolicyFunction = void (*)(const State&, PolicyMemory&, Decisions&) noexcept;

struct Policy {
  std::string_view name;
  std::string_view alias;  // Band's name for it
  PolicyFunction decide;
};

inline constexpr std::array<Policy, 7> kPolicies = {{
    {"fixed_worker", "fixed_worker", fixed_worker},
    {"round_robin", "round_robin", round_robin},
    {"shortest_expected_latency", "shortest_expected_latency", shortest_expected_latency},
    {"heft", "heterogeneous_earliest_finish_time", heft},
    {"heft_reserved", "heterogeneous_earliest_finish_time_reserved", heft_reserved},
    {"least_slack", "least_slack_time_first", least_slack},
    {"sluice", "sluice", sluice},
}};
inline constexpr std::size_t kPublished = 6;  // the first of them

/// By its name or by Band's; nullptr for a name that is neither.
constexpr const Policy* find_policy(std::string_view name) noexcept {
  for (const Policy& policy : kPolicies)
    if (policy.name == name || policy.alias == name) return &policy;
  return nullptr;
}

/// Returns the same table, from the library, where the policies are compiled once.
std::span<const Policy> policies() noexcept;

/// The most decisions that one call can make: each job started, dropped and told, each processor told to give way.
inline std::size_t most_decisions(const State& state) noexcept { return 3 * state.jobs.size() + state.processors.size(); }

}  // namespace sluice::scheduler

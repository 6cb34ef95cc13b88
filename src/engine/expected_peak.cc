#include "src/engine/expected_peak.h"

#include <algorithm>
#include <vector>

#include "src/core/static_program.h"
#include "src/engine/budget.h"
#include "src/plan/built_needs.h"

namespace sluice::engine {
namespace {

using namespace literals;

// Peaks of `sluice run` with 32 nets of the 16 families of tests/prediction (numbers 2070, 2071), six budgets each, with and without a
// profile. What is held beside model, inputs, profiles and tables: 0.36 to 0.40 MiB; of a profile of 600 samples (0.09 MiB) three copies and
// what its text has left.
constexpr Bytes kHeld = 384_KiB;
constexpr std::uint64_t kMoreOfProfile = 2;  // one part of so many of the two copies that are counted
// Code that a run brings in pieces: 1.3 to 1.5 MiB where a plan has 3 or 4 kernels, 1.4 to 1.9 where it has 5 to 7. All code is kept where the
// budget leaves plenty: 3.8 to 4.3 MiB.
constexpr Bytes kCodeOfRun = 960_KiB;
constexpr Bytes kCodeOfKernel = 112_KiB;
constexpr std::size_t kMostKernels = 6;
constexpr Bytes kAllCode = 3_MiB + 800_KiB;
constexpr Bytes kNoLibraries = 256_KiB;  // what a static program has less
// The code of planning and what it works with, where there is plenty: 4.8 to 5.1 MiB.
constexpr Bytes kPlanning = 5_MiB - 128_KiB;
// Up to the model's opening a process takes 4.2 to 4.9 MiB, where it decrypts 7.5 to 8.5; budgets leave room for more (least_process).
constexpr Bytes kLessThanLeast = 640_KiB, kLessThanLeastWithCipher = 2_MiB;

std::size_t kernels_in(const plan::Plan& plan) {
  std::vector<KernelId> kernels;
  for (const plan::Step& step : plan.steps) kernels.push_back(step.kernel);
  std::sort(kernels.begin(), kernels.end());
  return static_cast<std::size_t>(std::unique(kernels.begin(), kernels.end()) - kernels.begin());
}

Bytes less(Bytes a, Bytes b) noexcept { return a - std::min(a, b); }

}  // namespace

Bytes expected_peak(const Model& model, const plan::Plan& plan, Bytes overhead, const SessionOptions& options) {
  const Bytes counted = budget_of(model, plan.arena_bytes, overhead, options);
  if (options.scope == BudgetScope::kLibrary) return counted;
  const model::Graph& graph = model.graph();
  const Bytes profiles = profile_copies(options);
  const Bytes held = kHeld + model_bytes(model) + input_bytes(graph) + profiles + Bytes(profiles.count() / kMoreOfProfile);
  const Bytes tables = table_bytes(graph, plan);
  const Bytes threads = plan::shares_steps(plan) ? thread_bytes(options.threads - 1) : Bytes();
  // What this process holds, or says that it will take, beyond what a program usually does.
  const Bytes more = less(overhead, usual_overhead(model, options) + less(tables, table_bound(graph))) + options.reserve;
  const bool tight = runs_tightly(options.budget, overhead, plan.arena_bytes);
  const Bytes code = tight ? kCodeOfRun + std::min(kernels_in(plan), kMostKernels) * kCodeOfKernel : kAllCode;
  const Bytes cipher = cipher_bytes(model);
  const Bytes running = plan.arena_bytes + held + tables + threads + decoders_bytes(graph) + cipher + code + more;
  const bool decrypts = cipher > Bytes();
  const Bytes opening =
      less(least_process(decrypts), decrypts ? kLessThanLeastWithCipher : kLessThanLeast) + planning_bytes(model, options);
  const bool plans_in_plenty = options.plan == nullptr && !plans_tightly(model, options.budget, Bytes());
  const Bytes planning = plans_in_plenty ? held + cipher + kPlanning + planning_bytes(model, options) : Bytes();
  const Bytes peak = std::max({less(running, statically_linked() ? kNoLibraries : Bytes()), opening, planning});
  return std::min(peak, std::max(options.budget, counted));
}

}  // namespace sluice::engine

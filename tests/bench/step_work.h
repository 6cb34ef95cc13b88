// What a step of a finished plan is to the latency model.
#pragma once

#include "sluice/kernels/registry.h"
#include "sluice/plan/plan.h"
#include "sluice/profiler/latency.h"
#include "sluice/profiler/step_work.h"

namespace sluice::bench {

struct UsedWork {
  profiler::UsedKernel kernel;  // with its variant
  profiler::StepWork work;
};

/// Of a step that computes, not one that prepares; of a kernel of this build. `run`: profiler::run_work_of the graph.
inline UsedWork work_of(const model::Graph& graph, const plan::Step& step, int threads, const profiler::DeviceRates& profile,
                        const profiler::RunWork& run) {
  const bool derived = step.derived.buffer.valid();
  UsedWork used{{step.kernel, derived ? profiler::KernelUse::kRunDerived : profiler::KernelUse::kRun}, {}};
  const kernels::StepExtent extent{step.rows, step.channels, threads, derived};
  used.work = profiler::work_of(*kernels::find_kernel(step.kernel), used.kernel.use, graph, graph.node(step.node), extent);
  profiler::set_run(profile, run, used.work);
  used.kernel.variant = used.work.variant;
  return used;
}

}  // namespace sluice::bench

// What a step of a finished plan is to the latency model.
#pragma once

#include "sluice/kernels/registry.h"
#include "sluice/plan/plan.h"
#include "sluice/profiler/device_profile.h"

namespace sluice::bench {

struct UsedWork {
  profiler::UsedKernel kernel;  // with its variant
  profiler::StepWork work;
};

/// Of a step that computes, not one that prepares; of a kernel of this build. `run_bytes`: profiler::run_bytes_of the graph.
inline UsedWork work_of(const model::Graph& graph, const plan::Step& step, int threads, std::uint64_t run_bytes) {
  const bool derived = step.derived.buffer.valid();
  UsedWork used{{step.kernel, derived ? profiler::KernelUse::kRunDerived : profiler::KernelUse::kRun}, {}};
  const kernels::StepExtent extent{step.rows, step.channels, threads, derived};
  used.work = profiler::work_of(*kernels::find_kernel(step.kernel), used.kernel.use, graph, graph.node(step.node), extent);
  used.work.run_bytes = run_bytes;
  used.kernel.variant = used.work.variant;
  return used;
}

}  // namespace sluice::bench

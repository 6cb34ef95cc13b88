// `run --sandbox`: from here on the system refuses this process whatever a run does not need (docs/security.md).
//
//     open model, plan, inputs, outputs --enter_sandbox--> read the model, compute, write outputs, end
//
// A filter (seccomp-bpf) of all threads: reads of the named files only, writes to the named files and the standard streams only, no file
// opened, no program or thread started, no socket, no memory made executable, no other process touched. What is refused fails with EPERM,
// so that what the C library tries by the way does no harm.
#pragma once

#include <vector>

namespace sluice::cli {

struct SandboxFiles {
  std::vector<int> read;     // descriptors
  std::vector<int> written;  // beside standard output and standard error
};

/// Cannot be undone. Throws Failure: kUnsupported where the system or the processor has no such filter.
void enter_sandbox(const SandboxFiles& files);

}  // namespace sluice::cli

// Bytes of the tensors without buffers that a plan hands over or spills, read from the plan alone: for reports and for the maker of its
// scratch file.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/plan/plan.h"

namespace sluice::plan {

/// How large the scratch file of a plan is; 0: it spills nothing.
inline Bytes scratch_bytes(const Plan& plan, const model::Graph& graph) noexcept {
  Bytes end;
  for (const PassingTensor& passing : plan.passing)
    if (passing.spilled) end = std::max(end, passing.file_offset + graph.tensor(passing.tensor).bytes());
  return end;
}

/// Bytes that one run moves to and from the scratch file, and to the caller.
struct Passed {
  Bytes written, read, handed_over;
};
inline Passed passed_bytes(const Plan& plan, const model::Graph& graph) noexcept {
  Passed passed;
  for (const PassingBlock& block : plan.blocks) {
    const Bytes bytes = bytes_of(block, graph.tensor(block.tensor));
    if (block.passage == Passage::kFetched) passed.read += bytes;
    if (block.passage == Passage::kStored) passed.written += bytes;
    if (block.passage == Passage::kHandedOver) passed.handed_over += bytes;
  }
  return passed;
}

}  // namespace sluice::plan

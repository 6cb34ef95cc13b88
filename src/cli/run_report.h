// What `sluice run` has to say, as one JSON object or as a short table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"
#include "src/cli/outputs.h"
#include "src/cli/process.h"

namespace sluice::cli {

struct RunReport {
  SessionOptions options;
  std::vector<executor::RunStats> runs;  // the counted ones
  MemoryReport memory;                   // after the last run and the reading of the outputs
  std::vector<std::string> labels;
  std::vector<executor::StepTime> step_times;  // of the last run; empty if not asked for
  Peaks peaks;
  std::optional<std::uint64_t> cached_bytes;  // of the model file, left in the page cache
  std::vector<std::vector<TopEntry>> top;     // by output; empty if not asked for
  std::vector<Verdict> verdicts;
};

/// latency_ms, compute_ms_per_run and cpu_ms hold one number a counted run; bytes_read and stall_ms are those of the last one, *_per_run of
/// each.
void print_as_json(const RunReport& report, const Model& model, const plan::Plan& plan);
void print_as_text(const RunReport& report, const Model& model, const plan::Plan& plan);

}  // namespace sluice::cli

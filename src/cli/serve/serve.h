// `sluice serve CONFIG.json`: runs a workload of several models on several processors, and reports the result.
//
//     CONFIG.json --config.cc--> models, processors, workload --serve.cc--> jobs --> results --print.cc--> table, JSON, trace
//
// Requests come when they are due, whether or not earlier ones are over (open loop): a processor that cannot keep up shows as late and
// dropped jobs, not as a slower stream of requests. `stream` is Band's closed loop: a frame of each model, all waited for, the next.
#pragma once

#include <string>
#include <vector>

#include "src/cli/serve/command.h"
#include "src/cli/serve/config.h"
#include "src/cli/serve/tally.h"

namespace sluice::cli {

namespace serve_detail {

struct ServeReport {
  ServeConfig config;
  Tally served;
  scheduler::SchedulerStatistics statistics;
  std::vector<scheduler::RunEvent> events;
  std::vector<scheduler::Fallback> fallbacks;
  std::vector<std::vector<scheduler::Time>> expected;  // by model, by processor, at the end
  double elapsed_ms = 0;
  Bytes budget;
  std::uint64_t peak_rss_bytes = 0;
  bool predicts = false;  // the policy says when jobs end
};

void print(const ServeReport& report, bool json);
/// Writes a trace for Perfetto: a row for each processor, a slice for each run.
std::string trace_of(const ServeReport& report);

}  // namespace serve_detail

}  // namespace sluice::cli

// `sluice bench`: a grid of models, budgets and thread counts, each point measured in a process of its own, because a budget bounds the
// peak of a whole process and only the kernel's figure for that process says whether it held.
//
//     grid --measure.h--> `sluice plan`, `sluice run` as children (child.h) --> Row --bound.h--> what bounds it
//          --print.h--> table, JSON, CSV
//
// `--goal` looks for the smallest budget that reaches a latency (goal.h): predictions say where to look, measurements decide.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/core/error.h"

namespace sluice::cli {

struct BenchOptions {
  std::vector<std::string> models;
  std::string key;
  std::vector<std::string> dims;
  std::string budgets = "unlimited";  // a list: 64MiB,24MiB,smallest,unlimited
  std::string threads = "1";          // a list: 1,2
  std::string profile;
  std::string io_limit;
  int repeat = 15;
  int warmup = 2;
  bool cold = false;              // each counted run is a process of its own, and the model file is out of the page cache
  bool operators = false;         // totals by operator
  std::string goal;               // 150ms: the smallest budget that reaches it, in place of the list
  std::string peer;               // onnxruntime, onnxruntime=FOLDER: also another engine's runs, in turn with ours (peer.h)
  std::vector<std::string> onnx;  // of the models, in their order: what the peer runs
  bool json = false, csv = false, markdown = false;
};
void bench(const BenchOptions& options);

namespace bench_detail {

/// Figures of the same runs by another engine.
struct PeerFigures {
  std::string version;
  double median_ms = 0, min_ms = 0, p90_ms = 0, cpu_ms = 0;
  double ratio = 0;  // our minimum time divided by the peer's; minima, because noise only adds time
  std::uint64_t peak_rss_bytes = 0;
  std::string refusal;  // not empty: it does not run the file, and why
};

/// One point of the grid, measured. Times in milliseconds of wall time; of runs after the first unless `cold`.
struct Row {
  std::string model;
  std::uint64_t budget_bytes = 0;  // of an unlimited one: what the plan takes
  bool limited = false;
  int threads = 1;
  double median_ms = 0, min_ms = 0, p90_ms = 0, p99_ms = 0, cpu_ms = 0, stall_ms = 0, predicted_ms = 0;
  std::uint64_t peak_rss_bytes = 0, bytes_read = 0;
  std::optional<double> joules;             // of one run, of the whole machine
  std::map<std::string, double> operators;  // milliseconds of one run
  std::string bound_by;                     // compute, disk, budget or addresses
  std::string reason;                       // the same in a sentence
  std::string refusal;                      // not empty: the point cannot run, and why
  ErrorCode refusal_code{};                 // of that
  std::optional<PeerFigures> peer;
};

}  // namespace bench_detail
}  // namespace sluice::cli

// One point of the grid: what its plan expects, what its runs show.
#pragma once

#include <string>

#include "src/cli/bench/bench.h"
#include "src/cli/bench/peer.h"

namespace sluice::cli::bench_detail {

struct Point {
  std::string model;
  std::string budget;  // as `--budget` takes it
  int threads = 1;
  std::string onnx;  // what a peer runs beside it; empty: none does
};

/// Milliseconds that one repeated run (`cold`: the first) is predicted to take, and the smallest budget. Throws Failure as `sluice plan`.
struct Expectation {
  double predicted_ms = 0;
  double disk_ms = 0, budget_ms = 0, addresses_ms = 0;  // of waiting
  std::uint64_t minimum_budget_bytes = 0;
};
Expectation expect(const BenchOptions& options, const Point& point);

/// Measures the point, in turn with `peer` where there is one. A budget that is too small or a model that does not run gives a row with
/// `refusal`; other faults are Failures.
Row measure(const BenchOptions& options, const Point& point, const Peer* peer = nullptr);

}  // namespace sluice::cli::bench_detail

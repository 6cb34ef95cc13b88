// Prints the FMA peak of some threads at once, in GFLOP/s: what models are judged by.
//
//     sluice-bench-peak [THREADS]
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "sluice/core/threads.h"
#include "tests/bench/peak.h"

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const auto pool = sluice::make_thread_pool(threads);
  if (!pool) return 1;
  std::vector<double> peaks(static_cast<std::size_t>(threads));
  sluice::parallel_for(**pool, threads, [&](std::int64_t i, int) noexcept {
    peaks[static_cast<std::size_t>(i)] = sluice::bench::fma_peak(sluice::active_isa());
  });
  std::printf("%.1f\n", std::accumulate(peaks.begin(), peaks.end(), 0.0));
  return 0;
}

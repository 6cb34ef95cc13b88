// Speed of the weighted kernels on one thread, beside the FMA peak, the prototypes and XNNPACK, all measured in the same run.
//
//     sluice-bench-kernels [--benchmark_filter=conv3x3] [--benchmark_format=json]
//
// Each iteration runs our kernel and then XNNPACK's, so that a busy moment slows both, and now and then the loop of the peak. Of each the
// fastest run counts, in CPU time of the thread: noise only adds. Counters:
//
//     GFLOP/s     ours
//     peak        GFLOP/s of the FMA peak meanwhile
//     share       GFLOP/s / peak
//     prototype   the share that a prototype of this kernel reached (0: none known)
//     XNNPACK     its share (0: not in this build)
//     speedup     XNNPACK's time / ours
//     GB/s, read  with one row each weight is used once: weights read a second, and what a plain loop over them reads
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>

#include "tests/bench/layers.h"
#include "tests/bench/peak.h"
#include "tests/bench/xnnpack_layer.h"

namespace sluice::bench {
namespace {

using kernels::KernelCall;
using kernels::Operand;
namespace test = kernels::test;

template <class Body>
double seconds_of(const Body& body) {
  const double start = thread_seconds();
  body();
  return thread_seconds() - start;
}

double flops_of(const test::Case& c) {
  const auto& conv = c.problem().conv;
  const auto& w = conv.window;
  return 2.0 * static_cast<double>(w.out_h * w.out_w * w.taps() * c.depth() * conv.out_channels);
}

/// Seconds in which a plain loop reads all bytes once.
double seconds_of_reading(const kernels::WeightOperand& weights, std::size_t bytes) {
  constexpr std::size_t kSums = 8;
  std::uint64_t sums[kSums] = {};
  const auto* words = reinterpret_cast<const std::uint64_t*>(weights.data);
  const double seconds = seconds_of([&] {
    for (std::size_t i = 0; i + kSums <= bytes / sizeof(std::uint64_t); i += kSums)
      for (std::size_t lane = 0; lane < kSums; ++lane) sums[lane] += words[i + lane];
  });
  benchmark::DoNotOptimize(sums);
  return seconds;
}

void run_layer(benchmark::State& state, const Layer& layer) {
  constexpr int kRunsBetweenPeaks = 32;
  Problem problem = layer.problem;
  problem.bias = true;
  problem.activation = {model::Function::kRelu};
  const test::Case c(problem);
  const RowRange rows{0, c.out_rows()};
  const ChannelRange channels{0, problem.conv.out_channels};
  test::Placed in(c.in_shape(), {}, 0, 1.0f);
  test::Placed out(c.out_shape(), {}, 0, 0.0f), peer_out(c.out_shape(), {}, 0, 0.0f);
  const Operand inputs[] = {in.operand()};
  const Operand output = out.operand();
  test::Buffer scratch(layer.workspace(c.graph(), c.node(), {rows, channels, 1}).count() / sizeof(float) + 1, 0.0f);
  const test::PreparedWeights weights(c, channels);
  const KernelCall call{.graph = &c.graph(),
                        .node = &c.node(),
                        .inputs = inputs,
                        .outputs = std::span(&output, 1),
                        .weights = weights.operands(),
                        .rows = rows,
                        .channels = channels,
                        .workspace = scratch.bytes()};
  const kernels::weighted::TileTable& tiles = kernels::weighted::tile_table(active_isa());
  const auto peer = make_xnnpack_layer(problem, in.buffer->data(), peer_out.buffer->data());

  const auto weight_bytes = static_cast<std::size_t>(layer.problem.conv.out_channels * c.depth()) * sizeof(float);
  const bool one_row = problem.op == model::OpKind::kDense && c.out_rows() == 1;
  double ours = 1e9, theirs = 1e9, reading = 1e9, peak = fma_peak(active_isa());
  int runs = 0;
  for (auto _ : state) {
    const double seconds = seconds_of([&] { layer.run(call, tiles); });
    state.SetIterationTime(seconds);
    ours = std::min(ours, seconds);
    if (peer) theirs = std::min(theirs, seconds_of([&] { peer->run(); }));
    if (one_row) reading = std::min(reading, seconds_of_reading(weights.operands().front(), weight_bytes));
    if (++runs % kRunsBetweenPeaks == 0) peak = std::max(peak, fma_peak(active_isa()));
  }
  const double rate = flops_of(c) * 1e-9 / ours;
  state.counters["GFLOP/s"] = rate;
  state.counters["peak"] = peak;
  state.counters["share"] = rate / peak;
  state.counters["prototype"] = layer.prototype;
  state.counters["XNNPACK"] = peer ? flops_of(c) * 1e-9 / theirs / peak : 0;
  state.counters["speedup"] = peer ? theirs / ours : 0;
  if (one_row) {
    state.counters["GB/s"] = static_cast<double>(weight_bytes) * 1e-9 / ours;
    state.counters["read"] = static_cast<double>(weight_bytes) * 1e-9 / reading;
  }
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  for (const Layer& layer : layers())
    benchmark::RegisterBenchmark(layer.name, [layer](benchmark::State& state) { run_layer(state, layer); })
        ->UseManualTime()
        ->MinTime(0.1)
        ->Unit(benchmark::kMicrosecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

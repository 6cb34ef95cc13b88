// Speed of the weighted kernels on layers of well-known networks, one thread.
//
//     sluice-bench-kernels --benchmark_filter=conv3x3
//
// Counters are of the fastest run, in CPU time of the thread. The machine is seldom quiet and its clock wanders: compare builds by
// running them in turn, several times each.
#include <benchmark/benchmark.h>

#include <ctime>

#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/lanes.h"
#include "src/kernels/weighted/pointwise.h"
#include "tests/kernels/weighted_harness.h"

namespace sluice::kernels::test {
namespace {

struct Layer {
  const char* name;
  Problem problem;
  Run run;
  Workspace workspace;
};

Layer direct(const char* name, const Problem& p) { return {name, p, weighted::run_direct, weighted::direct_workspace}; }
Layer pointwise(const char* name, const Problem& p) { return {name, p, weighted::run_pointwise, weighted::no_workspace}; }
Layer dense_layer(const char* name, const Problem& p) { return {name, p, weighted::run_dense, weighted::no_workspace}; }
Layer depthwise(const char* name, const Problem& p) { return {name, p, weighted::run_depthwise, weighted::depthwise_workspace}; }

std::vector<Layer> layers() {
  return {
      direct("conv3x3/56x56x64", convolution(56, 56, 64, 64, 3, 1, 1)),
      direct("conv3x3/28x28x128", convolution(28, 28, 128, 128, 3, 1, 1)),
      direct("conv3x3/14x14x256", convolution(14, 14, 256, 256, 3, 1, 1)),
      direct("conv3x3/7x7x512", convolution(7, 7, 512, 512, 3, 1, 1)),
      direct("conv3x3/224x224x64", convolution(224, 224, 64, 64, 3, 1, 1)),
      direct("conv3x3/224x224x3", convolution(224, 224, 3, 64, 3, 1, 1)),
      direct("conv3x3s2/224x224x3x32", convolution(224, 224, 3, 32, 3, 2, 1)),
      direct("conv7x7s2/224x224x3", convolution(224, 224, 3, 64, 7, 2, 3)),
      pointwise("conv1x1/56x56x64x256", convolution(56, 56, 64, 256, 1, 1, 0)),
      pointwise("conv1x1/56x56x256x64", convolution(56, 56, 256, 64, 1, 1, 0)),
      pointwise("conv1x1/28x28x128x512", convolution(28, 28, 128, 512, 1, 1, 0)),
      pointwise("conv1x1/28x28x512x128", convolution(28, 28, 512, 128, 1, 1, 0)),
      pointwise("conv1x1/14x14x1024x256", convolution(14, 14, 1024, 256, 1, 1, 0)),
      pointwise("conv1x1/14x14x256x1024", convolution(14, 14, 256, 1024, 1, 1, 0)),
      pointwise("conv1x1/7x7x2048x512", convolution(7, 7, 2048, 512, 1, 1, 0)),
      pointwise("conv1x1/7x7x512x2048", convolution(7, 7, 512, 2048, 1, 1, 0)),
      pointwise("conv1x1s2/28x28x512x1024", convolution(28, 28, 512, 1024, 1, 2, 0)),
      pointwise("conv1x1/112x112x32x64", convolution(112, 112, 32, 64, 1, 1, 0)),
      pointwise("conv1x1/112x112x16x96", convolution(112, 112, 16, 96, 1, 1, 0)),
      pointwise("conv1x1/56x56x144x24", convolution(56, 56, 144, 24, 1, 1, 0)),
      pointwise("conv1x1/14x14x96x576", convolution(14, 14, 96, 576, 1, 1, 0)),
      dense_layer("dense/512x768x3072", dense(512, 768, 3072)),
      dense_layer("dense/197x768x3072", dense(197, 768, 3072)),
      dense_layer("dense/197x3072x768", dense(197, 3072, 768)),
      dense_layer("dense/64x768x2304", dense(64, 768, 2304)),
      dense_layer("dense/1x4096x4096", dense(1, 4096, 4096)),
      dense_layer("dense/1x2048x1000", dense(1, 2048, 1000)),
      depthwise("depthwise3x3/112x112x32", convolution(112, 112, 32, 32, 3, 1, 1, 32)),
      depthwise("depthwise3x3s2/112x112x96", convolution(112, 112, 96, 96, 3, 2, 1, 96)),
      depthwise("depthwise3x3/56x56x144", convolution(56, 56, 144, 144, 3, 1, 1, 144)),
      depthwise("depthwise3x3/14x14x384", convolution(14, 14, 384, 384, 3, 1, 1, 384)),
      depthwise("depthwise3x3/7x7x960", convolution(7, 7, 960, 960, 3, 1, 1, 960)),
  };
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void run_layer(benchmark::State& state, const Layer& layer) {
  Problem problem = layer.problem;
  problem.bias = true;
  problem.activation = {model::Function::kRelu};
  const Case c(problem);
  const RowRange rows{0, c.out_rows()};
  const ChannelRange channels{0, problem.conv.out_channels};
  Placed in(c.in_shape(), {}, 0, 1.0f);
  Placed out(c.out_shape(), {}, 0, 0.0f);
  const Operand inputs[] = {in.operand()};
  const Operand output = out.operand();
  Buffer scratch(layer.workspace(c.graph(), c.node(), {rows, channels, 1}).count() / 4 + 1, 0.0f);
  const PreparedWeights weights(c, channels);
  const KernelCall call{.graph = &c.graph(),
                        .node = &c.node(),
                        .inputs = inputs,
                        .outputs = std::span(&output, 1),
                        .weights = weights.operands(),
                        .rows = rows,
                        .channels = channels,
                        .workspace = scratch.bytes()};
  const weighted::TileTable& tiles = weighted::tile_table(active_isa());
  double best = 1e9;
  for (auto _ : state) {
    const double start = cpu_seconds();
    layer.run(call, tiles);
    best = std::min(best, cpu_seconds() - start);
  }
  const auto& w = problem.conv.window;
  const double flops = 2.0 * static_cast<double>(w.out_h * w.out_w * w.taps() * c.depth() * problem.conv.out_channels);
  state.counters["best_us"] = best * 1e6;
  state.counters["GFLOP/s"] = flops / best * 1e-9;
}

}  // namespace
}  // namespace sluice::kernels::test

int main(int argc, char** argv) {
  using namespace sluice::kernels::test;
  for (const Layer& layer : layers())
    benchmark::RegisterBenchmark(layer.name, [layer](benchmark::State& state) { run_layer(state, layer); })
        ->MinTime(0.1)
        ->Unit(benchmark::kMicrosecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

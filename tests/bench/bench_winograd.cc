// Speed of Winograd convolutions beside direct ones, one thread, in effective GFLOP/s: those of the direct sums.
//
//     sluice-bench-winograd --benchmark_filter=28x28x128
//
// `raw` transforms the weights in the step, `derived` finds them transformed, `prepare` is that transform alone, `direct` the exact class.
// Counters are of the fastest run, in CPU time of the thread.
#include <benchmark/benchmark.h>

#include <ctime>
#include <functional>

#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/winograd.h"
#include "tests/kernels/weighted_harness.h"

namespace sluice::kernels::test {
namespace {

enum class Mode { kRaw, kDerived, kPrepare, kDirect };

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void measure(benchmark::State& state, Problem problem, Mode mode) {
  problem.bias = true;
  problem.activation = {model::Function::kRelu};
  const Case c(problem);
  const RowRange rows{0, c.out_rows()};
  const ChannelRange channels{0, problem.conv.out_channels};
  Placed in(c.in_shape(), {}, 0, 1.0f);
  Placed out(c.out_shape(), {}, 0, 0.0f);
  const Operand inputs[] = {in.operand()};
  const Operand output = out.operand();
  const bool derived = mode == Mode::kDerived;
  const StepExtent extent{rows, channels, 1, derived};
  const operators::ConvolutionParameters parameters = convolution_parameters(c.graph(), c.node());
  const auto workspace = mode == Mode::kDirect ? weighted::direct_workspace : weighted::winograd_workspace;
  Buffer scratch(workspace(parameters, extent).count() / 4 + 1, 0.0f);
  const PreparedWeights weights(c, channels);
  const std::int64_t panels = c.graph().weights[0].panels;
  const Bytes panel_bytes = weighted::winograd_panel_bytes(parameters);
  Buffer transformed(static_cast<std::size_t>(panels) * panel_bytes.count() / 4, 0.0f);
  const weighted::WinogradTable& loops = weighted::winograd_table(active_isa());
  KernelCall call{.parameter_data = reinterpret_cast<const std::byte*>(&parameters),
                  .inputs = inputs,
                  .outputs = std::span(&output, 1),
                  .weights = weights.operands(),
                  .derived = {transformed.bytes(), {0, panels}},
                  .rows = rows,
                  .channels = channels,
                  .workspace = scratch.bytes()};
  weighted::prepare_winograd(call, loops);
  if (!derived && mode != Mode::kPrepare) call.derived = {};
  const std::function<void()> run = mode == Mode::kPrepare  ? std::function<void()>([&] { weighted::prepare_winograd(call, loops); })
                                    : mode == Mode::kDirect ? [&] { weighted::run_direct(call, weighted::tile_table(active_isa())); }
                                                            : std::function<void()>([&] { weighted::run_winograd(call, loops); });
  double best = 1e9;
  for (auto _ : state) {
    const double start = cpu_seconds();
    run();
    best = std::min(best, cpu_seconds() - start);
  }
  const auto& w = problem.conv.window;
  const double flops = 2.0 * static_cast<double>(w.out_h * w.out_w * w.taps() * c.depth() * problem.conv.out_channels);
  state.counters["best_us"] = best * 1e6;
  state.counters["workspace_KB"] = static_cast<double>(scratch.size()) * 4e-3;
  state.counters["GFLOP/s"] = flops / best * 1e-9;
}

struct Layer {
  std::int64_t pixels, in, out;
};

void add(const Layer& layer) {
  const std::string name = std::to_string(layer.pixels) + "x" + std::to_string(layer.pixels) + "x" + std::to_string(layer.in) +
                           (layer.in == layer.out ? "" : "x" + std::to_string(layer.out)) + "/";
  const Problem problem = convolution(layer.pixels, layer.pixels, layer.in, layer.out, 3, 1, 1);
  for (const auto& [mode, word] :
       {std::pair{Mode::kRaw, "raw"}, {Mode::kDerived, "derived"}, {Mode::kPrepare, "prepare"}, {Mode::kDirect, "direct"}})
    benchmark::RegisterBenchmark((name + word).c_str(), [problem, mode = mode](benchmark::State& state) { measure(state, problem, mode); })
        ->MinTime(0.03)
        ->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace sluice::kernels::test

int main(int argc, char** argv) {
  using sluice::kernels::test::Layer;
  for (const Layer& layer :
       {Layer{56, 64, 64}, {28, 128, 128}, {14, 256, 256}, {7, 512, 512},  {224, 64, 64},  {112, 64, 128}, {112, 128, 128},
        {56, 128, 256},    {56, 256, 256}, {28, 256, 512}, {28, 512, 512}, {14, 512, 512}, {55, 16, 64},   {27, 32, 128},
        {13, 48, 192},     {13, 64, 256},  {7, 128, 128},  {8, 128, 128},  {9, 128, 128},  {10, 128, 128}, {12, 128, 128},
        {8, 512, 512},     {9, 512, 512},  {10, 512, 512}, {224, 3, 64},   {56, 8, 64},    {56, 16, 16},   {56, 16, 8},
        {14, 8, 64},       {14, 16, 16},   {14, 64, 8},    {14, 32, 32},   {28, 16, 8}})
    sluice::kernels::test::add(layer);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

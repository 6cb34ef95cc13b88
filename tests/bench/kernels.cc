// Speed of the weighted kernels on one thread, beside the FMA peak, the prototypes and XNNPACK, all measured in the same run.
//
//     sluice-bench-kernels [--benchmark_filter=conv3x3] [--benchmark_format=json]
//
// Each iteration runs our kernel and then XNNPACK's, so that a busy moment slows both, and now and then the loop of the peak. Of each the
// fastest run counts, in CPU time of the thread: noise only adds; of their ratio the median, for clocks wander. Counters:
//
//     GFLOP/s     ours
//     peak        GFLOP/s of the FMA peak meanwhile
//     share       GFLOP/s / peak
//     prototype   the share that a prototype of this kernel reached (0: none known)
//     other       XNNPACK's share (0: not in this build)
//     speedup     XNNPACK's time / ours
//     GB/s, read  with one row each weight is used once: weights read a second, and what a plain loop over them reads
//
// NAME/slices is a layer run in slices of 32 output channels, NAME/strips in two bands of rows, as `other`, beside the same layer as one
// step: there `speedup` is what the cut costs. int8/NAME are layers of integers beside VNNI's peak (integer_layers.h).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/integer_layers.h"
#include "tests/bench/layers.h"
#include "tests/bench/must.h"
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

/// Parts of a layer's channels and rows, run one after the other.
class Steps {
 public:
  Steps(const Layer& layer, const test::Case& c, std::span<const Operand> inputs, std::span<const Operand> outputs,
        std::int64_t channels_of_step, std::int64_t rows_of_step)
      : layer_(layer), parameters_(test::parameters_of(c.graph(), c.node())) {
    const std::int64_t channels = layer.problem.conv.out_channels, rows = c.out_rows();
    std::uint64_t workspace = 0;
    for (std::int64_t n = 0; n < channels; n += channels_of_step) {
      const ChannelRange slice{n, std::min(n + channels_of_step, channels)};
      weights_.emplace_back(c, slice);
      for (std::int64_t r = 0; r < rows; r += rows_of_step) {
        calls_.push_back({.parameter_data = parameters_.data(),
                          .inputs = inputs,
                          .outputs = outputs,
                          .weights = weights_.back().operands(),
                          .rows = {r, std::min(r + rows_of_step, rows)},
                          .channels = slice});
        if (layer.workspace == nullptr) continue;
        workspace = std::max(workspace, layer.workspace(parameters_, {calls_.back().rows, slice, 1}).count());
      }
    }
    scratch_ = std::make_unique<test::Buffer>(workspace / sizeof(float) + 1, 0.0f);
    for (KernelCall& call : calls_) call.workspace = scratch_->bytes();
    for (std::size_t i = 1; i < calls_.size(); ++i) calls_[i - 1].next_weights = bytes_of(calls_[i].weights[0]);
  }

  void run(const kernels::weighted::TileTable& tiles) const {
    for (const KernelCall& call : calls_) layer_.run(call, tiles);
  }
  /// Of the first step.
  const kernels::WeightOperand& weight() const { return calls_.front().weights[0]; }

 private:
  static std::span<const std::byte> bytes_of(const kernels::WeightOperand& weight) {
    return {weight.data, static_cast<std::size_t>(weight.panels.size()) * weight.panel_bytes.count()};
  }

  const Layer& layer_;
  const operators::Parameters parameters_;
  std::deque<test::PreparedWeights> weights_;  // calls point into it
  std::vector<KernelCall> calls_;
  std::unique_ptr<test::Buffer> scratch_;
};

/// A layer whole, and beside it what runs as one iteration of `other`.
template <class Other>
void run_beside(benchmark::State& state, const Layer& layer, const Other& other) {
  constexpr int kRunsBetweenPeaks = 32;
  Layer shown = layer;
  shown.problem.bias = true;
  shown.problem.activation = {model::Function::kRelu};
  const test::Case c(shown.problem);
  test::Placed in(c.in_shape(), {}, 0, 1.0f);
  test::Placed out(c.out_shape(), {}, 0, 0.0f), other_out(c.out_shape(), {}, 0, 0.0f);
  const Operand inputs[] = {in.operand()};
  const Operand output = out.operand();
  const kernels::weighted::TileTable& tiles = kernels::weighted::tile_table(active_isa());
  const Steps whole(shown, c, inputs, std::span(&output, 1), shown.problem.conv.out_channels, c.out_rows());
  const auto run_other = other(shown, c, in, other_out);

  const auto weight_bytes = static_cast<std::size_t>(layer.problem.conv.out_channels * c.depth()) * sizeof(float);
  const bool one_row = layer.problem.op == model::OpKind::kDense && c.out_rows() == 1;
  double ours = 1e9, others = 1e9, reading = 1e9, peak = fma_peak(active_isa());
  std::vector<double> ratios;
  int runs = 0;
  for (auto _ : state) {
    const double seconds = seconds_of([&] { whole.run(tiles); });
    state.SetIterationTime(seconds);
    ours = std::min(ours, seconds);
    if (run_other) {
      const double other_seconds = seconds_of([&] { run_other(tiles); });
      others = std::min(others, other_seconds);
      ratios.push_back(other_seconds / seconds);
    }
    if (one_row) reading = std::min(reading, seconds_of_reading(whole.weight(), weight_bytes));
    if (++runs % kRunsBetweenPeaks == 0) peak = std::max(peak, fma_peak(active_isa()));
  }
  const double rate = flops_of(c) * 1e-9 / ours;
  state.counters["GFLOP/s"] = rate;
  state.counters["peak"] = peak;
  state.counters["share"] = rate / peak;
  state.counters["prototype"] = layer.prototype;
  state.counters["other"] = run_other ? flops_of(c) * 1e-9 / others / peak : 0;
  state.counters["speedup"] = ratios.empty() ? 0 : median(ratios);
  if (one_row) {
    state.counters["GB/s"] = static_cast<double>(weight_bytes) * 1e-9 / ours;
    state.counters["read"] = static_cast<double>(weight_bytes) * 1e-9 / reading;
  }
}

using Runner = std::function<void(const kernels::weighted::TileTable&)>;

void run_layer(benchmark::State& state, const Layer& layer) {
  run_beside(state, layer, [](const Layer& shown, const test::Case&, test::Placed& in, test::Placed& out) -> Runner {
    std::shared_ptr<XnnpackLayer> peer = make_xnnpack_layer(shown.problem, in.buffer->data(), out.buffer->data());
    if (!peer) return nullptr;
    return [peer](const kernels::weighted::TileTable&) { peer->run(); };
  });
}

/// What slices of 32 channels cost, or strips of `rows` rows: `speedup` is their time over that of the layer as one step.
void run_cut(benchmark::State& state, const Layer& layer, std::int64_t channels, std::int64_t rows) {
  run_beside(state, layer, [&](const Layer& shown, const test::Case& c, test::Placed& in, test::Placed& out) -> Runner {
    struct Cut {
      Operand input, output;
      std::optional<Steps> steps;
    };
    const auto cut = std::make_shared<Cut>();
    cut->input = in.operand();
    cut->output = out.operand();
    cut->steps.emplace(shown, c, std::span(&cut->input, 1), std::span(&cut->output, 1), channels, rows);
    return [cut](const kernels::weighted::TileTable& tiles) { cut->steps->run(tiles); };
  });
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->MinTime(0.1)->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  for (const Layer& layer : layers()) {
    add(layer.name, [layer](benchmark::State& state) { run_layer(state, layer); });
    if (!layer.cut) continue;
    const std::int64_t channels = layer.problem.conv.out_channels, rows = layer.problem.conv.window.out_h;
    add(std::string(layer.name) + "/slices", [=](benchmark::State& state) { run_cut(state, layer, 32, rows); });
    add(std::string(layer.name) + "/strips", [=](benchmark::State& state) { run_cut(state, layer, channels, (rows + 1) / 2); });
  }
  add_integer_layers();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

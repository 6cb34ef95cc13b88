#include "tests/bench/integer_layers.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>

#include "src/kernels/integer/depthwise.h"
#include "src/kernels/integer/matrix.h"
#include "tests/bench/dot_peak.h"
#include "tests/bench/peak.h"
#include "tests/kernels/weighted_harness.h"

namespace sluice::bench {
namespace {

using kernels::KernelCall;
using kernels::Operand;
using kernels::test::Buffer;
using operators::IntegerConvolutionParameters;
namespace integer = kernels::integer;

struct IntegerLayer {
  const char* kind;
  std::int64_t extent, channels, outputs, kernel, stride;
  bool depthwise = false;
};

// ResNet-50's shapes, then what SqueezeNet, MobileNetV2 and VGG-19 add.
constexpr IntegerLayer kLayers[] = {
    {"first", 224, 3, 64, 7, 2},
    {"1x1", 56, 64, 64, 1, 1},
    {"1x1", 56, 64, 256, 1, 1},
    {"1x1", 56, 256, 64, 1, 1},
    {"1x1", 56, 256, 128, 1, 1},
    {"1x1s2", 56, 256, 512, 1, 2},
    {"1x1", 28, 128, 512, 1, 1},
    {"1x1", 28, 512, 128, 1, 1},
    {"1x1", 28, 512, 256, 1, 1},
    {"1x1s2", 28, 512, 1024, 1, 2},
    {"1x1", 14, 256, 1024, 1, 1},
    {"1x1", 14, 1024, 256, 1, 1},
    {"1x1", 14, 1024, 512, 1, 1},
    {"1x1s2", 14, 1024, 2048, 1, 2},
    {"1x1", 7, 512, 2048, 1, 1},
    {"1x1", 7, 2048, 512, 1, 1},
    {"3x3", 56, 64, 64, 3, 1},
    {"3x3s2", 56, 128, 128, 3, 2},
    {"3x3", 28, 128, 128, 3, 1},
    {"3x3s2", 28, 256, 256, 3, 2},
    {"3x3", 14, 256, 256, 3, 1},
    {"3x3s2", 14, 512, 512, 3, 2},
    {"3x3", 7, 512, 512, 3, 1},
    {"dense", 1, 2048, 1000, 1, 1},
    {"1x1", 55, 64, 16, 1, 1},
    {"1x1", 55, 16, 64, 1, 1},
    {"3x3", 55, 16, 64, 3, 1},
    {"3x3", 13, 64, 256, 3, 1},
    {"1x1", 13, 512, 1000, 1, 1},
    {"1x1", 112, 32, 16, 1, 1},
    {"1x1", 112, 16, 96, 1, 1},
    {"1x1", 14, 96, 576, 1, 1},
    {"1x1", 7, 960, 160, 1, 1},
    {"3x3", 224, 64, 64, 3, 1},
    {"3x3", 56, 256, 256, 3, 1},
    {"depthwise3", 112, 32, 32, 3, 1, true},
    {"depthwise3", 56, 144, 144, 3, 1, true},
    {"depthwise3s2", 112, 96, 96, 3, 2, true},
    {"depthwise3", 14, 576, 576, 3, 1, true},
    {"depthwise3", 7, 960, 960, 3, 1, true},
    {"depthwise5", 28, 240, 240, 5, 1, true},
};

/// Parameters of the layer, with its window padded to keep the extent.
IntegerConvolutionParameters parameters_of(const IntegerLayer& layer) {
  IntegerConvolutionParameters p;
  const std::int64_t pad = layer.kernel / 2, out = (layer.extent + 2 * pad - layer.kernel) / layer.stride + 1;
  p.window = {layer.extent, layer.extent, out, out, layer.kernel, layer.kernel, layer.stride, layer.stride, 1, 1, pad, pad, pad, pad};
  p.groups = layer.depthwise ? layer.channels : 1;
  p.in_channels = layer.channels;
  p.out_channels = layer.outputs;
  const std::int64_t depth = layer.depthwise ? 1 : align_up(static_cast<std::uint64_t>(layer.channels), 4);
  p.weighted.panels = {.layout = {.layout = layer.depthwise ? WeightLayout::kDepthwise : WeightLayout::kPanels, .dtype = DType::kI8},
                       .values = p.window.taps() * depth,
                       .outputs_per_group = layer.depthwise ? 1 : layer.outputs,
                       .panel_bytes = Bytes(align_up(static_cast<std::uint64_t>(p.window.taps() * depth * kPanelLanes), 64))};
  p.weighted.epilogue = {.zero_in = 120, .range = {.zero = 10}};
  return p;
}

/// The layer's memory, and the call of it as one step.
class LayerRun {
 public:
  explicit LayerRun(const IntegerLayer& layer)
      : parameters_(parameters_of(layer)),
        lanes_((layer.outputs + 15) / 16 * 16),
        in_(bytes(layer.extent * layer.extent * layer.channels), 1.7f),
        out_(bytes(parameters_.window.out_h * parameters_.window.out_w * layer.outputs), 0.0f),
        weights_(static_cast<std::size_t>(lanes_ / 16) * parameters_.weighted.panels.panel_bytes.count() / 4 + 16, 1.3e-3f),
        bias_(static_cast<std::size_t>(lanes_), 0.0f),
        multipliers_(static_cast<std::size_t>(lanes_), 1e-4f) {
    const Shape in{1, layer.extent, layer.extent, layer.channels};
    const Shape out{1, parameters_.window.out_h, parameters_.window.out_w, layer.outputs};
    input_ = {dense_view(in_.bytes(), in, DType::kU8), in};
    output_ = {dense_view(out_.bytes(), out, DType::kU8), out};
    const PanelRange panels{0, lanes_ / 16};
    operands_[0] = {weights_.bytes(), panels, parameters_.weighted.panels.panel_bytes};
    operands_[1] = {bias_.bytes(), {0, 1}, Bytes()};
    operands_[2] = {multipliers_.bytes(), {0, 1}, Bytes()};
    call_ = {.parameter_data = reinterpret_cast<const std::byte*>(&parameters_),
             .inputs = {&input_, 1},
             .outputs = {&output_, 1},
             .weights = operands_,
             .rows = {0, parameters_.window.out_h},
             .channels = {0, layer.outputs}};
    const StepExtent extent{call_.rows, call_.channels, 1};
    if (layer.depthwise) {
      run_ = integer::run_depthwise;
      scratch_.emplace(integer::depthwise_workspace(parameters_, extent).count() / 4 + 16, 0.0f);
    } else if (integer::reads_in_place(parameters_)) {
      run_ = integer::run_pointwise;
      scratch_.emplace(16, 0.0f);
    } else {
      run_ = integer::run_strips;
      scratch_.emplace(integer::strips_workspace(parameters_, extent).count() / 4 + 16, 0.0f);
    }
    call_.workspace = scratch_->bytes();
  }
  LayerRun(const LayerRun&) = delete;

  void run(const integer::TileTable& table) const { run_(call_, table); }
  double operations() const {
    const auto& w = parameters_.window;
    return 2.0 * static_cast<double>(w.out_h * w.out_w * w.taps() * parameters_.group_depth() * parameters_.out_channels);
  }

 private:
  static std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count) / 4 + 32; }

  IntegerConvolutionParameters parameters_;
  std::int64_t lanes_;
  Buffer in_, out_, weights_, bias_, multipliers_;
  std::optional<Buffer> scratch_;
  Operand input_, output_;
  kernels::WeightOperand operands_[3];
  KernelCall call_;
  void (*run_)(const KernelCall&, const integer::TileTable&) noexcept = nullptr;
};

void run_layer(benchmark::State& state, const IntegerLayer& layer) {
  constexpr int kRunsBetweenPeaks = 64;
  const LayerRun run(layer);
  const integer::TileTable& table = integer::table_of(active_isa());
  double best = 1e9, peak = dot_peak(table.isa);
  int runs = 0;
  for (auto _ : state) {
    const double start = thread_seconds();
    run.run(table);
    const double seconds = thread_seconds() - start;
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
    if (++runs % kRunsBetweenPeaks == 0) peak = std::max(peak, dot_peak(table.isa));
  }
  state.counters["us"] = best * 1e6;
  state.counters["GOP/s"] = run.operations() * 1e-9 / best;
  state.counters["peak"] = peak;
  state.counters["share"] = peak == 0 ? 0 : run.operations() * 1e-9 / best / peak;
}

}  // namespace

void add_integer_layers() {
  for (const IntegerLayer& layer : kLayers) {
    const std::string name = std::string("int8/") + layer.kind + "/" + std::to_string(layer.extent) + "x" + std::to_string(layer.extent) +
                             "x" + std::to_string(layer.channels) + "-" + std::to_string(layer.outputs);
    benchmark::RegisterBenchmark(name.c_str(), [layer](benchmark::State& state) { run_layer(state, layer); })
        ->UseManualTime()
        ->MinTime(0.1)
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace sluice::bench

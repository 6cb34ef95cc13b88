#include "tests/bench/layers.h"

#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/lanes.h"
#include "src/kernels/weighted/pointwise.h"
#include "src/kernels/weighted/winograd.h"

namespace sluice::bench {
namespace {

using kernels::test::convolution;
using namespace kernels::weighted;

Layer direct(const char* name, const Problem& p, double prototype = 0) {
  return {name, p, run_direct, kernels::workspace_of<direct_workspace>, prototype};
}
Layer pointwise(const char* name, const Problem& p, double prototype = 0) { return {name, p, run_pointwise, nullptr, prototype}; }
Layer dense(const char* name, std::int64_t rows, std::int64_t k, std::int64_t n, double prototype = 0) {
  return {name, kernels::test::dense(rows, k, n), run_dense, nullptr, prototype};
}
/// Weights are transformed within the step. Shares count the flops of the direct sums.
Layer winograd(const char* name, std::int64_t size, std::int64_t channels, double prototype) {
  const auto run = [](const kernels::KernelCall& call, const TileTable&) noexcept { run_winograd(call, winograd_table(active_isa())); };
  return {name, convolution(size, size, channels, channels, 3, 1, 1), run, kernels::workspace_of<winograd_workspace>, prototype};
}
Layer depthwise(const char* name, std::int64_t size, std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
  return {name, convolution(size, size, channels, channels, kernel, stride, kernel / 2, channels), run_depthwise,
          kernels::workspace_of<depthwise_workspace>, 0};
}

Layer cut(Layer layer) {
  layer.cut = true;
  return layer;
}

}  // namespace

std::vector<Layer> layers() {
  return {
      cut(direct("conv3x3/56x56x64", convolution(56, 56, 64, 64, 3, 1, 1), 0.95)),
      cut(direct("conv3x3/28x28x128", convolution(28, 28, 128, 128, 3, 1, 1), 0.97)),
      cut(direct("conv3x3/14x14x256", convolution(14, 14, 256, 256, 3, 1, 1), 0.98)),
      direct("conv3x3/7x7x512", convolution(7, 7, 512, 512, 3, 1, 1), 0.85),
      direct("conv3x3/224x224x64", convolution(224, 224, 64, 64, 3, 1, 1), 0.86),
      cut(pointwise("conv1x1/14x14x1024x256", convolution(14, 14, 1024, 256, 1, 1, 0), 0.94)),
      cut(pointwise("conv1x1/14x14x256x1024", convolution(14, 14, 256, 1024, 1, 1, 0), 0.94)),
      pointwise("conv1x1/7x7x2048x512", convolution(7, 7, 2048, 512, 1, 1, 0), 0.94),
      pointwise("conv1x1/7x7x512x2048", convolution(7, 7, 512, 2048, 1, 1, 0), 0.94),
      pointwise("conv1x1/112x112x32x64", convolution(112, 112, 32, 64, 1, 1, 0), 0.71),
      dense("dense/512x768x3072", 512, 768, 3072, 0.89),
      winograd("winograd/56x56x64", 56, 64, 2.70),
      winograd("winograd/28x28x128", 28, 128, 2.78),
      winograd("winograd/14x14x256", 14, 256, 1.86),
      winograd("winograd/7x7x512", 7, 512, 0.92),
      winograd("winograd/224x224x64", 224, 64, 2.25),

      direct("conv3x3/224x224x3x64", convolution(224, 224, 3, 64, 3, 1, 1)),
      direct("conv3x3s2/224x224x3x32", convolution(224, 224, 3, 32, 3, 2, 1)),
      direct("conv3x3s2/224x224x3x64", convolution(224, 224, 3, 64, 3, 2, 0)),
      direct("conv7x7s2/224x224x3x64", convolution(224, 224, 3, 64, 7, 2, 3)),
      direct("conv3x3s2/28x28x256", convolution(28, 28, 256, 256, 3, 2, 1)),
      direct("conv3x3/55x55x16x64", convolution(55, 55, 16, 64, 3, 1, 1)),
      pointwise("conv1x1/56x56x64x256", convolution(56, 56, 64, 256, 1, 1, 0)),
      pointwise("conv1x1/56x56x256x64", convolution(56, 56, 256, 64, 1, 1, 0)),
      pointwise("conv1x1/28x28x512x128", convolution(28, 28, 512, 128, 1, 1, 0)),
      pointwise("conv1x1s2/28x28x512x1024", convolution(28, 28, 512, 1024, 1, 2, 0)),
      pointwise("conv1x1/112x112x16x96", convolution(112, 112, 16, 96, 1, 1, 0)),
      pointwise("conv1x1/56x56x144x24", convolution(56, 56, 144, 24, 1, 1, 0)),
      pointwise("conv1x1/55x55x64x16", convolution(55, 55, 64, 16, 1, 1, 0)),
      pointwise("conv1x1/28x28x32x192", convolution(28, 28, 32, 192, 1, 1, 0)),
      pointwise("conv1x1/14x14x96x576", convolution(14, 14, 96, 576, 1, 1, 0)),
      pointwise("conv1x1/7x7x160x960", convolution(7, 7, 160, 960, 1, 1, 0)),
      dense("dense/197x768x3072", 197, 768, 3072),
      dense("dense/197x3072x768", 197, 3072, 768),
      dense("dense/64x768x2304", 64, 768, 2304),
      dense("dense/64x3072x768", 64, 3072, 768),
      dense("dense/1x4096x4096", 1, 4096, 4096),
      dense("dense/1x25088x4096", 1, 25088, 4096),

      depthwise("depthwise3x3/112x112x32", 112, 32, 3, 1),
      depthwise("depthwise3x3s2/112x112x96", 112, 96, 3, 2),
      depthwise("depthwise3x3/56x56x144", 56, 144, 3, 1),
      depthwise("depthwise3x3s2/56x56x144", 56, 144, 3, 2),
      depthwise("depthwise3x3/28x28x192", 28, 192, 3, 1),
      depthwise("depthwise3x3s2/28x28x192", 28, 192, 3, 2),
      depthwise("depthwise3x3/14x14x384", 14, 384, 3, 1),
      depthwise("depthwise3x3/14x14x576", 14, 576, 3, 1),
      depthwise("depthwise3x3s2/14x14x576", 14, 576, 3, 2),
      depthwise("depthwise3x3/7x7x960", 7, 960, 3, 1),
      depthwise("depthwise5x5s2/56x56x144", 56, 144, 5, 2),
      depthwise("depthwise5x5/28x28x240", 28, 240, 5, 1),
      depthwise("depthwise5x5/14x14x480", 14, 480, 5, 1),
      depthwise("depthwise5x5/14x14x672", 14, 672, 5, 1),
      depthwise("depthwise5x5s2/14x14x672", 14, 672, 5, 2),
      depthwise("depthwise5x5/7x7x1152", 7, 1152, 5, 1),
      depthwise("depthwise7x7/56x56x96", 56, 96, 7, 1),
      depthwise("depthwise7x7/14x14x384", 14, 384, 7, 1),
  };
}

}  // namespace sluice::bench

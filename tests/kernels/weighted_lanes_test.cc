// Depthwise convolutions and narrow groups: every instruction set, cut, form of view and thread count gives the bits of a plain loop.
#include <catch2/catch.hpp>

#include "src/kernels/weighted/lanes.h"
#include "src/kernels/weighted/pointwise.h"
#include "tests/kernels/weighted_sweep.h"

namespace sluice::kernels::test {
namespace {

void sweep_depthwise(const Problem& p) { sweep(p, weighted::run_depthwise, workspace_of<weighted::depthwise_workspace>); }
void sweep_grouped(const Problem& p) {
  sweep(p, weighted::run_grouped_lanes, workspace_of<weighted::grouped_lanes_workspace>);
  sweep(p, weighted::run_grouped_pixels, workspace_of<weighted::grouped_pixels_workspace>);
}

TEST_CASE("depthwise convolutions of every small channel count") {
  for (std::int64_t c : {2, 3, 8, 15, 16, 17, 31, 32, 33, 64}) sweep_depthwise(convolution(7, 9, c, c, 3, 1, 1, c));
}

TEST_CASE("depthwise convolutions of fewer channels than a panel has lanes, whose values are lanes") {
  for (std::int64_t channels = 1; channels <= 15; ++channels)
    for (std::int64_t columns : {1, 3, 8, 10, 31, 50}) {
      Problem p = convolution(columns > 10 ? 36 : 4, columns, channels, channels, 3, 1, 1, channels);  // small ones go by pixel
      p.images = 1 + channels % 2;
      p.bias = channels % 3 != 0;
      p.residual = channels % 4 == 1;
      if (columns > 8) p.activation = {channels % 2 == 0 ? model::Function::kRelu : model::Function::kSilu};
      sweep_depthwise(p);
    }
  for (std::int64_t kernel : {1, 2, 4, 5, 9, 31}) sweep_depthwise(convolution(9, 40, 3, 3, kernel, 1, kernel / 2, 3));
  sweep_depthwise(convolution(17, 60, 4, 4, 5, 1, 6, 4, 3));
}

TEST_CASE("kernels, strides, dilations and paddings of depthwise convolutions") {
  for (std::int64_t kernel : {1, 2, 3, 5, 7})
    for (std::int64_t stride : {1, 2, 3})
      for (std::int64_t dilation : {1, 2})
        for (std::int64_t pad : {std::int64_t{0}, kernel / 2, kernel + 1}) {
          if (13 + 2 * pad <= (kernel - 1) * dilation) continue;
          sweep_depthwise(convolution(13, 14, 18, 18, kernel, stride, pad, 18, dilation));
        }
}

TEST_CASE("depthwise convolutions of images smaller than the kernel, of several images, with epilogues") {
  sweep_depthwise(convolution(1, 1, 20, 20, 5, 1, 2, 20));
  sweep_depthwise(convolution(2, 3, 20, 20, 7, 1, 3, 20));
  for (std::int64_t c : {16, 24}) {
    Problem p = convolution(5, 20, c, c, 3, 2, 1, c);
    p.images = 3;
    p.bias = true;
    p.residual = true;
    p.activation = {model::Function::kClip, 0.0f, 0.75f};
    sweep_depthwise(p);
  }
}

TEST_CASE("groups of fewer than sixteen outputs") {
  for (std::int64_t per_group : {1, 2, 3, 5, 8, 15})
    for (std::int64_t depth : {1, 2, 3, 8})
      for (std::int64_t groups : {2, 5, 9}) {
        if (per_group == 1 && depth == 1) continue;
        Problem p = convolution(6, 7, depth * groups, per_group * groups, 3, 1, 1, groups);
        p.bias = true;
        sweep_grouped(p);
      }
  sweep_grouped(convolution(9, 12, 12, 24, 3, 2, 1, 4, 2));
  sweep_grouped(convolution(9, 12, 12, 24, 1, 1, 0, 4));
  for (std::int64_t columns : {1, 2, 8, 15, 16, 17, 40})
    for (std::int64_t stride : {1, 2, 3}) sweep_grouped(convolution(3, columns, 12, 9, 3, stride, 1, 3));
  Problem wide = convolution(5, 70, 600, 4, 3, 1, 1, 2);  // several strips
  wide.residual = true;
  wide.activation = {model::Function::kSilu};
  sweep_grouped(wide);
  for (std::int64_t stride : {1, 2}) sweep_grouped(convolution(31, 29, 12, 24, 3, stride, 11, 4, 11));
}

TEST_CASE("groups of few outputs that fill panels, with epilogues") {
  for (std::int64_t per_group : {2, 4, 8})
    for (std::int64_t columns : {1, 3, 5, 12, 19, 33})
      for (model::Function function : {model::Function::kNone, model::Function::kRelu, model::Function::kSilu}) {
        Problem p = convolution(4, columns, 32, 32, 3, 1, 1, 32 / per_group);
        p.bias = columns != 5;
        p.residual = columns % 2 == 1;
        p.activation = {function};
        sweep_grouped(p);
      }
}

/// As the kernel does it: other ways where an instruction set has none of its own.
void run_turned(const KernelCall& call, const weighted::TileTable& tiles) noexcept {
  const auto& conv = call.parameters<operators::ConvolutionParameters>();
  (weighted::turns_groups(conv, tiles) ? weighted::run_turned_groups : weighted::run_grouped_lanes)(call, tiles);
}

TEST_CASE("groups of few outputs and a single tap, whose lanes are the pixels of a row") {
  for (std::int64_t outputs : {1, 2, 3, 4, 7, 8})
    for (std::int64_t depth : {8, 9, 10, 37})
      for (std::int64_t columns : {8, 15, 16, 17, 33})
        for (const std::int64_t groups : {2, 5}) {
          Problem p = convolution(3, columns, depth * groups, outputs * groups, 1, 1 + depth % 2, 0, groups);
          p.images = 2;
          p.bias = p.residual = outputs % 2 == 0;
          if (columns == 16) p.activation = {model::Function::kSigmoid};
          sweep(p, run_turned, workspace_of<weighted::grouped_lanes_workspace>);
        }
}

TEST_CASE("groups that follow each other over a few pixels at a time, where all pixels would not stay in the first cache") {
  for (const std::int64_t size : {1, 2, 3, 5, 6, 7, 9, 10})
    for (const auto& [outputs, depth, groups] : {std::tuple{1, 128, 2}, {2, 37, 9}, {3, 16, 20}, {8, 130, 3}, {5, 9, 41}}) {
      Problem p = convolution(size, 16 + 3 * size, depth * groups, outputs * groups, 1, 1, 0, groups);
      p.bias = size % 2 == 0;
      p.residual = size % 3 == 0;
      sweep(p, run_turned, workspace_of<weighted::grouped_lanes_workspace>);
    }
}

TEST_CASE("groups of few inputs and outputs with a single tap") {
  for (std::int64_t size = 1; size <= 10; ++size)
    for (const auto& [outputs, depth] :
         {std::pair{1, 2}, {2, 2}, {2, 1}, {3, 3}, {4, 4}, {5, 3}, {8, 8}, {8, 2}, {8, 9}, {15, 16}, {8, 16}, {4, 8}, {3, 7}, {8, 17}})
      for (const std::int64_t groups : {2, 3, 9}) {
        Problem p = convolution(size, 11 - size, depth * groups, outputs * groups, 1, 1 + size % 2, 0, groups);
        p.images = 1 + size % 3;
        p.bias = size % 2 == 0;
        sweep_grouped(p);
      }
  Problem p = convolution(3, 37, 64, 64, 1, 1, 0, 8);
  p.bias = p.residual = true;
  p.activation = {model::Function::kSilu};
  sweep_grouped(p);
  p = convolution(5, 7, 16, 16, 1, 1, 1, 4);  // padding
  sweep_grouped(p);
}

}  // namespace
}  // namespace sluice::kernels::test

// Convolutions and dense layers over panels: every instruction set, cut, form of view and thread count gives the bits of a plain loop.
#include <catch2/catch.hpp>

#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/pointwise.h"
#include "src/kernels/weighted/tile_choice.h"
#include "tests/kernels/weighted_harness.h"
#include "tests/kernels/weighted_sweep.h"

namespace sluice::kernels::test {
namespace {

void sweep_direct(const Problem& p) {
  sweep(p, weighted::run_direct, workspace_of<weighted::direct_workspace>);
  sweep(p, weighted::run_in_strips, workspace_of<weighted::strips_workspace>);
  if (p.conv.window.taps() <= weighted::kMostTapsInPlace) sweep(p, weighted::run_in_place, nullptr);
}
void sweep_pointwise(const Problem& p) { sweep(p, weighted::run_pointwise, nullptr); }
void sweep_dense(const Problem& p) { sweep(p, weighted::run_dense, nullptr); }

TEST_CASE("3x3 convolutions of every small channel count") {
  for (std::int64_t c : {1, 2, 3, 5, 8, 17})
    for (std::int64_t n : {1, 7, 15, 16, 17, 31, 33, 48}) sweep_direct(convolution(7, 6, c, n, 3, 1, 1));
}

TEST_CASE("kernels, strides, dilations and paddings of convolutions") {
  for (std::int64_t kernel : {1, 2, 3, 5, 7})
    for (std::int64_t stride : {1, 2, 3})
      for (std::int64_t dilation : {1, 2}) {
        const std::int64_t pad = kernel / 2 + (kernel == 1 ? 1 : 0);
        sweep_direct(convolution(13, 14, 3, 20, kernel, stride, pad, 1, dilation));
        if ((kernel - 1) * dilation < 13) sweep_direct(convolution(13, 14, 3, 20, kernel, stride, 0, 1, dilation));
      }
}

TEST_CASE("taps that lie far apart") {
  for (std::int64_t dilation : {5, 9, 16})
    for (std::int64_t stride : {1, 2, 3})
      for (std::int64_t pad : {std::int64_t{0}, std::int64_t{3}, dilation})
        sweep_direct(convolution(37, 35, 3, 20, 3, stride, pad, 1, dilation));
  sweep_direct(convolution(40, 19, 40, 40, 2, 1, 12, 2, 17));
  Problem p = convolution(50, 70, 700, 16, 3, 1, 12, 1, 24);  // strips of some columns
  sweep_direct(p);
  p = convolution(30, 31, 4, 18, 3, 1, 0);  // along one axis only
  p.conv.window.dilation_w = 11;
  p.conv.window.out_w = 9;
  sweep_direct(p);
}

TEST_CASE("few outputs, whose lanes are pixels, of rows of every length") {
  for (std::int64_t outputs = 1; outputs <= 9; ++outputs)
    for (std::int64_t columns : {11, 12, 16, 17, 33, 100, 131}) {
      Problem p = convolution(3, columns, 9, outputs, 3, 1, 1);
      p.images = 1 + outputs % 2;
      p.bias = p.residual = outputs % 2 == 0;
      sweep_direct(p);
      p.conv.window.stride_h = 2;
      p.conv.window.out_h = 2;
      sweep_direct(p);
      if (columns > 16) sweep_direct(convolution(3, columns, 9, outputs, 3, 2, 1));  // whose lanes are outputs
    }
  Problem wide = convolution(1, 300, 130, 3, 3, 1, 1);  // several strips
  wide.activation = {model::Function::kSilu};
  sweep_direct(wide);
}

TEST_CASE("taps that lie so far apart that many meet padding") {
  for (std::int64_t dilation : {4, 6, 11, 18})
    for (std::int64_t outputs : {16, 24}) sweep_direct(convolution(33, 33, 20, outputs, 3, 1, dilation, 1, dilation));
}

TEST_CASE("asymmetric padding, more padding than kernel, one-dimensional kernels") {
  Problem p = convolution(6, 9, 4, 18, 3, 1, 0);
  p.conv.window.pad_top = 4;
  p.conv.window.pad_right = 5;
  p.conv.window.out_h = 8;
  p.conv.window.out_w = 12;
  sweep_direct(p);
  p = convolution(1, 31, 6, 18, 1, 2, 0);
  p.conv.window.kernel_w = 5;
  p.conv.window.pad_left = 2;
  p.conv.window.out_w = 16;
  sweep_direct(p);
}

TEST_CASE("grouped convolutions with wide groups, several images") {
  for (std::int64_t groups : {2, 3}) {
    Problem p = convolution(5, 5, 4 * groups, 17 * groups, 3, 1, 1, groups);
    p.images = 3;
    sweep_direct(p);
    p = convolution(5, 5, 4 * groups, 33 * groups, 1, 1, 0, groups);
    sweep_pointwise(p);
  }
}

TEST_CASE("groups of sixteen inputs and outputs, whose tiles are pairs of runs") {
  for (std::int64_t size = 1; size <= 10; ++size)
    for (std::int64_t stride : {1, 2}) {
      Problem p = convolution(size, 11 - size, 48, 48, 3, stride, 1, 3);
      p.images = 1 + size % 3;
      p.bias = size % 2 == 0;
      p.residual = size % 3 == 0;
      if (size > 5) p.activation = {size % 2 == 0 ? model::Function::kRelu : model::Function::kSilu};
      sweep_direct(p);
    }
  for (std::int64_t columns : {14, 15, 16, 17, 20, 25, 33}) sweep_direct(convolution(3, columns, 32, 32, 3, 1, 1, 2));
  for (std::int64_t kernel : {2, 5}) sweep_direct(convolution(9, 13, 32, 32, kernel, 1, kernel / 2 + 1, 2));
  sweep_direct(convolution(9, 13, 32, 32, 3, 1, 2, 2, 2));
  sweep_direct(convolution(5, 400, 32, 32, 3, 2, 1, 2));   // several strips
  sweep_direct(convolution(4, 1100, 32, 32, 3, 1, 1, 2));  // strips of some columns
}

TEST_CASE("strips that split rows and columns of a large image") {
  sweep_direct(convolution(3, 200, 64, 16, 3, 1, 1));
  sweep_direct(convolution(2, 40, 300, 16, 3, 1, 1));
}

TEST_CASE("blocks that threads cannot share evenly") {
  for (std::int64_t panels : {1, 2, 3, 5, 6, 10, 15, 16})
    for (int threads : {1, 2, 3, 4}) {
      const std::int64_t outputs = 16 * panels - 3;
      weighted::Blocks blocks({.panel_bytes = Bytes(4096)}, {0, outputs}, outputs, outputs, INT64_MAX / 2, 2);
      const double before = blocks.unevenness(threads);
      blocks.share(threads);
      CHECK(blocks.unevenness(threads) <= before);
      CHECK(weighted::blocks_are_uneven(blocks, 81, threads) == (blocks.unevenness(threads) > weighted::kEven && threads > 1));
      CHECK_FALSE(weighted::blocks_are_uneven(blocks, 49, threads));
    }
  // Of lone rows, four panels are a tile's: two threads have two each.
  for (std::int64_t panels = 1; panels <= 20; ++panels)
    for (int threads : {1, 2, 3, 5}) {
      const std::int64_t granule = weighted::granule_for_threads(panels, 4, 1, threads), outputs = 16 * panels;
      CHECK(granule <= 4);
      CHECK((threads > 1 || granule == 4));
      weighted::Blocks blocks({.panel_bytes = Bytes(4096)}, {0, outputs}, outputs, outputs, INT64_MAX / 2, granule);
      blocks.share(threads);
      std::int64_t longest = 0;
      for (std::int64_t thread = 0; thread < threads; ++thread) {
        std::int64_t own = 0;
        for (std::int64_t b = blocks.count() * thread / threads; b < blocks.count() * (thread + 1) / threads; ++b) own += blocks[b].panels;
        longest = std::max(longest, own);
      }
      if (threads > 1) CHECK(longest <= ceil_div(panels, threads));
    }
  // Groups are shared as they are.
  const weighted::Blocks groups({.panel_bytes = Bytes(4096)}, {0, 32 * 16}, 32 * 16, 16, INT64_MAX / 2, 2);
  CHECK(groups.count() == 32);
  CHECK(groups.unevenness(2) == 1);
  // 6 panels are 3 granules: pixels are shared, where rows are enough.
  for (std::int64_t outputs : {40, 90, 150})
    for (std::int64_t size : {8, 9}) {
      Problem p = convolution(size, 24, 70, outputs, 3, 1, 1);  // bands of three rows are enough
      p.bias = true;
      sweep_direct(p);
    }
}

TEST_CASE("rows so few and long that threads share their columns") {
  for (std::int64_t rows : {1, 3})
    for (std::int64_t columns : {84, 85, 127, 200, 1201})
      for (std::int64_t stride : {1, 2}) {
        Problem p = convolution(rows, columns, 9, 20, 3, stride, 1);
        p.bias = true;
        p.residual = rows == 3;
        sweep_direct(p);
        sweep_direct(convolution(rows, columns, 7, 33, 5, stride, columns % 2 == 0 ? 2 : 4, 1, 1 + columns % 2));
      }
}

TEST_CASE("1x1 convolutions, any stride") {
  for (std::int64_t stride : {1, 2, 3})
    for (std::int64_t c : {1, 4, 15, 64})
      for (std::int64_t n : {1, 16, 30, 32, 47, 65}) {
        Problem p = convolution(9, 8, c, n, 1, stride, 0);
        p.images = 2;
        sweep_pointwise(p);
      }
}

TEST_CASE("few outputs of one tap, whose lanes are pixels, of sums and rows of every length") {
  for (std::int64_t outputs = 1; outputs <= 9; ++outputs)
    for (std::int64_t depth : {7, 8, 9, 10, 11, 16, 37})
      for (std::int64_t columns : {1, 7, 8, 10, 15, 16, 17, 33, 47}) {
        Problem p = convolution(3, columns, depth, outputs, 1, 1 + columns % 2, 0);
        p.images = 1 + outputs % 2;
        p.bias = columns % 2 == 0;
        p.residual = depth % 2 == 0;
        if (depth > 9) p.activation = {depth == 10 ? model::Function::kRelu : model::Function::kSigmoid};
        sweep_pointwise(p);
      }
  for (std::int64_t rows : {15, 16, 31, 200})
    for (std::int64_t outputs : {1, 2, 3, 4, 5, 8}) {
      Problem p = dense(rows, 1030, outputs);
      p.bias = p.residual = outputs % 2 == 0;
      sweep_dense(p);
    }
}

TEST_CASE("dense layers of any number of rows") {
  for (std::int64_t rows : {1, 2, 3, 4, 5, 7, 13, 14, 15, 29, 64})
    for (std::int64_t n : {1, 16, 33, 64, 129}) sweep_dense(dense(rows, 37, n));
}

TEST_CASE("dense layers with sums so long that tiles do them in parts") {
  for (std::int64_t rows : {57, 240}) {
    Problem p = dense(rows, 2051, 39);
    p.bias = p.residual = true;
    p.activation = {model::Function::kRelu};
    sweep_dense(p);
  }
}

TEST_CASE("rows that lie multiples of 2 KiB apart take tiles of few rows, also where those do their sums in parts") {
  for (std::int64_t rows : {14, 15, 57})
    for (std::int64_t n : {39, 70}) sweep_dense(dense(rows, 512, n));
  for (std::int64_t rows : {22, 57})
    for (std::int64_t n : {39, 70, 112, 128}) sweep_dense(dense(rows, 2048, n));  // blocks that end in one, two, three and four panels
  Problem head = dense(24, 2048, 1000);
  head.bias = head.residual = true;
  head.activation = {model::Function::kRelu};
  sweep_dense(head);
  sweep_pointwise(convolution(9, 8, 256, 70, 1, 2, 0));
}

TEST_CASE("an epilogue adds bias, then residual, then applies the activation") {
  for (auto function : {model::Function::kNone, model::Function::kRelu, model::Function::kClip, model::Function::kLeakyRelu,
                        model::Function::kHardSigmoid, model::Function::kHardSwish, model::Function::kSigmoid, model::Function::kSilu,
                        model::Function::kTanh, model::Function::kGelu, model::Function::kElu})
    for (bool bias : {false, true})
      for (bool residual : {false, true})
        for (std::int64_t n : {16, 33, 53}) {
          Problem p = convolution(4, 5, 3, n, 3, 1, 1);
          p.bias = bias;
          p.residual = residual;
          p.activation = {function, function == model::Function::kClip ? -0.25f : 0.2f, 0.5f};
          sweep_direct(p);
          Problem q = dense(3, 5, n);
          q.bias = bias;
          q.residual = residual;
          q.activation = p.activation;
          sweep_dense(q);
        }
}

const weighted::TileTable& of_few_loads(Isa isa) noexcept { return weighted::tile_table_for(isa, {.few_loads = true}); }
const weighted::TileTable& of_whole_paths(Isa isa) noexcept { return weighted::tile_table_for(isa, {.whole_paths = true}); }
const weighted::TileTable& of_others(Isa isa) noexcept { return weighted::tile_table_for(isa, {}); }

TEST_CASE("tiles of CPUs whose loads slow their sums, of those with whole data paths, and of others") {
  for (const auto& tiles : {of_few_loads, of_whole_paths, of_others}) {
    for (std::int64_t rows : {8, 9, 18, 41, 64, 65, 72, 79})
      for (std::int64_t outputs : {33, 48, 56, 64, 65, 112, 120, 200}) {
        Problem p = dense(rows, 32 + outputs % 7, outputs);
        p.bias = p.residual = outputs % 2 == 0;
        sweep(p, weighted::run_dense, nullptr, tiles);
      }
    for (std::int64_t outputs : {48, 72, 112}) {
      sweep(dense(75, 2100, outputs), weighted::run_dense, nullptr, tiles);
      Problem p = convolution(12, 12, 1024, outputs, 1, 1, 0);
      p.residual = true;
      p.activation = {model::Function::kSilu};
      sweep(p, weighted::run_pointwise, nullptr, tiles);
      sweep(convolution(15, 19, 40, outputs, 1, 2, 0), weighted::run_pointwise, nullptr, tiles);
      sweep(convolution(9, 11, 20, outputs, 3, 1, 1), weighted::run_direct, workspace_of<weighted::direct_workspace>, tiles);
    }
  }
}

}  // namespace
}  // namespace sluice::kernels::test

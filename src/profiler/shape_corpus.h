// Which layers networks have: the joint distribution that the profiler samples from.
//
// Extent, channels, kernel and stride of a layer go together: large maps have few channels, 1x1 layers come in pairs, depthwise ones have
// few taps and wide neighbours. So nets are drawn, not layers: a style of block, a resolution, a width, a depth; then their layers are
// listed, each once. Always the same ones: the generator starts from a fixed number.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::profiler {

/// A convolution: extent of its maps, channels in and out, kernel, stride, groups; `rows` is the extent or, of sequences, 1.
struct ConvShape {
  std::int64_t rows, columns, in, out, kernel, stride, groups;
  friend bool operator==(const ConvShape&, const ConvShape&) = default;
};
struct DenseShape {
  std::int64_t rows, in, out;
  friend bool operator==(const DenseShape&, const DenseShape&) = default;
};
/// What elementwise layers, pools and moves run over; a sequence has one row.
struct MapShape {
  std::int64_t rows, columns, channels;
  friend bool operator==(const MapShape&, const MapShape&) = default;
};

struct ShapeCorpus {
  std::vector<ConvShape> convolutions;
  std::vector<DenseShape> dense;
  std::vector<MapShape> maps;
  std::vector<MapShape> sequences;  // positions are its columns
};

ShapeCorpus draw_corpus();

}  // namespace sluice::profiler

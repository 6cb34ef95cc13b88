#include "src/profiler/shape_corpus.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice::profiler {
namespace {

class Corpus {
 public:
  ShapeCorpus draw() {
    constexpr int kNets = 90;
    for (int net = 0; net < kNets; ++net) image_net(static_cast<Style>(net % kStyles));
    for (int net = 0; net < kNets / 6; ++net) sequence_net();
    for (int net = 0; net < kNets / 3; ++net) transformer();
    for (int net = 0; net < kNets / 6; ++net) small_net();
    return std::move(corpus_);
  }

 private:
  enum class Style { kPlain, kResidual, kBottleneck, kInverted, kFire, kDenseGrowth, kShuffle, kBranches };
  static constexpr int kStyles = 8;

  std::uint32_t below(std::uint32_t count) noexcept {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 33) % count;
  }
  double share() noexcept { return below(1 << 20) / static_cast<double>(1 << 20); }
  template <std::size_t kCount>
  std::int64_t one_of(const std::array<std::int64_t, kCount>& values) noexcept {
    return values[below(kCount)];
  }
  /// Nets are widened by any factor; most then round channels to a multiple of 4, 8 or 16, two of five do not round.
  std::int64_t channels(double wanted) noexcept {
    const std::int64_t step = granule_;
    return std::max<std::int64_t>(step, static_cast<std::int64_t>(std::lround(wanted / static_cast<double>(step))) * step);
  }

  template <class Shape>
  static void add(std::vector<Shape>& shapes, const Shape& shape) {
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  }
  void conv(std::int64_t extent, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1, std::int64_t groups = 1) {
    if (extent < kernel / 2 + 1) return;
    add(corpus_.convolutions, ConvShape{extent, extent, in, out, kernel, stride, groups});
    add(corpus_.maps, MapShape{extent / stride, extent / stride, out});
  }

  void image_net(Style style) {
    constexpr double kPlainIsWider = 2;  // nets without blocks of their own, as VGG's, have 64 channels at 224 pixels and 512 at 28
    static constexpr std::array<std::int64_t, 12> kResolutions = {224, 224, 224, 224, 224, 192, 160, 128, 256, 299, 96, 32};
    static constexpr std::array<std::int64_t, 5> kGranules = {8, 1, 4, 1, 16};
    const std::int64_t resolution = one_of(kResolutions);
    granule_ = one_of(kGranules);
    const double width = 0.35 * std::pow(4.5, share()) * (style == Style::kPlain ? kPlainIsWider : 1);
    const std::int64_t stem = channels(48 * width);
    std::int64_t extent = resolution;
    static constexpr std::array<std::int64_t, 4> kStems = {3, 3, 7, 5};
    const bool reduces = resolution > 64;
    conv(extent, 3, stem, one_of(kStems), reduces ? 2 : 1);
    if (reduces) extent = (extent + 1) / 2;
    std::int64_t in = stem;
    for (int stage = 0; stage < 5 && extent >= 4; ++stage) {
      const std::int64_t out = channels(48 * width * std::pow(2, stage + share() - 0.5));
      block(style, extent, in, out, 2);
      extent = (extent + 1) / 2;
      block(style, extent, out, out, 1);
      in = out;
    }
    static constexpr std::array<std::int64_t, 5> kClasses = {1000, 1000, 10, 100, 365};
    add(corpus_.dense, DenseShape{1, in, one_of(kClasses)});
    if (style == Style::kPlain) {
      const std::int64_t hidden = channels(4096 * share() + 128);
      add(corpus_.dense, DenseShape{1, std::min<std::int64_t>(in * extent * extent, 25088), hidden});
      add(corpus_.dense, DenseShape{1, hidden, hidden});
    }
  }

  void block(Style style, std::int64_t extent, std::int64_t in, std::int64_t out, std::int64_t stride) {
    static constexpr std::array<std::int64_t, 7> kKernels = {3, 3, 3, 5, 5, 7, 1};
    static constexpr std::array<std::int64_t, 4> kDepthwise = {3, 3, 5, 7};
    const std::int64_t reduced = (extent + stride - 1) / stride;
    switch (style) {
      case Style::kPlain:
        return conv(extent, in, out, one_of(kKernels));
      case Style::kResidual:
        conv(extent, in, out, one_of(kKernels), stride);
        return conv(reduced, out, out, 3);
      case Style::kBottleneck: {
        const std::int64_t middle = channels(static_cast<double>(out) * 0.5);
        conv(extent, in, middle, 1);
        conv(extent, middle, middle, one_of(kKernels), stride);
        conv(reduced, middle, 2 * out, 1);
        return conv(extent, in, 2 * out, 1, stride);
      }
      case Style::kInverted: {
        const std::int64_t wide = channels(static_cast<double>(in) * (1 + below(6)) * 0.6);
        conv(extent, in, wide, 1);
        conv(extent, wide, wide, one_of(kDepthwise), stride, wide);
        conv(reduced, wide, channels(static_cast<double>(out) * 0.5), 1);
        if (below(3) == 0) {  // squeeze and excite
          add(corpus_.dense, DenseShape{1, wide, channels(static_cast<double>(wide) / 4)});
          conv(1, wide, channels(static_cast<double>(wide) / 4), 1);
          conv(1, channels(static_cast<double>(wide) / 4), wide, 1);
        }
        return;
      }
      case Style::kFire: {
        const std::int64_t squeezed = channels(static_cast<double>(out) / 6);
        conv(extent, in, squeezed, 1);
        conv(extent, squeezed, out / 2, 1);
        return conv(extent, squeezed, out / 2, 3);
      }
      case Style::kDenseGrowth: {
        static constexpr std::array<std::int64_t, 4> kGrowth = {12, 24, 32, 48};
        const std::int64_t growth = one_of(kGrowth);
        conv(extent, in + growth * below(16), 4 * growth, 1);
        return conv(extent, 4 * growth, growth, 3);
      }
      case Style::kShuffle: {
        const std::int64_t half = std::max<std::int64_t>(8, out / 2);
        conv(extent, half, half, 1);
        return conv(extent, half, half, 3, stride, half);
      }
      case Style::kBranches: {
        conv(extent, in, channels(static_cast<double>(out) * 0.3), 1);
        conv(extent, channels(static_cast<double>(out) * 0.3), channels(static_cast<double>(out) * 0.5), one_of(kKernels));
        static constexpr std::array<std::int64_t, 3> kGroups = {4, 8, 32};
        const std::int64_t groups = one_of(kGroups), whole = (out + groups * 4 - 1) / (groups * 4) * groups * 4;
        return conv(extent, whole, whole, 3, 1, groups);
      }
    }
  }

  /// Convolutions over time: audio, sensors, text.
  void sequence_net() {
    static constexpr std::array<std::int64_t, 5> kLengths = {128, 512, 1000, 4000, 16000};
    static constexpr std::array<std::int64_t, 5> kKernels = {3, 5, 7, 9, 1};
    static constexpr std::array<std::int64_t, 3> kInputs = {1, 6, 40};
    granule_ = 8;
    std::int64_t length = one_of(kLengths), in = one_of(kInputs);
    double wanted = 16 + 48 * share();
    for (int layer = 0; layer < 5 && length >= 16; ++layer) {
      const std::int64_t out = channels(wanted), kernel = one_of(kKernels), stride = kernel > 1 ? 1 + below(2) : 1;
      add(corpus_.convolutions, ConvShape{1, length, in, out, kernel, stride, 1});
      add(corpus_.sequences, MapShape{1, (length + stride - 1) / stride, out});
      length = (length + stride - 1) / stride;
      in = out;
      wanted *= 1 + share();
    }
  }

  /// Digits, keywords as pictures of sound, small cameras: one channel or three, and few outputs.
  void small_net() {
    static constexpr std::array<std::int64_t, 6> kExtents = {28, 32, 40, 49, 64, 96};
    static constexpr std::array<std::int64_t, 4> kInputs = {1, 1, 1, 3};
    static constexpr std::array<std::int64_t, 4> kKernels = {3, 5, 7, 8};
    granule_ = 4;
    std::int64_t extent = one_of(kExtents), in = one_of(kInputs), out = channels(4 + 20 * share());
    for (int layer = 0; layer < 3 && extent >= 8; ++layer) {
      conv(extent, in, out, one_of(kKernels), 1 + below(2));
      extent = (extent + 1) / 2;
      in = out;
      out = channels(static_cast<double>(out) * (1 + share()));
    }
  }

  void transformer() {
    static constexpr std::array<std::int64_t, 12> kPositions = {1, 4, 8, 12, 16, 32, 49, 64, 128, 197, 256, 384};
    static constexpr std::array<std::int64_t, 7> kWidths = {64, 128, 192, 256, 384, 512, 768};
    const std::int64_t positions = one_of(kPositions), width = one_of(kWidths);
    add(corpus_.dense, DenseShape{positions, width, width});
    add(corpus_.dense, DenseShape{positions, width, 3 * width});
    add(corpus_.dense, DenseShape{positions, width, 4 * width});
    add(corpus_.dense, DenseShape{positions, 4 * width, width});
    static constexpr std::array<std::int64_t, 5> kVocabularies = {1000, 4000, 8000, 16000, 32000};
    add(corpus_.dense, DenseShape{positions, width, one_of(kVocabularies)});
    add(corpus_.sequences, MapShape{1, positions, width});
    add(corpus_.sequences, MapShape{1, positions, 4 * width});
  }

  ShapeCorpus corpus_;
  std::uint64_t state_ = 28;
  std::int64_t granule_ = 8;
};

}  // namespace

ShapeCorpus draw_corpus() { return Corpus().draw(); }

}  // namespace sluice::profiler

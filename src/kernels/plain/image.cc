// Images of any number of axes, sampled at places that other values give.
#include "sluice/operators/generic/image.h"

#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::image;
namespace {

// ---- GridSample: X [N, C, D...], grid [N, d..., axes] in [-1, 1], the last coordinate along the first axis

enum Padding : std::int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };
enum GridArgument : std::size_t { kAlign, kGridMode, kPadding };

/// Linear, nearest, cubic: the old names of opset 16 are those of images.
bool grid_cubic(const PlainNode& node) noexcept { return node.integer(kGridMode) == 2 || node.integer(kGridMode) == 4; }
bool grid_nearest(const PlainNode& node) noexcept { return node.integer(kGridMode) == 1; }

/// Folded back into [low, high] at its ends.
double reflected(double x, double low, double high) noexcept {
  const double range = high - low;
  if (range <= 0 || !std::isfinite(x)) return low;
  double folded = std::fmod(std::fabs(x - low), 2 * range);
  if (folded > range) folded = 2 * range - folded;
  return low + folded;
}

/// A place along an axis as the padding has it; -1: nothing lies there.
std::int64_t padded_place(const PlainNode& node, std::int64_t place, std::int64_t extent) noexcept {
  if (place >= 0 && place < extent) return place;
  switch (node.integer(kPadding)) {
    case kBorder:
      return std::clamp<std::int64_t>(place, 0, extent - 1);
    case kReflection: {
      const double half = node.integer(kAlign) != 0 ? 0 : 0.5;
      return std::clamp<std::int64_t>(
          static_cast<std::int64_t>(reflected(static_cast<double>(place), -half, static_cast<double>(extent - 1) + half)), 0, extent - 1);
    }
    default:
      return -1;
  }
}

/// The taps of one axis: places and weights.
struct Taps {
  std::array<std::int64_t, 4> place{};
  std::array<double, 4> weight{};
  int count = 0;
};

Taps taps_of(const PlainNode& node, double x, std::int64_t extent) noexcept {
  Taps taps;
  const auto last = static_cast<double>(extent - 1);
  // In image coordinates; far away is as good as outside.
  double at = node.integer(kAlign) != 0 ? (x + 1) / 2 * last : ((x + 1) * static_cast<double>(extent) - 1) / 2;
  if (!(at > -1e9 && at < 1e9)) at = at > 0 ? 1e9 : -1e9;
  const double half = node.integer(kAlign) != 0 ? 0 : 0.5;
  if (grid_nearest(node)) at = std::nearbyint(at);
  if (node.integer(kPadding) == kBorder && (at < 0 || at > last)) at = std::clamp(at, 0.0, last);
  if (node.integer(kPadding) == kReflection && (at < -half || at > last + half)) at = reflected(at, -half, last + half);
  if (grid_nearest(node)) {
    taps.count = 1;
    taps.place[0] = padded_place(node, static_cast<std::int64_t>(at), extent);
    taps.weight[0] = 1;
    return taps;
  }
  const auto floor = static_cast<std::int64_t>(std::floor(at));
  const double t = at - static_cast<double>(floor);
  const int before = grid_cubic(node) ? 1 : 0;
  taps.count = grid_cubic(node) ? 4 : 2;
  for (int k = 0; k < taps.count; ++k) {
    const double d = std::fabs(t - (k - before));
    constexpr double a = -0.75;
    const double cubic = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    taps.place[static_cast<std::size_t>(k)] = padded_place(node, floor + k - before, extent);
    taps.weight[static_cast<std::size_t>(k)] = grid_cubic(node) ? cubic : 1 - d;
  }
  return taps;
}

/// What an output is the weighted sum of, in every channel: the taps of all axes combined, without those that lie outside.
struct Samples {
  std::array<std::int64_t, 64> place;
  std::array<double, 64> weight;
  std::size_t count = 0;
};

Samples samples_of(const std::array<Taps, kMaxGridAxes>& taps, int axes, int combinations, const Shape& x) noexcept {
  Samples samples;
  for (int k = 0; k < combinations; ++k) {
    std::int64_t place = 0;
    double weight = 1;
    bool inside = true;
    for (int a = 0, left = k; a < axes; ++a) {
      const Taps& t = taps[static_cast<std::size_t>(a)];
      const auto tap = static_cast<std::size_t>(left % t.count);
      left /= t.count;
      inside = inside && t.place[tap] >= 0;
      place = place * x[a + 2] + t.place[tap];
      weight *= t.weight[tap];
    }
    if (!inside) continue;
    samples.place[samples.count] = place;
    samples.weight[samples.count++] = weight;
  }
  return samples;
}

/// Channels whose sums are formed at the same time: each waits for its own last addition, not for another's.
constexpr std::int64_t kChannelsTogether = 4;

template <std::int64_t kChannels>
void sum_samples(const Samples& samples, const float* image, std::int64_t image_step, float* to, std::int64_t to_step) noexcept {
  double sums[kChannels] = {};
  for (std::size_t k = 0; k < samples.count; ++k)
    for (std::int64_t c = 0; c < kChannels; ++c) sums[c] += samples.weight[k] * image[c * image_step + samples.place[k]];
  for (std::int64_t c = 0; c < kChannels; ++c) to[c * to_step] = static_cast<float>(sums[c]);
}

PlainRefusal run_grid(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const Shape& x = node.in(0).shape;
  const int axes = x.rank() - 2;
  const std::int64_t inputs = x.count(2, x.rank()), outputs = out.shape.count(2, out.shape.rank());
  for (std::int64_t n = 0; n < x[0]; ++n)
    for (std::int64_t at = 0; at < outputs; ++at) {
      std::array<Taps, kMaxGridAxes> taps;
      int combinations = 1;
      for (int a = 0; a < axes; ++a) {
        const float coordinate = node.in(1).as<const float>()[(n * outputs + at) * axes + axes - 1 - a];
        taps[static_cast<std::size_t>(a)] = taps_of(node, coordinate, x[a + 2]);
        combinations *= taps[static_cast<std::size_t>(a)].count;
      }
      const Samples samples = samples_of(taps, axes, combinations, x);
      const float* const images = node.in(0).as<const float>() + n * x[1] * inputs;
      float* const to = out.as<float>() + n * x[1] * outputs + at;
      std::int64_t c = 0;
      for (; c + kChannelsTogether <= x[1]; c += kChannelsTogether)
        sum_samples<kChannelsTogether>(samples, images + c * inputs, inputs, to + c * outputs, outputs);
      for (; c < x[1]; ++c) sum_samples<1>(samples, images + c * inputs, inputs, to + c * outputs, outputs);
    }
  return nullptr;
}

PlainRefusal run_affine(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const auto axes = static_cast<int>(out.shape.back());
  const std::int64_t places = out.shape.count(1, axes + 1);
  const bool align = node.integer(1) != 0;
  for (std::int64_t n = 0; n < out.shape[0]; ++n)
    for (std::int64_t at = 0; at < places; ++at) {
      // Coordinates x, y, z: the last axis first.
      std::array<double, 4> coordinates{};
      std::int64_t left = at;
      for (int a = 0; a < axes; ++a) {
        const std::int64_t extent = out.shape[axes - a];
        const auto i = static_cast<double>(left % extent);
        left /= extent;
        const auto e = static_cast<double>(extent);
        coordinates[static_cast<std::size_t>(a)] = align ? (extent > 1 ? 2 * i / (e - 1) - 1 : -1) : (2 * i + 1) / e - 1;
      }
      coordinates[static_cast<std::size_t>(axes)] = 1;
      for (int row = 0; row < axes; ++row) {
        double sum = 0;
        for (int k = 0; k <= axes; ++k)
          sum += node.in(0).as<const float>()[(n * axes + row) * (axes + 1) + k] * coordinates[static_cast<std::size_t>(k)];
        out.as<float>()[(n * places + at) * axes + row] = static_cast<float>(sum);
      }
    }
  return nullptr;
}

/// One sample: the mean takes the interpolated value, the maximum the largest of the four weighted neighbours.
double roi_sample(const float* image, std::int64_t height, std::int64_t width, double y, double x, bool largest) noexcept {
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return 0;
  y = std::clamp(y, 0.0, static_cast<double>(height - 1));
  x = std::clamp(x, 0.0, static_cast<double>(width - 1));
  const auto top = static_cast<std::int64_t>(y), left = static_cast<std::int64_t>(x);
  const std::int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
  const double dy = y - static_cast<double>(top), dx = x - static_cast<double>(left);
  const double parts[] = {(1 - dy) * (1 - dx) * image[top * width + left], (1 - dy) * dx * image[top * width + right],
                          dy * (1 - dx) * image[bottom * width + left], dy * dx * image[bottom * width + right]};
  return largest ? std::max({parts[0], parts[1], parts[2], parts[3]}) : parts[0] + parts[1] + parts[2] + parts[3];
}

PlainRefusal run_roi(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const Shape& x = node.in(0).shape;
  const std::int64_t rows = out.shape[2], columns = out.shape[3];
  // output_half_pixel before opset 16, half_pixel since, unless the node says.
  const bool half = node.integer(kRoiCoordinates) == 1 || (node.integer(kRoiCoordinates) == 0 && node.integer(kRoiOpset) >= 16);
  const double scale = node.real(kRoiScale), shift = half ? 0.5 : 0.0;
  const bool largest = node.integer(kRoiMode) == 1;
  PlainRefusal fault = nullptr;
  for (std::int64_t r = 0; r < out.shape[0]; ++r) {
    const float* roi = node.in(1).as<const float>() + r * 4;
    std::int64_t batch = integer_at(node.in(2), r);
    if (batch < 0 || batch >= x[0]) {
      fault = kWrongIndex;
      batch = 0;
    }
    const double left = roi[0] * scale - shift, top = roi[1] * scale - shift;
    double width = roi[2] * scale - shift - left, height = roi[3] * scale - shift - top;
    if (!half) {
      width = std::max(width, 1.0);
      height = std::max(height, 1.0);
    }
    const double bin_h = height / static_cast<double>(rows), bin_w = width / static_cast<double>(columns);
    const auto samples_of = [&](double bin) {
      if (node.integer(kRoiSamples) > 0) return node.integer(kRoiSamples);
      return bin > 0 && bin < 4096 ? static_cast<std::int64_t>(std::ceil(bin)) : std::int64_t{1};
    };
    const std::int64_t down = samples_of(bin_h), across = samples_of(bin_w);
    for (std::int64_t c = 0; c < x[1]; ++c)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          const float* image = node.in(0).as<const float>() + (batch * x[1] + c) * x[2] * x[3];
          double sum = 0, most = -HUGE_VAL;
          for (std::int64_t sy = 0; sy < down; ++sy)
            for (std::int64_t sx = 0; sx < across; ++sx) {
              const double yy = top + (static_cast<double>(i) + (static_cast<double>(sy) + 0.5) / static_cast<double>(down)) * bin_h;
              const double xx = left + (static_cast<double>(j) + (static_cast<double>(sx) + 0.5) / static_cast<double>(across)) * bin_w;
              const double value = roi_sample(image, x[2], x[3], yy, xx, largest);
              sum += value;
              most = std::max(most, value);
            }
          out.as<float>()[((r * x[1] + c) * rows + i) * columns + j] =
              static_cast<float>(largest ? most : sum / static_cast<double>(down * across));
        }
  }
  return fault;
}

constexpr GenericKernel kKernels[] = {
    {"GridSample", run_grid},
    {"AffineGrid", run_affine},
    {"RoiAlign", run_roi},
};

}  // namespace

std::span<const GenericKernel> image_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain

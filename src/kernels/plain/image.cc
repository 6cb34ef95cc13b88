// Images of any number of axes, sampled at places that other values give.
#include "sluice/operators/generic/image.h"

#include "sluice/core/interval.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/move.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

namespace sluice::kernels::plain {
using namespace operators::generic::image;
namespace {

// ---- GridSample: X [N, C, D...], grid [N, d..., axes] in [-1, 1], the last coordinate along the first axis

enum Padding : std::int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };
enum GridArgument : std::size_t { kAlign, kGridMode, kPadding };

/// The arguments, read once: every output asks for them.
struct GridForm {
  explicit GridForm(const PlainNode& node) noexcept
      : align(node.integer(kAlign) != 0),
        nearest(node.integer(kGridMode) == 1),
        cubic(node.integer(kGridMode) == 2 || node.integer(kGridMode) == 4),  // the old names of opset 16 are those of images
        padding(static_cast<Padding>(node.integer(kPadding))) {}

  int taps() const noexcept { return nearest ? 1 : cubic ? 4 : 2; }

  bool align, nearest, cubic;
  Padding padding;
};

/// Folded back into [low, high] at its ends.
double reflected(double x, double low, double high) noexcept {
  const double range = high - low;
  if (range <= 0 || !std::isfinite(x)) return low;
  double folded = std::fmod(std::fabs(x - low), 2 * range);
  if (folded > range) folded = 2 * range - folded;
  return low + folded;
}

/// A place along an axis as the padding has it; -1: nothing lies there.
std::int64_t padded_place(const GridForm& form, std::int64_t place, std::int64_t extent) noexcept {
  if (place >= 0 && place < extent) return place;
  switch (form.padding) {
    case kBorder:
      return std::clamp<std::int64_t>(place, 0, extent - 1);
    case kReflection: {
      const double half = form.align ? 0 : 0.5;
      return std::clamp<std::int64_t>(
          static_cast<std::int64_t>(reflected(static_cast<double>(place), -half, static_cast<double>(extent - 1) + half)), 0, extent - 1);
    }
    default:
      return -1;
  }
}

/// The taps of one axis: places and weights.
struct Taps {
  std::array<std::int64_t, 4> place;
  std::array<double, 4> weight;
};

/// Where a coordinate lies in the image.
double place_along(const GridForm& form, double x, std::int64_t extent) noexcept {
  const auto last = static_cast<double>(extent - 1);
  // Far away is as good as outside.
  double at = form.align ? (x + 1) / 2 * last : ((x + 1) * static_cast<double>(extent) - 1) / 2;
  if (!(at > -1e9 && at < 1e9)) at = at > 0 ? 1e9 : -1e9;
  const double half = form.align ? 0 : 0.5;
  if (form.nearest) at = std::nearbyint(at);
  // Where the image ends is half a pixel behind its last place, which cubic weights see.
  const double edge = form.cubic ? half : 0;
  if (form.padding == kBorder && (at < -edge || at > last + edge)) at = std::clamp(at, 0.0, last);
  if (form.padding == kReflection && (at < -half || at > last + half)) at = reflected(at, -half, last + half);
  return at;
}

Taps taps_of(const GridForm& form, double x, std::int64_t extent) noexcept {
  Taps taps;
  const double at = place_along(form, x, extent);
  if (form.nearest) {
    taps.place[0] = padded_place(form, static_cast<std::int64_t>(at), extent);
    taps.weight[0] = 1;
    return taps;
  }
  // std::floor is a call where the instruction is not certain to be there.
  std::int64_t floor = static_cast<std::int64_t>(at);
  if (static_cast<double>(floor) > at) --floor;
  const double t = at - static_cast<double>(floor);
  if (!form.cubic) {
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      taps.place[k] = padded_place(form, floor + static_cast<std::int64_t>(k), extent);
      taps.weight[k] = 1 - std::fabs(t - static_cast<double>(k));
    }
    return taps;
  }
  for (std::size_t k = 0; k < 4; ++k) {
    const double d = std::fabs(t - (static_cast<double>(k) - 1));
    constexpr double a = -0.75;
    taps.place[k] = padded_place(form, floor + static_cast<std::int64_t>(k) - 1, extent);
    taps.weight[k] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  }
  return taps;
}

/// What kSampleLanes outputs are the weighted sums of, in every channel: the taps of all axes combined, the last axis slowest.
struct Samples {
  static constexpr std::size_t kMost = 64 * kSampleLanes;
  std::array<std::int32_t, kMost> places;
  std::array<double, kMost> weights;

  void set(std::size_t lane, const std::array<Taps, kMaxGridAxes>& taps, int axes, int per_axis, const Shape& x) noexcept {
    int combinations = 1;
    for (int a = 0; a < axes; ++a) combinations *= per_axis;
    for (int k = 0; k < combinations; ++k) {
      std::int64_t place = 0;
      double weight = 1;
      bool inside = true;
      for (int a = 0, left = k; a < axes; ++a, left /= per_axis) {
        const Taps& t = taps[static_cast<std::size_t>(a)];
        const auto tap = static_cast<std::size_t>(left % per_axis);
        inside = inside && t.place[tap] >= 0;
        place = place * x[a + 2] + t.place[tap];
        weight *= t.weight[tap];
      }
      put(static_cast<std::size_t>(k), lane, inside ? place : -1, weight);
    }
  }
  void put(std::size_t tap, std::size_t lane, std::int64_t place, double weight) noexcept {
    places[tap * kSampleLanes + lane] = static_cast<std::int32_t>(place);
    weights[tap * kSampleLanes + lane] = weight;
  }
  /// Lanes from `first` on: nothing lies there.
  void clear(std::size_t first, int combinations) noexcept {
    for (std::size_t k = 0; k < static_cast<std::size_t>(combinations); ++k)
      for (std::size_t lane = first; lane < kSampleLanes; ++lane) {
        places[k * kSampleLanes + lane] = -1;
        weights[k * kSampleLanes + lane] = 0;
      }
  }
};

/// Are channels the lanes? Their planes are turned into pixels first, which few channels or few outputs are not worth.
bool samples_pixels(const Shape& x, std::int64_t outputs) noexcept {
  return x[1] >= kSampleChannels / 2 && 2 * outputs >= x.count(2, x.rank());
}

/// A tile of results, and the planes of kSampleChannels channels as pixels.
std::uint64_t grid_scratch(const PlainNode& node) noexcept {
  const Shape &x = node.in(0).shape, &grid = node.in(1).shape;
  if (x.rank() < 3 || grid.rank() != x.rank() || !samples_pixels(x, grid.count(1, grid.rank() - 1))) return 0;
  return static_cast<std::uint64_t>(kSampleChannels * (kSampleLanes + x.count(2, x.rank()))) * sizeof(float);
}

/// One run of GridSample: its shapes and what it reads.
class GridRun {
 public:
  GridRun(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept
      : x_(node.in(0).shape),
        axes_(x_.rank() - 2),
        inputs_(x_.count(2, x_.rank())),
        outputs_(out.shape.count(2, out.shape.rank())),
        form_(node),
        images_(node.in(0).as<const float>()),
        grid_(node.in(1).as<const float>()),
        out_(out.as<float>()),
        tile_(reinterpret_cast<float*>(scratch)) {
    for (int a = 0; a < axes_; ++a) combinations_ *= form_.taps();
    operations_ = kSampleLanes * (16 + combinations_ * x_[1]);
  }

  /// Plane by plane.
  void sample_planes(std::int64_t n) noexcept {
    each_run(n, [&](const SampleTaps& taps, std::int64_t first, std::int64_t lanes) {
      for (std::int64_t c = n * x_[1]; c < (n + 1) * x_[1]; ++c)
        vectors_.sample(taps, images_ + c * inputs_, out_ + c * outputs_ + first, lanes);
    });
  }

  /// kSampleChannels planes at once.
  void sample_pixels(std::int64_t n) noexcept {
    float* const pixels = tile_ + kSampleChannels * kSampleLanes;
    for (std::int64_t c = 0; c < x_[1]; c += kSampleChannels) {
      const std::int64_t channels = std::min(kSampleChannels, x_[1] - c), plane = n * x_[1] + c;
      if (channels < kSampleChannels) std::fill_n(pixels, inputs_ * kSampleChannels, 0.0f);
      turn_floats(images_ + plane * inputs_, inputs_, channels, pixels, kSampleChannels, inputs_);
      each_run(n, [&](const SampleTaps& taps, std::int64_t first, std::int64_t lanes) {
        vectors_.sample_pixels(taps, pixels, tile_, lanes);
        turn_floats(tile_, kSampleChannels, lanes, out_ + plane * outputs_ + first, outputs_, channels);
      });
    }
  }

 private:
  /// Calls body(taps, first output, outputs) for each kSampleLanes outputs of an image.
  template <class Body>
  void each_run(std::int64_t n, const Body& body) noexcept {
    for (std::int64_t first = 0; first < outputs_ && !glances_.over(operations_); first += kSampleLanes) {
      const std::int64_t lanes = std::min(kSampleLanes, outputs_ - first);
      if (axes_ == 2 && !form_.nearest && !form_.cubic && form_.padding != kReflection) {
        set_squares(grid_ + (n * outputs_ + first) * 2, lanes);
        body(SampleTaps{samples_.places.data(), samples_.weights.data(), combinations_}, first, lanes);
        continue;
      }
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        std::array<Taps, kMaxGridAxes> taps;
        const float* const coordinates = grid_ + (n * outputs_ + first + lane) * axes_;
        for (int a = 0; a < axes_; ++a)
          taps[static_cast<std::size_t>(a)] = taps_of(form_, static_cast<double>(coordinates[axes_ - 1 - a]), x_[a + 2]);
        samples_.set(static_cast<std::size_t>(lane), taps, axes_, form_.taps(), x_);
      }
      samples_.clear(static_cast<std::size_t>(lanes), combinations_);
      body(SampleTaps{samples_.places.data(), samples_.weights.data(), combinations_}, first, lanes);
    }
  }

  /// The taps of two linear axes, which most grids are.
  void set_squares(const float* coordinates, std::int64_t lanes) noexcept {
    std::array<float, kSampleLanes> x{}, y{};
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      x[static_cast<std::size_t>(lane)] = coordinates[2 * lane];
      y[static_cast<std::size_t>(lane)] = coordinates[2 * lane + 1];
    }
    vectors_.grid_squares({x_[2], x_[3], form_.align, form_.padding == kBorder}, x.data(), y.data(), samples_.places.data(),
                          samples_.weights.data());
    samples_.clear(static_cast<std::size_t>(lanes), combinations_);
  }

  const Shape& x_;
  const int axes_;
  const std::int64_t inputs_, outputs_;
  const GridForm form_;
  const VectorTable& vectors_ = vector_table(active_isa());
  const float* const images_;
  const float* const grid_;
  float* const out_;
  float* const tile_;
  int combinations_ = 1;
  std::int64_t operations_ = 1;  // of a run of kSampleLanes outputs
  Glances glances_;
  Samples samples_;
};

PlainRefusal run_grid(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  const Shape& x = node.in(0).shape;
  if (x.count(2, x.rank()) > INT32_MAX) return kWrongShape;
  const bool pixels = samples_pixels(x, out.shape.count(2, out.shape.rank()));
  GridRun run(node, out, scratch);
  for (std::int64_t n = 0; n < x[0]; ++n) pixels ? run.sample_pixels(n) : run.sample_planes(n);
  return nullptr;
}

/// Where one sample lies along an axis: between two places, `part` of the way to the second.
struct RoiPlace {
  std::int64_t low = 0, high = 0;
  double part = 0;
  bool inside = false;
};

/// The samples of one region along one axis: `samples` in each of its bins. They are the same for every channel, so the first ones are
/// kept.
class RoiAxis {
 public:
  RoiAxis(double begin, double bin, std::int64_t bins, std::int64_t samples, std::int64_t extent) noexcept
      : begin_(begin), bin_(bin), samples_(samples), extent_(extent) {
    for (std::int64_t s = 0; s < std::min(kKnown, bins * samples); ++s) known_[static_cast<std::size_t>(s)] = find(s);
  }
  std::int64_t samples() const noexcept { return samples_; }
  RoiPlace at(std::int64_t bin, std::int64_t sample) const noexcept {
    const std::int64_t s = bin * samples_ + sample;
    return s < kKnown ? known_[static_cast<std::size_t>(s)] : find(s);
  }

 private:
  static constexpr std::int64_t kKnown = 64;

  RoiPlace find(std::int64_t s) const noexcept {
    const auto bin = static_cast<double>(s / samples_), sample = static_cast<double>(s % samples_);
    double at = begin_ + (bin + (sample + 0.5) / static_cast<double>(samples_)) * bin_;
    if (!(at >= -1 && at <= static_cast<double>(extent_))) return {};
    at = std::clamp(at, 0.0, static_cast<double>(extent_ - 1));
    const auto low = static_cast<std::int64_t>(at);
    return {low, std::min(low + 1, extent_ - 1), at - static_cast<double>(low), true};
  }

  double begin_, bin_;
  std::int64_t samples_, extent_;
  std::array<RoiPlace, kKnown> known_;
};

/// One sample: the mean takes the interpolated value, the maximum the largest of the four weighted neighbours.
double roi_sample(const float* image, std::int64_t width, const RoiPlace& y, const RoiPlace& x, bool largest) noexcept {
  if (!y.inside || !x.inside) return 0;
  const float *top = image + y.low * width, *bottom = image + y.high * width;
  const double parts[] = {(1 - y.part) * (1 - x.part) * top[x.low], (1 - y.part) * x.part * top[x.high],
                          y.part * (1 - x.part) * bottom[x.low], y.part * x.part * bottom[x.high]};
  return largest ? std::max({parts[0], parts[1], parts[2], parts[3]}) : parts[0] + parts[1] + parts[2] + parts[3];
}

/// One channel of one region.
void align_channel(const float* image, std::int64_t width, const RoiAxis& down, const RoiAxis& across, bool largest, const Shape& shape,
                   Glances& glances, float* out) noexcept {
  for (std::int64_t i = 0; i < shape[2]; ++i)
    for (std::int64_t j = 0; j < shape[3]; ++j) {
      double sum = 0, most = -HUGE_VAL;
      for (std::int64_t sy = 0; sy < down.samples(); ++sy) {
        if (glances.over(4 * across.samples())) return;
        const RoiPlace y = down.at(i, sy);
        for (std::int64_t sx = 0; sx < across.samples(); ++sx) {
          const double value = roi_sample(image, width, y, across.at(j, sx), largest);
          sum += value;
          most = std::max(most, value);
        }
      }
      out[i * shape[3] + j] = static_cast<float>(largest ? most : sum / static_cast<double>(down.samples() * across.samples()));
    }
}

/// One region: its image and where its samples lie.
struct Region {
  std::int64_t image = 0;
  bool inside = true;  // there is such an image
  RoiAxis down, across;
};

Region region_of(const PlainNode& node, std::int64_t r, const Shape& out) noexcept {
  const Shape& x = node.in(0).shape;
  // output_half_pixel before opset 16, half_pixel since, unless the node says.
  const bool half = node.integer(kRoiCoordinates) == 1 || (node.integer(kRoiCoordinates) == 0 && node.integer(kRoiOpset) >= 16);
  const double scale = node.real(kRoiScale), shift = half ? 0.5 : 0.0;
  const float* roi = node.in(1).as<const float>() + r * 4;
  const double left = roi[0] * scale - shift, top = roi[1] * scale - shift;
  double width = roi[2] * scale - shift - left, height = roi[3] * scale - shift - top;
  if (!half) {
    width = std::max(width, 1.0);
    height = std::max(height, 1.0);
  }
  const double bin_h = height / static_cast<double>(out[2]), bin_w = width / static_cast<double>(out[3]);
  const auto samples_of = [&](double bin) {
    if (node.integer(kRoiSamples) > 0) return node.integer(kRoiSamples);
    return bin > 0 && bin < 4096 ? static_cast<std::int64_t>(std::ceil(bin)) : std::int64_t{1};
  };
  const std::int64_t image = integer_at(node.in(2), r);
  const bool inside = image >= 0 && image < x[0];
  return {inside ? image : 0, inside, RoiAxis(top, bin_h, out[2], samples_of(bin_h), x[2]),
          RoiAxis(left, bin_w, out[3], samples_of(bin_w), x[3])};
}

/// Samples of a bin whose taps are kept.
constexpr std::int64_t kMostBinSamples = 16;

/// Means of kSampleLanes bins, in kSampleChannels channels at once. Each sample is the weighted sum of four neighbours, and a bin the sum of
/// all of these, weights divided by the number of samples.
class RegionBins {
 public:
  RegionBins(const Region& region, const Shape& out, std::int64_t width) noexcept : region_(region), columns_(out[3]), width_(width) {
    taps_ = static_cast<int>(4 * region.down.samples() * region.across.samples());
  }
  static bool takes(const Region& region) noexcept { return region.down.samples() * region.across.samples() <= kMostBinSamples; }

  /// Bins [first, first + count).
  SampleTaps of(std::int64_t first, std::int64_t count) noexcept {
    for (std::int64_t lane = 0; lane < count; ++lane) {
      const std::int64_t i = (first + lane) / columns_, j = (first + lane) % columns_;
      std::size_t at = static_cast<std::size_t>(lane);
      for (std::int64_t sy = 0; sy < region_.down.samples(); ++sy) {
        const RoiPlace y = region_.down.at(i, sy);
        for (std::int64_t sx = 0; sx < region_.across.samples(); ++sx, at += 4 * kSampleLanes) put(at, y, region_.across.at(j, sx));
      }
    }
    return {places_.data(), weights_.data(), taps_};
  }

 private:
  void put(std::size_t at, const RoiPlace& y, const RoiPlace& x) noexcept {
    const bool inside = y.inside && x.inside;
    const double terms = taps_ / 4;
    const std::int64_t rows[] = {y.low, y.high}, columns[] = {x.low, x.high};
    const double row_weights[] = {1 - y.part, y.part}, column_weights[] = {1 - x.part, x.part};
    for (std::size_t k = 0; k < 4; ++k, at += kSampleLanes) {
      places_[at] = inside ? static_cast<std::int32_t>(rows[k / 2] * width_ + columns[k % 2]) : -1;
      weights_[at] = inside ? row_weights[k / 2] * column_weights[k % 2] / terms : 0;
    }
  }

  const Region& region_;
  std::int64_t columns_, width_;
  int taps_;
  std::array<std::int32_t, 4 * kMostBinSamples * kSampleLanes> places_;
  std::array<double, 4 * kMostBinSamples * kSampleLanes> weights_;
};

/// Are channels the lanes? Then their planes are turned into pixels first, which few regions are not worth.
bool pools_pixels(const PlainNode& node, const Shape& out) noexcept {
  const Shape& x = node.in(0).shape;
  return node.integer(kRoiMode) != 1 && x[1] >= kSampleChannels / 2 && x[2] * x[3] <= INT32_MAX &&
         4 * out[0] * out[2] * out[3] >= x[0] * x[2] * x[3];
}

std::uint64_t roi_scratch(const PlainNode& node) noexcept {
  const Shape& x = node.in(0).shape;
  if (x.rank() != 4) return 0;
  return static_cast<std::uint64_t>(kSampleChannels * (kSampleLanes + x[2] * x[3])) * sizeof(float);
}

/// All regions of one image in some channels, which lie at `pixels`.
void pool_regions(const PlainNode& node, const PlainTensor& out, std::int64_t image, Interval<std::int64_t> channels, const float* pixels,
                  float* tile, Glances& glances) noexcept {
  const Shape& x = node.in(0).shape;
  const std::int64_t bins = out.shape[2] * out.shape[3], plane = x[2] * x[3];
  for (std::int64_t r = 0; r < out.shape[0]; ++r) {
    const Region region = region_of(node, r, out.shape);
    if (region.image != image) continue;
    if (!RegionBins::takes(region)) {
      for (std::int64_t c = channels.begin; c < channels.end; ++c)
        align_channel(node.in(0).as<const float>() + (image * x[1] + c) * plane, x[3], region.down, region.across, false, out.shape,
                      glances, out.as<float>() + (r * x[1] + c) * bins);
      continue;
    }
    RegionBins of_region(region, out.shape, x[3]);
    for (std::int64_t first = 0; first < bins; first += kSampleLanes) {
      const std::int64_t count = std::min(kSampleLanes, bins - first);
      const SampleTaps taps = of_region.of(first, count);
      if (glances.over(count * taps.taps)) return;
      vector_table(active_isa()).sample_pixels(taps, pixels, tile, count);
      turn_floats(tile, kSampleChannels, count, out.as<float>() + (r * x[1] + channels.begin) * bins + first, bins, channels.size());
    }
  }
}

PlainRefusal run_roi(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  const Shape& x = node.in(0).shape;
  const std::int64_t plane = x[2] * x[3], bins = out.shape[2] * out.shape[3];
  Glances glances;
  PlainRefusal fault = nullptr;
  for (std::int64_t r = 0; r < out.shape[0]; ++r)
    if (!region_of(node, r, out.shape).inside) fault = kWrongIndex;
  if (pools_pixels(node, out.shape)) {
    auto* const tile = reinterpret_cast<float*>(scratch);
    float* const pixels = tile + kSampleChannels * kSampleLanes;
    for (std::int64_t image = 0; image < x[0]; ++image)
      for (std::int64_t c = 0; c < x[1] && !glances.over(plane); c += kSampleChannels) {
        const std::int64_t channels = std::min(kSampleChannels, x[1] - c);
        if (channels < kSampleChannels) std::fill_n(pixels, plane * kSampleChannels, 0.0f);
        turn_floats(node.in(0).as<const float>() + (image * x[1] + c) * plane, plane, channels, pixels, kSampleChannels, plane);
        pool_regions(node, out, image, {c, c + channels}, pixels, tile, glances);
      }
    return fault;
  }
  for (std::int64_t r = 0; r < out.shape[0]; ++r) {
    const Region region = region_of(node, r, out.shape);
    for (std::int64_t c = 0; c < x[1]; ++c)
      align_channel(node.in(0).as<const float>() + (region.image * x[1] + c) * plane, x[3], region.down, region.across,
                    node.integer(kRoiMode) == 1, out.shape, glances, out.as<float>() + (r * x[1] + c) * bins);
  }
  return fault;
}

constexpr GenericKernel kImageKernels[] = {
    {"GridSample", run_grid, grid_scratch},
    {"RoiAlign", run_roi, roi_scratch},
};

}  // namespace

std::span<const GenericKernel> image_kernels() noexcept { return kImageKernels; }

}  // namespace sluice::kernels::plain

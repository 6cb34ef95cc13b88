// Images of any number of axes in another size: the forms of Resize that kResize does not take.
#include "sluice/operators/generic/resize.h"

#include <bit>

#include "src/kernels/generic/resize.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

namespace sluice::kernels::plain {
using namespace operators::generic::resize;
namespace {

enum Rounding : std::int64_t { kPreferFloor = 0, kPreferCeil = 1, kFloor = 2, kCeil = 3 };

/// Two images of the largest size that the axes' order passes through.
std::uint64_t resize_scratch(const PlainNode& node) noexcept {
  std::uint64_t most = 1;
  for (int axis = 0; axis < node.in(0).shape.rank(); ++axis)
    most *= static_cast<std::uint64_t>(std::max(node.in(0).shape[axis], node.list(kExtents)[static_cast<std::size_t>(axis)]));
  return node.integer(kMode) == kNearest ? 0 : 2 * most * sizeof(float);
}

/// Where output index i lies among the input's.
double unbounded_source(const PlainNode& node, int axis, std::int64_t i, std::int64_t in, std::int64_t out) noexcept {
  const auto a = static_cast<std::size_t>(axis);
  const double scale = node.real(kScales, a), length = scale * static_cast<double>(in), x = static_cast<double>(i);
  switch (node.integer(kCoordinates)) {
    case kSymmetric: {
      const double adjustment = static_cast<double>(out) / length, centre = static_cast<double>(in) / 2;
      return centre * (1 - adjustment) + (x + 0.5) / scale - 0.5;
    }
    case kPytorch:
      return length > 1 ? (x + 0.5) / scale - 0.5 : 0.0;
    case kAlignCorners:
      return length == 1 ? 0.0 : x * static_cast<double>(in - 1) / (length - 1);
    case kAsymmetric:
      return x / scale;
    case kCrop: {
      const double start = node.real(kRoi, a), end = node.real(kRoi, a + static_cast<std::size_t>(node.in(0).shape.rank())),
                   most = static_cast<double>(in - 1);
      return out > 1 ? start * most + x * (end - start) * most / static_cast<double>(out - 1) : 0.5 * (start + end) * most;
    }
    default:
      return (x + 0.5) / scale - 0.5;
  }
}

/// The same, as a number that can be a place.
double source_of(const PlainNode& node, int axis, std::int64_t i, std::int64_t in, std::int64_t out) noexcept {
  const double x = unbounded_source(node, axis, i, in, out);
  return std::isnan(x) ? 0.0 : std::clamp(x, -1e9, 1e9);
}

std::int64_t nearest(const PlainNode& node, double x) noexcept {
  switch (node.integer(kRounding)) {
    case kPreferFloor:
      return static_cast<std::int64_t>(std::ceil(x - 0.5));
    case kPreferCeil:
      return static_cast<std::int64_t>(std::floor(x + 0.5));
    case kFloor:
      return static_cast<std::int64_t>(std::floor(x));
    default:
      return static_cast<std::int64_t>(std::ceil(x));
  }
}

double kernel_weight(const PlainNode& node, double distance) noexcept {
  const double d = std::fabs(distance);
  if (node.integer(kMode) == resize::kLinear) return d < 1 ? 1 - d : 0;
  const double a = node.real(kCubicA);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

/// The input places that one output place of an axis sums up.
class Window {
 public:
  Window(const PlainNode& node, int axis, std::int64_t i, std::int64_t in, std::int64_t out, Glances& glances) noexcept
      : node_(node), x_(source_of(node, axis, i, in, out)), in_(in), excludes_(node.integer(kExclude) != 0) {
    const double scale = node.real(kScales, static_cast<std::size_t>(axis));
    // Shrinking with antialias widens the kernel to the pixels that one output stands for.
    if (node.integer(kAntialias) != 0 && scale < 1) widening_ = scale;
    const double reach = (node.integer(kMode) == resize::kLinear ? 1 : 2) / widening_;
    first = static_cast<std::int64_t>(std::floor(x_ - reach)) + 1;
    last = static_cast<std::int64_t>(std::ceil(x_ + reach)) - 1;
    double total = 0;
    for (std::int64_t k = first; k <= last && !glances.over(4); ++k)
      if (takes(k)) total += kernel_weight(node, (static_cast<double>(k) - x_) * widening_);
    if (total != 0) total_ = total;
  }
  bool takes(std::int64_t k) const noexcept { return !excludes_ || (k >= 0 && k < in_); }
  double weight(std::int64_t k) const noexcept { return kernel_weight(node_, (static_cast<double>(k) - x_) * widening_) / total_; }
  bool outside() const noexcept { return node_.integer(kCoordinates) == kCrop && (x_ < 0 || x_ > static_cast<double>(in_ - 1)); }

  std::int64_t first = 0, last = 0;

 private:
  const PlainNode& node_;
  double x_;
  std::int64_t in_;
  bool excludes_;
  double widening_ = 1.0, total_ = 1.0;
};

/// The last axis, whose places have nothing beside them: kSampleLanes outputs of a row at once, whose places and weights are found once for
/// all rows. The same sums. False, and nothing done, where an output has more taps than are kept.
bool resize_last_axis(const PlainNode& node, int axis, const float* from, float* to, std::int64_t rows, std::int64_t in, std::int64_t out,
                      Glances& glances) noexcept {
  constexpr std::int64_t kMostTaps = 32;
  if (node.integer(kCoordinates) == kCrop || in > INT32_MAX) return false;
  // Others may have one tap more than the first.
  if (const Window first(node, axis, 0, in, out, glances); first.last - first.first + 2 > kMostTaps) return false;
  std::array<std::int32_t, kMostTaps * kSampleLanes> places;
  std::array<double, kMostTaps * kSampleLanes> weights;
  const VectorTable& vectors = vector_table(active_isa());
  for (std::int64_t i = 0; i < out; i += kSampleLanes) {
    const std::int64_t lanes = std::min(kSampleLanes, out - i);
    SampleTaps taps{places.data(), weights.data(), 0};
    std::int64_t begun = 0;  // taps of all lanes
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const Window window(node, axis, i + lane, in, out, glances);
      const std::int64_t count = std::min(window.last - window.first + 1, kMostTaps);
      for (; begun < count; ++begun) {
        std::fill_n(places.begin() + begun * kSampleLanes, kSampleLanes, -1);
        std::fill_n(weights.begin() + begun * kSampleLanes, kSampleLanes, 0.0);
      }
      for (std::int64_t t = 0; t < count; ++t) {
        const std::int64_t k = window.first + t;
        if (!window.takes(k)) continue;
        places[static_cast<std::size_t>(t * kSampleLanes + lane)] = static_cast<std::int32_t>(std::clamp<std::int64_t>(k, 0, in - 1));
        weights[static_cast<std::size_t>(t * kSampleLanes + lane)] = window.weight(k);
      }
      taps.taps = std::max(taps.taps, static_cast<int>(count));
    }
    for (std::int64_t r = 0; r < rows && !glances.over(taps.taps * kSampleLanes); ++r)
      vectors.sample(taps, from + r * in, to + r * out + i, lanes);
  }
  return true;
}

/// One axis: `from` [outer, in, inner] to `to` [outer, out, inner]. Places that lie side by side are summed at the same time, so that a
/// weight is computed once for each group of them.
void resize_axis(const PlainNode& node, int axis, const float* from, float* to, std::int64_t outer, std::int64_t in, std::int64_t out,
                 std::int64_t inner, Glances& glances) noexcept {
  constexpr std::int64_t kTogether = 64, kKnown = 32;
  if (inner == 1 && outer > 1 && resize_last_axis(node, axis, from, to, outer, in, out, glances)) return;
  const VectorTable& vectors = vector_table(active_isa());
  for (std::int64_t i = 0; i < out; ++i) {
    const Window window(node, axis, i, in, out, glances);
    const bool outside = window.outside();
    std::array<double, kKnown> known;
    for (std::int64_t k = window.first; k <= std::min(window.last, window.first + kKnown - 1); ++k)
      known[static_cast<std::size_t>(k - window.first)] = window.weight(k);
    const auto weight = [&](std::int64_t k) {
      return k - window.first < kKnown ? known[static_cast<std::size_t>(k - window.first)] : window.weight(k);
    };
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t first = 0; first < inner; first += kTogether) {
        const std::int64_t places = std::min(kTogether, inner - first);
        std::array<double, kTogether> sums;
        std::fill_n(sums.data(), places, 0.0);
        for (std::int64_t k = window.first; k <= window.last && !outside; ++k) {
          if (glances.over(4 + places)) return;
          if (!window.takes(k)) continue;
          const double factor = weight(k);
          const float* const row = from + (o * in + std::clamp<std::int64_t>(k, 0, in - 1)) * inner + first;
          vectors.add_multiple(factor, row, sums.data(), places);
        }
        float* const result = to + (o * out + i) * inner + first;
        for (std::int64_t j = 0; j < places; ++j)
          result[j] = static_cast<float>(outside ? node.real(kExtrapolation) : sums[static_cast<std::size_t>(j)]);
      }
  }
}

// ---- the forms of kResize: the same taps, whether its extents are known at open or at run

/// Is the node's rule for places one of kResize's?
bool has_rule_of_kind(const PlainNode& node) noexcept {
  const std::int64_t rule = node.integer(kCoordinates);
  if (rule == kAlignCorners) {  // of whole lengths
    for (int axis = 0; axis < node.in(0).shape.rank(); ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      const double length = node.real(kScales, a) * static_cast<double>(node.in(0).shape[axis]);
      if (std::fabs(length - static_cast<double>(node.list(kExtents)[a])) > 1e-4 * length) return false;
    }
    return true;
  }
  return rule == kHalfPixel || rule == kPytorch || rule == kAsymmetric;
}

bool is_of_kind(const PlainNode& node, const Shape& out) noexcept {
  const std::int64_t mode = node.integer(kMode);
  if (!is_f32(node.in(0).dtype) || !has_rule_of_kind(node) || mode < kNearest || mode > kCubic) return false;
  bool shrinks = false;
  for (int axis = 0; axis < out.rank(); ++axis) shrinks = shrinks || out[axis] < node.in(0).shape[axis];
  const bool antialias = shrinks && node.integer(kAntialias) != 0, excludes = mode == kCubic && node.integer(kExclude) != 0;
  return mode == kNearest || (!antialias && !excludes);
}

operators::ResizeParameters parameters_of_kind(const PlainNode& node) noexcept {
  constexpr ResizeCoordinates kRules[] = {ResizeCoordinates::kHalfPixel, ResizeCoordinates::kHalfPixel,
                                          ResizeCoordinates::kPytorchHalfPixel, ResizeCoordinates::kAlignCorners,
                                          ResizeCoordinates::kAsymmetric};
  operators::ResizeParameters made;
  made.mode = static_cast<ResizeMode>(node.integer(kMode));
  made.coordinates = kRules[node.integer(kCoordinates)];
  made.rounding = static_cast<ResizeRounding>(node.integer(kRounding));
  made.cubic_a = static_cast<float>(node.real(kCubicA));
  for (std::size_t a = 0; a < static_cast<std::size_t>(node.in(0).shape.rank()); ++a)
    made.scale[a] = static_cast<float>(node.real(kScales, a));
  return made;
}

PlainRefusal run_of_kind(const PlainNode& node, const PlainTensor& out) noexcept {
  const operators::ResizeParameters parameters = parameters_of_kind(node);
  const PlainTensor& x = node.in(0);
  const Extents strides = strides_of(x.shape);
  const int rank = out.shape.rank();
  generic::Sources sources;
  sources.rank = rank;
  Extents index{};
  const auto find_taps = [&](int axis) {
    const auto a = static_cast<std::size_t>(axis);
    sources.axis[a] = resize_taps(parameters, x.shape, out.shape, axis, index[a]);
  };
  for (int axis = 0; axis < rank; ++axis) find_taps(axis);
  const std::int64_t count = out.count();
  Glances glances;
  for (std::int64_t i = 0; i < count && !glances.over(4 << 2 * rank); ++i) {
    float sum = 0.0f;
    sources.for_each([&](const Extents& place, float weight) {
      std::int64_t at = 0;
      for (std::size_t a = 0; a < static_cast<std::size_t>(rank); ++a) at += place[a] * strides[a];
      sum = std::fma(weight, x.as<const float>()[at], sum);
    });
    out.as<float>()[i] = sum;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      const bool wraps = ++index[a] == out.shape[axis];
      if (wraps) index[a] = 0;
      find_taps(axis);
      if (!wraps) break;
    }
  }
  return nullptr;
}

PlainRefusal run_nearest(const PlainNode& node, const PlainTensor& out) noexcept {
  constexpr std::int64_t kOutside = -1;
  const PlainTensor& x = node.in(0);
  const bool extrapolates = node.integer(kCoordinates) == kCrop && is_f32(out.dtype);
  const auto place = [&](int axis, std::int64_t i) {
    const std::int64_t in = x.shape[axis];
    const double source = source_of(node, axis, i, in, out.shape[axis]);
    if (extrapolates && (source < 0 || source > static_cast<double>(in - 1))) return kOutside;
    return std::clamp<std::int64_t>(nearest(node, source), 0, in - 1);
  };
  copy_by_places(x, out, place, [&](std::int64_t i) { out.as<float>()[i] = static_cast<float>(node.real(kExtrapolation)); });
  return nullptr;
}

PlainRefusal run_resize(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  if (is_of_kind(node, out.shape)) return run_of_kind(node, out);
  if (node.integer(kMode) == kNearest) return run_nearest(node, out);
  const PlainTensor& x = node.in(0);
  auto* a = reinterpret_cast<float*>(scratch);
  float* b = a + resize_scratch(node) / (2 * sizeof(float));
  const float* from = x.as<const float>();
  Shape now = x.shape;
  Glances glances;
  for (int axis = 0; axis < now.rank(); ++axis) {
    const std::int64_t in = now[axis], extent = out.shape[axis];
    const bool keeps = in == extent && node.real(kScales, static_cast<std::size_t>(axis)) == 1.0 && node.integer(kCoordinates) != kCrop;
    if (keeps) continue;
    resize_axis(node, axis, from, a, now.count(0, axis), in, extent, now.count(axis + 1, now.rank()), glances);
    now[axis] = extent;
    from = a;
    std::swap(a, b);
  }
  std::copy_n(from, out.count(), out.as<float>());
  return nullptr;
}

/// The value at source places of the axes up to `axis`, the later ones being at `offset`; `at`: the output's indices. Axis 0 is summed up
/// first and every axis is rounded, as `resize_axis` does it.
float interpolate(const PlainNode& node, const Extents& strides, const Shape& out, const Extents& at, int axis, std::int64_t offset,
                  Glances& glances) noexcept {
  const PlainTensor& x = node.in(0);
  if (axis < 0) return x.as<const float>()[offset];
  const auto a = static_cast<std::size_t>(axis);
  const std::int64_t in = x.shape[axis];
  if (in == out[axis] && node.real(kScales, a) == 1.0)
    return interpolate(node, strides, out, at, axis - 1, offset + at[a] * strides[a], glances);
  const Window window(node, axis, at[a], in, out[axis], glances);
  double sum = 0;
  for (std::int64_t k = window.first; k <= window.last && !glances.over(4); ++k)
    if (window.takes(k))
      sum += window.weight(k) *
             interpolate(node, strides, out, at, axis - 1, offset + std::clamp<std::int64_t>(k, 0, in - 1) * strides[a], glances);
  return static_cast<float>(sum);
}

PlainRefusal run_at_run(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Resolved resolved;
  if (const PlainRefusal refusal = resolved.read(node)) return refusal;
  const PlainNode resize = resolved.node(node);
  if (is_of_kind(resize, out.shape)) return run_of_kind(resize, out);
  if (resize.integer(kMode) == kNearest) return run_nearest(resize, out);
  const Extents from = strides_of(resize.in(0).shape), to = strides_of(out.shape);
  const std::int64_t count = out.count();
  Glances glances;
  for (std::int64_t i = 0; i < count && !glances.over(1); ++i) {
    Extents at{};
    for (int axis = 0; axis < out.shape.rank(); ++axis)
      at[static_cast<std::size_t>(axis)] = i / to[static_cast<std::size_t>(axis)] % out.shape[axis];
    out.as<float>()[i] = interpolate(resize, from, out.shape, at, out.shape.rank() - 1, 0, glances);
  }
  return nullptr;
}

/// AffineGrid: the places of an image, turned by a matrix of each image. Coordinates x, y, z: the last axis first.
PlainRefusal run_affine(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const auto axes = static_cast<int>(out.shape.back());
  const std::int64_t rows = out.shape.count(1, axes), columns = out.shape[axes];
  const auto coordinate = [align = node.integer(1) != 0](std::int64_t place, std::int64_t extent) {
    const auto i = static_cast<double>(place), e = static_cast<double>(extent);
    return align ? (extent > 1 ? 2 * i / (e - 1) - 1 : -1) : (2 * i + 1) / e - 1;
  };
  float* to = out.as<float>();
  const float* matrix = node.in(0).as<const float>();
  Glances glances;
  for (std::int64_t n = 0; n < out.shape[0]; ++n, matrix += axes * (axes + 1))
    for (std::int64_t row = 0; row < rows && !glances.over(16 * columns); ++row) {
      std::array<double, 4> coordinates{};
      std::int64_t left = row;
      for (int a = 1; a < axes; left /= out.shape[axes - a], ++a)
        coordinates[static_cast<std::size_t>(a)] = coordinate(left % out.shape[axes - a], out.shape[axes - a]);
      coordinates[static_cast<std::size_t>(axes)] = 1;
      for (std::int64_t column = 0; column < columns; ++column) {
        coordinates[0] = coordinate(column, columns);
        for (const float* weights = matrix; weights < matrix + axes * (axes + 1); weights += axes + 1) {
          double sum = 0;
          for (int k = 0; k <= axes; ++k) sum += weights[k] * coordinates[static_cast<std::size_t>(k)];
          *to++ = static_cast<float>(sum);
        }
      }
    }
  return nullptr;
}

constexpr GenericKernel kResizeKernels[] = {
    {"ResizeOfExtents", run_resize, resize_scratch},
    {"ResizeAtRun", run_at_run},
    {"AffineGrid", run_affine},
};

}  // namespace

std::span<const GenericKernel> resize_kernels() noexcept { return kResizeKernels; }

}  // namespace sluice::kernels::plain

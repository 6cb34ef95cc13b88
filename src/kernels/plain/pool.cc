// Pools over any number of axes: the forms that kPool does not take (three axes, integers, places of maxima, powers).
#include "sluice/operators/generic/pool.h"

#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::pool;
namespace {

/// The place with the axes counted from the other end (storage_order 1).
std::int64_t column_major(const Windows& w, std::int64_t place) noexcept {
  std::int64_t result = 0;
  Extents index{};
  for (int a = w.axes - 1; a >= 0; --a) {
    index[static_cast<std::size_t>(a)] = place % w.in[static_cast<std::size_t>(a)];
    place /= w.in[static_cast<std::size_t>(a)];
  }
  for (int a = w.axes - 1; a >= 0; --a) result = result * w.in[static_cast<std::size_t>(a)] + index[static_cast<std::size_t>(a)];
  return result;
}

template <class T>
void run_max(const PlainNode& node, const PlainTensor& out, const Windows& w) noexcept {
  const PlainTensor& x = node.in(0);
  const std::int64_t images = x.shape[0] * x.shape[1], taps = w.taps(), outputs = w.outputs(), inputs = w.inputs();
  for (std::int64_t image = 0; image < images; ++image) {
    const T* from = x.as<const T>() + image * inputs;
    for (std::int64_t at = 0; at < outputs; ++at) {
      std::int64_t best = -1;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t place = tap_place(w, at, tap);
        if (place >= 0 && (best < 0 || from[place] > from[best])) best = place;
      }
      if (node.result() == 1)
        out.as<std::int64_t>()[image * outputs + at] =
            image * inputs + (node.integer(6) != 0 ? column_major(w, std::max<std::int64_t>(best, 0)) : best);
      else
        out.as<T>()[image * outputs + at] = best < 0 ? std::numeric_limits<T>::lowest() : from[best];
    }
  }
}

void run_sums(const PlainNode& node, const PlainTensor& out, const Windows& w) noexcept {
  const PlainTensor& x = node.in(0);
  const bool average = kind_of(node) == Pool::kAverage;
  const auto power = static_cast<double>(node.integer(6));
  const std::int64_t images = x.shape[0] * x.shape[1], taps = w.taps(), outputs = w.outputs(), inputs = w.inputs();
  for (std::int64_t image = 0; image < images; ++image) {
    const float* from = x.as<const float>() + image * inputs;
    for (std::int64_t at = 0; at < outputs; ++at) {
      double sum = 0;
      std::int64_t terms = 0;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        bool padded = false;
        const std::int64_t place = tap_place(w, at, tap, &padded);
        if (place >= 0) sum += average ? from[place] : std::pow(std::fabs(static_cast<double>(from[place])), power);
        terms += place >= 0 || (node.integer(6) != 0 && padded) ? 1 : 0;
      }
      const double y = average ? sum / static_cast<double>(std::max<std::int64_t>(terms, 1)) : std::pow(sum, 1 / power);
      out.as<float>()[image * outputs + at] = static_cast<float>(y);
    }
  }
}

PlainRefusal run(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Windows w;
  windows_of(node, w);
  if (kind_of(node) != Pool::kMax)
    run_sums(node, out, w);
  else
    with_type(node.in(0).dtype, [&](auto zero) { run_max<decltype(zero)>(node, out, w); });
  return nullptr;
}

PlainRefusal run_global(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const std::int64_t images = out.count(), inner = x.count() / images;
  const auto power = static_cast<double>(node.integer(0));
  for (std::int64_t image = 0; image < images; ++image) {
    const float* from = x.as<const float>() + image * inner;
    double sum = 0;
    for (std::int64_t i = 0; i < inner; ++i)
      sum += kind_of(node) == Pool::kLp ? std::pow(std::fabs(static_cast<double>(from[i])), power) : from[i];
    const double y = kind_of(node) == Pool::kMax       ? *std::max_element(from, from + inner)
                     : kind_of(node) == Pool::kAverage ? sum / static_cast<double>(inner)
                                                       : std::pow(sum, 1 / power);
    out.as<float>()[image] = static_cast<float>(y);
  }
  return nullptr;
}

PlainRefusal run_unpool(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const auto size = static_cast<std::int64_t>(size_of(out.dtype));
  std::memset(out.data, 0, static_cast<std::size_t>(out.count() * size));
  // Places count in the tensor that the pool would make of this geometry; a larger output_shape leaves room at the end of each axis.
  Windows w;
  Shape pooled = out.shape;
  if (node.given(6) && read_windows(node, x.shape, {}, w)) {
    for (std::size_t a = 0; a < static_cast<std::size_t>(w.axes); ++a) {
      w.out[a] = (w.in[a] - 1) * w.stride[a] + w.kernel[a] - w.before[a] - w.after[a];
      if (w.out[a] < 1) w.out[a] = out.shape[static_cast<int>(a) + 2];
    }
    window_shape(w, x.shape[0], x.shape[1], pooled);
  }
  const Extents to = strides_of(out.shape), from = strides_of(pooled);
  PlainRefusal fault = nullptr;
  const std::int64_t count = x.count();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = node.in(1).as<const std::int64_t>()[i];
    std::int64_t at = 0;
    bool inside = place >= 0 && place < pooled.element_count();
    for (int axis = 0; inside && axis < pooled.rank(); ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      const std::int64_t index = place / from[a] % pooled[axis];
      inside = index < out.shape[axis];
      at += index * to[a];
    }
    if (inside)
      copy_elements(out.data + at * size, x.data + i * size, 1, out.dtype);
    else
      fault = kWrongIndex;
  }
  return fault;
}

constexpr GenericKernel kKernels[] = {
    {"MaxPool", run},
    {"AveragePool", run},
    {"LpPool", run},
    {"GlobalMaxPool", run_global},
    {"GlobalAveragePool", run_global},
    {"GlobalLpPool", run_global},
    {"MaxUnpool", run_unpool},
};

}  // namespace

std::span<const GenericKernel> pool_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain

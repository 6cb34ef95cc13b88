// Pools over any number of axes: the forms that kPool does not take (three axes, integers, places of maxima, powers).
#include "sluice/operators/generic/pool.h"

#include <array>
#include <type_traits>

#include "src/kernels/elementwise/runs.h"
#include "src/kernels/generic/folds.h"
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

/// Outputs of a row that tap `k` of the last axis lies inside the input for.
Interval<std::int64_t> taken_by(const Windows& w, std::int64_t k) noexcept {
  const auto last = static_cast<std::size_t>(w.axes - 1);
  const std::int64_t shift = k * w.dilation[last] - w.before[last], step = w.stride[last], in_w = w.in[last], out_w = w.out[last];
  return {shift >= 0 ? 0 : std::min(out_w, ceil_div(-shift, step)), shift >= in_w ? 0 : std::min(out_w, (in_w - 1 - shift) / step + 1)};
}

/// Each output takes the greater of what it is and its value.
template <class T>
void take_greater(const T* values, std::int64_t step, std::int64_t count, T* to) noexcept {
  const auto take = [=](std::int64_t apart) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = to[i] < values[i * apart] ? values[i * apart] : to[i];
  };
  if constexpr (std::is_same_v<T, float>)
    if (step == 1) return elementwise::run_table(active_isa()).binary(BinaryFunction::kMax, {.values = to}, {.values = values}, to, count);
  step == 1 ? take(1) : step == 2 ? take(2) : take(step);
}

/// The values alone: row after row of outputs, tap after tap, each taken by all outputs of the row that it lies inside for.
template <class T>
void run_max_values(const PlainTensor& x, const PlainTensor& out, const Windows& w) noexcept {
  Windows outer = w;  // all axes but the last
  const auto last = static_cast<std::size_t>(--outer.axes);
  constexpr std::int64_t kKnown = 16;  // ranges that are not looked for again
  std::array<Interval<std::int64_t>, kKnown> known;
  for (std::int64_t k = 0; k < std::min(kKnown, w.kernel[last]); ++k) known[static_cast<std::size_t>(k)] = taken_by(w, k);
  const std::int64_t in_w = w.in[last], out_w = w.out[last], step = w.stride[last];
  const T* from = x.as<const T>();
  T* to = out.as<T>();
  Glances glances;
  for (std::int64_t image = 0; image < x.shape[0] * x.shape[1]; ++image, from += outer.inputs() * in_w)
    for (std::int64_t row = 0; row < outer.outputs(); ++row, to += out_w) {
      std::fill_n(to, out_w, generic::Greatest<T>().value());
      for (std::int64_t tap = 0; tap < outer.taps(); ++tap) {
        const std::int64_t place = tap_place(outer, row, tap);
        if (glances.over(1)) return;
        for (std::int64_t k = 0; place >= 0 && k < w.kernel[last]; ++k) {
          if (glances.over(1 + out_w / 4)) return;
          const Interval<std::int64_t> taken = k < kKnown ? known[static_cast<std::size_t>(k)] : taken_by(w, k);
          const std::int64_t first = place * in_w + k * w.dilation[last] - w.before[last] + taken.begin * step;
          if (taken.begin < taken.end) take_greater(from + first, step, taken.end - taken.begin, to + taken.begin);
        }
      }
    }
}

template <class T>
void run_max(const PlainNode& node, const PlainTensor& out, const Windows& w) noexcept {
  const PlainTensor& x = node.in(0);
  if (node.result() == 0) return run_max_values<T>(x, out, w);
  const std::int64_t images = x.shape[0] * x.shape[1], taps = w.taps(), outputs = w.outputs(), inputs = w.inputs();
  Glances glances;
  for (std::int64_t image = 0; image < images; ++image) {
    const T* from = x.as<const T>() + image * inputs;
    for (std::int64_t at = 0; at < outputs; ++at) {
      generic::Greatest<T> greatest;
      for (std::int64_t tap = 0; tap < taps && !glances.over(1); ++tap)
        if (const std::int64_t place = tap_place(w, at, tap); place >= 0) greatest.add(from[place], place);
      const std::int64_t place = greatest.place();
      out.as<std::int64_t>()[image * outputs + at] =
          image * inputs + (node.integer(6) != 0 ? column_major(w, std::max<std::int64_t>(place, 0)) : place);
    }
  }
}

void run_means(const PlainNode& node, const PlainTensor& out, const Windows& w) noexcept {
  const PlainTensor& x = node.in(0);
  const std::int64_t images = x.shape[0] * x.shape[1], taps = w.taps(), outputs = w.outputs(), inputs = w.inputs();
  const std::int64_t row = w.kernel[static_cast<std::size_t>(w.axes - 1)];
  Glances glances;
  for (std::int64_t image = 0; image < images; ++image)
    for (std::int64_t at = 0; at < outputs; ++at) {
      generic::Mean mean(x.shape[1] == 1 && w.dilation[static_cast<std::size_t>(w.axes - 1)] == 1);
      std::int64_t terms = 0;
      for (std::int64_t tap = 0; tap < taps && !glances.over(1); ++tap) {
        bool padded = false;
        const std::int64_t place = tap_place(w, at, tap, &padded);
        if (place >= 0) mean.add(x.as<const float>()[image * inputs + place]);
        terms += place >= 0 || (node.integer(6) != 0 && padded) ? 1 : 0;
        if (tap % row == row - 1) mean.end_row();
      }
      out.as<float>()[image * outputs + at] = mean.over(std::max<std::int64_t>(terms, 1));
    }
}

/// The root of a sum of powers.
void run_powers(const PlainNode& node, const PlainTensor& out, const Windows& w) noexcept {
  const PlainTensor& x = node.in(0);
  const auto power = static_cast<double>(node.integer(6));
  const std::int64_t images = x.shape[0] * x.shape[1], taps = w.taps(), outputs = w.outputs(), inputs = w.inputs();
  Glances glances;
  for (std::int64_t image = 0; image < images; ++image) {
    const float* from = x.as<const float>() + image * inputs;
    for (std::int64_t at = 0; at < outputs; ++at) {
      double sum = 0;
      for (std::int64_t tap = 0; tap < taps && !glances.over(8); ++tap)
        if (const std::int64_t place = tap_place(w, at, tap); place >= 0)
          sum += std::pow(std::fabs(static_cast<double>(from[place])), power);
      out.as<float>()[image * outputs + at] = static_cast<float>(std::pow(sum, 1 / power));
    }
  }
}

PlainRefusal run(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Windows w;
  windows_of(node, w);
  if (kind_of(node) == Pool::kAverage)
    run_means(node, out, w);
  else if (kind_of(node) == Pool::kLp)
    run_powers(node, out, w);
  else
    with_type(node.in(0).dtype, [&](auto zero) { run_max<decltype(zero)>(node, out, w); });
  return nullptr;
}

/// One image, whose rows are its last axis.
float global_of(const PlainNode& node, const float* from, std::int64_t count, std::int64_t row) noexcept {
  generic::Greatest<float> greatest;
  generic::Mean mean(node.in(0).shape[1] == 1);
  double sum = 0;
  switch (kind_of(node)) {
    case Pool::kMax:
      for (std::int64_t i = 0; i < count; ++i) greatest.add(from[i]);
      return greatest.value();
    case Pool::kAverage:
      for (std::int64_t first = 0; first < count; first += row) {
        for (std::int64_t i = first; i < first + row; ++i) mean.add(from[i]);
        mean.end_row();
      }
      return mean.over(count);
    case Pool::kLp:
      break;
  }
  const auto power = static_cast<double>(node.integer(0));
  for (std::int64_t i = 0; i < count; ++i) sum += std::pow(std::fabs(static_cast<double>(from[i])), power);
  return static_cast<float>(std::pow(sum, 1 / power));
}

PlainRefusal run_global(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const std::int64_t images = out.count(), inner = x.count() / images, row = x.shape.rank() > 2 ? x.shape.back() : 1;
  Glances glances;
  for (std::int64_t image = 0; image < images && !glances.over(inner); ++image)
    out.as<float>()[image] = global_of(node, x.as<const float>() + image * inner, inner, row);
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

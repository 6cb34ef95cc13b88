// Pools over any number of axes: the forms that kPool does not take (three axes, integers, places of maxima, powers).
#include "sluice/operators/generic/pool.h"

#include <array>
#include <type_traits>

#include "sluice/core/interval.h"
#include "sluice/core/units.h"
#include "src/kernels/generic/folds.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/pool_rows.h"
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

/// Each output takes the greater of what it is and its value.
template <class T>
void take_greater(const T* values, std::int64_t step, std::int64_t count, T* to) noexcept {
  const auto take = [=](std::int64_t apart) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = to[i] < values[i * apart] ? values[i * apart] : to[i];
  };
  step == 1 ? take(1) : step == 2 ? take(2) : take(step);
}

/// The same windows with a row axis before the last one, also where they have one axis.
Windows with_rows(Windows w) noexcept {
  if (w.axes > 1) return w;
  for (auto* extents : {&w.in, &w.out, &w.kernel, &w.stride, &w.dilation, &w.before, &w.after}) (*extents)[1] = (*extents)[0];
  w.in[0] = w.out[0] = w.kernel[0] = w.stride[0] = w.dilation[0] = 1;
  w.before[0] = w.after[0] = 0;
  w.axes = 2;
  return w;
}

/// Rows of outputs whose greatest values over all axes but the last are found at once.
std::int64_t rows_at_once(const Windows& w) noexcept {
  constexpr std::int64_t kValues = 2048;  // which the nearest cache holds beside what is read
  const auto last = static_cast<std::size_t>(w.axes - 1);
  return std::clamp<std::int64_t>(kValues / std::max<std::int64_t>(w.in[last], 1), 1, w.out[last - 1]);
}

/// The greatest values that the windows of output rows `rows` of one line of rows see in each column of the input: [rows][in_w].
template <class T>
void take_columns(const T* from, const Windows& w, std::int64_t line, Interval<std::int64_t> rows, T* best, Glances& glances) noexcept {
  Windows outer = w;  // all axes but the last two
  outer.axes -= 2;
  const auto last = static_cast<std::size_t>(w.axes - 1), row_axis = last - 1;
  const std::int64_t in_w = w.in[last], step = w.stride[row_axis];
  std::fill_n(best, rows.size() * in_w, generic::Greatest<T>().value());
  for (std::int64_t tap = 0; tap < outer.taps(); ++tap) {
    const std::int64_t place = tap_place(outer, line, tap);
    for (std::int64_t k = 0; place >= 0 && k < w.kernel[row_axis]; ++k) {
      const Interval<std::int64_t> inside = taken_by(w, row_axis, k);
      const Interval<std::int64_t> taken{std::max(inside.begin, rows.begin), std::min(inside.end, rows.end)};
      if (glances.over(1 + std::max<std::int64_t>(taken.size(), 0) * in_w / 4)) return;
      if (taken.begin >= taken.end) continue;
      const T* const values = from + (place * w.in[row_axis] + k * w.dilation[row_axis] - w.before[row_axis] + taken.begin * step) * in_w;
      T* const to = best + (taken.begin - rows.begin) * in_w;
      // Rows that follow each other are one run.
      const std::int64_t runs = step == 1 ? 1 : taken.size(), run_rows = step == 1 ? taken.size() : 1;
      for (std::int64_t run = 0; run < runs; ++run) take_greater(values + run * step * in_w, 1, run_rows * in_w, to + run * in_w);
    }
  }
}

/// The values alone: some rows at a time, first the greatest of each column, then along the rows.
template <class T>
void run_max_values(const PlainTensor& x, const PlainTensor& out, const Windows& w, T* best) noexcept {
  const auto last = static_cast<std::size_t>(w.axes - 1);
  const std::int64_t in_w = w.in[last], out_w = w.out[last], out_h = w.out[last - 1], step = w.stride[last], at_once = rows_at_once(w);
  const std::int64_t lines = w.outputs() / (out_h * out_w);
  const T* from = x.as<const T>();
  T* to = out.as<T>();
  Glances glances;
  for (std::int64_t image = 0; image < x.shape[0] * x.shape[1]; ++image, from += w.inputs())
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t first = 0; first < out_h; first += at_once) {
        const Interval<std::int64_t> rows{first, std::min(out_h, first + at_once)};
        take_columns(from, w, line, rows, best, glances);
        std::fill_n(to, rows.size() * out_w, generic::Greatest<T>().value());
        for (std::int64_t k = 0; k < w.kernel[last]; ++k) {
          const Interval<std::int64_t> taken = taken_by(w, k);
          if (glances.over(1 + rows.size() * out_w / 4)) return;
          if (taken.begin >= taken.end) continue;
          const std::int64_t column = k * w.dilation[last] - w.before[last] + taken.begin * step;
          for (std::int64_t row = 0; row < rows.size(); ++row)
            take_greater(best + row * in_w + column, step, taken.size(), to + row * out_w + taken.begin);
        }
        to += rows.size() * out_w;
      }
}

/// Outputs of a row that are summed at once.
constexpr std::int64_t kPartOfRow = 256;

/// Adds `term(x)` of one row of taps to `sums`, those of outputs [part.begin, part.end) of a row: tap after tap. `from` is the row of the
/// input.
template <class Sum, class Term>
void add_row_of_taps(const Windows& w, const float* from, Interval<std::int64_t> part, Sum* sums, const Term& term,
                     Glances& glances) noexcept {
  const auto last = static_cast<std::size_t>(w.axes - 1);
  const std::int64_t step = w.stride[last];
  for (std::int64_t k = 0; k < w.kernel[last] && !glances.over(part.size()); ++k) {
    const Interval<std::int64_t> taken = taken_by(w, k);
    const std::int64_t begin = std::max(taken.begin, part.begin), end = std::min(taken.end, part.end);
    const float* const values = from + k * w.dilation[last] - w.before[last];
    const auto add = [&](std::int64_t apart) {
      for (std::int64_t i = begin; i < end; ++i) sums[i - part.begin] += term(values[i * apart]);
    };
    step == 1 ? add(1) : step == 2 ? add(2) : add(step);
  }
}

/// Outputs by sums over their rows of taps, a part of a row of outputs at a time: `of_part(part)` gives what then adds each row of the
/// input that taps meet, `add(image, first place of the row, sums, glances)`, and ends in `finish(row, sums, to)`. Ends early where the run does.
template <class Sum, class In = float, class Out = float, class OfPart>
void sum_by_rows(const PlainTensor& x, const PlainTensor& out, const Windows& w, const OfPart& of_part) noexcept {
  Windows outer = w;  // all axes but the last
  const auto last = static_cast<std::size_t>(--outer.axes);
  const std::int64_t out_w = w.out[last], rows = outer.outputs();
  std::array<Sum, kPartOfRow> sums;
  Glances glances;
  for (std::int64_t first = 0; first < out_w; first += kPartOfRow) {
    const Interval<std::int64_t> part{first, std::min(out_w, first + kPartOfRow)};
    const auto row_of = of_part(part);
    const In* from = x.as<const In>();
    Out* to = out.as<Out>() + first;
    RowsOfTaps places(outer);
    for (std::int64_t image = 0; image < x.shape[0] * x.shape[1]; ++image, from += w.inputs())
      for (std::int64_t row = 0; row < rows; ++row, to += out_w, places.next_row()) {
        std::fill_n(sums.data(), part.size(), Sum());
        for (std::int64_t place = places.next(); place >= 0; place = places.next()) {
          if (glances.over(1)) return;
          row_of.add(from, place * w.in[last], sums.data(), glances);
        }
        row_of.finish(row, sums.data(), to);
      }
  }
}

/// Where the greatest value of a window lies in its image, of a part of a row of outputs.
template <class T>
struct PlacesOfPart {
  const Windows& w;
  Interval<std::int64_t> part;
  bool by_columns;

  void add(const T* image, std::int64_t row, generic::Greatest<T>* greatest, Glances& glances) const noexcept {
    const auto last = static_cast<std::size_t>(w.axes - 1);
    for (std::int64_t k = 0; k < w.kernel[last] && !glances.over(part.size()); ++k) {
      const Interval<std::int64_t> taken = taken_by(w, k);
      const std::int64_t begin = std::max(taken.begin, part.begin), end = std::min(taken.end, part.end);
      const std::int64_t first = row + k * w.dilation[last] - w.before[last];
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t place = first + i * w.stride[last];
        greatest[i - part.begin].add(image[place], place);
      }
    }
  }
  void finish(std::int64_t, const generic::Greatest<T>* greatest, std::int64_t* to) const noexcept {
    for (std::int64_t i = 0; i < part.size(); ++i)
      to[i] = by_columns ? column_major(w, std::max<std::int64_t>(greatest[i].place(), 0)) : greatest[i].place();
  }
};

template <class T>
void run_max(const PlainNode& node, const PlainTensor& out, const Windows& w, std::byte* scratch) noexcept {
  const PlainTensor& x = node.in(0);
  if (node.result() == 0) {
    if constexpr (std::is_same_v<T, float>)
      return RowPool(x, out, w).greatest(reinterpret_cast<float*>(scratch));
    else
      return run_max_values<T>(x, out, with_rows(w), reinterpret_cast<T*>(scratch));
  }
  const std::int64_t order = node.integer(6), inputs = w.inputs();
  sum_by_rows<generic::Greatest<T>, T, std::int64_t>(x, out, w, [&](Interval<std::int64_t> part) {
    return PlacesOfPart<T>{w, part, order != 0};
  });
  auto* const to = out.as<std::int64_t>();
  const std::int64_t outputs = w.outputs();
  for (std::int64_t i = 0; i < out.count(); ++i) to[i] += i / outputs * inputs;
}

void run_means(const PlainNode& node, const PlainTensor& out, const Windows& w) noexcept {
  const PlainTensor& x = node.in(0);
  const auto last = static_cast<std::size_t>(w.axes - 1);
  const bool one_channel = x.shape[1] == 1 && w.dilation[last] == 1;
  if (!one_channel || w.kernel[last] < generic::kLeastOfLanes) return RowPool(x, out, w).mean(node.integer(6) != 0);
  const std::int64_t images = x.shape[0] * x.shape[1], taps = w.taps(), outputs = w.outputs(), inputs = w.inputs();
  const std::int64_t row = w.kernel[last];
  Glances glances;
  for (std::int64_t image = 0; image < images; ++image)
    for (std::int64_t at = 0; at < outputs; ++at) {
      generic::Mean mean(one_channel);
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

/// |x|^power, and the root of a sum of such: the powers that models have need no exponential.
struct Power {
  double exponent;
  double of(float value) const noexcept {
    const double x = std::fabs(static_cast<double>(value));
    return exponent == 1 ? x : exponent == 2 ? x * x : std::pow(x, exponent);
  }
  double root_of(double sum) const noexcept { return exponent == 1 ? sum : exponent == 2 ? std::sqrt(sum) : std::pow(sum, 1 / exponent); }
};

/// The root of a sum of powers, of a part of a row of outputs.
struct PowersOfPart {
  const Windows& w;
  Interval<std::int64_t> part;
  Power power;

  void add(const float* image, std::int64_t row, double* sums, Glances& glances) const noexcept {
    const float* const values = image + row;
    if (power.exponent == 2)
      add_row_of_taps(
          w, values, part, sums, [](float v) { return static_cast<double>(v) * static_cast<double>(v); }, glances);
    else
      add_row_of_taps(
          w, values, part, sums, [this](float v) { return power.of(v); }, glances);
  }
  void finish(std::int64_t, const double* sums, float* to) const noexcept {
    for (std::int64_t i = 0; i < part.size(); ++i) to[i] = static_cast<float>(power.root_of(sums[i]));
  }
};

void run_powers(const PlainNode& node, const PlainTensor& out, const Windows& w) noexcept {
  const Power power{static_cast<double>(node.integer(6))};
  sum_by_rows<double>(node.in(0), out, w, [&](Interval<std::int64_t> part) { return PowersOfPart{w, part, power}; });
}

/// The same windows where the last axes of which nothing is folded are one: rows as long as they can be.
Windows joined(Windows w) noexcept {
  const auto idle = [&](int axis) {
    const auto a = static_cast<std::size_t>(axis);
    return w.kernel[a] == 1 && w.stride[a] == 1 && w.before[a] == 0 && w.after[a] == 0 && w.out[a] == w.in[a];
  };
  for (; w.axes > 2 && idle(w.axes - 1) && idle(w.axes - 2); --w.axes) {
    const auto last = static_cast<std::size_t>(w.axes - 1);
    w.in[last - 1] *= w.in[last];
    w.out[last - 1] *= w.out[last];
  }
  return w;
}

/// The greatest values of some rows' columns.
std::uint64_t max_scratch(const PlainNode& node) noexcept {
  Windows w;
  if (node.result() != 0 || !windows_of(node, w)) return 0;
  w = with_rows(joined(w));
  const std::int64_t rows = is_f32(node.in(0).dtype) ? RowPool::kHeldRows : rows_at_once(w);
  return static_cast<std::uint64_t>(rows * w.in[static_cast<std::size_t>(w.axes - 1)]) * size_of(node.in(0).dtype);
}

PlainRefusal run(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  Windows w;
  windows_of(node, w);
  if (kind_of(node) == Pool::kAverage)
    run_means(node, out, w);
  else if (kind_of(node) == Pool::kLp)
    run_powers(node, out, w);
  else
    with_type(node.in(0).dtype, [&](auto zero) { run_max<decltype(zero)>(node, out, node.result() == 0 ? joined(w) : w, scratch); });
  return nullptr;
}

/// The sum of each row, then the sum of the rows (generic::Mean), of rows that follow each other: some rows at once, for a sum waits for
/// the one before.
float mean_of_rows(const float* from, std::int64_t count, std::int64_t row) noexcept {
  constexpr std::int64_t kTogether = 8;
  float sum = 0.0f;
  const float* const end = from + count;
  for (; end - from >= kTogether * row; from += kTogether * row) {
    std::array<float, kTogether> sums{};
    for (std::int64_t i = 0; i < row; ++i)
      for (std::int64_t r = 0; r < kTogether; ++r) sums[static_cast<std::size_t>(r)] += from[r * row + i];
    for (const float of_row : sums) sum += of_row;
  }
  for (; from < end; from += row) {
    float of_row = 0.0f;
    for (std::int64_t i = 0; i < row; ++i) of_row += from[i];
    sum += of_row;
  }
  return sum / static_cast<float>(count);
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
      if (node.in(0).shape[1] != 1 || row < generic::kLeastOfLanes) return mean_of_rows(from, count, row);
      for (std::int64_t first = 0; first < count; first += row) {
        for (std::int64_t i = first; i < first + row; ++i) mean.add(from[i]);
        mean.end_row();
      }
      return mean.over(count);
    case Pool::kLp:
      break;
  }
  const Power power{static_cast<double>(node.integer(0))};
  for (std::int64_t i = 0; i < count; ++i) sum += power.of(from[i]);
  return static_cast<float>(power.root_of(sum));
}

PlainRefusal run_global(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const std::int64_t images = out.count(), inner = x.count() / images, row = x.shape.rank() > 2 ? x.shape.back() : 1;
  Glances glances;
  for (std::int64_t image = 0; image < images && !glances.over(inner); ++image)
    out.as<float>()[image] = global_of(node, x.as<const float>() + image * inner, inner, row);
  return nullptr;
}

/// Places that count in the output itself.
PlainRefusal put_by_places(const PlainNode& node, const PlainTensor& out) noexcept {
  const auto* places = node.in(1).as<const std::int64_t>();
  const std::int64_t count = node.in(0).count(), outputs = out.count();
  PlainRefusal fault = nullptr;
  with_size(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < count; ++i) {
      if (places[i] >= 0 && places[i] < outputs)
        out.as<T>()[places[i]] = node.in(0).as<const T>()[i];
      else
        fault = kWrongIndex;
    }
  });
  return fault;
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
  if (pooled == out.shape) return put_by_places(node, out);
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

constexpr GenericKernel kPoolKernels[] = {
    {"MaxPool", run, max_scratch},     {"AveragePool", run},         {"LpPool", run},           {"GlobalMaxPool", run_global},
    {"GlobalAveragePool", run_global}, {"GlobalLpPool", run_global}, {"MaxUnpool", run_unpool},
};

}  // namespace

std::span<const GenericKernel> pool_kernels() noexcept { return kPoolKernels; }

}  // namespace sluice::kernels::plain

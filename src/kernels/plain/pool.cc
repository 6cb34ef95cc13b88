// Pools over any number of axes: the forms that kPool does not take (three axes, integers, places of maxima, powers).
#include "sluice/operators/generic/pool.h"

#include <array>
#include <type_traits>

#include "src/kernels/elementwise/runs.h"
#include "src/kernels/generic/folds.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/pool_lines.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

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

/// Outputs along axis `a` that tap `k` of it lies inside the input for.
Interval<std::int64_t> taken_by(const Windows& w, std::size_t a, std::int64_t k) noexcept {
  const std::int64_t shift = k * w.dilation[a] - w.before[a], step = w.stride[a], in = w.in[a], out = w.out[a];
  return {shift >= 0 ? 0 : std::min(out, ceil_div(-shift, step)), shift >= in ? 0 : std::min(out, (in - 1 - shift) / step + 1)};
}
/// The same along the last axis.
Interval<std::int64_t> taken_by(const Windows& w, std::int64_t k) noexcept { return taken_by(w, static_cast<std::size_t>(w.axes - 1), k); }

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

/// Along one axis: how many taps of output `at` lie inside the input, or inside what is padded too.
std::int64_t terms_along(const Windows& w, std::size_t a, std::int64_t at, bool padding) noexcept {
  const std::int64_t first = at * w.stride[a] - w.before[a], end = w.in[a] + (padding ? w.after[a] : 0);
  const std::int64_t before = padding || first >= 0 ? 0 : std::min(w.kernel[a], ceil_div(-first, w.dilation[a]));
  const std::int64_t inside = first >= end ? 0 : std::min(w.kernel[a], ceil_div(end - first, w.dilation[a]));
  return std::max<std::int64_t>(inside - before, 0);
}

/// The rows of the input that the taps of one row of outputs meet, without a division for each of them.
class RowsOfTaps {
 public:
  /// Over all axes but the last, for output `row` of them.
  RowsOfTaps(const Windows& outer, std::int64_t row) noexcept : outer_(outer) {
    for (int axis = outer.axes; axis-- > 0;) {
      const auto a = static_cast<std::size_t>(axis);
      first_[a] = row % outer.out[a] * outer.stride[a] - outer.before[a];
      row /= outer.out[a];
    }
  }
  /// The place of the tap, in rows of the input, or -1; then the next tap's turn.
  std::int64_t next() noexcept {
    std::int64_t place = 0;
    bool inside = true;
    for (std::size_t a = 0; a < static_cast<std::size_t>(outer_.axes); ++a) {
      const std::int64_t at = first_[a] + tap_[a] * outer_.dilation[a];
      inside = inside && at >= 0 && at < outer_.in[a];
      place = place * outer_.in[a] + at;
    }
    for (int axis = outer_.axes; axis-- > 0;) {
      const auto a = static_cast<std::size_t>(axis);
      if (++tap_[a] < outer_.kernel[a]) break;
      tap_[a] = 0;
    }
    return inside ? place : -1;
  }

 private:
  const Windows& outer_;
  Extents first_{}, tap_{};
};

/// Outputs by sums over their rows of taps, a part of a row of outputs at a time: `of_part(part)` gives what then adds each row of the
/// input that taps meet, `add(values, sums, glances)`, and ends in `finish(row, sums, to)`. Ends early where the run does.
template <class Sum, class OfPart>
void sum_by_rows(const PlainTensor& x, const PlainTensor& out, const Windows& w, const OfPart& of_part) noexcept {
  Windows outer = w;  // all axes but the last
  const auto last = static_cast<std::size_t>(--outer.axes);
  const std::int64_t out_w = w.out[last], rows = outer.outputs(), taps = outer.taps();
  std::array<Sum, kPartOfRow> sums;
  Glances glances;
  for (std::int64_t first = 0; first < out_w; first += kPartOfRow) {
    const Interval<std::int64_t> part{first, std::min(out_w, first + kPartOfRow)};
    const auto row_of = of_part(part);
    const auto* from = x.as<const float>();
    auto* to = out.as<float>() + first;
    for (std::int64_t image = 0; image < x.shape[0] * x.shape[1]; ++image, from += w.inputs())
      for (std::int64_t row = 0; row < rows; ++row, to += out_w) {
        std::fill_n(sums.data(), part.size(), Sum());
        RowsOfTaps places(outer, row);
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          if (glances.over(1)) return;
          if (const std::int64_t place = places.next(); place >= 0) row_of.add(from + place * w.in[last], sums.data(), glances);
        }
        row_of.finish(row, sums.data(), to);
      }
  }
}

/// Pools of f32, a row of outputs at a time, by the loops of pool_lines.h.
class RowPool {
 public:
  RowPool(const PlainTensor& x, const PlainTensor& out, const Windows& w) noexcept
      : x_(x), out_(out), w_(w), outer_(w), last_(static_cast<std::size_t>(w.axes - 1)), inner_(taken_by(w, 0)) {
    --outer_.axes;
    inner_.end = std::max(inner_.begin, taken_by(w, w.kernel[last_] - 1).end);
  }

  /// First the greatest value of each column of the rows that a row of outputs meets, then along these. `best` has room for a row.
  void greatest(float* best) noexcept {
    constexpr float kLeast = -std::numeric_limits<float>::infinity();
    each_row([&](float*) { std::fill_n(best, w_.in[last_], kLeast); },
             [&](const PoolRows& rows, float*) { run(table_.keep_greatest, rows, best, w_.in[last_]); },
             [&](std::int64_t, float* to) {
               const float* const columns = best;
               std::fill_n(to, w_.out[last_], kLeast);
               run_along(table_.keep_greatest, {.rows = &columns, .count = 1}, to);
             });
  }

  /// The sum of each row of taps, then the sum of the rows (generic::Mean).
  void mean(bool padding) noexcept {
    each_row([&](float* to) { std::fill_n(to, w_.out[last_], 0.0f); },
             [&](const PoolRows& rows, float* to) { run_along(table_.add_sums, rows, to); },
             [&](std::int64_t row, float* to) {
               std::int64_t terms = 1;
               for (std::size_t a = last_; a-- > 0; row /= w_.out[a]) terms *= terms_along(w_, a, row % w_.out[a], padding);
               for (std::int64_t i = 0; i < w_.out[last_]; ++i) {
                 if (i == inner_.begin) i += divide(to + i, inner_.size(), terms * w_.kernel[last_]);
                 if (i < w_.out[last_]) divide(to + i, 1, terms * terms_along(w_, last_, i, padding));
               }
             });
  }

 private:
  using Loop = void (*)(const PoolRows&, float*, std::int64_t) noexcept;

  /// For each row of outputs: `begin(to)`, `add(rows, to)` with the rows of the input that its taps meet, some at a time, `finish(row, to)`.
  template <class Begin, class Add, class Finish>
  void each_row(const Begin& begin, const Add& add, const Finish& finish) noexcept {
    const std::int64_t rows = outer_.outputs(), taps = outer_.taps(), in_w = w_.in[last_];
    std::array<const float*, kMostPoolRows> met;
    const auto* from = x_.as<const float>();
    auto* to = out_.as<float>();
    for (std::int64_t image = 0; image < x_.shape[0] * x_.shape[1]; ++image, from += w_.inputs())
      for (std::int64_t row = 0; row < rows; ++row, to += w_.out[last_]) {
        begin(to);
        RowsOfTaps places(outer_, row);
        for (std::int64_t tap = 0; tap < taps;) {
          PoolRows of_tap{.rows = met.data()};
          for (; tap < taps && of_tap.count < kMostPoolRows; ++tap)
            if (const std::int64_t place = places.next(); place >= 0) met[static_cast<std::size_t>(of_tap.count++)] = from + place * in_w;
          if (glances_.over(kMostPoolRows)) return;
          add(of_tap, to);
        }
        finish(row, to);
      }
  }

  /// All taps along the rows: of outputs at a border those that lie inside.
  void run_along(Loop loop, PoolRows rows, float* to) noexcept {
    rows.step = w_.stride[last_];
    rows.dilation = w_.dilation[last_];
    const auto at_border = [&](Interval<std::int64_t> outputs) {
      for (std::int64_t i = outputs.begin; i < outputs.end; ++i) {
        const std::int64_t first = i * rows.step - w_.before[last_];
        const std::int64_t outside = first >= 0 ? 0 : ceil_div(-first, rows.dilation);
        rows.first = first + outside * rows.dilation;
        rows.taps = rows.first >= w_.in[last_] ? 0 : ceil_div(w_.in[last_] - rows.first, rows.dilation);
        rows.taps = std::min(rows.taps, w_.kernel[last_] - outside);
        if (rows.taps > 0) run(loop, rows, to + i, 1);
      }
    };
    at_border({0, inner_.begin});
    at_border({inner_.end, w_.out[last_]});
    rows.first = inner_.begin * rows.step - w_.before[last_];
    rows.taps = w_.kernel[last_];
    run(loop, rows, to + inner_.begin, inner_.size());
  }

  /// Some outputs at a time, so that the run can end between them.
  void run(Loop loop, PoolRows rows, float* to, std::int64_t n) noexcept {
    const std::int64_t operations = std::max<std::int64_t>(1, rows.count * rows.taps);
    const std::int64_t some = std::max<std::int64_t>(kMostLanes, Glances::kWork / operations);
    for (std::int64_t i = 0; i < n && !glances_.over(std::min(some, n - i) * operations / 4); i += some, rows.first += some * rows.step)
      loop(rows, to + i, std::min(some, n - i));
  }

  /// Returns `count`.
  std::int64_t divide(float* to, std::int64_t count, std::int64_t terms) const noexcept {
    const auto divisor = static_cast<float>(std::max<std::int64_t>(terms, 1));
    elementwise::run_table(active_isa()).binary(BinaryFunction::kDiv, {.values = to}, {.values = &divisor, .step = 0}, to, count);
    return count;
  }

  const PlainTensor& x_;
  const PlainTensor& out_;
  const Windows& w_;
  Windows outer_;  // all axes but the last
  const std::size_t last_;
  Interval<std::int64_t> inner_;  // outputs along the last axis all of whose taps lie inside
  const PoolTable& table_ = pool_table(active_isa());
  Glances glances_;
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

  void add(const float* values, double* sums, Glances& glances) const noexcept {
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

/// The greatest values of some rows' columns; of f32 of one row.
std::uint64_t max_scratch(const PlainNode& node) noexcept {
  Windows w;
  if (node.result() != 0 || !windows_of(node, w)) return 0;
  w = with_rows(w);
  const std::int64_t rows = is_f32(node.in(0).dtype) ? 1 : rows_at_once(w);
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
    with_type(node.in(0).dtype, [&](auto zero) { run_max<decltype(zero)>(node, out, w, scratch); });
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
    {"MaxPool", run, max_scratch},     {"AveragePool", run},         {"LpPool", run},           {"GlobalMaxPool", run_global},
    {"GlobalAveragePool", run_global}, {"GlobalLpPool", run_global}, {"MaxUnpool", run_unpool},
};

}  // namespace

std::span<const GenericKernel> pool_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain

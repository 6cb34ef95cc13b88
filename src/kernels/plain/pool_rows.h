// Pools of f32 over any number of axes, a row of outputs at a time: which rows of the input a row of outputs meets, and the two folds over
// them by the loops of pool_lines.h. Read by pool.cc.
#pragma once

#include <algorithm>
#include <array>

#include "sluice/core/window.h"
#include "sluice/operators/generic/windows.h"
#include "src/kernels/elementwise/runs.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/pool_lines.h"
#include "src/kernels/plain/vectors.h"

namespace sluice::kernels::plain {

/// How many steps reach so far; most dilations are 1, which want no division.
inline std::int64_t steps_to(std::int64_t distance, std::int64_t dilation) noexcept {
  return dilation == 1 ? distance : ceil_div(distance, dilation);
}

/// Outputs along axis `a` that tap `k` of it lies inside the input for.
inline Interval<std::int64_t> taken_by(const Windows& w, std::size_t a, std::int64_t k) noexcept {
  const std::int64_t shift = k * w.dilation[a] - w.before[a], step = w.stride[a], in = w.in[a], out = w.out[a];
  return {shift >= 0 ? 0 : std::min(out, ceil_div(-shift, step)), shift >= in ? 0 : std::min(out, (in - 1 - shift) / step + 1)};
}
/// The same along the last axis.
inline Interval<std::int64_t> taken_by(const Windows& w, std::int64_t k) noexcept {
  return taken_by(w, static_cast<std::size_t>(w.axes - 1), k);
}

/// The taps along one axis whose places are from 0 to before `end`, where the first tap is at `first`.
inline Interval<std::int64_t> taps_before(const Windows& w, std::size_t a, std::int64_t first, std::int64_t end) noexcept {
  return {first >= 0 ? 0 : std::min(w.kernel[a], steps_to(-first, w.dilation[a])),
          first >= end ? 0 : std::min(w.kernel[a], steps_to(end - first, w.dilation[a]))};
}

/// Along one axis: how many taps of output `at` lie inside the input, or inside what is padded too.
inline std::int64_t terms_along(const Windows& w, std::size_t a, std::int64_t at, bool padding) noexcept {
  const auto taps = taps_before(w, a, at * w.stride[a] - w.before[a], w.in[a] + (padding ? w.after[a] : 0));
  return std::max<std::int64_t>(taps.end - (padding ? 0 : taps.begin), 0);
}

/// The rows of the input that the taps of one row of outputs meet, row of outputs after row of outputs.
class RowsOfTaps {
 public:
  /// Over all axes but the last, from the first row of outputs on.
  explicit RowsOfTaps(const Windows& outer) noexcept : outer_(outer) {
    std::int64_t step = 1;
    for (int axis = outer.axes; axis-- > 0;) {
      const auto a = static_cast<std::size_t>(axis);
      step_[a] = step;
      step *= outer.in[a];
      find(a);
    }
    begin_row();
  }
  /// The place of a tap that is not padding, in rows of the input, each once; then -1.
  std::int64_t next() noexcept {
    if (left_ == 0) return -1;
    --left_;
    const std::int64_t place = place_;
    for (int axis = outer_.axes; axis-- > 0;) {
      const auto a = static_cast<std::size_t>(axis);
      const std::int64_t step = outer_.dilation[a] * step_[a];
      place_ += step;
      if (++tap_[a] < taps_[a].end) break;
      place_ -= taps_[a].size() * step;
      tap_[a] = taps_[a].begin;
    }
    return place;
  }
  /// How many taps of the row of outputs lie inside the input, or inside what is padded too.
  std::int64_t terms(bool padding) const noexcept {
    std::int64_t terms = 1;
    for (std::size_t a = 0; a < static_cast<std::size_t>(outer_.axes); ++a)
      terms *= padding ? terms_along(outer_, a, at_[a], true) : std::max<std::int64_t>(0, taps_[a].size());
    return terms;
  }
  void next_row() noexcept {
    for (int axis = outer_.axes; axis-- > 0;) {
      const auto a = static_cast<std::size_t>(axis);
      const bool wraps = ++at_[a] == outer_.out[a];
      if (wraps) at_[a] = 0;
      find(a);
      if (!wraps) break;
    }
    begin_row();
  }

 private:
  /// The taps of output at_[a] that lie inside.
  void find(std::size_t a) noexcept {
    first_[a] = at_[a] * outer_.stride[a] - outer_.before[a];
    taps_[a] = taps_before(outer_, a, first_[a], outer_.in[a]);
  }
  void begin_row() noexcept {
    left_ = 1;
    place_ = 0;
    for (std::size_t a = 0; a < static_cast<std::size_t>(outer_.axes); ++a) {
      left_ *= std::max<std::int64_t>(0, taps_[a].size());
      tap_[a] = taps_[a].begin;
      place_ += (first_[a] + tap_[a] * outer_.dilation[a]) * step_[a];
    }
  }

  const Windows& outer_;
  std::int64_t left_ = 0, place_ = 0;
  Extents at_{}, step_{}, first_{}, tap_{};
  std::array<Interval<std::int64_t>, std::tuple_size_v<Extents>> taps_{};
};

/// Pools of f32, a row of outputs at a time, by the loops of pool_lines.h.
class RowPool {
 public:
  RowPool(const PlainTensor& x, const PlainTensor& out, const Windows& w) noexcept
      : x_(x), out_(out), w_(w), outer_(w), last_(static_cast<std::size_t>(w.axes - 1)), inner_(taken_by(w, 0)) {
    --outer_.axes;
    inner_.end = std::max(inner_.begin, taken_by(w, w.kernel[last_] - 1).end);
    along_.step = w.stride[last_];
    along_.dilation = w.dilation[last_];
    along_.taps = w.kernel[last_];
    along_.first = inner_.begin * along_.step - w.before[last_];
  }

  /// First the greatest value of each column of the rows that a row of outputs meets, then along these: of some rows of outputs at a time,
  /// so that none waits for what was just written. `best` has room for so many rows of the input.
  void greatest(float* best) noexcept {
    const std::int64_t in_w = w_.in[last_];
    std::int64_t held = 0;
    const auto empty = [&](float* end) {
      for (std::int64_t r = 0; r < held; ++r) {
        const float* const columns = best + r * in_w;
        run_along<true>({.rows = &columns, .count = 1}, end + (r - held) * w_.out[last_]);
      }
      held = 0;
    };
    each_row([&](const PoolRows& rows, float*) { run(table_.keep_greatest, rows, best + held * in_w, in_w); },
             [&](const RowsOfTaps&, float* to) {
               if (++held == kHeldRows) empty(to + w_.out[last_]);
             });
    empty(out_.as<float>() + out_.count());
  }
  static constexpr std::int64_t kHeldRows = 4;

  /// The sum of each row of taps, then the sum of the rows (generic::Mean).
  void mean(bool padding) noexcept {
    const auto last_terms = [&](std::int64_t i) { return terms_along(w_, last_, i, padding); };
    each_row([&](const PoolRows& rows, float* to) { run_along<false>(rows, to); },
             [&](const RowsOfTaps& taps, float* to) {
               const std::int64_t terms = taps.terms(padding);
               for (std::int64_t i = 0; i < inner_.begin; ++i) divide(to + i, 1, terms * last_terms(i));
               divide(to + inner_.begin, inner_.size(), terms * w_.kernel[last_]);
               for (std::int64_t i = inner_.end; i < w_.out[last_]; ++i) divide(to + i, 1, terms * last_terms(i));
             });
  }

 private:
  static constexpr std::int64_t kMostAtBorder = 64;
  using Loop = void (*)(const PoolRows&, float*, std::int64_t) noexcept;

  /// For each row of outputs: `add(rows, to)` with the rows of the input that its taps meet, some at a time, `finish(taps, to)`.
  template <class Add, class Finish>
  void each_row(const Add& add, const Finish& finish) noexcept {
    const std::int64_t rows = outer_.outputs(), in_w = w_.in[last_];
    std::array<const float*, kMostPoolRows> met;
    const auto* from = x_.as<const float>();
    auto* to = out_.as<float>();
    RowsOfTaps places(outer_);
    for (std::int64_t image = 0; image < x_.shape[0] * x_.shape[1]; ++image, from += w_.inputs())
      for (std::int64_t row = 0; row < rows; ++row, to += w_.out[last_], places.next_row()) {
        PoolRows of_taps{.rows = met.data(), .begins = true};
        do {
          of_taps.count = 0;
          for (std::int64_t place = 0; of_taps.count < kMostPoolRows && (place = places.next()) >= 0;)
            met[static_cast<std::size_t>(of_taps.count++)] = from + place * in_w;
          if (glances_.over(kMostPoolRows)) return;
          add(of_taps, to);
          of_taps.begins = false;
        } while (of_taps.count == kMostPoolRows);
        finish(places, to);
      }
  }

  /// All taps along the rows: of outputs at a border those that lie inside.
  template <bool kGreatest>
  void run_along(const PoolRows& rows, float* to) noexcept {
    const Loop loop = kGreatest ? table_.keep_greatest : table_.add_sums;
    PoolRows some = along_;
    some.rows = rows.rows;
    some.count = rows.count;
    some.begins = rows.begins;
    run(loop, some, to + inner_.begin, inner_.size());
    const auto at_border = [&](std::int64_t i) {
      const std::int64_t first = i * some.step - w_.before[last_];
      const std::int64_t outside = first >= 0 ? 0 : steps_to(-first, some.dilation);
      some.first = first + outside * some.dilation;
      const std::int64_t inside = some.first >= w_.in[last_] ? 0 : steps_to(w_.in[last_] - some.first, some.dilation);
      some.taps = std::clamp<std::int64_t>(w_.kernel[last_] - outside, 0, inside);
      if (some.count * some.taps > kMostAtBorder) return run(loop, some, to + i, 1);
      // The same loop for one output, which a call is too much for.
      const float begin = kGreatest ? -HUGE_VALF : 0.0f;
      const auto fold = [](float a, float b) { return kGreatest ? (a < b ? b : a) : a + b; };
      float all = some.begins ? begin : to[i];
      for (std::int64_t r = 0; r < some.count; ++r) {
        float row = begin;
        for (std::int64_t k = 0; k < some.taps; ++k) row = fold(row, some.rows[r][some.first + k * some.dilation]);
        all = fold(all, row);
      }
      to[i] = all;
    };
    for (std::int64_t i = 0; i < inner_.begin; ++i) at_border(i);
    for (std::int64_t i = inner_.end; i < w_.out[last_]; ++i) at_border(i);
  }

  /// Some outputs at a time, so that the run can end between them. By reference: a copy would wait for what was just written.
  void run(Loop loop, const PoolRows& all, float* to, std::int64_t n) noexcept {
    const std::int64_t operations = std::max<std::int64_t>(1, all.count * all.taps);
    if (n * operations < Glances::kWork / 4) {
      if (!glances_.over(n * operations / 4)) loop(all, to, n);
      return;
    }
    PoolRows rows = all;
    const std::int64_t some = std::max<std::int64_t>(kMostLanes, Glances::kWork / operations);
    for (std::int64_t i = 0; i < n && !glances_.over(std::min(some, n - i) * operations / 4); i += some, rows.first += some * rows.step)
      loop(rows, to + i, std::min(some, n - i));
  }

  void divide(float* to, std::int64_t count, std::int64_t terms) const noexcept {
    const auto divisor = static_cast<float>(std::max<std::int64_t>(terms, 1));
    if (count == 1) {
      *to /= divisor;
      return;
    }
    runs_.binary(BinaryFunction::kDiv, {.values = to}, {.values = &divisor, .step = 0}, {}, to, count);
  }

  const PlainTensor& x_;
  const PlainTensor& out_;
  const Windows& w_;
  Windows outer_;  // all axes but the last
  const std::size_t last_;
  Interval<std::int64_t> inner_;  // outputs along the last axis all of whose taps lie inside
  PoolRows along_;                // how these lie
  const PoolTable& table_ = pool_table(active_isa());
  const elementwise::RunTable& runs_ = elementwise::run_table(active_isa());
  Glances glances_;
};

}  // namespace sluice::kernels::plain

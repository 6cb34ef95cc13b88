// How the elementwise kernels walk over the rows of a step, and what they do with a row when it is done.
#pragma once

#include <algorithm>

#include "sluice/core/units.h"
#include "sluice/core/work.h"
#include "sluice/kernels/call.h"
#include "src/kernels/elementwise/runs.h"

namespace sluice::kernels::elementwise {

// A task of fewer elements costs more to hand out than to do.
inline constexpr std::int64_t kTaskElements = 16 * 1024;

/// Calls body(row, rows) for the rows of the step; small rows are handed to a thread many at a time, and to `body` too where they are
/// `joined`: neighbours in memory, so that many of them are one run.
template <class Body>
void for_joined_rows(const KernelCall& call, bool joined, const Body& body) noexcept {
  const RowView& out = call.outputs[0].view;
  const std::int64_t rows = call.rows.size(), threads = call.pool == nullptr ? 1 : call.pool->thread_count();
  std::int64_t tasks = std::max<std::int64_t>(1, ceil_div(rows * out.pixels * out.channels, kTaskElements));
  if (tasks > 1) tasks = ceil_div(tasks, threads) * threads;  // even shares
  const std::int64_t group = std::max<std::int64_t>(1, ceil_div(rows, tasks));
  const auto do_group = [&](std::int64_t index, int) {
    const std::int64_t first = call.rows.begin + index * group, end = std::min(call.rows.end, first + group);
    if (joined) return body(first, end - first);
    for (std::int64_t row = first; row < end; ++row) body(row, 1);
  };
  const std::int64_t groups = ceil_div(call.rows.size(), group);
  if (call.pool != nullptr) return parallel_for(*call.pool, groups, do_group);
  for (std::int64_t index = 0; index < groups; ++index) do_group(index, 0);
}

/// Calls body(row) for each row of the step.
template <class Body>
void for_grouped_rows(const KernelCall& call, const Body& body) noexcept {
  for_joined_rows(call, false, [&](std::int64_t row, std::int64_t) { body(row); });
}

/// Are the pixels of a row neighbours, so that the row is one run?
inline bool closed_rows(const RowView& view) noexcept { return view.pixel_pitch == view.channels * std::int64_t{sizeof(float)}; }

/// The activation of a result: a Relu's or a clip's bounds, which loops keep results within in registers, and what is left to do in a second
/// pass, while the result is still in the first cache; no inner loop exists once a function.
class Finish {
 public:
  explicit Finish(const Activation& f) noexcept {
    if (f.function == Function::kRelu)
      bounds_.low = 0;
    else if (f.function == Function::kClip)
      bounds_ = {f.a, f.b};
    else
      pass_ = f;
  }
  Bounds bounds() const noexcept { return bounds_; }
  bool passes() const noexcept { return pass_.function != Function::kNone; }
  void operator()(const RunTable& runs, float* out, std::int64_t n) const noexcept {
    if (passes()) runs.unary(pass_, out, out, n);
  }

 private:
  Bounds bounds_;
  Activation pass_;
};

/// Calls compute(first, count) for n elements, in pieces that the first cache keeps until a second pass has read them.
template <class Compute>
void for_finished_pieces(const Finish& finish, std::int64_t n, const Compute& compute) noexcept {
  constexpr std::int64_t kPiece = 2048;
  const std::int64_t at_once = finish.passes() ? kPiece : n;
  for (std::int64_t first = 0; first < n; first += at_once) compute(first, std::min(at_once, n - first));
}

/// The whole activation of a result, in a second pass.
inline void activate(const RunTable& runs, const Activation& f, float* out, std::int64_t n) noexcept {
  if (f.function != Function::kNone) runs.unary(f, out, out, n);
}

}  // namespace sluice::kernels::elementwise

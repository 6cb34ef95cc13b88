#include "src/kernels/integer/softmax.h"

#include <algorithm>

#include "src/kernels/integer/rounding.h"
#include "src/kernels/integer/row_parts.h"
#include "src/kernels/reference/walk.h"
#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::integer {
namespace {

using operators::IntegerSoftmaxParameters;
using weighted::even_part;
constexpr int kValues = 256;
/// The sum of a line is a chain of additions, each of which waits for the one before: so many lines take no longer than one.
constexpr std::int64_t kLines = 4;
/// Longer lines are looked up in a table of results.
constexpr std::int64_t kFewValues = 48;

/// Lines whose sums are formed side by side.
struct Lines {
  std::int64_t count = 0;
  const std::uint8_t* in[kLines];
  std::uint8_t* out[kLines];
};

/// What a line's values mean: exponentials[x], from 0 to the largest.
struct Line {
  const float* exponentials = nullptr;
  int most = 0;
  float sum = 0.0f;
};

void add_up(const Lines& lines, std::int64_t n, Line (&found)[kLines]) noexcept {
  float sums[kLines] = {};
  if (lines.count == kLines) {
    for (std::int64_t i = 0; i < n; ++i)
      for (int line = 0; line < kLines; ++line) sums[line] += found[line].exponentials[lines.in[line][i]];
  } else {
    for (std::int64_t line = 0; line < lines.count; ++line)
      for (std::int64_t i = 0; i < n; ++i) sums[line] += found[line].exponentials[lines.in[line][i]];
  }
  for (std::int64_t line = 0; line < lines.count; ++line) found[line].sum = sums[line];
}

/// The results of all values that the line may have: a loop that compilers put in vectors.
void make_results(const IntegerSoftmaxParameters& p, const Line& line, std::uint8_t* results) noexcept {
  for (int i = 0; i <= line.most; ++i) results[i] = to_u8(line.exponentials[i] * p.steps / line.sum, p.range);
}

void run_lines(const IntegerSoftmaxParameters& p, const TileTable& table, const float* exponentials, const Lines& lines,
               std::int64_t n) noexcept {
  Line found[kLines];
  for (std::int64_t line = 0; line < lines.count; ++line) {
    found[line].most = *std::max_element(lines.in[line], lines.in[line] + n);
    found[line].exponentials = exponentials + (kValues - 1 - found[line].most);
  }
  add_up(lines, n, found);
  for (std::int64_t line = 0; line < lines.count; ++line) {
    const Line& of = found[line];
    const std::uint8_t* in = lines.in[line];
    if (n <= kFewValues) {
      for (std::int64_t i = 0; i < n; ++i) lines.out[line][i] = to_u8(of.exponentials[in[i]] * p.steps / of.sum, p.range);
      continue;
    }
    std::uint8_t results[kValues];
    make_results(p, of, results);
    table.look_up(results, in, lines.out[line], n);
  }
}

}  // namespace

void run_softmax_step(const KernelCall& call, const TileTable& table) noexcept {
  const auto& p = call.parameters<IntegerSoftmaxParameters>();
  const auto* exponentials = reinterpret_cast<const float*>(call.weights[0].data);
  const RowView &in = call.inputs[0].view, &out = call.outputs[0].view;
  for_row_parts(call, [&](RowRange rows) noexcept {
    Lines lines;
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      for (std::int64_t pixel = 0; pixel < out.pixels; ++pixel) {
        lines.in[lines.count] = reference::same_pixel<std::uint8_t>(in, out, row, pixel);
        lines.out[lines.count++] = out.at<std::uint8_t>(row, pixel);
        if (lines.count < kLines) continue;
        run_lines(p, table, exponentials, lines, out.channels);
        lines.count = 0;
      }
    run_lines(p, table, exponentials, lines, out.channels);
  });
}

}  // namespace sluice::kernels::integer

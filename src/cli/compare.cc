#include "src/cli/compare.h"

#include <cmath>
#include <limits>

#include "src/cli/text.h"

namespace sluice::cli {
namespace {

double difference(double a, double b) noexcept {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double distance = std::fabs(a - b);
  return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

}  // namespace

Comparison compare(const Pieces& actual, const Pieces& expected, double tolerance) {
  Comparison result;
  result.shapes_agree = same_apart_from_ones(actual.shape, expected.shape);
  if (!result.shapes_agree) return result;
  double largest = 0;
  for_each_value(expected, [&](std::size_t, double value) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  });
  result.allowed = tolerance * largest;
  alignas(8) PieceBuffer buffer;
  // The other side's elements may be wider.
  const std::size_t most = kPieceBytes / 8;
  std::size_t held = 0;  // one past the last element in `buffer`
  for_each_value(actual, [&](std::size_t i, double a) {
    if (i == held) {
      held = std::min(i + most, expected.count());
      expected.read(i, std::span(buffer).first((held - i) * size_of(expected.dtype)));
    }
    const double e = value_at(expected.dtype, buffer.data(), i % most);
    const double distance = difference(a, e);
    if (distance > result.allowed) ++result.beyond;
    if (i != 0 && distance <= result.max_difference) return;
    result.max_difference = distance;
    result.worst = i;
    result.actual = a;
    result.expected = e;
  });
  result.agrees = result.beyond == 0;
  return result;
}

std::string comparison_text(const Comparison& comparison, const Shape& actual, const Shape& expected) {
  if (!comparison.shapes_agree) {
    return fmt::format("shape {}, expected {}", shape_text(actual), shape_text(expected));
  }
  return fmt::format("max |difference| {:.3g} at {} ({:.7g}, expected {:.7g}), allowed {:.3g}; {} of {} elements differ by more",
                     comparison.max_difference, index_text(actual, comparison.worst), comparison.actual, comparison.expected,
                     comparison.allowed, comparison.beyond, actual.element_count());
}

std::string index_text(const Shape& shape, std::size_t index) {
  Shape place = shape;
  auto rest = static_cast<std::int64_t>(index);
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    place[axis] = rest % shape[axis];
    rest /= shape[axis];
  }
  return shape_text(place);
}

}  // namespace sluice::cli

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

Comparison compare(const HostTensor& actual, const HostTensor& expected, double tolerance) {
  Comparison result;
  result.shapes_agree = same_apart_from_ones(actual.shape, expected.shape);
  if (!result.shapes_agree) return result;
  const auto count = static_cast<std::size_t>(expected.shape.element_count());
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double size = std::fabs(value_at(expected, i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  result.allowed = tolerance * largest;
  for (std::size_t i = 0; i < count; ++i) {
    const double a = value_at(actual, i);
    const double e = value_at(expected, i);
    const double distance = difference(a, e);
    if (distance > result.allowed) ++result.beyond;
    if (i != 0 && distance <= result.max_difference) continue;
    result.max_difference = distance;
    result.worst = i;
    result.actual = a;
    result.expected = e;
  }
  result.agrees = result.beyond == 0;
  return result;
}

std::string comparison_text(const Comparison& comparison, const HostTensor& actual, const HostTensor& expected) {
  if (!comparison.shapes_agree) {
    return fmt::format("shape {}, expected {}", shape_text(actual.shape), shape_text(expected.shape));
  }
  return fmt::format("max |difference| {:.3g} at {} ({:.7g}, expected {:.7g}), allowed {:.3g}; {} of {} elements differ by more",
                     comparison.max_difference, index_text(actual.shape, comparison.worst), comparison.actual, comparison.expected,
                     comparison.allowed, comparison.beyond, actual.shape.element_count());
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

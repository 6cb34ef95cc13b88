#include "src/quantiser/assess.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::quantiser {

void Noise::add(std::span<const float> wanted, std::span<const float> found) noexcept {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double value = wanted[i], difference = value - static_cast<double>(found[i]);
    if (!std::isfinite(value)) continue;
    signal += value * value;
    // A value that became NaN counts as wrong by its whole size, and by more than 0.
    error += std::isfinite(difference) ? difference * difference : std::max(value * value, 1.0);
  }
}

double Noise::decibels() const noexcept {
  constexpr double kLeast = -200;  // where nothing but noise is found there is no logarithm
  return error > 0 ? std::max(10.0 * std::log10(signal / error), kLeast) : std::numeric_limits<double>::infinity();
}

void Agreement::show(const Shape& shape) {
  const int axis = shape.rank() == 4 ? 1 : shape.rank() - 1;
  classes_ = axis < 0 ? 1 : shape[axis];
  inner_ = axis < 0 ? 1 : shape.count(axis + 1, shape.rank());
  count_ = shape.element_count();
  const auto rows = static_cast<std::size_t>(classes_ > 0 ? count_ / classes_ : 0);
  wanted_.assign(rows, {});
  found_.assign(rows, {});
}

void Agreement::offer(Best& best, float value, std::int64_t place) {
  if (place == 0 || value > best.value) best = {value, place};
}

void Agreement::add(std::int64_t first, std::span<const float> wanted, std::span<const float> found) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::int64_t element = first + static_cast<std::int64_t>(i);
    const std::int64_t place = element / inner_ % classes_;
    const auto row = static_cast<std::size_t>(element / (inner_ * classes_) * inner_ + element % inner_);
    offer(wanted_[row], wanted[i], place);
    offer(found_[row], found[i], place);
  }
  if (first + static_cast<std::int64_t>(wanted.size()) == count_) end_tensor();
}

void Agreement::end_tensor() {
  for (std::size_t row = 0; row < wanted_.size(); ++row) agreeing_ += wanted_[row].place == found_[row].place ? 1 : 0;
  rows_ += static_cast<std::int64_t>(wanted_.size());
}

}  // namespace sluice::quantiser

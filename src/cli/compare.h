// Whether an output is the expected one: max |difference| <= tolerance * max |expected|.
#pragma once

#include <string>

#include "src/cli/pieces.h"

namespace sluice::cli {

struct Comparison {
  bool agrees = false;
  bool shapes_agree = true;
  double max_difference = 0;  // infinity where one side is not a number and the other is
  double allowed = 0;         // tolerance * max |expected|
  std::size_t worst = 0;      // the element with the largest difference
  double actual = 0;          // there
  double expected = 0;        // there
  std::size_t beyond = 0;     // elements that differ by more than `allowed`
};

/// Shapes are compared apart from extents of 1; types may differ. Two NaNs are equal, as are two infinities of one sign.
Comparison compare(const Pieces& actual, const Pieces& expected, double tolerance);

/// One line for people: by how much, where, how many.
std::string comparison_text(const Comparison& comparison, const Shape& actual, const Shape& expected);

/// "[0, 3, 7]": the indices of element `index` of `shape`.
std::string index_text(const Shape& shape, std::size_t index);

}  // namespace sluice::cli

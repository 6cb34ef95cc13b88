#include "src/importer/constant.h"

#include <catch2/catch.hpp>
#include <limits>

#include "src/importer/refusal.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::importer;

namespace {
Constant counting(const Shape& shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.element_count(); ++i) values.push_back(static_cast<float>(i));
  return make_constant(shape, values);
}
}  // namespace

TEST_CASE("a transposed constant is a view of the same bytes") {
  const Constant c = counting({2, 3});
  const Constant t = permuted(c, {1, 0, 2, 3, 4, 5, 6, 7});
  CHECK(t.data == c.data);
  CHECK(t.shape == Shape{3, 2});
  CHECK(reals(t) == std::vector<double>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("a reshape is a view where strides can say it, and a copy where not") {
  const Constant c = counting({2, 3, 4});
  const auto flat = reshaped(c, {6, 4});
  REQUIRE(flat);
  CHECK(flat->data == c.data);
  CHECK(reals(*flat) == reals(c));
  const Constant t = permuted(c, {0, 2, 1, 3, 4, 5, 6, 7});
  CHECK(reshaped(t, {2, 12}) == std::nullopt);
  CHECK(reals(reshaped_or_copied(t, {2, 12})) == reals(t));
  const auto split = reshaped(t, {2, 2, 2, 3, 1});
  REQUIRE(split);
  CHECK(reals(*split) == reals(t));
}

TEST_CASE("a fill has any shape and one value") {
  const Constant c = make_fill({1000000, 1000000}, 2.5f);
  CHECK(uniform_value(c) == 2.5);
  const auto other = reshaped(c, {1000000000000});
  REQUIRE(other);
  CHECK(uniform_value(*other) == 2.5);
  CHECK_THROWS_AS(reals(c), Refusal);
  CHECK_THROWS_AS(copied(c), Refusal);
}

TEST_CASE("a broadcast repeats by strides of zero") {
  const Constant c = broadcast(counting({3, 1}), {2, 3, 2});
  CHECK(reals(c) == std::vector<double>{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2});
  CHECK_FALSE(uniform_value(c));
}

TEST_CASE("a real that no integer holds is cut, not undefined") {
  const std::vector<float> values{1e30f, -1e30f, 1.9f, std::numeric_limits<float>::quiet_NaN()};
  const Constant c = make_constant(Shape{4}, values);
  CHECK(integers(c) == std::vector<std::int64_t>{INT64_MAX, INT64_MIN, 1, 0});
}

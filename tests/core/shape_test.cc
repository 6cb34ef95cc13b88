#include "sluice/core/shape.h"

#include <array>
#include <catch2/catch.hpp>

#include "sluice/core/tensor.h"

namespace sluice {

TEST_CASE("shapes refuse extents that overflow, are negative or too many") {
  CHECK(Shape::make(std::array<std::int64_t, 3>{2, 3, 4})->element_count() == 24);
  CHECK_FALSE(Shape::make(std::array<std::int64_t, 2>{1ll << 40, 1ll << 40}));
  CHECK_FALSE(Shape::make(std::array<std::int64_t, 3>{0, 1ll << 40, 1ll << 40}));
  CHECK_FALSE(Shape::make(std::array<std::int64_t, 1>{-1}));
  CHECK_FALSE(Shape::make(std::array<std::int64_t, 9>{1, 1, 1, 1, 1, 1, 1, 1, 1}));
  CHECK(Shape{}.element_count() == 1);
  CHECK(Shape{1, 224, 224, 3}.to_string() == "1x224x224x3");
}

TEST_CASE("a shape folds to rows, pixels and channels") {
  const RowExtents image = row_extents(Shape{2, 5, 7, 3});
  CHECK((image.rows == 10 && image.pixels == 7 && image.channels == 3));
  const RowExtents matrix = row_extents(Shape{2, 5, 3});
  CHECK((matrix.rows == 10 && matrix.pixels == 1 && matrix.channels == 3));
  CHECK(row_extents(Shape{}).channels == 1);
}

TEST_CASE("a ring view wraps its rows") {
  float data[6] = {0, 1, 2, 3, 4, 5};
  RowView view = dense_view(reinterpret_cast<std::byte*>(data), Shape{3, 2}, DType::kF32);
  CHECK(view.dense());
  view.ring_rows = 2;
  CHECK_FALSE(view.dense());
  CHECK(*view.at<float>(2) == 0);
  CHECK(*view.at<float>(3) == 2);
}

}  // namespace sluice

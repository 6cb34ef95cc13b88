// The regressors that the product's own is compared with, on functions that are known.
#include "tests/bench/random_forest.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/bench/boosted_trees.h"

namespace sluice::bench {
namespace {

using Row = RegressionTrees::Row;

/// Rows of three features, of which the last one says nothing.
std::vector<Row> drawn_rows(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<Row> rows(count, Row(3));
  for (Row& row : rows)
    for (float& value : row) value = static_cast<float>(engine() % 1000) / 1000;
  return rows;
}

double known(const Row& row) {
  return 2 + std::sin(6 * static_cast<double>(row[0])) + (row[1] > 0.5f ? 1 : 0) * static_cast<double>(row[0]);
}

std::vector<double> values_of(const std::vector<Row>& rows) {
  std::vector<double> values;
  for (const Row& row : rows) values.push_back(known(row));
  return values;
}

/// Root mean square of the errors at other rows.
double error_of(const auto& regressor) {
  const std::vector<Row> asked = drawn_rows(200, 2);
  double squares = 0;
  for (const Row& row : asked) squares += std::pow(regressor.at(row) - known(row), 2) / static_cast<double>(asked.size());
  return std::sqrt(squares);
}

TEST_CASE("a forest and boosted trees find a function again from its values") {
  const std::vector<Row> rows = drawn_rows(600, 1);
  CHECK(error_of(RandomForest(rows, values_of(rows))) < 0.1);
  CHECK(error_of(BoostedTrees(rows, values_of(rows))) < 0.15);
}

TEST_CASE("a forest is the same each time, for small values as for large ones, and says no more than it has seen") {
  const std::vector<Row> rows = drawn_rows(100, 1);
  std::vector<double> values = values_of(rows);
  const RandomForest one(rows, values), other(rows, values);
  for (double& value : values) value *= 0x1p-30;  // as microseconds are
  const RandomForest small(rows, values);
  for (const Row& row : drawn_rows(50, 3)) {
    CHECK(one.at(row) == other.at(row));
    CHECK(small.at(row) == one.at(row) * 0x1p-30);
    CHECK(one.at(row) >= 0);
    CHECK(one.at(row) <= 4);
  }
  CHECK(RandomForest(std::vector<Row>{{1, 2}, {1, 2}}, {3, 5}).at({7, 7}) == Approx(4).margin(1));
}

TEST_CASE("a tree that may look at one feature at a split takes another where that one is the same for all") {
  const std::vector<Row> rows = {{1, 1, 0}, {1, 1, 1}};
  RegressionTrees trees(rows, {.depth = 1, .least_in_leaf = 1, .drawn_features = 1});
  const std::size_t root = trees.grow({0, 1}, {3, 5});
  CHECK(trees.leaf_of(root, rows[0]) == 3);
  CHECK(trees.leaf_of(root, rows[1]) == 5);
}

}  // namespace
}  // namespace sluice::bench

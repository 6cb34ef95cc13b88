// Gradient-boosted regression trees for squared errors (regression_trees.h): each tree fits what those before it left over; a leaf answers
// with the mean of its rows, shrunk by the rate of learning.
#pragma once

#include "tests/bench/regression_trees.h"

namespace sluice::bench {

struct BoostOptions {
  int trees = 60;
  TreeOptions tree;
  double rate = 0.15;
};

class BoostedTrees {
 public:
  using Row = RegressionTrees::Row;

  BoostedTrees(std::span<const Row> rows, std::vector<double> values, const BoostOptions& options = {})
      : options_(options), trees_(rows, options.tree) {
    for (const double value : values) base_ += value / static_cast<double>(values.size());
    for (double& value : values) value -= base_;
    std::vector<std::size_t> all(rows.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    for (int tree = 0; tree < options.trees; ++tree) {
      roots_.push_back(trees_.grow(all, values));
      for (std::size_t i = 0; i < rows.size(); ++i) values[i] -= options.rate * trees_.leaf_of(roots_.back(), rows[i]);
    }
  }

  double at(const Row& row) const {
    double value = base_;
    for (const std::size_t root : roots_) value += options_.rate * trees_.leaf_of(root, row);
    return value;
  }

 private:
  BoostOptions options_;
  double base_ = 0;
  RegressionTrees trees_;
  std::vector<std::size_t> roots_;
};

}  // namespace sluice::bench

// A random forest (Breiman, Random Forests, 2001): each tree grows over as many rows as there are, drawn with repetition, and looks at some
// features at each split; the forest answers with the mean of its trees.
//
// The options are those that nn-Meter publishes for convolutions on a CPU: 320 trees of depth 70 whose leaves may have one row, six features
// of seven at a split, squared errors.
#pragma once

#include "tests/bench/regression_trees.h"

namespace sluice::bench {

struct ForestOptions {
  int trees = 320;
  TreeOptions tree{.depth = 70, .least_in_leaf = 1, .drawn_features = 6};
};

class RandomForest {
 public:
  using Row = RegressionTrees::Row;

  RandomForest(std::span<const Row> rows, const std::vector<double>& values, const ForestOptions& options = {})
      : trees_(rows, options.tree) {
    std::vector<std::size_t> drawn(rows.size());
    for (int tree = 0; tree < options.trees; ++tree) {
      for (std::size_t& row : drawn) row = trees_.engine()() % rows.size();
      roots_.push_back(trees_.grow(drawn, values));
    }
  }

  double at(const Row& row) const {
    double sum = 0;
    for (const std::size_t root : roots_) sum += trees_.leaf_of(root, row);
    return sum / static_cast<double>(roots_.size());
  }

 private:
  RegressionTrees trees_;
  std::vector<std::size_t> roots_;
};

}  // namespace sluice::bench

// Gradient-boosted regression trees for squared errors: small, exact splits, no library. What sluice-bench-regressors compares the
// product's regressor with; no product code uses it.
//
// Each tree fits what those before it left over; a leaf answers with the mean of its rows, shrunk by the rate of learning.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::bench {

struct TreeOptions {
  int trees = 60;
  int depth = 3;
  std::size_t least_in_leaf = 3;
  double rate = 0.15;
};

class BoostedTrees {
 public:
  using Row = std::vector<float>;

  BoostedTrees(std::span<const Row> rows, std::vector<double> values, const TreeOptions& options = {}) : rows_(rows), options_(options) {
    for (const double value : values) base_ += value / static_cast<double>(values.size());
    for (double& value : values) value -= base_;
    std::vector<std::size_t> all(rows.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    for (int tree = 0; tree < options.trees; ++tree) {
      roots_.push_back(grow(all, values, 0));
      for (std::size_t i = 0; i < rows.size(); ++i) values[i] -= options.rate * leaf_of(roots_.back(), rows[i]);
    }
    rows_ = {};
  }

  double at(const Row& row) const {
    double value = base_;
    for (const std::size_t root : roots_) value += options_.rate * leaf_of(root, row);
    return value;
  }

 private:
  struct Node {
    int feature = -1;  // none: a leaf
    float threshold = 0;
    double value = 0;
    std::size_t below = 0, above = 0;
  };
  struct Split {
    double gain = 1e-12;
    int feature = -1;
    float threshold = 0;
  };

  double leaf_of(std::size_t node, const Row& row) const {
    while (nodes_[node].feature >= 0)
      node = row[static_cast<std::size_t>(nodes_[node].feature)] <= nodes_[node].threshold ? nodes_[node].below : nodes_[node].above;
    return nodes_[node].value;
  }

  /// The threshold that lessens the squares most, of all features.
  Split best_split(std::vector<std::size_t> members, const std::vector<double>& values) const {
    double sum = 0;
    for (const std::size_t i : members) sum += values[i];
    const auto count = static_cast<double>(members.size());
    Split best;
    for (std::size_t f = 0; f < rows_.front().size(); ++f) {
      std::sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) { return rows_[a][f] < rows_[b][f]; });
      double left = 0;
      for (std::size_t i = 0; i + 1 < members.size(); ++i) {
        left += values[members[i]];
        if (i + 1 < options_.least_in_leaf || members.size() - i - 1 < options_.least_in_leaf) continue;
        const float here = rows_[members[i]][f], next = rows_[members[i + 1]][f];
        if (here == next) continue;
        const auto below = static_cast<double>(i + 1);
        const double gain = left * left / below + (sum - left) * (sum - left) / (count - below) - sum * sum / count;
        if (gain > best.gain) best = {gain, static_cast<int>(f), (here + next) / 2};
      }
    }
    return best;
  }

  std::size_t grow(const std::vector<std::size_t>& members, const std::vector<double>& values, int depth) {
    const std::size_t at = nodes_.size();
    nodes_.emplace_back();
    for (const std::size_t i : members) nodes_[at].value += values[i] / static_cast<double>(members.size());
    const Split split = depth < options_.depth && members.size() >= 2 * options_.least_in_leaf ? best_split(members, values) : Split{};
    if (split.feature < 0) return at;
    std::vector<std::size_t> below, above;
    for (const std::size_t i : members) (rows_[i][static_cast<std::size_t>(split.feature)] <= split.threshold ? below : above).push_back(i);
    const std::size_t first = grow(below, values, depth + 1), second = grow(above, values, depth + 1);
    nodes_[at].feature = split.feature;
    nodes_[at].threshold = split.threshold;
    nodes_[at].below = first;
    nodes_[at].above = second;
    return at;
  }

  std::span<const Row> rows_;
  TreeOptions options_;
  double base_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::size_t> roots_;
};

}  // namespace sluice::bench

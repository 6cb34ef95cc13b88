// Regression trees for squared errors: small, exact splits, no library. What sluice-bench-regressors compares the product's regressor with
// is made of them (boosted_trees.h, random_forest.h); no product code uses them.
//
// A leaf answers with the mean of its rows. Invariant: the same rows, values and options give the same trees.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace sluice::bench {

struct TreeOptions {
  int depth = 3;
  std::size_t least_in_leaf = 3;
  /// Features that are looked at for each split, drawn anew among those that differ there. 0: all.
  std::size_t drawn_features = 0;
};

/// Trees that share their rows, which outlive the growing.
class RegressionTrees {
 public:
  using Row = std::vector<float>;

  RegressionTrees(std::span<const Row> rows, const TreeOptions& options) : rows_(rows), options_(options) {}

  /// A tree over these rows, of which one may be named several times; `values` has one for each row of all. Gives what leaf_of asks for.
  std::size_t grow(const std::vector<std::size_t>& members, const std::vector<double>& values) { return grow(members, values, 0); }

  /// What a tree says of a row.
  double leaf_of(std::size_t node, const Row& row) const {
    while (nodes_[node].feature >= 0)
      node = row[static_cast<std::size_t>(nodes_[node].feature)] <= nodes_[node].threshold ? nodes_[node].below : nodes_[node].above;
    return nodes_[node].value;
  }

  /// Chance of the growing; the standard says what this engine draws.
  std::mt19937& engine() noexcept { return engine_; }

 private:
  struct Node {
    int feature = -1;  // none: a leaf
    float threshold = 0;
    double value = 0;
    std::size_t below = 0, above = 0;
  };
  struct Split {
    double gain = 1e-12;  // as a share of the members' squares
    int feature = -1;
    float threshold = 0;
  };

  std::vector<std::size_t> features_in_turn() {
    std::vector<std::size_t> features(rows_.front().size());
    for (std::size_t f = 0; f < features.size(); ++f) features[f] = f;
    if (options_.drawn_features > 0)
      for (std::size_t f = features.size(); f > 1; --f) std::swap(features[f - 1], features[engine_() % f]);
    return features;
  }

  /// The threshold that lessens the squares most, of the features that are looked at.
  Split best_split(std::vector<std::size_t> members, const std::vector<double>& values) {
    double sum = 0, squares = 0;
    for (const std::size_t i : members) sum += values[i], squares += values[i] * values[i];
    const auto count = static_cast<double>(members.size());
    Split best;
    std::size_t looked_at = 0;
    for (const std::size_t f : features_in_turn()) {
      if (options_.drawn_features > 0 && looked_at == options_.drawn_features) break;
      std::sort(members.begin(), members.end(),
                [&](std::size_t a, std::size_t b) { return std::pair(rows_[a][f], a) < std::pair(rows_[b][f], b); });
      if (rows_[members.front()][f] < rows_[members.back()][f]) ++looked_at;
      double left = 0;
      for (std::size_t i = 0; i + 1 < members.size(); ++i) {
        left += values[members[i]];
        if (i + 1 < options_.least_in_leaf || members.size() - i - 1 < options_.least_in_leaf) continue;
        const float here = rows_[members[i]][f], next = rows_[members[i + 1]][f];
        if (here == next) continue;
        const auto below = static_cast<double>(i + 1);
        const double less = left * left / below + (sum - left) * (sum - left) / (count - below) - sum * sum / count;
        if (less > best.gain * squares) best = {less / squares, static_cast<int>(f), here + (next - here) / 2};
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
  std::mt19937 engine_{1};
  std::vector<Node> nodes_;
};

}  // namespace sluice::bench

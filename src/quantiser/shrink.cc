#include "src/quantiser/shrink.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/quantiser/codebook.h"

namespace sluice::quantiser {
namespace {

using Eigen::Index;
using Eigen::MatrixXf;

constexpr Index kBlock = 128;     // columns whose zeros are chosen together, and whose errors go on to the others at once
constexpr Index kBlockRows = 16;  // outputs of a block of zeros
constexpr double kDamping = 0.01;

using Square = Eigen::Ref<Eigen::MatrixXd>;

/// The inverse of a lower triangle, in its place.
void invert_lower(Square lower) {
  constexpr Index kSmall = 64;
  const Index n = lower.rows();
  if (n <= kSmall) {
    const Eigen::MatrixXd inverse = lower.triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(n, n));
    lower.triangularView<Eigen::Lower>() = inverse;
    return;
  }
  //  (A 0; B C) has the inverse (A' 0; -C' B A', C')
  const Index half = n / 2, rest = n - half;
  auto below = lower.bottomLeftCorner(rest, half);
  lower.bottomRightCorner(rest, rest).triangularView<Eigen::Lower>().solveInPlace(below);
  lower.topLeftCorner(half, half).triangularView<Eigen::Lower>().solveInPlace<Eigen::OnTheRight>(below);
  below = -below;
  invert_lower(lower.topLeftCorner(half, half));
  invert_lower(lower.bottomRightCorner(rest, rest));
}

/// Upper triangle U with UT U the inverse of the products, which a share of their mean makes regular; empty where nothing does. With the
/// order of rows and columns turned round, which R does, the products are L LT, and U is R inv(L) R. All in the place of one matrix, because
/// there is nothing larger here (bytes_of_compensation).
MatrixXf inverse_factor(const MatrixXf& products) {
  if (products.size() == 0) return {};
  const double mean = std::max(static_cast<double>(products.diagonal().mean()), 1e-20);
  Eigen::MatrixXd turned(products.rows(), products.cols());
  for (double damping = kDamping; damping < 1e6; damping *= 10) {
    turned = products.reverse().cast<double>();
    turned.diagonal().array() += damping * mean;
    const Eigen::LLT<Square> factor(turned);
    if (factor.info() != Eigen::Success) continue;
    invert_lower(turned);
    turned.triangularView<Eigen::StrictlyUpper>().setZero();
    return turned.reverse().cast<float>();
  }
  return {};
}

/// Calls `begin(first, count)` before each block of columns and `settle(n, k, value)` for what each weight becomes, column by column; what
/// the change costs is taken by the columns that follow.
template <class Begin, class Settle>
void settle_in_order(Lines& w, const MatrixXf& factor, const Begin& begin, const Settle& settle) {
  const Index outputs = w.rows(), columns = w.cols();
  for (Index first = 0; first < columns; first += kBlock) {
    const Index count = std::min(kBlock, columns - first), rest = columns - first - count;
    begin(first, count);
    MatrixXf errors = MatrixXf::Zero(outputs, count);
    for (Index i = 0; i < count; ++i) {
      const Index k = first + i;
      for (Index n = 0; n < outputs; ++n) {
        const float settled = settle(n, k, w(n, k));
        errors(n, i) = w(n, k) - settled;
        w(n, k) = settled;
      }
      if (factor.size() == 0) continue;
      errors.col(i) /= factor(k, k);
      w.middleCols(k + 1, count - i - 1).noalias() -= errors.col(i) * factor.row(k).segment(k + 1, count - i - 1);
    }
    if (factor.size() != 0 && rest > 0) w.rightCols(rest).noalias() -= errors * factor.block(first, first + count, count, rest);
  }
}

/// Which weights of a block of columns become zero: those that cost the outputs the least.
class Choice {
 public:
  Choice(const Lines& weights, const MatrixXf& factor, const Shrinking& how) : w_(weights), factor_(factor), how_(how) {
    zero_ = Mask::Constant(weights.rows(), weights.cols(), false);
  }

  void choose(Index first, Index count) {
    const Index each = how_.in_blocks ? kBlockRows : 1, panels = (w_.rows() + each - 1) / each;
    MatrixXf costs(panels, count);
    for (Index i = 0; i < count; ++i) {
      const float pivot = factor_.size() == 0 ? 1.0f : factor_(first + i, first + i);
      for (Index p = 0; p < panels; ++p) {
        const auto lanes = w_.col(first + i).segment(p * each, std::min(each, w_.rows() - p * each));
        costs(p, i) = lanes.squaredNorm() / (pivot * pivot);
      }
    }
    const auto wanted = static_cast<Index>(std::ceil(static_cast<double>(costs.size()) * how_.prune));
    if (wanted == 0) return;
    std::vector<Index> order(static_cast<std::size_t>(costs.size()));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Index>(i);
    const auto cheaper = [&](Index a, Index b) { return costs(a) < costs(b) || (costs(a) == costs(b) && a < b); };
    std::nth_element(order.begin(), order.begin() + wanted - 1, order.end(), cheaper);
    for (Index i = 0; i < wanted; ++i) {
      const Index at = order[static_cast<std::size_t>(i)], p = at % panels;
      zero_.col(first + at / panels).segment(p * each, std::min(each, w_.rows() - p * each)).setConstant(true);
    }
  }
  bool is_zero(Index n, Index k) const { return zero_(n, k); }

 private:
  using Mask = Eigen::Matrix<bool, Eigen::Dynamic, Eigen::Dynamic>;
  const Lines& w_;
  const MatrixXf& factor_;
  const Shrinking& how_;
  Mask zero_;
};

/// The scale of each output, and the codes of all.
struct Codes {
  std::vector<float> scales;
  std::array<std::int8_t, 2 * kMostCode + 1> nearest{};

  static float steps(float value, float scale) { return std::clamp(std::nearbyint(value / scale), -127.0f, 127.0f); }
  std::int8_t code(float value, Index n) const {
    return nearest[static_cast<std::size_t>(static_cast<int>(steps(value, scales[static_cast<std::size_t>(n)])) + kMostCode)];
  }
};

/// A scale for each output: the root of the mean square of its weights, so that codes which suit one output suit all, times what lets the
/// farthest weight of any output be a code.
std::vector<float> scales_of(const Lines& w) {
  constexpr float kLeast = std::numeric_limits<float>::min() * 256;
  std::vector<float> scales;
  float farthest = 1;
  for (Index n = 0; n < w.rows(); ++n) {
    scales.push_back(std::max(std::sqrt(w.row(n).squaredNorm() / static_cast<float>(w.cols())), kLeast));
    farthest = std::max(farthest, w.row(n).cwiseAbs().maxCoeff() / scales.back());
  }
  for (float& scale : scales) scale *= farthest / kMostCode;
  return scales;
}

/// Fits codes to the weights that are no zeros by choice, each counting by what its input's square is on average.
Codes fit(const Lines& w, const Choice& zeros, const Statistics& inputs, const Shrinking& how) {
  Codes codes;
  codes.scales = scales_of(w);
  CodeWeights weights{};
  for (Index n = 0; n < w.rows(); ++n) {
    const float scale = codes.scales[static_cast<std::size_t>(n)];
    for (Index k = 0; k < w.cols(); ++k) {
      if (zeros.is_zero(n, k)) continue;
      const double counts = inputs.products.size() == 0 ? 1.0 : std::max(static_cast<double>(inputs.products(k, k)), 1e-20);
      weights[static_cast<std::size_t>(static_cast<int>(Codes::steps(w(n, k), scale)) + kMostCode)] += counts * scale * scale;
    }
  }
  codes.nearest = nearest_codes(fit_codes(weights, how.prune > 0 ? how.cluster - 1 : how.cluster));
  return codes;
}

double power(const Lines& lines, const Statistics& inputs) {
  if (inputs.products.size() == 0) return static_cast<double>(lines.squaredNorm());
  return static_cast<double>((lines * inputs.products).cwiseProduct(lines).sum());
}

std::size_t count_values(const Shrunk& made) {
  std::array<bool, 256> seen{};
  for (Index i = 0; i < made.codes.size(); ++i) seen[static_cast<std::size_t>(made.codes.data()[i] + 128)] = true;
  return static_cast<std::size_t>(std::count(seen.begin(), seen.end(), true));
}

}  // namespace

Shrinker::Shrinker(const Lines& weights, const Statistics& inputs)
    : weights_(weights), inputs_(inputs), factor_(inverse_factor(inputs.products)) {}

Shrunk Shrinker::shrink(const Shrinking& how) const {
  Shrunk made;
  made.weights = weights_;
  Choice zeros(made.weights, factor_, how);
  if (how.prune > 0)
    settle_in_order(
        made.weights, factor_, [&](Index first, Index count) { zeros.choose(first, count); },
        [&](Index n, Index k, float value) { return zeros.is_zero(n, k) ? 0.0f : value; });
  if (how.cluster > 0) {
    Codes codes = fit(made.weights, zeros, inputs_, how);
    made.codes.resize(weights_.rows(), weights_.cols());
    made.weights = weights_;  // once more, in one go: what zeros and codes cost is made up for together
    settle_in_order(
        made.weights, factor_, [](Index, Index) {},
        [&](Index n, Index k, float value) {
          made.codes(n, k) = zeros.is_zero(n, k) ? std::int8_t{0} : codes.code(value, n);
          return codes.scales[static_cast<std::size_t>(n)] * static_cast<float>(made.codes(n, k));
        });
    made.scales = std::move(codes.scales);
    made.values = count_values(made);
  }
  made.zeros = static_cast<double>((made.weights.array() == 0.0f).count()) / static_cast<double>(std::max<Index>(1, weights_.size()));
  made.signal = power(weights_, inputs_);
  made.error = std::max(power(made.weights - weights_, inputs_), 0.0);
  return made;
}

Lines weights_of(const Shrunk& shrunk) {
  const Eigen::Map<const Eigen::VectorXf> scales(shrunk.scales.data(), static_cast<Index>(shrunk.scales.size()));
  return scales.asDiagonal() * shrunk.codes.cast<float>();
}

}  // namespace sluice::quantiser

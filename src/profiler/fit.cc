// The linear algebra of fit.h, by Eigen.
//
// At the minimum some rates are zero, and the others are what least squares without the bound gives for their terms alone. There are six
// terms, so all 64 choices are tried; rotations turn the samples into six equations first, so that a choice costs no more, however many
// samples there are.
#include "sluice/profiler/fit.h"

#include <Eigen/Jacobi>
#include <Eigen/QR>
#include <bit>

namespace sluice::profiler {
namespace {

constexpr int kCount = static_cast<int>(kTerms);
using Samples = Eigen::Matrix<double, Eigen::Dynamic, kCount>;
using Factor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, kCount, kCount>;
using Vector = Eigen::Matrix<double, Eigen::Dynamic, 1, Eigen::ColMajor, kCount, 1>;

/// A choice of terms that betters the fit by less is as good as the one before it: where terms depend on each other, rounding decides
/// nothing.
constexpr double kSame = 1e-13;

/// The columns of `all` whose bits are set.
Factor columns_of(const Factor& all, unsigned chosen) {
  Factor columns(all.rows(), std::popcount(chosen));
  for (int from = 0, to = 0; from < kCount; ++from)
    if ((chosen >> from & 1) != 0) columns.col(to++) = all.col(from);
  return columns;
}

/// The x >= 0 for which `a * x` comes closest to `b`.
Vector least_squares_from_zero(const Factor& a, const Vector& b) {
  Vector best = Vector::Zero(kCount);
  double least = b.squaredNorm();
  const double same = kSame * least;
  for (unsigned chosen = 1; chosen < 1u << kCount; ++chosen) {
    const Factor columns = columns_of(a, chosen);
    const Vector x = columns.colPivHouseholderQr().solve(b);
    const double left = (columns * x - b).squaredNorm();
    if (!(x.minCoeff() >= 0) || !(left < least - same)) continue;
    least = left;
    best.setZero();
    for (int from = 0, to = 0; from < kCount; ++from)
      if ((chosen >> from & 1) != 0) best[from] = x[to++];
  }
  return best;
}

}  // namespace

KernelRates fit_rates(std::span<const KernelSample> samples) {
  Samples rows(static_cast<Eigen::Index>(samples.size()), kCount);
  for (std::size_t r = 0; r < samples.size(); ++r) {
    const Terms terms = terms_of(samples[r].work);
    rows.row(static_cast<Eigen::Index>(r)) = Eigen::Map<const Eigen::RowVectorXd>(terms.data(), kCount) / samples[r].seconds;
  }
  // Seconds, flops and bytes differ by nine powers of ten: each term is scaled to length 1. One that no sample has stays zero.
  const Eigen::RowVectorXd scale = rows.colwise().norm().unaryExpr([](double norm) { return norm > 0 ? norm : 1; });
  rows.array().rowwise() /= scale.array();
  // Rotations turn each sample into the six equations that stand for all before it; the last column is what they are to give.
  Eigen::Matrix<double, kCount, kCount + 1> equations = Eigen::Matrix<double, kCount, kCount + 1>::Zero();
  for (Eigen::Index r = 0; r < rows.rows(); ++r) {
    Eigen::Matrix<double, 1, kCount + 1> row;
    row << rows.row(r), 1.0;
    for (int i = 0; i < kCount; ++i) {
      Eigen::JacobiRotation<double> rotation;
      rotation.makeGivens(equations(i, i), row[i]);
      for (int j = i; j <= kCount; ++j) {
        const double above = equations(i, j);
        equations(i, j) = rotation.c() * above - rotation.s() * row[j];
        row[j] = rotation.s() * above + rotation.c() * row[j];
      }
    }
  }
  const Vector weights = least_squares_from_zero(equations.leftCols<kCount>(), equations.col(kCount));
  KernelRates rates{samples.front().kernel, {}};
  for (int i = 0; i < kCount; ++i) rates.seconds_per[static_cast<std::size_t>(i)] = weights[i] / scale[i];
  return rates;
}

}  // namespace sluice::profiler

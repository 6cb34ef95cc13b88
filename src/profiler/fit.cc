// The linear algebra of fit.h, by Eigen.
//
// Rates: at the minimum some are zero, and the others are what least squares without the bound gives for their terms alone. There are nine
// terms, so all 512 choices are tried; rotations turn the samples into nine equations first, so that a choice costs no more, however many
// samples there are.
#include "sluice/profiler/fit.h"

#include <Eigen/Cholesky>
#include <Eigen/Jacobi>
#include <Eigen/QR>
#include <bit>
#include <optional>

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

/// The random field of fit.h over the samples of one kernel.
class Field {
 public:
  Field(const KernelRates& rates, std::span<const KernelSample> samples, detail::TileExtent tile) : y_(count_of(samples)) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      features_.push_back(detail::features_of(samples[i].work, tile));
      const double fitted = detail::fitted_seconds(rates, samples[i].work, tile);
      y_[static_cast<Eigen::Index>(i)] = std::log(samples[i].seconds / std::max(fitted, detail::kLeastSeconds));
    }
  }

  /// Sum of squares of what each sample is missed by when the others predict it. Keeps weights and inverse.
  double left_out(const Features& scales, double noise) {
    const auto n = static_cast<Eigen::Index>(features_.size());
    Eigen::MatrixXd likeness(n, n);
    for (Eigen::Index i = 0; i < n; ++i)
      for (Eigen::Index j = 0; j <= i; ++j) likeness(i, j) = likeness(j, i) = detail::likeness(at(i, scales), at(j, scales));
    likeness.diagonal().array() += noise;
    inverse_ = likeness.llt().solve(Eigen::MatrixXd::Identity(n, n));
    weights_ = inverse_ * y_;
    return (weights_.array() / inverse_.diagonal().array()).square().sum();
  }

  const Eigen::VectorXd& weights() const noexcept { return weights_; }
  const Eigen::MatrixXd& inverse() const noexcept { return inverse_; }

 private:
  static Eigen::Index count_of(std::span<const KernelSample> samples) { return static_cast<Eigen::Index>(samples.size()); }
  Features at(Eigen::Index i, const Features& scales) const {
    Features place = features_[static_cast<std::size_t>(i)];
    for (std::size_t f = 0; f < kFeatures; ++f) place[f] *= scales[f];
    return place;
  }

  std::vector<Features> features_;
  Eigen::VectorXd y_;
  Eigen::VectorXd weights_;
  Eigen::MatrixXd inverse_;
};

/// Noise of the measured times, as a share of the field's variance: two measurements of one shape differ by one or two per cent.
constexpr double kUsualNoise = 0.05;

/// Noise and scales with the least sum of squares, from coarse to fine: one scale for all features, then each by itself.
struct Choice {
  Features scales{};
  double noise = kUsualNoise;
  double squares = 0;
};
Choice choose_field(Field& field, std::size_t samples, bool runs_differ) {
  constexpr std::size_t kFewest = 12;  // to tell features apart by
  Choice best;
  const auto all_features = [&](float scale) {
    Features scales;
    scales.fill(scale);
    // Samples of one run say nothing of others.
    if (!runs_differ) scales[kRunFeature] = 0;
    return scales;
  };
  best.scales = all_features(0.35f);
  best.squares = field.left_out(best.scales, best.noise);
  const auto consider = [&](const Features& scales, double noise) {
    const double squares = field.left_out(scales, noise);
    if (squares < 0.999 * best.squares) best = {scales, noise, squares};
  };
  for (const float scale : {0.1f, 0.2f, 0.35f, 0.6f, 1.0f}) {
    const Features scales = all_features(scale);
    for (const double noise : {0.005, kUsualNoise, 0.3, 2.0}) consider(scales, noise);
  }
  for (int pass = 0; pass < 2 && samples >= kFewest; ++pass) {
    for (std::size_t f = 0; f < kFeatures; ++f) {
      if (f == kRunFeature && !runs_differ) continue;
      const Features before = best.scales;
      for (const float factor : {0.0f, 0.4f, 2.5f}) {
        Features scales = before;
        scales[f] = factor == 0 ? 0 : (before[f] == 0 ? 0.2f : before[f]) * factor;
        consider(scales, best.noise);
      }
    }
  }
  return best;
}

/// So few samples cannot tell the terms apart.
constexpr std::size_t kFewSamples = kTerms + 1;

/// Rates of all variants, made those of one of them by the mean of what its samples deviate by.
KernelRates scaled_rates(const KernelRates& all, std::span<const KernelSample> samples, detail::TileExtent tile) {
  double deviation = 0;
  for (const KernelSample& sample : samples)
    deviation += std::log(sample.seconds / std::max(detail::fitted_seconds(all, sample.work, tile), detail::kLeastSeconds));
  KernelRates rates = all;
  rates.kernel = samples.front().kernel;
  for (double& each : rates.seconds_per) each *= std::exp(deviation / static_cast<double>(samples.size()));
  return rates;
}

/// Mean square of what each of a few samples is missed by when rates and weights are fitted to the others alone: nine rates pass through so
/// few that the field finds nothing left to explain.
double refitted_left_out(std::span<const KernelSample> samples, const KernelRates& fitted, const KernelRates* all, double noise,
                         detail::TileExtent tile) {
  double squares = 0;
  for (std::size_t left = 0; left < samples.size(); ++left) {
    std::vector<KernelSample> others(samples.begin(), samples.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left));
    KernelRates rates = all != nullptr ? scaled_rates(*all, others, tile) : fit_rates(others, tile);
    rates.scales = fitted.scales;
    Field field(rates, others, tile);
    field.left_out(rates.scales, noise);
    for (std::size_t i = 0; i < others.size(); ++i) others[i].weight = field.weights()[static_cast<Eigen::Index>(i)];
    place_samples(rates, others, tile);
    const double seconds = std::max(detail::measured_seconds(rates, others, samples[left].work, tile), detail::kLeastSeconds);
    const double off = std::log(samples[left].seconds / seconds);
    squares += off * off / static_cast<double>(samples.size());
  }
  return squares;
}

/// Scales of features, weights of samples and the error, for rates that are fitted; `all`: those of all variants, where these are of them.
void fit_correction(KernelRates& rates, const KernelRates* all, std::span<KernelSample> samples, detail::TileExtent tile) {
  constexpr double kLeastError = 0.01;  // what two measurements differ by
  constexpr double kOfOneSample = 0.3;
  Field field(rates, samples, tile);
  const auto other_run = [&](const KernelSample& s) { return s.work.run_bytes != samples.front().work.run_bytes; };
  const Choice choice = choose_field(field, samples.size(), std::any_of(samples.begin(), samples.end(), other_run));
  rates.scales = choice.scales;
  const double squares = field.left_out(choice.scales, choice.noise);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].weight = field.weights()[static_cast<Eigen::Index>(i)];
  const auto count = static_cast<double>(samples.size());
  const bool few = samples.size() > 1 && samples.size() <= 2 * kTerms;
  const double mean_square = few ? refitted_left_out(samples, rates, all, choice.noise, tile) : squares / count;
  rates.error = std::max({kLeastError, kOfOneSample / count, std::min(std::sqrt(mean_square), 1.0)});
  place_samples(rates, samples, tile);
}

/// The samples of all variants of a kernel's use.
std::vector<KernelSample> of_all_variants(const std::vector<KernelSample>& samples, const UsedKernel& kernel) {
  std::vector<KernelSample> found;
  for (const KernelSample& sample : samples)
    if (sample.kernel.kernel == kernel.kernel && sample.kernel.use == kernel.use) found.push_back(sample);
  return found;
}

}  // namespace

void fit(DeviceProfile& profile) {
  const detail::TileExtent tile = detail::tile_of(profile.isa);
  profile.kernels.clear();
  for_each_kernel(profile.samples, [&](std::span<KernelSample> samples) {
    KernelRates rates;
    std::optional<KernelRates> all;
    if (samples.size() < kFewSamples) {
      const std::vector<KernelSample> variants = of_all_variants(profile.samples, samples.front().kernel);
      if (variants.size() > samples.size()) all = fit_rates(variants, tile);
    }
    rates = all ? scaled_rates(*all, samples, tile) : fit_rates(samples, tile);
    fit_correction(rates, all ? &*all : nullptr, samples, tile);
    profile.kernels.push_back(rates);
  });
}

KernelRates fit_rates(std::span<const KernelSample> samples, detail::TileExtent tile) {
  Samples rows(static_cast<Eigen::Index>(samples.size()), kCount);
  for (std::size_t r = 0; r < samples.size(); ++r) {
    const Terms terms = detail::terms_of(samples[r].work, tile);
    rows.row(static_cast<Eigen::Index>(r)) = Eigen::Map<const Eigen::RowVectorXd>(terms.data(), kCount) / samples[r].seconds;
  }
  // Seconds, flops and bytes differ by nine powers of ten: each term is scaled to length 1. One that no sample has stays zero.
  const Eigen::RowVectorXd scale = rows.colwise().norm().unaryExpr([](double norm) { return norm > 0 ? norm : 1; });
  rows.array().rowwise() /= scale.array();
  // Rotations turn each sample into the nine equations that stand for all before it; the last column is what they are to give.
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

std::vector<double> uncertainty(const KernelRates& rates, std::span<const KernelSample> samples, std::span<const StepWork> candidates,
                                detail::TileExtent tile) {
  Field field(rates, samples, tile);
  field.left_out(rates.scales, kUsualNoise);
  std::vector<double> unknown;
  Eigen::VectorXd like(static_cast<Eigen::Index>(samples.size()));
  for (const StepWork& candidate : candidates) {
    const Features place = detail::place_of(candidate, rates.scales, tile);
    for (std::size_t i = 0; i < samples.size(); ++i) like[static_cast<Eigen::Index>(i)] = detail::likeness(samples[i].place, place);
    unknown.push_back(std::clamp(1 - like.dot(field.inverse() * like), 0.0, 1.0));
  }
  return unknown;
}

}  // namespace sluice::profiler

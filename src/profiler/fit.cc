// The linear algebra of fit.h, by Eigen.
//
// Rates: at the minimum some are zero, and the others are what least squares without the bound gives for their terms alone. Which are zero is
// found by Lawson and Hanson's method (Solving Least Squares Problems, chapter 23); rotations turn the samples into as many equations as
// there are terms first, so that a choice costs no more, however many samples there are.
#include "sluice/profiler/fit.h"

#include <Eigen/Cholesky>
#include <Eigen/Jacobi>
#include <Eigen/QR>
#include <array>
#include <bit>
#include <optional>

#include "sluice/core/sort.h"

namespace sluice::profiler {
namespace {

constexpr int kCount = static_cast<int>(kTerms);
using Samples = Eigen::Matrix<double, Eigen::Dynamic, kCount>;
using Factor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, kCount, kCount>;
using Vector = Eigen::Matrix<double, Eigen::Dynamic, 1, Eigen::ColMajor, kCount, 1>;

/// The columns of `all` whose bits are set.
Factor columns_of(const Factor& all, unsigned chosen) {
  Factor columns(all.rows(), std::popcount(chosen));
  for (int from = 0, to = 0; from < kCount; ++from)
    if ((chosen >> from & 1) != 0) columns.col(to++) = all.col(from);
  return columns;
}

/// What least squares without a bound gives for the chosen terms; 0 for the others.
Vector least_squares(const Factor& a, const Vector& b, unsigned chosen) {
  const Vector some = columns_of(a, chosen).colPivHouseholderQr().solve(b);
  Vector all = Vector::Zero(kCount);
  for (int to = 0, from = 0; to < kCount; ++to)
    if ((chosen >> to & 1) != 0) all[to] = some[from++];
  return all;
}

/// Goes from `x`, which is above zero where chosen, towards `wanted` as far as all stay there. What comes to zero first is chosen no more; 0:
/// nothing did.
unsigned go_towards(const Vector& wanted, unsigned chosen, Vector& x) {
  double far = 1;
  unsigned first = 0;
  for (int i = 0; i < kCount; ++i) {
    if ((chosen >> i & 1) == 0 || wanted[i] > 0) continue;
    const double reaches = x[i] / std::max(x[i] - wanted[i], 1e-300);
    if (first == 0 || reaches < far) far = reaches, first = 1u << i;
  }
  x += far * (wanted - x);
  if (first != 0) x[std::countr_zero(first)] = 0;
  return first;
}

/// The x >= 0 for which `a * x` comes closest to `b`. The columns of `a` have length 1, or are zero.
Vector least_squares_from_zero(const Factor& a, const Vector& b) {
  constexpr int kMostChoices = 10 * kCount;  // far more than it takes: rounding must not make it go round
  constexpr double kClearly = 1 + 1e-9;      // of terms that say the same the first one: rounding must not choose
  const double least_slope = 1e-12 * b.norm();
  Vector x = Vector::Zero(kCount);
  unsigned chosen = 0, refused = 0;  // refused: what would be below zero, by rounding
  for (int choice = 0; choice < kMostChoices; ++choice) {
    const Vector slope = a.transpose() * (b - a * x);
    int best = -1;
    for (int i = 0; i < kCount; ++i)
      if (((chosen | refused) >> i & 1) == 0 && slope[i] > least_slope && (best < 0 || slope[i] > kClearly * slope[best])) best = i;
    if (best < 0) break;
    const unsigned more = chosen | 1u << best;
    Vector wanted = least_squares(a, b, more);
    if (wanted[best] <= 0) {
      refused |= 1u << best;
      continue;
    }
    refused = 0;
    for (chosen = more; const unsigned out = go_towards(wanted, chosen, x); wanted = least_squares(a, b, chosen)) chosen &= ~out;
  }
  return x;
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
  /// The place of a sample.
  Features at(Eigen::Index i, const Features& scales) const {
    Features place = features_[static_cast<std::size_t>(i)];
    for (std::size_t f = 0; f < kFeatures; ++f) place[f] *= scales[f];
    return place;
  }

 private:
  static Eigen::Index count_of(std::span<const KernelSample> samples) { return static_cast<Eigen::Index>(samples.size()); }

  std::vector<Features> features_;
  Eigen::VectorXd y_;
  Eigen::VectorXd weights_;
  Eigen::MatrixXd inverse_;
};

/// Noise of the measured times, as a share of the field's variance.
constexpr double kUsualNoise = 0.05;

/// Noise and scales with the least sum of squares: one scale for all features, so that few samples do not choose among many. A field that
/// follows samples closely has to earn it: samples that were measured together have errors in common, which it would learn. (Scales of each
/// feature by itself, and as little noise as left-out samples like best, made the times of whole nets worse than rates alone.)
struct Choice {
  Features scales{};
  double noise = kUsualNoise;
  double squares = 0;
};
Choice choose_field(Field& field, bool runs_differ) {
  constexpr double kEarned = 0.6;  // of the squares with much noise
  const auto best_of = [&](std::span<const double> noises) {
    Choice best;
    for (const float scale : {0.2f, 0.35f, 0.6f, 1.0f})
      for (const double noise : noises) {
        Choice choice{{}, noise, 0};
        choice.scales.fill(scale);
        // Samples of one run say nothing of others.
        if (!runs_differ) choice.scales[kRunFeature] = 0;
        choice.squares = field.left_out(choice.scales, noise);
        if (best.squares == 0 || choice.squares < 0.999 * best.squares) best = choice;
      }
    return best;
  };
  constexpr std::array kMuch = {1.0, 3.0};
  constexpr std::array kLittle = {0.3};
  const Choice much = best_of(kMuch), little = best_of(kLittle);
  return little.squares < kEarned * much.squares ? little : much;
}

/// So few samples cannot tell the terms apart, of which each kernel has some that are always zero.
constexpr std::size_t kFewSamples = 17;

/// Rates that a kernel's samples scale: of all its variants, by the mean of what its own samples take of their times; or of its like, by what all of
/// them take together, since nets' time is in long steps.
struct Shared {
  KernelRates rates;
  bool of_its_like = false;
};

/// Made those of one kernel.
KernelRates scaled_rates(const Shared& all, std::span<const KernelSample> samples, detail::TileExtent tile) {
  double ratio = 0, seconds = 0, fitted = 0;
  for (const KernelSample& sample : samples) {
    const double each = std::max(detail::fitted_seconds(all.rates, sample.work, tile), detail::kLeastSeconds);
    ratio += sample.seconds / each / static_cast<double>(samples.size());
    seconds += sample.seconds;
    fitted += each;
  }
  if (all.of_its_like) ratio = seconds / fitted;
  KernelRates rates = all.rates;
  rates.kernel = samples.front().kernel;
  for (double& each : rates.seconds_per) each *= ratio;
  return rates;
}

/// Mean square of what each of a few samples is missed by when rates and weights are fitted to the others alone: rates pass through so
/// few that the field finds nothing left to explain.
double refitted_left_out(std::span<const KernelSample> samples, const KernelRates& fitted, const Shared* all, double noise,
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
    std::vector<PlacedSamples> placed;
    place_samples(rates, others, tile, placed);
    const double seconds = std::max(detail::measured_seconds(rates, placed, samples[left].work, tile), detail::kLeastSeconds);
    const double off = std::log(samples[left].seconds / seconds);
    squares += off * off / static_cast<double>(samples.size());
  }
  return squares;
}

/// Scales of features, weights of samples and the error, for rates that are fitted; `all`: those that were scaled, where these were.
void fit_correction(KernelRates& rates, const Shared* all, std::span<KernelSample> samples, detail::TileExtent tile) {
  constexpr double kLeastError = 0.01;  // what two measurements differ by
  constexpr double kOfOneSample = 0.3;
  Field field(rates, samples, tile);
  const auto run_of = [](const KernelSample& s) { return std::pair(s.work.run_bytes, s.work.shared_bytes); };
  const auto other_run = [&](const KernelSample& s) { return run_of(s) != run_of(samples.front()); };
  const Choice choice = choose_field(field, std::any_of(samples.begin(), samples.end(), other_run));
  rates.scales = choice.scales;
  const double squares = field.left_out(choice.scales, choice.noise);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].weight = field.weights()[static_cast<Eigen::Index>(i)];
  const auto count = static_cast<double>(samples.size());
  const bool few = samples.size() > 1 && samples.size() <= 2 * kFewSamples;
  const double mean_square = few ? refitted_left_out(samples, rates, all, choice.noise, tile) : squares / count;
  rates.error = std::max({kLeastError, kOfOneSample / count, std::min(std::sqrt(mean_square), 1.0)});
}

/// Powers take fifty times as long as sums, by terms of their own: other variants of their kernel (numbered in step_work.cc)
/// say nothing of them.
bool is_power(const UsedKernel& kernel) noexcept {
  return kernel.kernel == kernels::kernel_id::kBinary && kernel.variant / 2 == static_cast<int>(BinaryFunction::kPow);
}

/// The samples of all variants of a kernel's use that are alike.
std::vector<KernelSample> of_all_variants(const std::vector<KernelSample>& samples, const UsedKernel& kernel) {
  std::vector<KernelSample> found;
  for (const KernelSample& sample : samples)
    if (sample.kernel.kernel == kernel.kernel && sample.kernel.use == kernel.use && is_power(sample.kernel) == is_power(kernel))
      found.push_back(sample);
  return found;
}

/// Rates through so few samples say nothing of other shapes: fitted to two, whichever two terms lay closest had all of their time. (The first
/// index of 46,000 rows, 5 us, was priced at 3 ms by what rows of four slices had taken.)
constexpr std::size_t kSamplesThatTell = 5;

/// What such a kernel takes, but for a factor: as an f32 kernel of the same layers of which there is more, or so much for each flop and byte,
/// and row or vector, as is usual.
KernelRates rates_of_its_like(const std::vector<KernelRates>& fitted, const UsedKernel& kernel) {
  UsedKernel like = kernel;
  like.kernel = detail::f32_kernel_like(kernel.kernel);
  const KernelRates* found = nullptr;
  for (const KernelRates& rates : fitted)
    if (rates.kernel.kernel == like.kernel && rates.kernel.use == like.use && (found == nullptr || rates.kernel.variant == like.variant))
      found = &rates;
  KernelRates rates{kernel, {}};
  if (found != nullptr && like.kernel != kernel.kernel) {
    rates.seconds_per = found->seconds_per;
    return rates;
  }
  constexpr double kCall = 1e-7, kFlop = 2e-11, kByte = 2e-11, kRow = 2e-9, kFarByte = 3e-11, kVector = 3e-9;
  rates.seconds_per[0] = kCall;
  rates.seconds_per[1] = kFlop;
  rates.seconds_per[2] = rates.seconds_per[3] = rates.seconds_per[4] = kByte;
  rates.seconds_per[8] = kRow;
  if (detail::makes_vectors(kernel.kernel)) {  // of many flops each
    rates.seconds_per[1] = 0.1 * kFlop;
    rates.seconds_per[7] = kVector;
  }
  rates.seconds_per[10] = kFarByte;
  return rates;
}

}  // namespace

void fit(DeviceProfile& profile) {
  const detail::TileExtent tile = detail::tile_of(profile);
  profile.kernels.clear();
  // Kernels of few samples follow what others are fitted to.
  for (const bool of_few : {false, true}) {
    std::vector<KernelRates> fitted;
    for_each_kernel(profile.samples, [&](std::span<KernelSample> samples) {
      const std::vector<KernelSample> variants = of_all_variants(profile.samples, samples.front().kernel);
      if ((variants.size() < kSamplesThatTell) != of_few) return;
      std::optional<Shared> all;
      if (of_few)
        all = Shared{rates_of_its_like(profile.kernels, samples.front().kernel), true};
      else if (samples.size() < kFewSamples && variants.size() > samples.size())
        all = Shared{fit_rates(variants, tile)};
      KernelRates rates = all ? scaled_rates(*all, samples, tile) : fit_rates(samples, tile);
      fit_correction(rates, all ? &*all : nullptr, samples, tile);
      fitted.push_back(rates);
    });
    profile.kernels.insert(profile.kernels.end(), fitted.begin(), fitted.end());
  }
  sluice::sort(profile.kernels.begin(), profile.kernels.end(),
               [](const KernelRates& a, const KernelRates& b) { return a.kernel < b.kernel; });
  place_samples(profile);
}

KernelRates closest_rates(std::span<const KernelSample> samples, std::span<const double> units, detail::TileExtent tile) {
  Samples rows(static_cast<Eigen::Index>(samples.size()), kCount);
  for (std::size_t r = 0; r < samples.size(); ++r) {
    const Terms terms = detail::terms_of(samples[r].kernel.kernel, samples[r].work, tile);
    rows.row(static_cast<Eigen::Index>(r)) = Eigen::Map<const Eigen::RowVectorXd>(terms.data(), kCount) / units[r];
  }
  // Seconds, flops and bytes differ by nine powers of ten: each term is scaled to length 1. One that no sample has stays zero.
  const Eigen::RowVectorXd scale = rows.colwise().norm().unaryExpr([](double norm) { return norm > 0 ? norm : 1; });
  rows.array().rowwise() /= scale.array();
  // Rotations turn each sample into the equations that stand for all before it; the last column is what they are to give.
  Eigen::Matrix<double, kCount, kCount + 1> equations = Eigen::Matrix<double, kCount, kCount + 1>::Zero();
  for (Eigen::Index r = 0; r < rows.rows(); ++r) {
    Eigen::Matrix<double, 1, kCount + 1> row;
    row << rows.row(r), samples[static_cast<std::size_t>(r)].seconds / units[static_cast<std::size_t>(r)];
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

KernelRates fit_rates(std::span<const KernelSample> samples, detail::TileExtent tile) {
  constexpr int kRounds = 4;    // further ones change the times of nets by 0.1 %
  constexpr double kLeast = 3;  // a fitted time that is less than the measured one over this counts as that: no sample weighs more
  std::vector<double> units;
  for (const KernelSample& sample : samples) units.push_back(sample.seconds);
  KernelRates rates = closest_rates(samples, units, tile);
  for (int round = 1; round < kRounds; ++round) {
    for (std::size_t i = 0; i < samples.size(); ++i)
      units[i] = std::max(detail::fitted_seconds(rates, samples[i].work, tile), samples[i].seconds / kLeast);
    rates = closest_rates(samples, units, tile);
  }
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
    for (Eigen::Index i = 0; i < like.size(); ++i) like[i] = detail::likeness(field.at(i, rates.scales), place);
    unknown.push_back(std::clamp(1 - like.dot(field.inverse() * like), 0.0, 1.0));
  }
  return unknown;
}

}  // namespace sluice::profiler

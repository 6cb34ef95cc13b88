// sluice-bench-regressors PROFILE.json...: how well regressors predict a kernel's time at shapes that they have not seen, on the samples of
// measured profiles. Needs no clock: the same file gives the same table.
//
// Protocol: samples of one kernel are put in order by what multiplies (depth x taps), so that a fold is a family of alike layers, and cut
// into five folds, each predicted from the other four. Kernels with fewer than fifteen samples are left out.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "sluice/profiler/fit.h"
#include "sluice/profiler/profile_file.h"
#include "tests/bench/boosted_trees.h"
#include "tests/bench/must.h"
#include "tests/bench/random_forest.h"

namespace sluice::profiler {
namespace {

using Samples = std::vector<KernelSample>;

constexpr std::size_t kFolds = 5, kFewest = 15;

bench::RegressionTrees::Row row_of(const StepWork& work, detail::TileExtent tile) {
  const Features features = detail::features_of(work, tile);
  return {features.begin(), features.end()};
}

/// Predicts the seconds of each of `asked` from `known`.
using Regressor = std::function<std::vector<double>(const Samples& known, const Samples& asked, const std::string& isa)>;

DeviceProfile fitted(const Samples& known, const std::string& isa) {
  DeviceProfile profile;
  profile.isa = isa;
  profile.samples = known;
  fit(profile);
  return profile;
}

std::vector<double> by_rates(const Samples& known, const Samples& asked, const std::string& isa) {
  const detail::TileExtent tile = detail::tile_of(isa);
  const KernelRates rates = fit_rates(known, tile);
  std::vector<double> seconds;
  for (const KernelSample& sample : asked) seconds.push_back(detail::fitted_seconds(rates, sample.work, tile));
  return seconds;
}

/// Flops and bytes alone, corrected by the mean of near samples weighted by 1 / distance^4: the model before this one.
std::vector<double> by_work_alone(const Samples& known, const Samples& asked, const std::string&) {
  const auto bare = [](Samples samples) {
    for (KernelSample& sample : samples) sample.work = StepWork(sample.work.cost);
    return samples;
  };
  const Samples near = bare(known);
  const KernelRates rates = fit_rates(near, {});
  std::vector<double> seconds;
  for (const KernelSample& sample : bare(asked)) {
    const Features place = detail::features_of(sample.work, {});
    double weights = 1, sum = 0;
    for (const KernelSample& other : near) {
      double d2 = 1e-3;
      const Features there = detail::features_of(other.work, {});
      for (std::size_t f = 0; f < 4; ++f) d2 += static_cast<double>((place[f] - there[f]) * (place[f] - there[f]));
      weights += 1 / (d2 * d2);
      sum += std::log(other.seconds / std::max(detail::fitted_seconds(rates, other.work, {}), 1e-12)) / (d2 * d2);
    }
    seconds.push_back(detail::fitted_seconds(rates, sample.work, {}) * std::exp(sum / weights));
  }
  return seconds;
}

std::vector<double> by_trees(const Samples& known, const Samples& asked, const std::string& isa, bool on_rates) {
  const detail::TileExtent tile = detail::tile_of(isa);
  const KernelRates rates = fit_rates(known, tile);
  const auto start = [&](const KernelSample& sample) {
    return on_rates ? std::log(std::max(detail::fitted_seconds(rates, sample.work, tile), 1e-12)) : 0.0;
  };
  std::vector<bench::RegressionTrees::Row> rows;
  std::vector<double> values;
  for (const KernelSample& sample : known) {
    rows.push_back(row_of(sample.work, tile));
    values.push_back(std::log(sample.seconds) - start(sample));
  }
  const bench::BoostedTrees trees(rows, values);
  std::vector<double> seconds;
  for (const KernelSample& sample : asked) seconds.push_back(std::exp(start(sample) + trees.at(row_of(sample.work, tile))));
  return seconds;
}

/// What nn-Meter tells its regressors of a convolution: the side of its input (here the area, which splits in the same places), inputs,
/// outputs, kernel, stride, flops and parameters. Of other kernels it tells some of these; here they get all.
bench::RegressionTrees::Row nn_meter_row(const StepWork& work) {
  const StepShape& shape = work.shape;
  const auto stride = static_cast<float>(shape.stride);
  return {static_cast<float>(shape.rows) * static_cast<float>(shape.columns) * stride * stride,
          static_cast<float>(shape.depth),
          static_cast<float>(shape.channels),
          static_cast<float>(shape.taps),
          stride,
          static_cast<float>(work.cost.flops),
          static_cast<float>(work.cost.weight_bytes)};
}

/// As nn-Meter predicts a kernel: the mean of the seconds in the leaves of a random forest.
std::vector<double> by_nn_meter(const Samples& known, const Samples& asked, const std::string&) {
  std::vector<bench::RegressionTrees::Row> rows;
  std::vector<double> values;
  for (const KernelSample& sample : known) {
    rows.push_back(nn_meter_row(sample.work));
    values.push_back(sample.seconds);
  }
  const bench::RandomForest forest(rows, values);
  std::vector<double> seconds;
  for (const KernelSample& sample : asked) seconds.push_back(forest.at(nn_meter_row(sample.work)));
  return seconds;
}

std::vector<double> by_field(const Samples& known, const Samples& asked, const std::string& isa) {
  const DeviceProfile profile = fitted(known, isa);
  std::vector<double> seconds;
  for (const KernelSample& sample : asked)
    seconds.push_back(detail::measured_seconds(profile.kernels.front(), profile.samples, sample.work, detail::tile_of(isa)));
  return seconds;
}

/// |ln(predicted / measured)| of every sample, each predicted from the folds that it is not in.
std::vector<double> errors_of(Samples samples, const std::string& isa, const Regressor& regressor) {
  const auto products = [](const KernelSample& s) { return static_cast<double>(s.work.shape.depth) * s.work.shape.taps; };
  std::stable_sort(samples.begin(), samples.end(), [&](const KernelSample& a, const KernelSample& b) { return products(a) < products(b); });
  std::vector<double> errors;
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    Samples known, asked;
    for (std::size_t i = 0; i < samples.size(); ++i) (i * kFolds / samples.size() == fold ? asked : known).push_back(samples[i]);
    const std::vector<double> seconds = regressor(known, asked, isa);
    for (std::size_t i = 0; i < asked.size(); ++i) errors.push_back(std::abs(std::log(std::max(seconds[i], 1e-12) / asked[i].seconds)));
  }
  return errors;
}

struct Named {
  const char* name;
  Regressor regressor;
};

int compare(int argc, char** argv) {
  const Named regressors[] = {
      {"nn-Meter's features and forest", by_nn_meter},
      {"work alone (before)", by_work_alone},
      {"rates of all terms", by_rates},
      {"boosted trees", [](const Samples& k, const Samples& a, const std::string& isa) { return by_trees(k, a, isa, false); }},
      {"rates, trees on the rest", [](const Samples& k, const Samples& a, const std::string& isa) { return by_trees(k, a, isa, true); }},
      {"rates, field on the rest", by_field}};
  std::printf("| regressor | samples | median error | within 10 %% | within 25 %% | RMS of ln |\n|---|---|---|---|---|---|\n");
  for (const Named& named : regressors) {
    std::vector<double> errors;
    for (int i = 1; i < argc; ++i)
      for (DeviceProfile& profile : bench::must(load_profiles(argv[i])))
        for_each_kernel(profile.samples, [&](std::span<KernelSample> samples) {
          if (samples.size() < kFewest) return;
          const std::vector<double> more = errors_of({samples.begin(), samples.end()}, profile.isa, named.regressor);
          errors.insert(errors.end(), more.begin(), more.end());
        });
    if (errors.empty()) return std::fputs("sluice-bench-regressors: no profile with enough samples is named\n", stderr), 1;
    std::sort(errors.begin(), errors.end());
    const auto within = [&](double share) {
      const auto end = std::upper_bound(errors.begin(), errors.end(), std::log(1 + share));
      return 100.0 * static_cast<double>(end - errors.begin()) / static_cast<double>(errors.size());
    };
    double squares = 0;
    for (const double error : errors) squares += error * error;
    std::printf("| %s | %zu | %.1f %% | %.1f %% | %.1f %% | %.3f |\n", named.name, errors.size(),
                100 * std::expm1(errors[errors.size() / 2]), within(0.1), within(0.25),
                std::sqrt(squares / static_cast<double>(errors.size())));
  }
  return 0;
}

}  // namespace
}  // namespace sluice::profiler

int main(int argc, char** argv) { return sluice::profiler::compare(argc, argv); }

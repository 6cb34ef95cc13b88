// Regressors of a kernel's time by its work: the product's own (rates and field), what it was before, and those that it is compared with.
//
//     samples of a kernel, work of others --Regressor--> their seconds
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sluice/profiler/fit.h"
#include "tests/bench/boosted_trees.h"
#include "tests/bench/random_forest.h"

namespace sluice::profiler {

using Samples = std::vector<KernelSample>;

inline bench::RegressionTrees::Row row_of(const StepWork& work, detail::TileExtent tile) {
  const Features features = detail::features_of(work, tile);
  return {features.begin(), features.end()};
}

/// Predicts the seconds of each of `asked` from `known`.
using Regressor = std::function<std::vector<double>(const Samples& known, const Samples& asked, const std::string& isa)>;

inline DeviceProfile fitted(const Samples& known, const std::string& isa) {
  DeviceProfile profile;
  profile.isa = isa;
  profile.samples = known;
  fit(profile);
  return profile;
}

inline std::vector<double> by_rates(const Samples& known, const Samples& asked, const std::string& isa) {
  const detail::TileExtent tile = detail::tile_of(isa);
  const KernelRates rates = fit_rates(known, tile);
  std::vector<double> seconds;
  for (const KernelSample& sample : asked) seconds.push_back(detail::fitted_seconds(rates, sample.work, tile));
  return seconds;
}

/// Flops and bytes alone, corrected by the mean of near samples weighted by 1 / distance^4: the model before this one.
inline std::vector<double> by_work_alone(const Samples& known, const Samples& asked, const std::string&) {
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

inline std::vector<double> by_trees(const Samples& known, const Samples& asked, const std::string& isa, bool on_rates) {
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
inline bench::RegressionTrees::Row nn_meter_row(const StepWork& work) {
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

/// As nn-Meter predicts a kernel: the mean of the seconds in the leaves of a random forest; or, which errs less with few samples, of their
/// logarithms.
inline std::vector<double> by_nn_meter(const Samples& known, const Samples& asked, bool logarithms) {
  std::vector<bench::RegressionTrees::Row> rows;
  std::vector<double> values;
  for (const KernelSample& sample : known) {
    rows.push_back(nn_meter_row(sample.work));
    values.push_back(logarithms ? std::log(sample.seconds) : sample.seconds);
  }
  const bench::RandomForest forest(rows, values);
  std::vector<double> seconds;
  for (const KernelSample& sample : asked) {
    const double said = forest.at(nn_meter_row(sample.work));
    seconds.push_back(logarithms ? std::exp(said) : said);
  }
  return seconds;
}

inline std::vector<double> by_field(const Samples& known, const Samples& asked, const std::string& isa) {
  const DeviceProfile profile = fitted(known, isa);
  std::vector<double> seconds;
  for (const KernelSample& sample : asked)
    seconds.push_back(detail::measured_seconds(profile.kernels.front(), profile.placed, sample.work, detail::tile_of(isa)));
  return seconds;
}

/// Of whole nets: the seconds of each of the steps, which stand under the kernel whose samples price them.
using WholeRegressor = std::function<std::vector<double>(const DeviceProfile& profile, const Samples& steps)>;

/// What a kernel's regressor learns from: its own samples, or, where the variant has few, those of all variants, as for rates (fit.h).
inline Samples known_of(const DeviceProfile& profile, const UsedKernel& kernel) {
  constexpr std::size_t kFewSamples = 17;
  const auto own = detail::of_kernel(profile.samples, kernel);
  if (own.size() >= kFewSamples) return {own.begin(), own.end()};
  Samples all;
  for (const KernelSample& sample : profile.samples)
    if (sample.kernel.kernel == kernel.kernel && sample.kernel.use == kernel.use) all.push_back(sample);
  return all;
}

inline WholeRegressor kernel_by_kernel(const Regressor& regressor) {
  return [regressor](const DeviceProfile& profile, const Samples& steps) {
    std::map<UsedKernel, std::vector<std::size_t>> of_kernel;
    for (std::size_t i = 0; i < steps.size(); ++i) of_kernel[steps[i].kernel].push_back(i);
    std::vector<double> seconds(steps.size());
    for (const auto& [kernel, places] : of_kernel) {
      Samples asked;
      for (const std::size_t i : places) asked.push_back(steps[i]);
      const std::vector<double> said = regressor(known_of(profile, kernel), asked, profile.isa);
      for (std::size_t k = 0; k < places.size(); ++k) seconds[places[k]] = said[k];
    }
    return seconds;
  };
}

inline std::vector<double> by_rates_of_profile(const DeviceProfile& profile, const Samples& steps) {
  std::vector<double> seconds;
  for (const KernelSample& step : steps)
    seconds.push_back(
        detail::fitted_seconds(*detail::rates_of(profile, step.kernel, step.kernel.variant), step.work, detail::tile_of(profile)));
  return seconds;
}

/// By the profile's rates and field, as `predict` does: priced_nets has asked already.
inline std::vector<double> as_they_are(const DeviceProfile&, const Samples& steps) {
  std::vector<double> seconds;
  for (const KernelSample& step : steps) seconds.push_back(step.seconds);
  return seconds;
}

struct Named {
  const char* name;
  Regressor regressor;
  WholeRegressor whole;
  bool layers = false;  // of whole nets also layer by layer, since it knows of no bands
};

inline std::vector<Named> all_regressors() {
  const auto trees = [](bool on_rates) -> Regressor {
    return [on_rates](const Samples& k, const Samples& a, const std::string& isa) { return by_trees(k, a, isa, on_rates); };
  };
  const auto forest = [](bool logarithms) -> Regressor {
    return [logarithms](const Samples& k, const Samples& a, const std::string&) { return by_nn_meter(k, a, logarithms); };
  };
  return {{"nn-Meter's features and forest", forest(false), kernel_by_kernel(forest(false)), true},
          {"its features, a forest of ln seconds", forest(true), kernel_by_kernel(forest(true)), true},
          {"work alone (before)", by_work_alone, kernel_by_kernel(by_work_alone)},
          {"rates alone", by_rates, by_rates_of_profile},
          {"boosted trees", trees(false), kernel_by_kernel(trees(false))},
          {"rates, trees on the rest", trees(true), kernel_by_kernel(trees(true))},
          {"rates, field on the rest (ours)", by_field, as_they_are}};
}

}  // namespace sluice::profiler

// Compares policies with each other and with the optimum over many seeded instances: the figures of docs/scheduling.md. The program
// `sluice-bench-scheduler` runs the full counts, tests/scheduler/goodput_test.cc a small one.
#pragma once

#include <array>

#include "sluice/scheduler/simulator/optimum.h"
#include "sluice/scheduler/simulator/simulator.h"

namespace sluice::scheduler {

struct Score {
  std::uint64_t submitted = 0;
  std::array<std::uint64_t, kPolicies.size()> met{};
  std::uint64_t least = 0, most = 0;  // of the optimum; equal where all instances are proven
  std::uint64_t instances = 0, proven = 0;

  double goodput(std::size_t policy) const noexcept { return static_cast<double>(met[policy]) / static_cast<double>(submitted); }
  double ours() const noexcept { return goodput(kPublished); }
  double best_published() const noexcept {
    return static_cast<double>(*std::max_element(met.begin(), met.begin() + kPublished)) / static_cast<double>(submitted);
  }
  double optimum() const noexcept { return static_cast<double>(most) / static_cast<double>(submitted); }
  /// How much of the gap between the best published policy and the bound is left with ours; 0 where there is none.
  double gap_left() const noexcept { return optimum() > best_published() ? (optimum() - ours()) / (optimum() - best_published()) : 0; }
};

/// All policies on one instance.
inline void add_policies(const Instance& instance, Score& score) {
  score.submitted += instance.arrivals.size();
  for (std::size_t p = 0; p < kPolicies.size(); ++p) score.met[p] += simulate(instance, kPolicies[p]).statistics.met;
  ++score.instances;
}

/// And the optimum. A search starts from the best schedule that a policy found, ours with thirty times the usual work among them.
inline void add_with_optimum(const Instance& instance, const OptimumLimits& limits, Score& score) {
  Score one;
  add_policies(instance, one);
  SimulationOptions thorough;
  thorough.search.cells = 2'000'000;
  std::uint64_t known = *std::max_element(one.met.begin(), one.met.end());
  if (known < instance.arrivals.size()) known = std::max(known, simulate(instance, kPolicies[kPublished], thorough).statistics.met);
  const Optimum optimum = find_optimum(instance, known, limits);
  score.submitted += one.submitted;
  for (std::size_t p = 0; p < one.met.size(); ++p) score.met[p] += one.met[p];
  score.least += optimum.least;
  score.most += optimum.most;
  score.proven += optimum.proven();
  ++score.instances;
}

inline Score score_policies(const GeneratorParameters& parameters, std::uint64_t first_seed, std::uint64_t seeds) {
  Score score;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) add_policies(random_instance(seed, parameters), score);
  return score;
}

/// The saturation knee: the highest load at which the best published policy still meets `goodput` of what is submitted. Loads share their
/// random numbers, so goodput falls almost steadily and halving finds it.
inline double find_knee(GeneratorParameters parameters, double goodput, std::uint64_t first_seed, std::uint64_t seeds) {
  double low = 0.05, high = 8;
  for (int halving = 0; halving < 9; ++halving) {
    parameters.load = std::sqrt(low * high);
    Score score;
    for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
      const Instance instance = random_instance(seed, parameters);
      score.submitted += instance.arrivals.size();
      for (std::size_t p = 0; p < kPublished; ++p) score.met[p] += simulate(instance, kPolicies[p]).statistics.met;
    }
    (score.best_published() >= goodput ? low : high) = parameters.load;
  }
  return std::sqrt(low * high);
}

}  // namespace sluice::scheduler

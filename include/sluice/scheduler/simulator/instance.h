// A scheduling problem as data, and seeded generators of such: what the simulator runs and the exact optimum solves.
//
// Processors differ in speed, each kind of unit has its own preferences, some processors do not support some units, copies between them
// cost. The same seed gives the same instance on every machine.
#pragma once

#include <algorithm>
#include <vector>

#include "sluice/scheduler/board.h"
#include "sluice/scheduler/random.h"
#include "sluice/scheduler/simulator/fluid.h"

namespace sluice::scheduler {

struct Arrival {
  Time at = 0;
  Request request;
};

struct Instance {
  Device device;
  std::vector<Model> models;
  std::vector<Arrival> arrivals;  // in order of time
};

struct GeneratorParameters {
  std::size_t least_jobs = 2, most_jobs = 10;
  std::size_t least_processors = 2, most_processors = 4;
  std::size_t least_units = 1, most_units = 12;  // of a model
  bool uniform_sizes = false;                    // of models and units; else log-uniform: small ones are common, large ones rare
  std::size_t most_models = 4;
  double forks = 0;          // the share of units that read from an older one as well
  double support = 0.85;     // of the units on processors other than the first, which supports all
  bool at_start = true;      // all jobs are known at time 0; else they arrive as a Poisson stream
  double load = 1;           // of arrivals: 1 is what the processors could just do if work were a fluid
  double least_slack = 1.5;  // deadline - arrival of a stream, over the shortest time that the job can take
  double most_slack = 5;
};

namespace detail {

inline Device random_device(Random& random, const GeneratorParameters& parameters) {
  Device device;
  const std::size_t n = random.between(parameters.least_processors, parameters.most_processors);
  for (std::size_t p = 0; p < n; ++p) device.processors.push_back({"p" + std::to_string(p), 30 * kMicrosecond, 0});
  device.transfers.resize(n * n);
  for (std::size_t from = 0; from < n; ++from)
    for (std::size_t to = 0; to < from; ++to) {
      const bool shared = random.below(3) == 0;  // as of two clusters of one CPU: the memory is shared, so transfers cost nothing
      const Transfer transfer = shared ? Transfer{} : Transfer{20 * kMicrosecond, static_cast<Time>(random.uniform(100, 1000))};
      device.transfers[from * n + to] = device.transfers[to * n + from] = transfer;
    }
  return device;
}

inline Model random_model(Random& random, const GeneratorParameters& parameters, const std::vector<double>& speeds) {
  Model model{"m", {}};
  const bool uniform = parameters.uniform_sizes;
  const std::size_t units = uniform ? random.between(parameters.least_units, parameters.most_units)
                                    : static_cast<std::size_t>(random.log_uniform(static_cast<double>(parameters.least_units),
                                                                                  static_cast<double>(parameters.most_units) + 1));
  for (std::size_t u = 0; u < units; ++u) {
    Unit unit;
    const double work = uniform ? random.uniform(1e6, 1e7) : random.log_uniform(1e6, 1e7);  // 1 to 10 ms at speed 1
    for (std::size_t p = 0; p < speeds.size(); ++p) {
      const bool supported = p == 0 || random.unit() < parameters.support;
      unit.times.push_back(supported ? static_cast<Time>(work / speeds[p] * random.log_normal(0.3)) : kNever);
    }
    if (u > 0) unit.reads_from.push_back(static_cast<UnitIndex>(u - 1));
    if (u > 1 && random.unit() < parameters.forks) unit.reads_from = {static_cast<UnitIndex>(random.below(u))};
    unit.output = Bytes(static_cast<std::uint64_t>(random.log_uniform(4096, 1 << 20)));
    model.units.push_back(std::move(unit));
  }
  return model;
}

}  // namespace detail

inline Instance random_instance(std::uint64_t seed, const GeneratorParameters& parameters) {
  Random random(seed * 2654435761u + 17);
  Instance instance;
  instance.device = detail::random_device(random, parameters);
  std::vector<double> speeds = {1};
  while (speeds.size() < instance.device.count()) speeds.push_back(random.log_uniform(0.4, 6));
  const std::size_t models = random.between(1, parameters.most_models), jobs = random.between(parameters.least_jobs, parameters.most_jobs);
  for (std::size_t m = 0; m < models; ++m) instance.models.push_back(detail::random_model(random, parameters, speeds));
  const Profile profile(instance.device, instance.models);
  std::vector<std::size_t> chosen;
  for (std::size_t j = 0; j < jobs; ++j) chosen.push_back(random.below(models));
  const double work = fluid_makespan(instance.device, instance.models, chosen);  // of all jobs together, as a fluid
  double at = 0;
  const double tightness = random.uniform(0.3, 1.1);
  for (const std::size_t m : chosen) {
    const double shortest = static_cast<double>(profile.shortest(ModelId(m)));
    if (!parameters.at_start) at += random.exponential(work / static_cast<double>(jobs) / parameters.load);
    const double slack = shortest * random.uniform(parameters.least_slack, parameters.most_slack);
    const double deadline = parameters.at_start ? shortest * random.uniform(1, 1.5) + random.unit() * work * tightness : at + slack;
    instance.arrivals.push_back({static_cast<Time>(at), {ModelId(m), static_cast<Time>(deadline), 0}});
  }
  return instance;
}

}  // namespace sluice::scheduler

// Devices and models by hand, for tests that say what they expect.
#pragma once

#include "sluice/scheduler/cut.h"
#include "sluice/scheduler/policy.h"
#include "sluice/scheduler/simulator/experiment.h"

namespace sluice::scheduler {

inline constexpr Time kMs = kMillisecond;

/// Processors that share memory; `step` 0: nothing is interrupted.
inline Device make_device(std::size_t processors, Time dispatch = 0, Time step = 0) {
  Device device;
  for (std::size_t p = 0; p < processors; ++p) device.processors.push_back({"p" + std::to_string(p), dispatch, step});
  device.transfers.resize(processors * processors);
  return device;
}

/// times[unit][processor].
inline Model make_chain(const std::vector<std::vector<Time>>& times, Bytes output = Bytes(0)) {
  Model model{"chain", {}};
  for (UnitIndex u = 0; u < times.size(); ++u) {
    Unit unit{times[u], {}, output};
    if (u > 0) unit.reads_from.push_back(u - 1);
    model.units.push_back(std::move(unit));
  }
  return model;
}

inline const Policy& policy(std::string_view name) { return *find_policy(name); }

inline Arrival arrival(Time at, std::size_t model, Time deadline = kNever, int priority = 0) {
  return {at, {ModelId(model), deadline, priority}};
}

/// What ran, from a trace: [begin, end) of each run on each processor.
inline std::vector<TraceEvent> events_of(const SimulationResult& result, TraceEvent::Kind kind) {
  std::vector<TraceEvent> found;
  for (const TraceEvent& event : result.trace)
    if (event.kind == kind) found.push_back(event);
  return found;
}

}  // namespace sluice::scheduler

// `sluice plan M --processors cpu,xnnpack,opencl`: shows how the model is cut into units, and which processors can run each. The fallback,
// before anything runs.
#include <algorithm>
#include <sstream>

#include "sluice/scheduler/scheduler.h"
#include "src/cli/failure.h"
#include "src/cli/json.h"
#include "src/cli/open_model.h"
#include "src/cli/serve/backends.h"
#include "src/cli/serve/command.h"
#include "src/cli/text.h"
#include "src/cli/visible.h"

namespace sluice::cli {
namespace {

using scheduler::ProcessorOptions;

ProcessorOptions processor_of(const std::string& kind) {
  ProcessorOptions processor;
  processor.name = kind;
  if (kind == "cpu") return processor;
  const BackendKind* const backend = find_backend_kind(kind);
  if (backend == nullptr)
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("--processors {}: is a list of cpu, xnnpack and opencl", kind));
  BackendHere here = find_backend(*backend);
  if (!here.backend) throw Failure(ErrorCode::kUnsupported, fmt::format("--processors {}: {}", kind, here.why_not));
  processor.kind = ProcessorOptions::Kind::kBackend;
  processor.backend = std::move(here.backend);
  return processor;
}

}  // namespace

void plan_units(const PlanUnitsOptions& options) {
  scheduler::SchedulerOptions device;
  std::istringstream kinds(options.processors);
  for (std::string kind; std::getline(kinds, kind, ',');) device.processors.push_back(processor_of(kind));
  const auto model = open_model(options.model, options.dims, options.key);
  const auto scheduler = unwrap(scheduler::Scheduler::create(device));
  const scheduler::ModelId id = unwrap(scheduler->add_model(model, {}));
  Json units = Json::array();
  std::size_t number = 0;
  for (const scheduler::UnitSupport& unit : scheduler->units(id)) {
    std::vector<std::string> names;
    for (const scheduler::ProcessorId processor : unit.processors) names.push_back(device.processors[processor.index()].name);
    const std::string& first = model->graph().nodes[unit.first_node].name;
    const std::string& last = model->graph().nodes[unit.first_node + unit.node_count - 1].name;
    if (!options.json)
      fmt::print("  unit {:<5}{:>5} nodes   {:<14}{} ... {}\n", number, unit.node_count, fmt::format("{}", fmt::join(names, ", ")),
                 visible(first), visible(last));
    units.push_back({{"first", first}, {"last", last}, {"nodes", unit.node_count}, {"processors", names}});
    ++number;
  }
  if (options.json) print_json("sluice plan --processors", {{"model", options.model}, {"units", std::move(units)}});
}

}  // namespace sluice::cli

#include "src/scheduler/fleet.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

#include "sluice/core/affinity.h"
#include "sluice/model/part.h"
#include "src/core/out_of_memory.h"
#include "src/engine/tenancy.h"

namespace sluice::scheduler {
namespace {

std::size_t bytes_of(const model::Graph& graph, const model::Port& port) noexcept {
  return static_cast<std::size_t>(graph.bytes_of(port).count());
}

std::vector<std::vector<std::byte>> zeros(const model::Graph& graph, const std::vector<model::Port>& ports) {
  std::vector<std::vector<std::byte>> tensors;
  for (const model::Port& port : ports) tensors.emplace_back(bytes_of(graph, port));
  return tensors;
}

/// Views of reference values as a job has them.
struct ReferenceJob {
  explicit ReferenceJob(FleetModel& model) : ReferenceJob(model, model.outputs, model.between.bytes()) {}
  ReferenceJob(const FleetModel& model, std::vector<std::vector<std::byte>>& out, std::span<std::byte> between) {
    for (const std::vector<std::byte>& tensor : model.inputs) inputs.emplace_back(tensor);
    for (std::vector<std::byte>& tensor : out) outputs.emplace_back(tensor);
    memory = {inputs, outputs, between};
  }
  std::vector<std::span<const std::byte>> inputs;
  std::vector<std::span<std::byte>> outputs;
  JobMemory memory;
};

/// A unit of reshapes alone has nothing to run: they go with what comes before them, or after, where that one's processors support them.
void keep_reshapes_with_neighbours(const model::Graph& graph, std::vector<CutOperator>& operators) {
  const auto follow = [&](std::size_t i, std::size_t neighbour) {
    if (graph.nodes[i].op != model::OpKind::kReshape) return;
    for (std::size_t p = 0; p < operators[i].times.size(); ++p)
      if (operators[i].times[p] == kNever && operators[neighbour].times[p] != kNever) return;
    operators[i].times = operators[neighbour].times;
  };
  for (std::size_t i = operators.size(); i-- > 1;) follow(i - 1, i);
  for (std::size_t i = 1; i < operators.size(); ++i) follow(i, i - 1);
}

/// Reshapes whose neighbours other processors support, too.
bool computes_nothing(const model::Graph& graph, std::size_t first, std::size_t end) {
  return std::all_of(graph.nodes.begin() + static_cast<std::ptrdiff_t>(first), graph.nodes.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const model::Node& node) { return node.op == model::OpKind::kReshape; });
}

}  // namespace

std::string_view kind_of(const ProcessorOptions& options) noexcept {
  if (options.backend) return options.backend->kind();
  return options.kind == ProcessorOptions::Kind::kTimed ? "timed" : "cpu";
}

std::span<const std::byte> JobMemory::read(const TensorPlace& place) const noexcept {
  if (place.kind == TensorPlace::Kind::kInput) return inputs[place.at];
  return write(place);
}

std::span<std::byte> JobMemory::write(const TensorPlace& place) const noexcept {
  return place.kind == TensorPlace::Kind::kOutput ? outputs[place.at] : between.subspan(place.at, place.bytes);
}

std::span<std::byte> JobMemory::in_place(const TensorPlace& place) const noexcept {
  if (place.kind != TensorPlace::Kind::kBetween) return {};
  return between.subspan(place.at, place.bytes + static_cast<std::size_t>(kPortTail.count()));
}

Status give_inputs(const UnitProgram& unit, const JobMemory& memory) noexcept {
  for (std::size_t i = 0; i < unit.inputs.size(); ++i) {
    if (unit.input_placed[i])
      SLUICE_RETURN_IF_ERROR(unit.program->place_input(i, memory.in_place(unit.inputs[i])));
    else
      SLUICE_RETURN_IF_ERROR(unit.program->set_input(i, memory.read(unit.inputs[i])));
  }
  for (std::size_t i = 0; i < unit.outputs.size(); ++i)
    if (unit.output_placed[i]) SLUICE_RETURN_IF_ERROR(unit.program->place_output(i, memory.in_place(unit.outputs[i])));
  return {};
}

Status take_outputs(const UnitProgram& unit, const JobMemory& memory) noexcept {
  for (std::size_t i = 0; i < unit.outputs.size(); ++i) {
    if (unit.output_placed[i]) continue;
    const std::span<std::byte> target = memory.write(unit.outputs[i]);
    if (!target.empty()) SLUICE_RETURN_IF_ERROR(unit.program->get_output(i, target));
  }
  return {};
}

Status Fleet::add_processor(const ProcessorOptions& options) {
  const auto refuse = [&](const char* reason) { return fail(ErrorCode::kInvalidArgument, options.name, reason); };
  if ((options.kind == ProcessorOptions::Kind::kBackend) != (options.backend != nullptr))
    return refuse("a processor of the kind backend has one, and no other has");
  if (processors.size() == Device::kMostProcessors) return refuse("a device has 1 to 32 processors");
  if (!executor::is_compute_slowdown(options.compute_slowdown)) return refuse("a slowdown is a factor from 1 to 1000");
  if (!(options.speedup >= 1e-3 && options.speedup <= 1e6)) return refuse("a speedup is a factor from 0.001 to 1000000");
  SLUICE_RETURN_IF_ERROR(ScopedAffinity(options.cpus).status());
  FleetProcessor processor;
  processor.options = options;
  if (processor.options.name.empty()) processor.options.name = std::string(kind_of(options)) + std::to_string(processors.size());
  if (options.kind == ProcessorOptions::Kind::kTimed) processor.clock = std::make_shared<TimedClock>();
  processors.push_back(std::move(processor));
  return {};
}

Status Fleet::add_model(std::shared_ptr<const sluice::Model> model, const ModelOptions& options) {
  if (!model) return fail(ErrorCode::kInvalidArgument, options.name, "a scheduler needs a model");
  const model::Graph& graph = model->graph();
  FleetModel entry;
  entry.model = model;
  entry.options = options;
  if (entry.options.name.empty()) entry.options.name = model->file().path();
  entry.inputs = options.reference_inputs.empty() ? zeros(graph, graph.inputs) : options.reference_inputs;
  entry.options.reference_inputs.clear();
  bool fits = entry.inputs.size() == graph.inputs.size();
  for (std::size_t i = 0; fits && i < graph.inputs.size(); ++i) fits = entry.inputs[i].size() == bytes_of(graph, graph.inputs[i]);
  if (!fits) return fail(ErrorCode::kInvalidArgument, entry.options.name, "a reference input has the size of its port, one for each");
  if (options.fixed.valid() && options.fixed.index() >= processors.size())
    return fail(ErrorCode::kInvalidArgument, entry.options.name, "the model is fixed to a processor that is not there");
  models.push_back(std::move(entry));
  if (Status status = cut(models.back()); !status) {
    models.pop_back();
    return status;
  }
  return {};
}

bool Fleet::supports(std::size_t p, const FleetModel& model, const model::Node& node) const {
  const FleetProcessor& processor = processors[p];
  if (processor.options.kind == ProcessorOptions::Kind::kTimed) {
    const std::vector<Time>& times = processor.options.times;
    const auto number = static_cast<std::size_t>(&model - models.data());
    return times.empty() || (number < times.size() && times[number] < kNever);
  }
  const backends::Backend* const backend = processor.options.backend.get();
  return backend == nullptr || ((backend->same_bits() || !model.options.same_bits) && backend->supports(model.model->graph(), node));
}

/// Units by support. Where the graph cannot be cut, it is one unit for the processors that support all of it.
Status Fleet::cut(FleetModel& entry) const {
  const model::Graph& graph = entry.model->graph();
  std::vector<CutOperator> operators;
  std::vector<std::size_t> maker(graph.tensors.size(), graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const model::Node& node = graph.nodes[i];
    CutOperator op;
    for (std::size_t p = 0; p < processors.size(); ++p) op.times.push_back(supports(p, entry, node) ? 1 : kNever);
    for (const TensorId input : node.inputs)
      if (input.valid() && maker[input.index()] < i) op.reads_from.push_back(maker[input.index()]);
    for (const TensorId output : node.outputs) {
      maker[output.index()] = i;
      op.output += graph.tensor(output).bytes();
    }
    operators.push_back(std::move(op));
  }
  keep_reshapes_with_neighbours(graph, operators);
  entry.unit_ends = cut_ends(operators, {.longest = kNever});
  bool whole = entry.unit_ends.size() == 1;
  for (std::size_t u = 0, first = 0; u < entry.unit_ends.size() && !whole; first = entry.unit_ends[u++])
    whole = computes_nothing(graph, first, entry.unit_ends[u]) || !model::part_of(graph, first, entry.unit_ends[u] - first);
  if (whole) {
    for (const CutOperator& op : operators)
      for (std::size_t p = 0; p < processors.size(); ++p)
        if (op.times[p] == kNever) operators[0].times[p] = kNever;
    operators.resize(1);
    operators[0].reads_from.clear();
    entry.unit_ends = {graph.nodes.size()};
  }
  SLUICE_ASSIGN_OR_RETURN(entry.units, cut_units(device(), entry.options.name, operators, {.longest = kNever}));
  return {};
}

/// Its ports, and where they lie in a job's memory.
Result<UnitProgram> Fleet::unit_program(const FleetModel& entry, UnitIndex u) const {
  UnitProgram unit;
  if (entry.unit_ends.size() == 1) {
    for (std::size_t i = 0; i < entry.inputs.size(); ++i) unit.inputs.push_back({TensorPlace::Kind::kInput, i, entry.inputs[i].size()});
    for (std::size_t i = 0; i < entry.outputs.size(); ++i) unit.outputs.push_back({TensorPlace::Kind::kOutput, i, entry.outputs[i].size()});
    unit.input_placed.resize(unit.inputs.size());
    unit.output_placed.resize(unit.outputs.size());
    return unit;
  }
  const std::size_t first = first_node(entry, u);
  SLUICE_ASSIGN_OR_RETURN(const model::Part part, model::part_of(entry.model->graph(), first, entry.unit_ends[u] - first));
  for (const TensorId tensor : part.inputs) unit.inputs.push_back(entry.places[tensor.index()]);
  std::vector<bool> made(entry.places.size(), false);
  for (const TensorId tensor : part.outputs) made[tensor.index()] = true;
  const std::vector<model::Port>& ports = entry.model->graph().outputs;
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (made[ports[i].tensor.index()]) unit.outputs.push_back({TensorPlace::Kind::kOutput, i, entry.outputs[i].size()});
  for (std::size_t i = unit.outputs.size(); i < part.outputs.size(); ++i) unit.outputs.push_back(entry.places[part.outputs[i].index()]);
  unit.input_placed.resize(unit.inputs.size());
  unit.output_placed.resize(unit.outputs.size());
  return unit;
}

/// Once plans are made, which stay from then on.
void Fleet::find_placed(const FleetModel& entry, std::span<std::byte> between, UnitProgram& unit) noexcept {
  const JobMemory memory{{}, {}, between};
  if (!unit.program || entry.unit_ends.size() == 1) return;
  for (std::size_t i = 0; i < unit.inputs.size(); ++i)
    if (const std::span<std::byte> place = memory.in_place(unit.inputs[i]); !place.empty())
      unit.input_placed[i] = unit.program->place_input(i, place).has_value();
  for (std::size_t i = 0; i < unit.outputs.size(); ++i)
    if (const std::span<std::byte> place = memory.in_place(unit.outputs[i]); !place.empty())
      unit.output_placed[i] = unit.program->place_output(i, place).has_value();
}

bool Fleet::makes_in_place(const FleetModel& model, std::size_t p, const TensorPlace& place) const noexcept {
  const UnitProgram& unit = model.programs[p][place.maker];
  for (std::size_t i = 0; i < unit.outputs.size(); ++i)
    if (unit.outputs[i].kind == TensorPlace::Kind::kBetween && unit.outputs[i].at == place.at) return unit.output_placed[i];
  return false;
}

Status Fleet::make_backend_programs() {
  for (FleetModel& entry : models)
    for (std::size_t p = 0; p < processors.size(); ++p) {
      if (!processors[p].options.backend) continue;
      for (UnitIndex u = 0; u < entry.units.units.size(); ++u) {
        if (entry.units.units[u].times[p] == kNever) continue;
        const Status made = make_backend_program(entry, p, u, entry.programs[p][u]);
        if (!made) SLUICE_RETURN_IF_ERROR(fall_back(entry, p, u, made.error()));
      }
    }
  return {};
}

Status Fleet::make_backend_program(const FleetModel& entry, std::size_t p, UnitIndex u, UnitProgram& program) {
  SLUICE_ASSIGN_OR_RETURN(UnitProgram unit, unit_program(entry, u));
  const std::size_t first = first_node(entry, u);
  SLUICE_ASSIGN_OR_RETURN(const model::Part part, model::part_of(entry.model->graph(), first, entry.unit_ends[u] - first));
  SLUICE_ASSIGN_OR_RETURN(unit.program, processors[p].options.backend->prepare(part.graph, entry.model->file().source()));
  program = std::move(unit);
  return {};
}

/// Leaves the unit to the others that support it; if there are none, the error is `why`. A CPU processor supports every unit from the
/// beginning to the end, so another backend that falls back at the same time, in its own thread, need not be looked at.
Status Fleet::fall_back(FleetModel& entry, std::size_t p, UnitIndex u, const Error& why) {
  const auto other_cpu = [&](const FleetProcessor& processor) { return processor.options.kind == ProcessorOptions::Kind::kCpu; };
  if (std::none_of(processors.begin(), processors.end(), other_cpu)) return fail(why);
  entry.units.units[u].times[p] = kNever;
  entry.programs[p][u] = {};
  processors[p].fallbacks.push_back({ModelId(static_cast<std::uint32_t>(&entry - models.data())), u, ProcessorId(p), why});
  return {};
}

/// Every tensor that crosses a border, by a processor of CPU kernels where there is one.
Status Fleet::run_reference(FleetModel& entry, std::size_t processor) {
  const ReferenceJob job(entry);
  for (UnitIndex u = 0; u < entry.units.units.size(); ++u) {
    const UnitProgram* chosen = entry.programs[processor][u].program ? &entry.programs[processor][u] : nullptr;
    for (std::size_t p = 0; p < processors.size() && chosen == nullptr; ++p)
      if (entry.programs[p][u].program) chosen = &entry.programs[p][u];
    if (chosen == nullptr)
      return fail(ErrorCode::kUnsupported, entry.options.name, "only a timed processor is there: its outputs are computed by another");
    SLUICE_RETURN_IF_ERROR(give_inputs(*chosen, job.memory));
    SLUICE_RETURN_IF_ERROR(chosen->program->run());
    SLUICE_RETURN_IF_ERROR(take_outputs(*chosen, job.memory));
  }
  return {};
}

Status Fleet::make_timed_programs(FleetModel& entry) {
  const ReferenceJob job(entry);
  const auto copy = [&](const TensorPlace& place) {
    const std::span<const std::byte> bytes = job.memory.read(place);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  for (std::size_t p = 0; p < processors.size(); ++p) {
    if (!processors[p].clock) continue;
    for (UnitIndex u = 0; u < entry.units.units.size(); ++u) {
      if (entry.units.units[u].times[p] == kNever) continue;
      SLUICE_ASSIGN_OR_RETURN(UnitProgram unit, unit_program(entry, u));
      auto answers = std::make_shared<TimedAnswers>();
      for (const TensorPlace& place : unit.inputs) answers->inputs.push_back(copy(place));
      for (const TensorPlace& place : unit.outputs) answers->outputs.push_back(copy(place));
      unit.time = std::make_shared<Time>(1);
      unit.program = make_timed_program(std::move(answers), unit.time, processors[p].clock, processors[p].boundary);
      entry.programs[p][u] = std::move(unit);
    }
  }
  return {};
}

Status Fleet::build(const SchedulerOptions& options, std::size_t slots) {
  for (FleetModel& entry : models) {
    const model::Graph& graph = entry.model->graph();
    entry.outputs = zeros(graph, graph.outputs);
    entry.programs.resize(processors.size());
    for (std::vector<UnitProgram>& there : entry.programs) there.resize(entry.unit_ends.size());
    place_tensors(entry);
    entry.between = AlignedBytes(entry.between_bytes);
  }
  SLUICE_RETURN_IF_ERROR(make_backend_programs());
  SLUICE_RETURN_IF_ERROR(make_parts(options, slots));
  for (FleetModel& entry : models) {
    for (std::vector<UnitProgram>& there : entry.programs)
      for (UnitProgram& unit : there) find_placed(entry, entry.between.bytes(), unit);
  }
  SLUICE_RETURN_IF_ERROR(read_weights());
  for (FleetModel& entry : models) SLUICE_RETURN_IF_ERROR(make_timed_programs(entry));
  return {};
}

/// The reference inputs run on the first processor of CPU kernels, and on the first of each other number of threads, whose plans keep
/// other weights. All others then find their kept weights.
Status Fleet::read_weights() {
  std::vector<int> threads;
  for (std::size_t p = 0; p < processors.size(); ++p) {
    if (!computes(p) || std::find(threads.begin(), threads.end(), processors[p].options.threads) != threads.end()) continue;
    threads.push_back(processors[p].options.threads);
    for (FleetModel& entry : models) SLUICE_RETURN_IF_ERROR(run_reference(entry, p));
  }
  if (threads.empty())
    for (FleetModel& entry : models) SLUICE_RETURN_IF_ERROR(run_reference(entry, 0));
  for (const std::shared_ptr<SharedArena>& arena : arenas_) {
    const engine::Occupation occupation(*arena->tenancy());
    SLUICE_RETURN_IF_ERROR(occupation.status());
    SLUICE_RETURN_IF_ERROR(arena->tenancy()->weights_are_there());
  }
  return {};
}

/// A tensor that crosses a border between units gets bytes of its own; if it is an output of the graph as well, it is also written there.
void Fleet::place_tensors(FleetModel& entry) const {
  const model::Graph& graph = entry.model->graph();
  entry.places.assign(graph.tensors.size(), {});
  std::vector<std::size_t> unit_of(graph.tensors.size(), 0);
  for (std::size_t u = 0, i = 0; u < entry.unit_ends.size(); ++u)
    for (; i < entry.unit_ends[u]; ++i) {
      for (const TensorId output : graph.nodes[i].outputs) unit_of[output.index()] = u;
      for (const TensorId input : graph.nodes[i].inputs) {
        if (!input.valid() || unit_of[input.index()] == u || entry.places[input.index()].bytes > 0) continue;
        const auto bytes = static_cast<std::size_t>(graph.tensor(input).bytes().count());
        entry.places[input.index()] = {TensorPlace::Kind::kBetween, entry.between_bytes, bytes,
                                       static_cast<UnitIndex>(unit_of[input.index()])};
        entry.between_bytes += bytes_in_region(bytes);
      }
    }
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    entry.places[graph.inputs[i].tensor.index()] = {TensorPlace::Kind::kInput, i, entry.inputs[i].size()};
}

Device Fleet::device() const {
  // Measured: taking a run from the board, waking a worker and looking at its inputs.
  constexpr Time kDispatch = 20 * kMicrosecond;
  // Parts of large steps: 0.1 to 0.6 ms on one thread. A timed processor looks up once in a millisecond.
  constexpr Time kPart = kMillisecond / 4;
  Device device;
  for (std::size_t p = 0; p < processors.size(); ++p)
    device.processors.push_back({processors[p].options.name, kDispatch,
                                 processors[p].options.backend ? 0
                                 : computes(p)                 ? kPart
                                                               : kMillisecond});
  // Tensors are handed over in memory that every processor sees; where they are copied, that is part of a unit's measured time.
  device.transfers.resize(processors.size() * processors.size());
  return device;
}

std::size_t Fleet::between_bytes() const noexcept {
  std::size_t most = 0;
  for (const FleetModel& entry : models) most = std::max(most, entry.between_bytes);
  return most;
}

std::size_t Fleet::spare_regions() const noexcept {
  std::size_t spare = 0;
  for (std::size_t p = 0; p < processors.size(); ++p) spare += computes(p);
  return spare;
}

Result<Time> Fleet::measure_once(UnitProgram& unit, const JobMemory& memory) {
  const auto begin = std::chrono::steady_clock::now();
  SLUICE_RETURN_IF_ERROR(give_inputs(unit, memory));
  SLUICE_RETURN_IF_ERROR(unit.program->run());
  SLUICE_RETURN_IF_ERROR(take_outputs(unit, memory));
  return std::max<Time>((std::chrono::steady_clock::now() - begin).count(), 1);
}

/// All models in turn, so a run finds in caches what it finds there when jobs of all models come.
Status Fleet::measure(std::size_t p, const SchedulerOptions& options) noexcept {
  if (processors[p].clock) return {};
  return or_out_of_memory(processors[p].options.name, [&]() -> Status {
    std::vector<std::vector<std::vector<Time>>> taken(models.size());
    for (std::size_t m = 0; m < models.size(); ++m) taken[m].resize(models[m].programs[p].size());
    for (int run = 0; run < options.warmup_runs + options.profile_runs; ++run)
      for (std::size_t m = 0; m < models.size(); ++m) {
        // Copies, since processors measure at the same time; one for all units, since a model of many units has much between them. What a unit
        // makes, or leaves half made, the next one reads: only its time counts.
        std::vector<std::vector<std::byte>> outputs = models[m].outputs;
        AlignedBytes between = models[m].between;
        const ReferenceJob job(models[m], outputs, between.bytes());
        for (UnitIndex u = 0; u < taken[m].size(); ++u) {
          UnitProgram& unit = models[m].programs[p][u];
          if (!unit.program) continue;
          const Result<Time> time = measure_once(unit, job.memory);
          if (time && run >= options.warmup_runs)
            taken[m][u].push_back(*time);
          else if (!time && processors[p].options.backend)
            SLUICE_RETURN_IF_ERROR(fall_back(models[m], p, u, time.error()));
          else if (!time)
            return fail(time.error());
        }
      }
    for (std::size_t m = 0; m < models.size(); ++m)
      for (UnitIndex u = 0; u < taken[m].size(); ++u) {
        std::vector<Time>& times = taken[m][u];
        if (!models[m].programs[p][u].program) continue;
        std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
        models[m].units.units[u].times[p] = times[times.size() / 2];
      }
    return {};
  });
}

void Fleet::settle_times() {
  for (std::size_t m = 0; m < models.size(); ++m) {
    FleetModel& entry = models[m];
    std::size_t measured = 0;
    while (measured < processors.size() && processors[measured].options.kind != ProcessorOptions::Kind::kCpu) ++measured;
    const auto time_there = [&](const Unit& unit) { return measured < processors.size() ? unit.times[measured] : 1; };
    Time whole = 0;
    for (const Unit& unit : entry.units.units) whole += time_there(unit);
    for (std::size_t p = 0; p < processors.size(); ++p) {
      const ProcessorOptions& options = processors[p].options;
      for (std::size_t u = 0; u < entry.programs[p].size(); ++u) {
        if (!entry.programs[p][u].time) continue;
        const auto there = static_cast<double>(time_there(entry.units.units[u]));
        const double time =
            options.times.empty() ? there / options.speedup : static_cast<double>(options.times[m]) * there / static_cast<double>(whole);
        entry.units.units[u].times[p] = *entry.programs[p][u].time = std::max<Time>(static_cast<Time>(time), 1);
      }
    }
  }
}

}  // namespace sluice::scheduler

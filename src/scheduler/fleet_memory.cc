// How the one budget is divided among the processors, and the sessions that come of it.
#include <algorithm>
#include <numeric>

#include "src/engine/budget.h"
#include "src/engine/process_memory.h"
#include "src/scheduler/fleet.h"

namespace sluice::scheduler {
namespace {

// A worker's stack, as far as runs touch it (engine.h, kLeastStack), and its tables.
constexpr Bytes kWorkerBytes{64 * 1024};
// A process that serves holds so much more than one that runs a model: its own code, and two threads at least. Peaks of serving a model of
// a few KiB were 6.89 to 7.17 MB. What the program reserves for itself covers it.
constexpr Bytes kServingBytes{(1024 + 768) * 1024};

/// Of a part of a graph, which lists all weights of its file: those that it reads.
Bytes weight_bytes(const model::Graph& graph) {
  std::vector<WeightId> read;
  for (const model::Node& node : graph.nodes) model::weights_read_by(graph, node, read);
  std::sort(read.begin(), read.end());
  read.erase(std::unique(read.begin(), read.end()), read.end());
  Bytes sum;
  for (const WeightId id : read) sum += graph.weight(id).bytes;
  return sum;
}

}  // namespace

/// The sessions that use one arena in turn.
struct Fleet::Part {
  struct Seat {
    std::size_t model = 0;
    UnitIndex unit = 0;
    std::shared_ptr<const sluice::Model> graph;
  };
  std::size_t processor = 0;
  std::vector<Seat> seats;
  Bytes overhead;  // library scope
  Bytes floor;     // what is needed at least
  Bytes wish;      // what could be used beyond
  Bytes given;
};

Result<std::vector<Fleet::Part>> Fleet::parts(const SchedulerOptions& options) const {
  std::vector<Part> all;
  for (std::size_t p = 0; p < processors.size(); ++p) {
    if (processors[p].options.kind != ProcessorOptions::Kind::kCpu) continue;
    for (const bool urgent : {false, true}) {
      Part part;
      part.processor = p;
      for (std::size_t m = 0; m < models.size(); ++m) {
        if (models[m].options.urgent != urgent) continue;
        const std::size_t units = models[m].unit_ends.size();
        for (UnitIndex u = 0; u < units; ++u) {
          if (models[m].units.units[u].times[p] == kNever) continue;
          std::shared_ptr<const sluice::Model> graph = models[m].model;
          if (units > 1) {
            const std::size_t first = first_node(models[m], u);
            SLUICE_ASSIGN_OR_RETURN(graph, models[m].model->part(first, models[m].unit_ends[u] - first));
          }
          part.seats.push_back({m, u, std::move(graph)});
        }
      }
      if (part.seats.empty()) continue;
      SLUICE_RETURN_IF_ERROR(price(options, part));
      all.push_back(std::move(part));
    }
  }
  return all;
}

SessionOptions Fleet::session_options(const SchedulerOptions& options, std::size_t p, bool in_units) const {
  const ProcessorOptions& processor = processors[p].options;
  SessionOptions session;
  session.threads = processor.threads;
  session.repeat = true;
  session.keep_inputs = false;
  session.ports_elsewhere = in_units;
  session.emulation.compute_slowdown = processor.compute_slowdown;
  session.before_step = processors[p].boundary;
  session.profile = options.profile;
  return session;
}

Status Fleet::price(const SchedulerOptions& options, Part& part) const {
  const std::array<SessionOptions, 2> sessions = {session_options(options, part.processor, false),
                                                  session_options(options, part.processor, true)};
  std::vector<engine::SessionShare> shares;
  Bytes largest;
  for (const Part::Seat& seat : part.seats) {
    const SessionOptions& session = sessions[in_units(seat.model) ? 1 : 0];
    shares.push_back({seat.graph.get(), &session, false});
    SLUICE_ASSIGN_OR_RETURN(const Bytes least, minimum_budget(*seat.graph, session));
    largest = std::max(largest, least - engine::overhead_of(*seat.graph, session));
    part.wish += weight_bytes(seat.graph->graph());
  }
  part.overhead = engine::overhead_of(shares, BudgetScope::kLibrary, sessions[0].threads, Bytes(), Bytes());
  part.floor = part.overhead + largest;
  return {};
}

/// Of the backends' libraries.
Bytes Fleet::process_bytes() const noexcept {
  Bytes sum;
  for (std::size_t p = 0; p < processors.size(); ++p) {
    const auto& backend = processors[p].options.backend;
    const bool before = std::any_of(
        processors.begin(), processors.begin() + static_cast<std::ptrdiff_t>(p),
        [&](const FleetProcessor& other) { return other.options.backend && backend && other.options.backend->kind() == backend->kind(); });
    if (backend && !before) sum += backend->process_bytes();
  }
  return sum;
}

/// In process scope no budget below this holds, however small the models are.
Bytes Fleet::least_budget(const SchedulerOptions& options) const noexcept {
  if (options.scope == BudgetScope::kLibrary) return {};
  const bool encrypted = std::any_of(models.begin(), models.end(), [](const FleetModel& m) { return m.model->file().key() != nullptr; });
  return engine::least_process(encrypted) + process_bytes() + std::max(kServingBytes, options.reserve);
}

/// What is left of the budget for arenas and what belongs to them.
Bytes Fleet::beside_parts(const SchedulerOptions& options, const std::vector<Part>& parts, std::size_t slots) const {
  Bytes beside = (slots + spare_regions()) * Bytes(between_bytes()) + processors.size() * kWorkerBytes;
  for (const FleetModel& entry : models)
    for (const std::vector<UnitProgram>& there : entry.programs)
      for (const UnitProgram& unit : there)
        if (unit.program) beside += unit.program->bytes();
  for (const FleetModel& entry : models)
    for (const FleetProcessor& processor : processors)
      if (processor.clock)
        for (const auto* list : {&entry.inputs, &entry.outputs})
          for (const std::vector<std::byte>& tensor : *list) beside += Bytes(tensor.size());
  if (options.scope == BudgetScope::kLibrary) return beside;
  beside += process_bytes();
  // The process beside all arenas; what each part counts of that by itself is not counted twice.
  std::vector<SessionOptions> sessions(parts.size());
  std::vector<engine::SessionShare> shares;
  Bytes counted;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sessions[i] = session_options(options, parts[i].processor, false);
    for (const Part::Seat& seat : parts[i].seats) shares.push_back({seat.graph.get(), &sessions[i], false});
    counted += parts[i].overhead;
  }
  // Its sessions state what the library holds, so that none of them does it.
  if (options.budget < kUnlimitedBytes) engine::release_code_pages_in_pieces();
  const Bytes process = engine::overhead_of(shares, options.scope, 1, Bytes(), options.reserve + beside);
  return process - std::min(process, counted);
}

Status Fleet::make_parts(const SchedulerOptions& options, std::size_t slots) {
  constexpr int kRounds = 16;  // tables differ from plan to plan; a part that is refused says what it needs
  SLUICE_ASSIGN_OR_RETURN(std::vector<Part> all, parts(options));
  const Bytes beside = beside_parts(options, all, slots);
  for (int round = 0;; ++round) {
    Bytes floors = beside, wishes;
    for (const Part& part : all) {
      floors += part.floor;
      wishes += part.wish;
    }
    floors = std::max(floors, least_budget(options));
    if (floors > options.budget || round == kRounds)
      return fail(make_error(ErrorCode::kBudgetTooSmall, "scheduler", "the models do not fit on all processors", floors.count(),
                             options.budget.count()));
    const double rest = static_cast<double>((options.budget - floors).count());
    given = beside;
    for (Part& part : all) {
      const double share = static_cast<double>(part.wish.count()) / static_cast<double>(std::max<std::uint64_t>(wishes.count(), 1));
      const bool unlimited = options.budget >= kUnlimitedBytes;
      part.given = unlimited ? kUnlimitedBytes : part.floor + Bytes(static_cast<std::uint64_t>(rest * share));
      given += unlimited ? part.floor + part.wish : part.given;
    }
    SLUICE_ASSIGN_OR_RETURN(const bool filled, fill(options, all));
    if (!filled) continue;
    // The code of reading and planning goes back before that of the runs comes beside it.
    if (options.scope == BudgetScope::kProcess && options.budget < kUnlimitedBytes) engine::release_code_pages();
    return {};
  }
}

/// False: a part has learned that it needs more.
Result<bool> Fleet::fill(const SchedulerOptions& options, std::vector<Part>& all) {
  for (Part& part : all) {
    const Status status = fill_part(options, part);
    if (status) continue;
    if (status.error().code != ErrorCode::kBudgetTooSmall || options.budget >= kUnlimitedBytes) return fail(status.error());
    constexpr std::uint64_t kStep = 64 * 1024;
    part.floor = std::max(Bytes(status.error().needed), part.floor) + Bytes(kStep);
    for (FleetModel& entry : models)
      for (std::size_t p = 0; p < processors.size(); ++p)
        if (processors[p].options.kind == ProcessorOptions::Kind::kCpu)
          for (UnitProgram& unit : entry.programs[p]) unit.program.reset();
    return false;
  }
  return true;
}

Status Fleet::fill_part(const SchedulerOptions& options, const Part& part) {
  const ProcessorOptions& processor = processors[part.processor].options;
  SLUICE_ASSIGN_OR_RETURN(const std::shared_ptr<SharedArena> arena,
                          SharedArena::create({.budget = part.given, .threads = processor.threads, .compute_cpus = processor.cpus}));
  for (const Part::Seat& seat : part.seats) {
    SessionOptions session = session_options(options, part.processor, in_units(seat.model));
    session.arena = arena;
    SLUICE_ASSIGN_OR_RETURN(UnitProgram unit, unit_program(models[seat.model], seat.unit));
    SLUICE_ASSIGN_OR_RETURN(unit.program, make_cpu_program(seat.graph, session));
    models[seat.model].programs[part.processor][seat.unit] = std::move(unit);
  }
  return {};
}

}  // namespace sluice::scheduler

// How the one budget is divided among the processors, and the sessions that come of it.
#include <algorithm>
#include <array>

#include "src/engine/arena_window.h"
#include "src/engine/budget.h"
#include "src/engine/planning.h"
#include "src/engine/process_memory.h"
#include "src/scheduler/fleet.h"

namespace sluice::scheduler {
namespace {

// A worker's stack, as far as runs touch it (engine.h, kLeastStack), and its tables.
constexpr Bytes kWorkerBytes{64 * 1024};
// A process that serves holds so much more than one that runs a model: its own code, and two threads at least. Peaks of serving a model of
// a few KiB were 6.89 to 7.17 MB. What the program reserves for itself covers it.
constexpr Bytes kServingBytes{(1024 + 768) * 1024};

/// Whether both are the same part of one file at the same extents.
bool same_graph(const sluice::Model& a, const sluice::Model& b) {
  const auto same_tensor = [](const model::Tensor& x, const model::Tensor& y) { return x.shape == y.shape && x.dtype == y.dtype; };
  const auto same_ports = [](const std::vector<model::Port>& x, const std::vector<model::Port>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const model::Port& p, const model::Port& q) { return p.tensor == q.tensor && p.name == q.name; });
  };
  const model::Graph &x = a.graph(), &y = b.graph();
  return &a == &b || (engine::same_file(a, b) && x.nodes.size() == y.nodes.size() && same_ports(x.inputs, y.inputs) &&
                      same_ports(x.outputs, y.outputs) &&
                      std::equal(x.tensors.begin(), x.tensors.end(), y.tensors.begin(), y.tensors.end(), same_tensor));
}

}  // namespace

/// The sessions that use one window in turn.
struct Fleet::Part {
  struct Seat {
    std::size_t model = 0;
    UnitIndex unit = 0;
    std::shared_ptr<const sluice::Model> graph;
    std::size_t share = 0;  // of the units whose weights are kept once
  };
  std::size_t processor = 0;
  std::vector<Seat> seats;
  Bytes overhead;  // library scope
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
      price(options, part);
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
  session.between_parts = processors[p].between_parts;
  session.profile = options.profile;
  return session;
}

void Fleet::price(const SchedulerOptions& options, Part& part) const {
  const std::array<SessionOptions, 2> sessions = {session_options(options, part.processor, false),
                                                  session_options(options, part.processor, true)};
  std::vector<engine::SessionShare> shares;
  for (const Part::Seat& seat : part.seats) shares.push_back({seat.graph.get(), &sessions[in_units(seat.model) ? 1 : 0], false});
  part.overhead = engine::overhead_of(shares, BudgetScope::kLibrary, sessions[0].threads, Bytes(), Bytes());
}

/// The memory of the backends' libraries.
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

/// No budget of process scope below this can be held, however small the models are.
Bytes Fleet::least_budget(const SchedulerOptions& options) const noexcept {
  if (options.scope == BudgetScope::kLibrary) return {};
  const bool encrypted = std::any_of(models.begin(), models.end(), [](const FleetModel& m) { return m.model->file().key() != nullptr; });
  return engine::least_process(encrypted) + process_bytes() + std::max(kServingBytes, options.reserve);
}

/// The part of the budget that is left for arenas and what belongs to them.
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
  // The process without its arenas; what each part counts of that itself is not counted twice.
  std::vector<SessionOptions> sessions(parts.size());
  std::vector<engine::SessionShare> shares;
  Bytes counted;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sessions[i] = session_options(options, parts[i].processor, false);
    for (const Part::Seat& seat : parts[i].seats) shares.push_back({seat.graph.get(), &sessions[i], false});
    counted += parts[i].overhead;
  }
  // Its sessions state library scope, so that none of them counts the process.
  if (options.budget < kUnlimitedBytes) engine::release_code_pages_in_pieces();
  const Bytes process = engine::overhead_of(shares, options.scope, 1, Bytes(), options.reserve + beside);
  return process - std::min(process, counted);
}

/// Seats whose sessions run the same part of the same file in the same way are one unit: its weights are kept once.
std::vector<ShareUnit> Fleet::share_units(const SchedulerOptions& options, std::vector<Part>& parts) const {
  std::vector<ShareUnit> units;
  for (std::size_t part = 0; part < parts.size(); ++part)
    for (Part::Seat& seat : parts[part].seats) {
      SessionOptions session = session_options(options, parts[part].processor, in_units(seat.model));
      session.tuning.read_ahead = parts[part].seats.size() == 1;
      const auto same = [&](const ShareUnit& unit) {
        return unit.options.threads == session.threads && unit.options.ports_elsewhere == session.ports_elsewhere &&
               unit.options.tuning.read_ahead == session.tuning.read_ahead && same_graph(*unit.graph, *seat.graph);
      };
      const auto known = std::find_if(units.begin(), units.end(), same);
      seat.share = static_cast<std::size_t>(known - units.begin());
      ShareUnit& unit = known != units.end() ? *known : units.emplace_back(ShareUnit{.graph = seat.graph, .options = session, .runs = 0});
      unit.parts.push_back(part);
      unit.runs += models[seat.model].options.runs_per_second;
    }
  return units;
}

/// Within what is left of the budget. `beside` is the memory of everything else. Errors: kBudgetTooSmall with the least that works.
Status Fleet::choose_plans(const SchedulerOptions& options, Bytes beside, std::span<const Part> parts, std::vector<ShareUnit>& units) {
  for (const Part& part : parts) beside += part.overhead;
  for (ShareUnit& unit : units) SLUICE_RETURN_IF_ERROR(plan_least(unit));
  const Bytes least = std::max(beside + bytes_of(units, parts.size()), least_budget(options));
  if (least > options.budget)
    return fail(make_error(ErrorCode::kBudgetTooSmall, "scheduler", "the models do not fit on all processors", least.count(),
                           options.budget.count()));
  if (options.budget >= kUnlimitedBytes) {
    for (ShareUnit& unit : units) SLUICE_RETURN_IF_ERROR(plan_all(unit));
  } else {
    const Bytes room = options.budget - beside;
    for (ShareUnit& unit : units) SLUICE_RETURN_IF_ERROR(plan_more(unit, room));
    share_out(units, parts.size(), room);
    SLUICE_RETURN_IF_ERROR(use_rest(units, parts.size(), room));
  }
  given = beside + bytes_of(units, parts.size());
  return {};
}

Status Fleet::make_parts(const SchedulerOptions& options, std::size_t slots) {
  SLUICE_ASSIGN_OR_RETURN(std::vector<Part> all, parts(options));
  if (all.empty()) return {};
  std::vector<ShareUnit> units = share_units(options, all);
  SLUICE_RETURN_IF_ERROR(choose_plans(options, beside_parts(options, all, slots), all, units));
  SLUICE_RETURN_IF_ERROR(fill(options, all, units));
  if (options.scope != BudgetScope::kProcess) return {};
  // The plans that were not chosen, and the code of reading and planning, go back before the runs have theirs beside them.
  units = {};
  engine::release_free_heap();
  if (options.budget < kUnlimitedBytes) engine::release_code_pages();
  return {};
}

/// Lays out one arena: what is kept, then a window for each part.
Status Fleet::fill(const SchedulerOptions& options, std::vector<Part>& all, std::vector<ShareUnit>& units) {
  std::uint64_t end = 0;
  std::vector<engine::KeptPlace> kept;
  for (ShareUnit& unit : units) {
    unit.at = end;
    end += align_up(unit.plan().parts.kept, engine::kArenaPage);
    kept.push_back({unit.plan().plan.get(), unit.at, unit.plan().parts});
  }
  std::vector<Interval<std::uint64_t>> windows;
  for (std::size_t part = 0; part < all.size(); ++part) {
    windows.push_back({end, end + window_of(units, part).count()});
    end = windows.back().end;
  }
  SLUICE_ASSIGN_OR_RETURN(Arena reserved, Arena::reserve(Bytes(end)));
  SLUICE_RETURN_IF_ERROR(reserved.commit(Bytes(end)));
  const auto arena = std::make_shared<Arena>(std::move(reserved));
  for (std::size_t part = 0; part < all.size(); ++part) {
    const ProcessorOptions& processor = processors[all[part].processor].options;
    SLUICE_ASSIGN_OR_RETURN(
        arenas_.emplace_back(),
        engine::open_window({.window = {arena, windows[part], kept}, .threads = processor.threads, .compute_cpus = processor.cpus}));
    SLUICE_RETURN_IF_ERROR(fill_part(options, all[part], units, arenas_.back()));
  }
  return {};
}

Status Fleet::fill_part(const SchedulerOptions& options, const Part& part, std::span<const ShareUnit> units,
                        const std::shared_ptr<SharedArena>& arena) {
  for (const Part::Seat& seat : part.seats) {
    SessionOptions session = session_options(options, part.processor, in_units(seat.model));
    session.arena = arena;
    session.plan = units[seat.share].plan().plan.get();
    SLUICE_ASSIGN_OR_RETURN(UnitProgram unit, unit_program(models[seat.model], seat.unit));
    SLUICE_ASSIGN_OR_RETURN(unit.program, make_cpu_program(seat.graph, session));
    models[seat.model].programs[part.processor][seat.unit] = std::move(unit);
  }
  return {};
}

}  // namespace sluice::scheduler

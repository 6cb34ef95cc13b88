// The processors with everything on them that can run: what stands between the scheduler's decisions and the engine.
//
//     models x processors --units by support--> programs, one a unit and processor        one budget, in parts:
//
//     budget | overhead | what passes between units | backends' copies
//            | weights that are kept, once for all | window of processor 0 | its urgent window | window of processor 1 | ...
//
// A window is what the sessions of one processor use in turn, for activations and streamed weights. Urgent models have a window of their
// own on each processor, because a run that gives way keeps what it has there. Kept weights are there once for all CPU processors;
// weight_shares.h decides how many of each model, by the time that they save.
//
// Invariants: (P1) windows and what is kept are within the budget; (P2) a unit has a program on each processor that supports it, and on no
// other; (P3) a job's tensors are named by places (`TensorPlace`) on which all programs of the model agree.
#pragma once

#include <memory>
#include <vector>

#include "sluice/engine/shared_arena.h"
#include "sluice/scheduler/cut.h"
#include "sluice/scheduler/scheduler.h"
#include "src/scheduler/hand_over.h"
#include "src/scheduler/programs.h"
#include "src/scheduler/weight_shares.h"

namespace sluice::scheduler {

/// The address of a job's tensor: with the caller, or in the job's own hand-over memory.
struct TensorPlace {
  enum class Kind : std::uint8_t { kInput, kOutput, kBetween };
  Kind kind = Kind::kInput;
  std::size_t at = 0;  // port of the model, or bytes from the beginning of what the job hands over
  std::size_t bytes = 0;
  UnitIndex maker = 0;  // kBetween: the unit that makes it
};

/// A unit of a model, ready on a processor.
struct UnitProgram {
  std::unique_ptr<backends::Program> program;  // null: not supported
  std::vector<TensorPlace> inputs, outputs;
  std::vector<bool> input_placed, output_placed;  // by port: the run finds, or makes, it in the job's memory
  std::shared_ptr<Time> time;                     // of a timed processor
};

struct FleetModel {
  std::shared_ptr<const sluice::Model> model;
  ModelOptions options;
  std::vector<std::size_t> unit_ends;                       // nodes [ends[u - 1], ends[u]) are unit u
  Model units;                                              // their times are 1 where supported, until they are measured
  std::vector<TensorPlace> places{};                        // by tensor of the graph
  std::size_t between_bytes = 0;                            // that a job hands over
  std::vector<std::vector<UnitProgram>> programs{};         // by processor, by unit
  std::vector<std::vector<std::byte>> inputs{}, outputs{};  // reference values...
  AlignedBytes between{};                                   // ...of all that a job may read
};

struct FleetProcessor {
  ProcessorOptions options;
  std::shared_ptr<TimedClock> clock{};  // timed
  executor::StepHook boundary{};        // its worker's
  executor::PartHook between_parts{};   // likewise
  std::vector<Fallback> fallbacks{};    // units that it could not take after all
};

/// "cpu", "timed", or what the backend calls itself.
std::string_view kind_of(const ProcessorOptions& options) noexcept;

/// A job's tensors, by TensorPlace.
struct JobMemory {
  std::span<const std::span<const std::byte>> inputs;
  std::span<const std::span<std::byte>> outputs;
  std::span<std::byte> between;

  std::span<const std::byte> read(const TensorPlace& place) const noexcept;
  std::span<std::byte> write(const TensorPlace& place) const noexcept;
  /// The bytes of a tensor between units, with the tail that may be read; nothing for others.
  std::span<std::byte> in_place(const TensorPlace& place) const noexcept;
};
/// Gives a unit its inputs, in the order of ports. A tensor between units is read and written in place if the program can do so.
Status give_inputs(const UnitProgram& unit, const JobMemory& memory) noexcept;
Status take_outputs(const UnitProgram& unit, const JobMemory& memory) noexcept;

class Fleet {
 public:
  std::vector<FleetProcessor> processors;
  std::vector<FleetModel> models;
  Bytes given;  // to the parts

  Status add_processor(const ProcessorOptions& options);
  Status add_model(std::shared_ptr<const sluice::Model> model, const ModelOptions& options);
  /// Cuts units, divides the budget, and makes all programs. `slots`: how many jobs may hand something over at once.
  Status build(const SchedulerOptions& options, std::size_t slots);
  Device device() const;
  std::size_t between_bytes() const noexcept;  // of the job that hands over most
  bool computes(std::size_t processor) const noexcept { return processors[processor].options.kind == ProcessorOptions::Kind::kCpu; }
  /// Regions beyond one a job (hand_over.h): for each processor that may hang in a run that writes to a job's.
  std::size_t spare_regions() const noexcept;
  /// Whether a unit's program makes what another unit reads in the job's memory.
  bool makes_in_place(const FleetModel& model, std::size_t processor, const TensorPlace& place) const noexcept;
  /// Runs everything on a processor with the reference inputs and writes the times into the models' units. In its worker's thread.
  Status measure(std::size_t processor, const SchedulerOptions& options) noexcept;
  /// After all that measure have: what timed processors take.
  void settle_times();

 private:
  struct Part;
  bool supports(std::size_t processor, const FleetModel& model, const model::Node& node) const;
  Status cut(FleetModel& model) const;
  void place_tensors(FleetModel& model) const;
  std::size_t first_node(const FleetModel& model, std::size_t unit) const noexcept { return unit == 0 ? 0 : model.unit_ends[unit - 1]; }
  Result<UnitProgram> unit_program(const FleetModel& model, UnitIndex unit) const;
  Status make_backend_programs();
  Status make_backend_program(const FleetModel& model, std::size_t processor, UnitIndex unit, UnitProgram& program);
  Status fall_back(FleetModel& model, std::size_t processor, UnitIndex unit, const Error& why);
  static void find_placed(const FleetModel& model, std::span<std::byte> between, UnitProgram& unit) noexcept;
  Status run_reference(FleetModel& model, std::size_t processor);
  Status read_weights();
  Status make_timed_programs(FleetModel& model);
  static Result<Time> measure_once(UnitProgram& unit, const JobMemory& memory);

  // fleet_memory.cc
  Result<std::vector<Part>> parts(const SchedulerOptions& options) const;
  bool in_units(std::size_t model) const noexcept { return models[model].unit_ends.size() > 1; }
  SessionOptions session_options(const SchedulerOptions& options, std::size_t processor, bool in_units) const;
  void price(const SchedulerOptions& options, Part& part) const;
  Bytes process_bytes() const noexcept;
  Bytes least_budget(const SchedulerOptions& options) const noexcept;
  Bytes beside_parts(const SchedulerOptions& options, const std::vector<Part>& parts, std::size_t slots) const;
  Status make_parts(const SchedulerOptions& options, std::size_t slots);
  std::vector<ShareUnit> share_units(const SchedulerOptions& options, std::vector<Part>& parts) const;
  Status choose_plans(const SchedulerOptions& options, Bytes beside, std::span<const Part> parts, std::vector<ShareUnit>& units);
  Status fill(const SchedulerOptions& options, std::vector<Part>& parts, std::vector<ShareUnit>& units);
  Status fill_part(const SchedulerOptions& options, const Part& part, std::span<const ShareUnit> units,
                   const std::shared_ptr<SharedArena>& arena);

  std::vector<std::shared_ptr<SharedArena>> arenas_;  // one a part
};

}  // namespace sluice::scheduler

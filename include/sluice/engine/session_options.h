// What a session is made with, in four parts:
//
//     use         what a program says of itself: budget, threads, shapes; most programs read no further than here
//     hooks       functions of the program's that are told what happens
//     Tuning      how the planner, the readers and the processors go about it; same outputs, other times
//     Emulation   a slower device than this one, to measure for it here
//
// Each option says its effect, its default and its price. An option that makes no sense is refused with kInvalidArgument when the session
// is made, and so is one that a plan from elsewhere or a shared arena contradicts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/core/log.h"
#include "sluice/core/units.h"
#include "sluice/engine/output_block.h"
#include "sluice/executor/executor.h"
#include "sluice/kernels/turns.h"
#include "sluice/model/variants.h"
#include "sluice/model/weight_source.h"
#include "sluice/plan/plan.h"
#include "sluice/planner/planner.h"

namespace sluice {

class SharedArena;  // shared_arena.h

/// What a budget bounds. kLibrary: all that Sluice holds. kProcess: the peak resident set of this process, as the kernel counts it: what it
/// holds when the session is made, what the session takes, and what the program says that it will take itself after (`reserve`). No budget
/// counts what it takes beyond that.
enum class BudgetScope : std::uint8_t { kLibrary, kProcess };

/// How a session goes about it. Nothing here changes a bit of any output.
struct Tuning {
  /// The rule that plans. Default: the planner's own, never slower than the others, which are there to compare with.
  planner::Policy policy = planner::Policy::kSluice;
  /// How much counted work may go into a better plan, in milliseconds of a usual CPU. Default: 50. Price: as long at opening and in
  /// set_budget; 0 takes the first plans, which are up to a few percent slower.
  std::uint64_t search_ms = 50;
  /// How far activations go in bands. Default: as far as the budget needs. kOff: never, and some budgets are refused; kLeast: as far as
  /// possible, for the least memory. Price of bands: rows that are computed twice.
  planner::Partition partition = planner::Partition::kAuto;
  /// The most that bands may cost, as a share of the predicted time without them. Default: 5 %. From 0 to 10; more allows smaller budgets.
  double max_overhead = 0.05;
  /// Whether a repeated run reads the first weights of the next one. Default: yes. Without, runs right after each other are slower, and
  /// what is kept is chosen for runs that begin with nothing read: for sessions that take turns.
  bool read_ahead = true;
  /// Who reads weights. Default: io_uring where the system has it and the model is read directly, else threads. kRing is refused where
  /// there is none; kThreads costs a stack for each read in flight.
  model::ReadMethod read_method = model::ReadMethod::kAuto;
  /// Whether reads go around the page cache. Default: where the file system allows it. kBuffered costs a copy, and pages that the system
  /// counts elsewhere. Only for models with a path of their own.
  model::ReadMode read_mode = model::ReadMode::kAuto;
  /// Bytes of one read, a multiple of 4096. Default: 0, what the device profile found best, else 512 KiB.
  Bytes read_size{};
  /// Reads under way at one time, up to executor::kMaxReadsInFlight. Default: 0, what the device profile found best, else 4.
  int reads_in_flight = 0;
  /// A run in which no read ends for so long fails with kIo (ETIMEDOUT). Default: 30 s; 0: never, so a dead disk hangs a run.
  std::int64_t read_timeout_ms = executor::ReadOptions{}.timeout_ms;
  /// Processors that compute, and those that the loader and its readers run on. Default, empty: where the CPU has big and small cores, the
  /// big ones compute, if there is one for each thread, and the small ones load; else all compute, and the loader runs where the interrupts
  /// of the model's disk go (core/storage_interrupts.h), if a processor is left for it. Price: the caller's thread is limited during run().
  std::vector<int> compute_cpus{};
  std::vector<int> load_cpus{};
};

/// A slower device. What is emulated is planned for and predicted, too.
struct Emulation {
  /// Steps take so many times their time, busy to the end. Default: 1, as fast as they are; up to 1000.
  double compute_slowdown = 1;
  /// Reads are slowed to this rate. Default: 0, as fast as the disk is.
  double read_bytes_per_second = 0;
};

struct SessionOptions {
  /// The most that the session may hold. Default: no limit, so all weights stay in memory. With less it streams: each run reads what was
  /// not kept. In a shared arena: what the session would take alone, or the arena's budget if that is less.
  Bytes budget = kUnlimitedBytes;
  /// Addresses are reserved for set_budget up to here, so that going up keeps what is resident. Default: 0, the budget. Costs address space
  /// and one more plan at opening, no memory.
  Bytes largest_budget{};
  /// What the budget bounds. Default: what the library holds.
  BudgetScope scope = BudgetScope::kLibrary;
  /// In process scope: the bytes that the program itself will take after this session is made, for its own buffers and for other libraries.
  /// Default: none. The arena becomes smaller by as much. Library scope does not count them. set_budget does not measure the process again.
  Bytes reserve{};
  /// Threads that compute, the caller's among them. Default: 1. Each costs a stack and its workspaces; outputs are the same bits.
  int threads = 1;
  /// Plan for repeated runs: the loads of the next one begin during this one, and weights that fit stay. Default: the first run counts.
  bool repeat = false;
  /// Inputs set once serve many runs. Default: yes. Without, their bytes are free for others during a run, and each run sets them.
  bool keep_inputs = true;
  /// Ports may be in the caller's memory (Session::place_input, place_output). Default: no. Costs what keep_inputs costs, and some bytes a
  /// port.
  bool ports_elsewhere = false;
  /// The directory of a scratch file, to which activations go and from which they come back, as the plan says, if even bands do not fit
  /// them in the budget. Default, empty: such budgets are refused. Costs the disk's time, twice for each byte; same outputs. The file has
  /// no name and ends with the session. Refused for encrypted models, whose activations it would hold in plain.
  std::string scratch_directory{};
  /// Turns that the loops of one step may take in all, those within others included; a run that wants more ends with kInvalidArgument.
  /// Default: a million, which keeps a hostile model from running for ever.
  std::int64_t max_turns = kernels::kDefaultMaxTurns;
  /// Keep what each step and load costs (Session::step_times, load_times). Default: no. Costs two looks at the clock a step.
  bool time_steps = false;
  /// The device profile (profiler/profile_file.h, profiler/measure.h); copied. Default: assumed rates, and plans that may be slower.
  const profiler::DeviceProfile* profile = nullptr;
  /// Run this plan instead of making one; verified, and copied. Default: the planner's.
  const plan::Plan* plan = nullptr;
  /// Not empty: the session is one of `model->with_dims(dims)`, whose graph its budget counts. Other sessions may have other extents.
  model::Extents dims{};
  /// Run in turn with the other sessions of this arena, within its budget. Scope, reserve, threads, compute_cpus and largest_budget are the
  /// arena's then; here they are left as they are, or say the same.
  std::shared_ptr<SharedArena> arena{};

  /// Told what the session decides and what keeps it from its best (core/log.h). Default: none; then no text is made.
  LogHook log{};
  /// Called before and after each step of a run, in the thread that runs: progress, a profiler's zones, a scheduler that lets a run wait.
  /// Default: nobody. Costs a branch a step. Neither allocates; both live as long as the session, across set_budget too.
  executor::StepHook before_step{};
  executor::StepHook after_step{};
  /// Called between parts of a step while its flag is set: a run can wait sooner than at the end of its step. Default: nobody.
  executor::PartHook between_parts{};

  /// Takes outputs block by block as they are made (engine/output_block.h): no budget holds them whole, and get_output has nothing to give.
  /// Default: none; outputs are valid until the next run. Lives as long as the session.
  OutputHook outputs{};

  Tuning tuning{};
  Emulation emulation{};
};

}  // namespace sluice

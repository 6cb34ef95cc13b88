// Runs several models on several processors inside one budget: the entry point of this folder.
//
//     auto scheduler = Scheduler::create({.budget = 64_MiB, .processors = {{.cpus = {0}}, {.cpus = {1}, .compute_slowdown = 3}}});
//     auto faces = (*scheduler)->add_model(*face_model, {});
//     auto wake  = (*scheduler)->add_model(*word_model, {.urgent = true});
//     (*scheduler)->start();                                        // plans the memory, measures, starts the workers
//     auto job = (*scheduler)->submit(*faces, {inputs, outputs}, {.deadline = 50 * kMillisecond});
//     (*scheduler)->wait(job->ticket);                              // met, late, dropped, cancelled or failed, and when
//
//     submit, cancel --> Board, its State --policy--> decisions --> workers, one a processor, one run of units at a time
//                         one mutex round both; a decision allocates nothing and is bounded (policy.h)
//
// Memory. Kept weights are in memory once, for all processors with CPU kernels. Each of these has a window of the arena besides, which
// the models' sessions use in turn; urgent models have a window of their own. So an urgent job can take a processor at the next step
// boundary: the run before rests where it is, with all its tensors, and goes on afterwards. What a backend packs and what passes between
// units is counted too.
//
// Tensors are the caller's: inputs and outputs of a job lie in its memory until the job has ended. Inputs are read again where a processor
// is lost, and outputs are written by a run that is still wanted, never by one that was given up.
//
// Invariants:
// - (R1) No job is lost: each ends once, as one of Outcome, whatever fails, and `Statistics` counts each. Goodput is over what was
//   submitted.
// - (R2) A job's outputs are complete and right, or its outcome says that there are none.
// - (R3) A processor whose run is overdue by far is given up, its run goes to others, and it is used again when that run has ended after
//   all.
// - (R4) After `start`, submitting, deciding and ending jobs allocate nothing.
// - (R5) All calls but create, add_model and start may come from any thread; `done` is called in the scheduler's own.
//
// Read device.h, state.h, board.h and policy.h for how decisions are made; simulator/simulator.h runs the same policies in virtual time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/backends/backend.h"
#include "sluice/engine/engine.h"
#include "sluice/scheduler/board.h"
#include "sluice/scheduler/policy.h"
#include "sluice/scheduler/simulator/reality.h"

namespace sluice::scheduler {

struct ProcessorOptions {
  enum class Kind : std::uint8_t { kCpu, kTimed, kBackend };

  Kind kind = Kind::kCpu;
  std::string name{};           // default: its kind and place
  std::vector<int> cpus{};      // where its worker, or its kernels, run; empty: anywhere
  int threads = 1;              // kCpu: that compute
  double compute_slowdown = 1;  // kCpu: SessionOptions::compute_slowdown
  /// kTimed, for experiments: a run takes the time that this table says for its model, in the order of add_model (kNever: unsupported), and
  /// gives outputs that were computed beforehand, for the reference inputs. An empty table: as long as the first CPU processor takes,
  /// divided by `speedup`.
  std::vector<Time> times{};
  double speedup = 1;
  std::shared_ptr<backends::Backend> backend{};  // kBackend
};

struct SchedulerOptions {
  Bytes budget = kUnlimitedBytes;
  BudgetScope scope = BudgetScope::kLibrary;
  Bytes reserve{};                             // as SessionOptions::reserve
  std::vector<ProcessorOptions> processors{};  // empty: one processor, which runs the CPU kernels
  std::string policy = "sluice";
  Limits limits{};
  int warmup_runs = 1;   // of each model on each processor, before the measured ones...
  int profile_runs = 3;  // ...of which the median is expected at first
  /// A run is overdue after `overdue_factor` times what was expected and `overdue_slack` more: so far that neither heat nor a busy
  /// neighbour looks like a hang.
  double smoothing = 0.1;  // how much of each new measurement goes into what is expected
  double overdue_factor = 8;
  Time overdue_slack = 100 * kMillisecond;
  std::size_t trace_runs = 0;                        // how many runs `trace` keeps, the first ones
  const profiler::DeviceProfile* profile = nullptr;  // as SessionOptions::profile
};

struct ModelOptions {
  std::string name{};          // default: its file
  bool urgent = false;         // its jobs take a processor at a step boundary from those of other models; it has its own part of the budget
  double runs_per_second = 1;  // how often its jobs come, as far as known: a model that runs often keeps more of its weights
  bool same_bits = false;      // only on processors that give the bits of our CPU kernels
  /// A tensor for each port. Measurements run on them, and a timed processor knows the answers to them alone. Default: zeros.
  std::vector<std::vector<std::byte>> reference_inputs{};
  ProcessorId fixed{};  // for the policy fixed_worker; default: processors in turn
};

enum class Outcome : std::uint8_t { kMet, kLate, kDropped, kCancelled, kFailed };
std::string_view name_of(Outcome outcome) noexcept;

using Ticket = std::uint64_t;

struct JobResult {
  Ticket ticket = 0;
  ModelId model{};
  std::uint32_t app = 0;
  Outcome outcome = Outcome::kFailed;
  Status status;                                // kFailed: why
  Time submitted = 0, ended = 0;                // since the scheduler's start
  Time predicted = kNever;                      // the end that was expected when it was submitted
  std::uint32_t interruptions = 0, losses = 0;  // runs that were interrupted, and runs that were lost with their processor
};

struct JobTensors {
  std::span<const std::span<const std::byte>> inputs;  // one a port, ONNX shape and order
  std::span<const std::span<std::byte>> outputs;       // likewise; an empty one is not copied out
};

struct JobOptions {
  Time deadline = kNever;         // from now on
  int priority = 0;               // a job comes before all of a lower one; urgent models begin at 1
  std::uint32_t app = 0;          // whose it is: statistics are kept for kMostApps
  bool only_if_it_holds = false;  // refused at once where the deadline cannot hold as things stand
  /// Called once, when the job has ended; the job is then over and not waited for.
  void (*done)(void* context, const JobResult& result) noexcept = nullptr;
  void* context = nullptr;
};
inline constexpr std::uint32_t kMostApps = 16;

struct Submission {
  Ticket ticket = 0;
  Time expected_end = kNever;  // since the scheduler's start; kNever: unknown to this policy, or
  bool holds = true;           // false: as things stand the deadline cannot hold
};

struct ProcessorStatistics {
  std::string name;
  std::string kind;
  std::uint64_t runs = 0, interruptions = 0, losses = 0;
  Time busy = 0;
  bool usable = true;
};

/// One run of units, for pictures of what happened.
struct RunEvent {
  Time begin = 0, end = 0;
  Ticket ticket = 0;
  ModelId model{};
  ProcessorId processor{};
  UnitIndex first = 0, last = 0;
  bool finished = false;  // else it gave way, failed, or its processor was lost
};

/// What units handed to each other, in bytes of the tensors that a unit read of another.
struct HandOverStatistics {
  Bytes between_cpus;  // made on a processor of CPU kernels and read on one, another or the same
  Bytes copied_there;  // of these: copied on the way, because the plan of one has something else at the tensor's bytes
  Bytes others;        // to or from other kinds of processors, which copy
};

struct SchedulerStatistics {
  Statistics jobs;
  std::array<Statistics, kMostApps> apps;
  std::vector<ProcessorStatistics> processors;
  std::uint64_t decisions = 0;
  Time longest_decision = 0, decision_time = 0;
  Bytes memory;  // that the parts of the budget were given
  HandOverStatistics handed_over;
};

/// Nodes [first_node, first_node + node_count) of a model, and the processors that support all of them.
struct UnitSupport {
  std::size_t first_node = 0, node_count = 0;
  std::vector<ProcessorId> processors;
};

/// A unit that a backend claims to support and could not be made ready or run there: the other processors that support it have it.
struct Fallback {
  ModelId model;
  std::size_t unit = 0;  // of `units`
  ProcessorId processor;
  Error why;
};

class Scheduler {
 public:
  /// Errors: kInvalidArgument for a policy or a processor that is not there.
  static Result<std::unique_ptr<Scheduler>> create(const SchedulerOptions& options);
  /// Drops jobs that have not ended, calls their `done`, and waits for those that run; in a forked child, where calls are refused, it does
  /// nothing. Not from inside a `done`, nor while another thread waits; a timed processor that hangs is not waited for.
  virtual ~Scheduler() = default;

  virtual Result<ModelId> add_model(std::shared_ptr<const sluice::Model> model, const ModelOptions& options) = 0;
  /// A unit that a backend cannot make ready or run goes to other processors, and `fallbacks` says so.
  /// Errors: kBudgetTooSmall with the smallest budget that works for these models on these processors; kUnsupported where no processor
  /// supports a model; those of Session::create and of the measured runs, and a backend's where nobody else supports the unit.
  virtual Status start() = 0;

  /// Errors: kInvalidArgument, for tensors that do not fit the model, for a full table (Limits::jobs live ones, or twice as many that no
  /// caller has waited for), before `start`, and from a `done` that the destructor calls; kCancelled with only_if_it_holds.
  virtual Result<Submission> submit(ModelId model, const JobTensors& tensors, const JobOptions& options) noexcept = 0;
  /// The job's end; its ticket is gone then. Errors: kInvalidArgument for a ticket that is not there, or whose job has a `done`.
  virtual Result<JobResult> wait(Ticket ticket) noexcept = 0;
  /// Ends the job as soon as it may: at once where it waits, at the next step boundary where it runs. Still to be waited for.
  virtual Status cancel(Ticket ticket) noexcept = 0;
  /// Waits until no job is live and all have been told of. Not from inside a `done`.
  virtual void drain() noexcept = 0;

  virtual Time now() const noexcept = 0;
  /// How a model was cut, and what each unit can run on: the fallback, before anything runs.
  virtual std::vector<UnitSupport> units(ModelId model) const = 0;
  /// The units that `start` took from a processor and gave to others; `units` no longer lists that processor for them.
  virtual std::vector<Fallback> fallbacks() const = 0;
  /// The outputs for the reference inputs, by port, computed on a processor with CPU kernels if there is one. Valid after `start`, as long
  /// as the scheduler lives.
  virtual std::span<const std::vector<std::byte>> reference_outputs(ModelId model) const noexcept = 0;
  /// The expected time of a whole model on a processor, with no other jobs; kNever: unsupported.
  virtual Time expected_time(ModelId model, ProcessorId processor) const noexcept = 0;
  virtual SchedulerStatistics statistics() const = 0;
  virtual std::vector<RunEvent> trace() const = 0;
  /// A fault of a timed processor, as the simulator has them. `at` is not looked at: it is there now.
  virtual Status emulate(const Fault& fault) noexcept = 0;
};

}  // namespace sluice::scheduler

// The scheduler over sessions: one mutex round the board, a worker a processor, and a watch that wakes the policy at deadlines, gives up
// what is overdue and calls `done`.
//
//     submit, cancel ----+                                        +--> worker p: inputs, run, outputs --> finished
//     a worker's return -+--> decide: policy, board, assignments --+        between steps, and parts of them: `look_up`
//     the watch ---------+                                        +--> worker q ...
//
// A run that gives way does so inside `look_up`: the function runs the urgent job and whatever else belongs there on the same stack,
// and returns when the run before is to go on. A run that is not to go on is cancelled there and leaves through Session::run.
//
// Invariants: (W1) everything below `mutex_` is touched with it held, but what a worker has taken for its run; (W2) a run's epoch is that
// of its worker when it began: where it differs later, the run was given up and whatever it brings is thrown away; (W3) while a worker
// copies tensors of the caller's it is `copying`, and is not given up.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "sluice/core/native_thread.h"
#include "src/scheduler/job_table.h"

namespace sluice::scheduler {

class Dispatcher final : public Scheduler {
 public:
  explicit Dispatcher(const SchedulerOptions& options, const Policy& policy) : options_(options), policy_(&policy) {}
  ~Dispatcher() override;
  Status add_processors();

  Result<ModelId> add_model(std::shared_ptr<const sluice::Model> model, const ModelOptions& options) override;
  Status start() override;
  Result<Submission> submit(ModelId model, const JobTensors& tensors, const JobOptions& options) noexcept override;
  Result<JobResult> wait(Ticket ticket) noexcept override;
  Status cancel(Ticket ticket) noexcept override;
  void drain() noexcept override;
  Time now() const noexcept override;
  Time expected_time(ModelId model, ProcessorId processor) const noexcept override;
  std::vector<UnitSupport> units(ModelId model) const override;
  std::vector<Fallback> fallbacks() const override;
  std::span<const std::vector<std::byte>> reference_outputs(ModelId model) const noexcept override;
  SchedulerStatistics statistics() const override;
  std::vector<RunEvent> trace() const override;
  Status emulate(const Fault& fault) noexcept override;

 private:
  /// What a worker took from the board.
  struct Assignment {
    Run run;
    std::uint64_t ticket = 0;  // on the board
    ModelId model{};
    JobMemory memory;
    std::size_t region = 0;  // of what its job hands over
    std::uint64_t epoch = 0;
    Time began = 0;
    Time in_units = 0;           // what its units have taken
    bool pays_dispatch = false;  // it does not go on with what ran before it
    UnitIndex unit = 0;          // under way...
    Time unit_began = 0;         // ...since then
    bool interrupted = false;    // what the unit takes in all is no measurement of it
    bool abandoned = false;      // it gave way and is not to go on: the board knows no run of it
  };
  struct Worker {
    Dispatcher* dispatcher = nullptr;
    std::size_t number = 0;
    NativeThread thread{};
    std::condition_variable assigned_changed{};
    bool assigned = false;  // the board has begun a run here that the worker has not taken
    bool copying = false;   // W3
    bool gone = false;      // its processor died
    bool measured = false;
    Status status{};  // of measuring
    std::uint64_t epoch = 0;
    Assignment* current = nullptr;
    backends::Program* running = nullptr;
    bool paused = false;                 // a run below the current one on this stack gave way
    std::atomic<bool> attention{false};  // something for the next step boundary
    ProcessorStatistics statistics{};
  };

  // workers.cc
  static void work(void* worker) noexcept;
  static void at_boundary(void* worker, const executor::StepEvent& step) noexcept;
  static void between_parts(void* worker) noexcept;
  enum class Place : std::uint8_t { kBetweenSteps, kInStep };
  static void look_up(Worker& worker, Place place) noexcept;
  bool makes_in_job_memory(const Worker& worker) const noexcept;
  void measure(Worker& worker) noexcept;
  void serve(Worker& worker) noexcept;
  void take(Worker& worker, Assignment& assignment) noexcept;
  void execute(Worker& worker, std::unique_lock<std::mutex>& lock) noexcept;
  Status run_units(Worker& worker, Assignment& assignment, std::unique_lock<std::mutex>& lock, bool& lost) noexcept;
  bool called_off(const Worker& worker, const Assignment& assignment) const noexcept;
  Status run_once(Worker& worker, const Assignment& assignment, const UnitProgram& unit, std::unique_lock<std::mutex>& lock) noexcept;
  Status run_program(Worker& worker, Assignment& assignment, const UnitProgram& unit, std::unique_lock<std::mutex>& lock) noexcept;
  void count_handed_over(const Worker& worker, const Assignment& assignment, const UnitProgram& unit) noexcept;
  void part_regions(std::size_t processor) noexcept;
  void rescue_outputs(const Worker& worker, const Assignment& assignment) noexcept;
  void end_run(Worker& worker, const Assignment& assignment, const Status& status, bool lost) noexcept;
  bool wants_way(const Worker& worker) const noexcept;
  void give_way(Worker& worker, std::unique_lock<std::mutex>& lock) noexcept;
  bool may_resume(const Worker& worker) const noexcept;
  void keep_event(const Assignment& assignment, std::size_t processor, bool finished) noexcept;

  // dispatcher.cc
  static void watch(void* self) noexcept;
  void watch_over() noexcept;
  void decide() noexcept;
  bool wants_attention(const Worker& worker) const noexcept;
  void collect() noexcept;
  void end_job(const JobState& job, JobRecord& record) noexcept;
  void give_up(std::size_t processor) noexcept;
  void give_up_overdue() noexcept;
  Time overdue_at(const ProcessorState& processor) const noexcept;
  Time next_event() const noexcept;
  bool tell(std::unique_lock<std::mutex>& lock) noexcept;
  Status check(ModelId model, const JobTensors& tensors, const JobOptions& options) const noexcept;
  Status measure_all();
  Status start_workers();
  bool is_urgent(ModelId model) const noexcept { return fleet_.models[model.index()].options.urgent; }

  SchedulerOptions options_;
  const Policy* policy_;
  Fleet fleet_;
  std::vector<std::unique_ptr<Worker>> workers_;
  NativeThread watch_;
  mutable std::mutex mutex_;
  std::condition_variable ended_, watched_;
  bool started_ = false, serving_ = false, closing_ = false;
  bool telling_ = false;  // a `done` is under way
  Time watch_wakes_ = 0;  // when the watch looks next
  std::chrono::steady_clock::time_point epoch_{};
  std::optional<Profile> profile_;
  std::optional<Board> board_;
  std::optional<PolicyMemory> memory_;
  std::optional<Decisions> decisions_;
  JobTable jobs_;
  HandOver between_;
  HandOverStatistics handed_over_;
  std::array<Statistics, kMostApps> apps_{};
  std::vector<RunEvent> events_;
  std::uint64_t decided_ = 0;
  Time longest_decision_ = 0, decision_time_ = 0;
};

}  // namespace sluice::scheduler

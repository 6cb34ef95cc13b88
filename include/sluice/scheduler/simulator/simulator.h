// Runs a policy on an instance in virtual time. Board and policies are those of the real scheduler; in place of workers there is a clock
// that jumps from event to event, and in place of processors their behaviour (reality.h). Same instance, reality and seed: same trace, bit
// by bit.
//
//     next event ---> arrivals, ends of runs, step boundaries, faults, overdue runs, deadlines ---> Board ---> policy ---> Board
//
// A run that is overdue by far (`overdue_at`) is taken for hung and its processor given up, as the real scheduler's watch does.
#pragma once

#include <vector>

#include "sluice/scheduler/policy.h"
#include "sluice/scheduler/simulator/instance.h"
#include "sluice/scheduler/simulator/reality.h"

namespace sluice::scheduler {

struct TraceEvent {
  enum class Kind : std::uint8_t { kArrival, kStart, kEnd, kInterrupted, kDrop, kMet, kLate, kLost, kFault, kOverfull };
  Time at = 0;
  Kind kind = Kind::kArrival;
  std::uint64_t ticket = 0;
  ProcessorId processor{};
  UnitIndex first = 0, last = 0;
  friend bool operator==(const TraceEvent&, const TraceEvent&) noexcept = default;
};

struct SimulationOptions {
  Reality reality;
  Limits limits;
  SearchParameters search;
  std::vector<ProcessorId> fixed;
  bool trace = false;
};

struct SimulationResult {
  Statistics statistics;
  std::vector<TraceEvent> trace;
  std::vector<Time> busy;       // by processor
  std::vector<JobState> ended;  // in order of their ends
  Time end = 0;
  std::uint64_t decisions = 0, full_decisions = 0;
  std::uint64_t most_cells = 0;  // of one decision
};

class Simulator {
 public:
  Simulator(const Instance& instance, const Policy& policy, SimulationOptions options)
      : instance_(instance),
        policy_(policy),
        options_(std::move(options)),
        profile_(instance.device, instance.models),
        board_(instance.device, profile_, options_.limits),
        memory_(board_.state(), options_.fixed, options_.search),
        decisions_(most_decisions(board_.state())),
        noise_(options_.reality.seed),
        bodies_(instance.device.count()),
        running_(instance.device.count()) {
    result_.busy.resize(instance.device.count());
    Random random(options_.reality.seed ^ 0xb1a5);
    for (const Model& model : instance.models)
      for (std::size_t i = 0; i < model.units.size() * instance.device.count(); ++i)
        bias_.push_back(random.log_normal(options_.reality.bias));
    for (std::size_t m = 0, at = 0; m < instance.models.size(); ++m) {
      bias_begin_.push_back(at);
      at += instance.models[m].units.size() * instance.device.count();
    }
  }

  SimulationResult run() {
    for (Time now = 0; now < kNever; now = next_event()) {
      board_.set_now(now);
      bool happened = faults();  // each is asked, whatever the one before says
      happened = ends() || happened;
      happened = arrivals() || happened;
      happened = overdue() || happened;
      if (!happened && now > 0 && board_.state().live.empty()) continue;
      decide();
    }
    // A job that no policy could place, for instance because no processor is left that supports it, counts as not met.
    while (!board_.state().live.empty()) board_.apply(std::array{Decision::drop(board_.state().live.front())});
    collect();
    result_.statistics = board_.statistics();
    result_.end = board_.state().now;
    result_.full_decisions = memory_.plans;
    return std::move(result_);
  }

  /// When a run is taken for hung: four times what was expected and 5 ms more, so that no thermal limit or busy neighbour looks like it.
  static Time overdue_at(const ProcessorState& processor) noexcept {
    return processor.began + 4 * processor.run.expected + 5 * kMillisecond;
  }

 private:
  struct Running {  // what really happens on a processor
    std::vector<Time> unit_ends;
    std::vector<double> entered;  // of each unit: where its own time begins, dispatch and copies before it
    Time ends = kNever, stops = kNever;
  };

  void trace(TraceEvent::Kind kind, std::uint64_t ticket, ProcessorId processor = {}, UnitIndex first = 0, UnitIndex last = 0) {
    if (options_.trace) result_.trace.push_back({board_.state().now, kind, ticket, processor, first, last});
  }

  Time next_event() const noexcept {
    const State& state = board_.state();
    Time next = kNever;
    if (arrived_ < instance_.arrivals.size()) next = instance_.arrivals[arrived_].at;
    if (next_fault_ < options_.reality.faults.size() && (!state.live.empty() || next < kNever))
      next = std::min(next, options_.reality.faults[next_fault_].at);
    for (std::size_t p = 0; p < running_.size(); ++p) {
      if (!state.processors[p].busy) continue;
      next = std::min({next, running_[p].ends, running_[p].stops, std::max(overdue_at(state.processors[p]), state.now + 1)});
    }
    for (const JobSlot slot : state.live)  // a deadline that passes is news to a policy
      if (state.job(slot).deadline >= state.now && state.job(slot).deadline < kNever) next = std::min(next, state.job(slot).deadline + 1);
    return next;
  }

  bool arrivals() {
    bool any = false;
    for (; arrived_ < instance_.arrivals.size() && instance_.arrivals[arrived_].at <= board_.state().now; ++arrived_) {
      const JobSlot slot = board_.submit(instance_.arrivals[arrived_].request);
      trace(slot.valid() ? TraceEvent::Kind::kArrival : TraceEvent::Kind::kOverfull, board_.statistics().submitted);
      any = true;
    }
    return any;
  }

  bool faults() {
    bool any = false;
    for (; next_fault_ < options_.reality.faults.size() && options_.reality.faults[next_fault_].at <= board_.state().now; ++next_fault_) {
      const Fault& fault = options_.reality.faults[next_fault_];
      const std::size_t p = fault.processor.index();
      trace(TraceEvent::Kind::kFault, 0, fault.processor);
      any = true;
      switch (fault.kind) {
        case Fault::Kind::kSlow:
          bodies_[p].slowed = fault.factor;
          break;
        case Fault::Kind::kHang:
          bodies_[p].hangs = true;
          running_[p].ends = running_[p].stops = kNever;
          break;
        case Fault::Kind::kDie:
          board_.lost(fault.processor);
          break;
        case Fault::Kind::kWell:
          bodies_[p].slowed = 1;
          bodies_[p].hangs = false;
          if (!board_.state().processors[p].usable) board_.back(fault.processor);
          break;
      }
    }
    collect();
    return any;
  }

  bool ends() {
    bool any = false;
    const State& state = board_.state();
    for (std::size_t p = 0; p < running_.size(); ++p) {
      if (!state.processors[p].busy || std::min(running_[p].ends, running_[p].stops) > state.now) continue;
      any = true;
      if (running_[p].ends <= state.now)
        end_run(p);
      else
        interrupt(p);
    }
    collect();
    return any;
  }

  void end_run(std::size_t p) {
    const ProcessorState& processor = board_.state().processors[p];
    const Run run = processor.run;
    const Running& running = running_[p];
    for (UnitIndex u = run.first; u < run.last; ++u) {
      const JobState& job = board_.state().job(run.job);
      if (u != job.interrupted)
        board_.observed(ProcessorId(p), u, running.unit_ends[u - run.first] - static_cast<Time>(running.entered[u - run.first]));
    }
    trace(TraceEvent::Kind::kEnd, board_.state().job(run.job).ticket, ProcessorId(p), run.first, run.last);
    account(p);
    board_.finished(ProcessorId(p));
  }

  void interrupt(std::size_t p) {
    const Run run = board_.state().processors[p].run;
    const Running& running = running_[p];
    const Time now = board_.state().now;
    UnitIndex u = run.first;
    while (running.unit_ends[u - run.first] <= now) ++u;
    const double whole = static_cast<double>(running.unit_ends[u - run.first]) - running.entered[u - run.first];
    const double left = std::min(1.0, static_cast<double>(running.unit_ends[u - run.first] - now) / whole);
    const JobState& job = board_.state().job(run.job);
    const Time expected = u == job.interrupted ? job.rest : profile_.time(job.model, u, p);
    trace(TraceEvent::Kind::kInterrupted, job.ticket, ProcessorId(p), run.first, u);
    account(p);
    board_.interrupted(ProcessorId(p), u, static_cast<Time>(static_cast<double>(expected) * left));
  }

  void account(std::size_t p) {
    const Time began = board_.state().processors[p].began, now = board_.state().now;
    result_.busy[p] += now - began;
    bodies_[p].worked(options_.reality, began, now);
  }

  bool overdue() {
    bool any = false;
    for (std::size_t p = 0; p < running_.size(); ++p) {
      const ProcessorState& processor = board_.state().processors[p];
      if (!processor.busy || board_.state().now < overdue_at(processor)) continue;
      trace(TraceEvent::Kind::kLost, board_.state().job(processor.run.job).ticket, ProcessorId(p));
      board_.lost(ProcessorId(p));
      any = true;
    }
    collect();
    return any;
  }

  void collect() {
    for (const JobState& job : board_.ended()) {
      const bool met = !job.dropped && job.expected_end <= job.deadline;
      trace(job.dropped ? TraceEvent::Kind::kDrop : met ? TraceEvent::Kind::kMet : TraceEvent::Kind::kLate, job.ticket);
      result_.ended.push_back(job);
    }
    board_.forget_ended();
  }

  void decide() {
    decisions_.clear();
    const std::uint64_t before = memory_.cells;
    policy_.decide(board_.state(), memory_, decisions_);
    ++result_.decisions;
    result_.most_cells = std::max(result_.most_cells, memory_.cells - before);
    board_.apply(decisions_.all());
    for (const ProcessorId id : board_.started()) begin(id.index());
    const State& state = board_.state();
    for (std::size_t p = 0; p < running_.size(); ++p)
      if (state.processors[p].giving_way && running_[p].stops >= kNever && !bodies_[p].hangs) {
        const Time step = state.processors[p].step, since = state.now - state.processors[p].began;
        running_[p].stops = state.processors[p].began + (since / step + 1) * step;
      }
    collect();
  }

  void begin(std::size_t p) {
    const State& state = board_.state();
    const Run& run = state.processors[p].run;
    const JobState& job = state.job(run.job);
    Running& running = running_[p];
    running = {};
    trace(TraceEvent::Kind::kStart, job.ticket, ProcessorId(p), run.first, run.last);
    double at = static_cast<double>(state.now);
    const double factor = bodies_[p].factor(options_.reality, state.now);
    for (UnitIndex u = run.first; u < run.last; ++u) {
      const Unit& unit = instance_.models[job.model.index()].units[u];
      if (u == run.first && !(u > 0 && state.runs_last(p, run.job, u - 1))) at += static_cast<double>(profile_.dispatch(p));
      for (const UnitIndex source : unit.reads_from)
        if (source < run.first) at += static_cast<double>(profile_.copy(job.model, source, state.place(run.job, source), p));
      running.entered.push_back(at);
      double time = static_cast<double>(unit.times[p]);
      if (u == job.interrupted && job.interrupted_on.index() == p)
        time *= static_cast<double>(job.rest) / static_cast<double>(profile_.time(job.model, u, p));
      const double bias = bias_[bias_begin_[job.model.index()] + u * running_.size() + p];
      const double noise = options_.reality.noise > 0 ? noise_.log_normal(options_.reality.noise) : 1;
      at += std::max(1.0, time * bias * noise * factor);
      running.unit_ends.push_back(static_cast<Time>(at));
    }
    running.ends = bodies_[p].hangs ? kNever : running.unit_ends.back();
  }

  const Instance& instance_;
  const Policy& policy_;
  SimulationOptions options_;
  Profile profile_;
  Board board_;
  PolicyMemory memory_;
  Decisions decisions_;
  Random noise_;
  std::vector<double> bias_;
  std::vector<std::size_t> bias_begin_;
  std::vector<Body> bodies_;
  std::vector<Running> running_;
  std::size_t arrived_ = 0, next_fault_ = 0;
  SimulationResult result_;
};

inline SimulationResult simulate(const Instance& instance, const Policy& policy, SimulationOptions options = {}) {
  return Simulator(instance, policy, std::move(options)).run();
}

}  // namespace sluice::scheduler

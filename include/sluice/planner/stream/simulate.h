// Pass: what a schedule with gates will take. Three lanes, each in order:
//
//     read     |== 0 ==|= 1 =|   |=== 2 ===|            start_load(k) = max(end_load(k-1), end of the first gate_k steps)
//     decode           |0|    |1|          |2|          end_decode(k) = max(end_load(k), end_decode(k-1)) + d_k
//     compute            | 0 | | 1 |        | 2 |       start_step(i) = max(end_step(i-1), end_decode(last load that i needs))
//
// A load that waited for its gate starts `load_start` after it, a step that waited for a load `wake` after that.
//
// The prologue runs all loads and prepare steps; a period the streamed loads and the other steps. A run's wrapped loads (gate < 0) go in
// the tail of the run before: a period is then simulated again and again until two in a row take equally long, which is what every later
// one takes too.
// Invariants: times of a run count from its begin; step_end[i] is the end of the first i steps, step_end[0] = 0; more work, or a later
// gate, never makes a run shorter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sluice/planner/cut/schedule.h"
#include "sluice/profiler/latency.h"

namespace sluice::planner {

/// Seconds of each step and load of a schedule.
struct Costs {
  std::vector<double> step;
  std::vector<double> load;
  std::vector<double> decode;  // by load; empty: none
  double compute = 0;          // all steps of a period
  double load_start = 0;       // before a load that waited for its gate (DeviceProfile::load_start_seconds)
  double wake = 0;             // before a step that waited for a load (DeviceProfile::wake_seconds)
  double beside_reads = 1;     // factor on steps while the loader reads (DeviceProfile::step_time_beside_reads)
  // Of expect.h alone: `simulate` gives each load the disk to itself.
  std::vector<std::uint32_t> pieces;  // by load; empty: one each
  std::uint32_t reads_in_flight = 1;  // pieces, at most
  std::uint32_t reads_at_once = 1;    // of these, that the disk serves together
  double read_rate_waiting = 1;       // factor on the rate of reading while a step waits and nothing is computed
};

/// The time a step takes to fetch and store spilled tensors. Nothing is computed meanwhile. Files are priced at the disk's rate of reading.
inline double moving_seconds(const KernelChoice& kernels, NodeId id, const kernels::StepExtent& extent,
                             const profiler::DeviceProfile& profile) {
  if (kernels.passing() == nullptr) return 0;
  const Passing::Moved moved = kernels.passing()->moved(id, kernels[id.index()]->row_granule, extent.rows, extent.channels);
  if (moved.bytes == 0) return 0;
  return static_cast<double>(moved.transfers) * profile.load_start_seconds + profiler::load_seconds(profile, Bytes(moved.bytes));
}

/// What is left to do for a step that finds parts of its output in place, which only concatenations do: nothing is copied that is there. 1: all.
inline double share_to_do(const model::Graph& graph, const model::Node& node, RowRange rows, std::uint64_t there_bytes) noexcept {
  if (there_bytes == 0) return 1;
  const model::Tensor& out = graph.tensor(node.outputs[0]);
  const double all =
      static_cast<double>(out.bytes().count()) * static_cast<double>(rows.size()) / static_cast<double>(row_extents(out.shape).rows);
  return std::max(0.0, 1 - static_cast<double>(there_bytes) / all);
}

/// What a step computes, on a kernel. `run`: of the graph. `step_seconds(kernel, node, work)`: the profile's, or what remembers them.
template <class StepSeconds>
double price_computing(const model::Graph& graph, const kernels::KernelDescriptor& kernel, const profiler::RunWork& run, NodeId id,
                       const StepSpec& step, const profiler::DeviceProfile& profile, int threads, const StepSeconds& step_seconds) {
  const model::Node& node = graph.node(id);
  const kernels::StepExtent extent{rows_of(graph, node, step), step.channels, threads, step.derived != kNotDerived};
  using profiler::KernelUse;
  const KernelUse use = step.prepare ? KernelUse::kPrepare : step.derived != kNotDerived ? KernelUse::kRunDerived : KernelUse::kRun;
  profiler::StepWork work = profiler::work_of(kernel, use, graph, node, extent);
  // Between two bands only the chain's others touched anything: what cores share keeps a band's weights, though a core's own cache does not.
  profiler::set_run(profile, run, work);
  if (step.round_bytes != 0) {
    const std::uint64_t round = std::max(step.round_bytes, profiler::kSharedCachesKeep);
    work.run_bytes = std::min(work.run_bytes, round);
    work.shared_bytes = std::min(work.shared_bytes, round);
  }
  // A band is small, but tensors that it reads from outside its chain are not in a nearer cache. What is in place already is not among them.
  const double seconds = step_seconds(profiler::UsedKernel{kernel.id, use}, node, work);
  const double dispatch = std::min(seconds, profile.step_overhead_seconds);
  return dispatch + (seconds - dispatch) * share_to_do(graph, node, extent.rows, step.there_bytes) +
         profiler::seconds_beyond_cache(profile, {kernel.id, use}, work, step.far_bytes);
}

/// And what it fetches and stores.
template <class StepSeconds>
double price_step(const model::Graph& graph, const KernelChoice& kernels, NodeId id, const StepSpec& step,
                  const profiler::DeviceProfile& profile, int threads, const StepSeconds& step_seconds) {
  const double computing = price_computing(graph, *kernels[id.index()], kernels.run(), id, step, profile, threads, step_seconds);
  if (step.prepare || kernels.passing() == nullptr) return computing;
  const kernels::StepExtent extent{rows_of(graph, graph.node(id), step), step.channels, threads, step.derived != kNotDerived};
  return computing + moving_seconds(kernels, id, extent, profile);
}

inline double price_step(const model::Graph& graph, const KernelChoice& kernels, NodeId id, const StepSpec& step,
                         const profiler::DeviceProfile& profile, int threads) {
  return price_step(graph, kernels, id, step, profile, threads, [&](const auto& kernel, const model::Node& node, const auto& work) {
    return profiler::step_seconds(profile, kernel, node, work);
  });
}

/// A node without steps, whose output needs no copy in a plan, and the time of a device that copies it.
struct NodeCopy {
  NodeId node;
  KernelId kernel = KernelId::kNone;
  double seconds = 0;
};

/// The time of all nodes without steps; 0 if the device copies nothing (DeviceProfile::copies_views). `has_steps` is indexed by node.
inline std::vector<NodeCopy> copies_of(const model::Graph& graph, const KernelChoice& kernels, const std::vector<bool>& has_steps,
                                       const profiler::DeviceProfile& profile) {
  std::vector<NodeCopy> copies;
  if (!profile.copies_views) return copies;
  constexpr auto kUse = profiler::KernelUse::kRun;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const model::Node& node = graph.nodes[i];
    if (has_steps[i] || node.op == model::OpKind::kReshape) continue;
    const KernelId kernel = kernels[i]->id;
    const RowExtents out = row_extents(graph.tensor(node.outputs[0]).shape);
    profiler::StepWork work = profiler::work_of(*kernels[i], kUse, graph, node, {.rows = {0, out.rows}, .channels = {0, out.channels}});
    profiler::set_run(profile, kernels.run(), work);
    copies.push_back({NodeId(i), kernel, profiler::step_seconds(profile, {kernel, kUse}, node, work)});
  }
  return copies;
}

/// The verifying that is left when the last part of a load has arrived. With one read in flight the loader verifies before it reads on, and
/// that is part of the reading time.
inline double decode_seconds(const profiler::DeviceProfile& profile, std::uint64_t bytes) noexcept {
  if (profile.reads_in_flight <= 1) return 0;
  return static_cast<double>(std::min<std::uint64_t>(bytes, profile.read_piece_bytes)) / profile.verify_bytes_per_second;
}

/// Coded values that one core decodes in a second, whatever their type. Where it was not measured: 0.9 of the least that
/// `sluice-bench-coding` measured on a Zen 5 core for trained weights. NEON, which has no such measurement, counts as plain code.
inline double decoded_per_second(const profiler::DeviceProfile& profile) noexcept {
  if (profile.decoded_per_second > 0) return profile.decoded_per_second;
  return profile.isa == "avx512" || profile.isa == "avx2" ? 1.35e9 : 0.4e9;
}

/// Fills in what expect.h wants beside `simulate`; `read_bytes(k)`: of load k.
template <class ReadBytes>
void set_reads(const profiler::DeviceProfile& profile, std::size_t loads, const ReadBytes& read_bytes, Costs& costs) {
  costs.reads_in_flight = profile.reads_in_flight;
  if (profile.read_limit <= 0) {  // a limit is kept read by read, whatever computes
    costs.reads_at_once = profile.reads_at_once;
    costs.read_rate_waiting = 1 / profile.read_rate_beside_compute;
  }
  costs.pieces.reserve(loads);
  constexpr std::uint64_t kMostPieces = 4096;  // of one load: of more each counts as larger
  const std::uint64_t piece = std::max<std::uint64_t>(profile.read_piece_bytes, 1);
  for (std::size_t k = 0; k < loads; ++k)
    costs.pieces.push_back(
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(read_bytes(k) / piece + (read_bytes(k) % piece != 0), 1, kMostPieces)));
}

/// The time of a load in the tracks of reading and of decoding.
struct LoadSeconds {
  double load = 0;
  double decode = 0;  // of what comes last
};

/// The loader judges and decodes a piece while the next ones are read, so that the slower of both sets the pace, and the last piece is left to
/// decode when it has arrived. With one read in flight nothing is read meanwhile. `reading`: what reading alone takes.
inline LoadSeconds load_seconds(const profiler::DeviceProfile& profile, const Payload& payload, double reading) noexcept {
  const double verifying = decode_seconds(profile, payload.read_bytes());
  const bool encrypted = has_form(payload.form, model::StretchForm::kEncrypted);
  if (payload.symbols == 0 && !encrypted) return {reading, verifying};
  double decoding = static_cast<double>(payload.symbols) / decoded_per_second(profile);
  if (encrypted) decoding += static_cast<double>(payload.read_bytes()) / profile.decrypt_bytes_per_second;
  if (profile.reads_in_flight <= 1) return {reading + decoding, verifying};
  if (!encrypted) decoding += static_cast<double>(payload.read_bytes()) / profile.verify_bytes_per_second;
  const double last = std::min(1.0, static_cast<double>(profile.read_piece_bytes) / static_cast<double>(payload.read_bytes()));
  return {std::max(reading, decoding * (1 - last)), (encrypted ? verifying : 0) + decoding * last};
}

using Gates = std::vector<std::int64_t>;

/// The part of the plan that runs: everything, or what each later run repeats.
enum class Run : std::uint8_t { kPrologue, kPeriod };

/// Seconds of all reading in the prologue or in a period. A finished plan has all that these functions ask of a schedule.
template <class AnySchedule>
double reading_seconds(const AnySchedule& schedule, const Costs& costs, Run kind) {
  double sum = 0;
  for (std::size_t k = 0; k < schedule.loads.size(); ++k)
    if (kind == Run::kPrologue || schedule.loads[k].streamed()) sum += costs.load[k];
  return sum;
}

/// Of one run.
struct Timeline {
  std::vector<double> step_start;
  std::vector<double> step_end;  // one more than there are steps
  double seconds() const noexcept { return step_end.back(); }
};

namespace detail {

/// The lanes from run to run.
template <class AnySchedule>
class Lanes {
 public:
  Lanes(const AnySchedule& schedule, const Costs& costs, const Gates& gates) : schedule_(schedule), costs_(costs), gates_(gates) {
    now_.step_start.resize(schedule.steps.size());
    now_.step_end.resize(schedule.steps.size() + 1, 0.0);
    before_ = now_.step_end;
  }

  const Timeline& run(Run kind) {
    const bool prologue = kind == Run::kPrologue;
    const double previous = before_.back();
    read_end_ -= previous;
    decode_end_ -= previous;
    std::size_t next = 0;
    const double slower = profiler::slowdown(costs_.beside_reads, costs_.compute, reading_seconds(schedule_, costs_, kind));
    for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
      const auto& step = schedule_.steps[i];
      now_.step_start[i] = now_.step_end[i + 1] = now_.step_end[i];
      for (; next < step.loads_needed; ++next)
        if (prologue || schedule_.loads[next].streamed()) load(next, previous);
      if (step.prepare && !prologue) continue;
      if (step.loads_needed > 0 && decode_end_ > now_.step_end[i]) now_.step_start[i] = decode_end_ + costs_.wake;
      now_.step_end[i + 1] = now_.step_start[i] + costs_.step[i] * slower;
    }
    before_ = now_.step_end;
    return now_;
  }

 private:
  void load(std::size_t k, double previous) {
    const std::int64_t gate = gates_[k];
    const auto steps = static_cast<std::int64_t>(schedule_.steps.size());
    // No run comes before the first: `before_` is all zero then.
    const double open =
        gate >= 0 ? now_.step_end[static_cast<std::size_t>(gate)] : before_[static_cast<std::size_t>(gate + steps)] - previous;
    read_end_ = (open > read_end_ ? open + costs_.load_start : read_end_) + costs_.load[k];
    decode_end_ = std::max(read_end_, decode_end_) + (costs_.decode.empty() ? 0.0 : costs_.decode[k]);
  }

  const AnySchedule& schedule_;
  const Costs& costs_;
  const Gates& gates_;
  Timeline now_;
  std::vector<double> before_;  // step_end of the run before
  double read_end_ = 0;
  double decode_end_ = 0;
};

/// `run()` again and again until two periods in a row take equally long, where loads of the next run go in the tail of the run before.
template <class RunOnce>
auto run_until_equal(const Gates& gates, Run kind, const RunOnce& run) {
  constexpr int kMostRuns = 8;
  const bool wraps = kind == Run::kPeriod && std::any_of(gates.begin(), gates.end(), [](std::int64_t gate) { return gate < 0; });
  auto last = run();
  for (int count = 1; wraps && count < kMostRuns; ++count) {
    const double former = last.seconds();
    last = run();
    if (count > 1 && std::abs(last.seconds() - former) <= 1e-6 * former) break;
  }
  return last;
}

}  // namespace detail

/// Simulates the prologue, or one of endless equal periods. O(steps + loads), for a few runs.
template <class AnySchedule>
Timeline simulate(const AnySchedule& schedule, const Costs& costs, const Gates& gates, Run kind) {
  detail::Lanes lanes(schedule, costs, gates);
  return detail::run_until_equal(gates, kind, [&] { return lanes.run(kind); });
}

}  // namespace sluice::planner

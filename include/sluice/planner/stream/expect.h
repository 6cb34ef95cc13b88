// Pass: what a schedule with gates is expected to take on a disk that serves several reads together. `simulate` gives each load the disk to
// itself; a solid-state disk, and the host of a virtual one, work at all reads in flight at once, so that loads that began together end
// together:
//
//     one by one   |==0==|==1==|==2==|      the step that needs load 0 starts after a third of the time
//     together     |=0=1=2=0=1=2=0=1=|      after nearly all of it
//
// Pieces of loads begin in order, as many as the loader has in flight; the first Costs::reads_at_once of them share the disk's rate evenly.
// Reading and computing slow each other down, so while a step waits the disk is faster (Costs::read_rate_waiting). Decoding and steps are those
// of `simulate`.
//
// Invariants, for finite costs: with one read at once and one rate it says what `simulate` says, to rounding, and with more of them no run
// ends earlier but by what waits cost beside (load_start, wake): one longer wait may spare others. Times of a run count from its begin.
// O(steps + pieces * in flight), for a few runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sluice/planner/stream/simulate.h"

namespace sluice::planner {

/// One run: its steps, and of each load when its first piece begins (before the run: negative) and when its last is decoded; zeros for those
/// that do not run.
struct ExpectedRun {
  Timeline steps;
  std::vector<double> load_begin;
  std::vector<double> load_end;
  double seconds() const noexcept { return steps.seconds(); }
};

namespace detail {

/// The disk and the loader in front of it. Times are absolute; `q` counts loads from the first run on.
class SharedReads {
 public:
  SharedReads(const Costs& costs, std::uint32_t most_in_flight) : costs_(costs), most_(std::max(most_in_flight, 1u)) {}

  /// Goes on until `until`, or as soon as `enough` loads have ended, at `speed` times the rate beside steps. `next(q)`: the load to begin as
  /// number q, or kNone as long as there is none; `begun(q)` and `ended(q)` are told of each.
  template <class Next, class Begun, class Ended>
  void go_on(double until, std::uint64_t enough, double speed, const Next& next, const Begun& begun, const Ended& ended) {
    begin_pieces(next, begun);
    while (ended_ < enough && now_ < until && !flight_.empty()) {
      serve(until, speed);
      take_ended(ended);
      begin_pieces(next, begun);
    }
    if (flight_.empty() && until < kForever) now_ = std::max(now_, until);
  }

  double now() const noexcept { return now_; }
  std::uint64_t ended() const noexcept { return ended_; }

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  static constexpr double kForever = std::numeric_limits<double>::infinity();

 private:
  struct Piece {
    double left;  // seconds of the whole disk, beside steps
    std::uint64_t q;
  };

  template <class Next, class Begun>
  void begin_pieces(const Next& next, const Begun& begun) {
    while (flight_.size() < most_) {
      if (pieces_left_ == 0) {
        const std::size_t load = next(begun_);
        if (load == kNone) return;
        pieces_left_ = costs_.pieces.empty() ? 1 : std::max(costs_.pieces[load], 1u);
        piece_seconds_ = costs_.load[load] / pieces_left_;
        // The loader waits for a gate while nothing is read.
        if (flight_.empty() && now_ > last_end_) ready_ = now_ + costs_.load_start;
        begun(begun_++);
      }
      flight_.push_back({piece_seconds_, begun_ - 1});
      --pieces_left_;
    }
  }

  void serve(double until, double speed) {
    if (now_ < ready_) {
      now_ = std::min(ready_, until);
      return;
    }
    const std::size_t served = std::min<std::size_t>(flight_.size(), std::max(costs_.reads_at_once, 1u));
    const auto first = flight_.begin(), last = first + static_cast<std::ptrdiff_t>(served);
    const double least = std::min_element(first, last, [](const Piece& a, const Piece& b) { return a.left < b.left; })->left;
    const double all = least * static_cast<double>(served) / speed;
    const bool cut = now_ + all > until;
    const double each = cut ? (until - now_) * speed / static_cast<double>(served) : least;
    for (auto piece = first; piece != last; ++piece) piece->left = !cut && piece->left <= least * kSame ? 0 : piece->left - each;
    now_ = cut ? until : now_ + all;
  }

  /// Pieces end in any order; a load ends behind all of its own and those of the loads before it.
  template <class Ended>
  void take_ended(const Ended& ended) {
    const std::size_t before = flight_.size();
    std::erase_if(flight_, [](const Piece& piece) { return piece.left <= 0; });
    if (flight_.size() == before) return;
    last_end_ = now_;
    const std::uint64_t whole = begun_ - (pieces_left_ > 0 ? 1 : 0);
    for (const std::uint64_t end = flight_.empty() ? whole : std::min(whole, flight_.front().q); ended_ < end; ++ended_) ended(ended_);
  }

  static constexpr double kSame = 1 + 1e-12;
  const Costs& costs_;
  const std::size_t most_;
  std::vector<Piece> flight_;  // in the order of their begin
  std::uint64_t begun_ = 0, ended_ = 0;
  std::uint32_t pieces_left_ = 0;  // of the load begun last
  double piece_seconds_ = 0;
  double now_ = 0, ready_ = 0, last_end_ = 0;
};

/// The lanes from run to run.
template <class AnySchedule>
class SharedLanes {
 public:
  SharedLanes(const AnySchedule& schedule, const Costs& costs, const Gates& gates, Run kind)
      : schedule_(schedule), costs_(costs), gates_(gates), kind_(kind), reads_(costs, costs.reads_in_flight) {
    for (std::size_t k = 0; k < schedule.loads.size(); ++k)
      if (runs(k)) order_.push_back(k);
    times_.resize(2 * order_.size());
    run_.steps.step_start.resize(schedule.steps.size());
    run_.steps.step_end.resize(schedule.steps.size() + 1);
    slower_ = profiler::slowdown(costs.beside_reads, costs.compute, reading_seconds(schedule, costs, kind));
  }

  const ExpectedRun& run() {
    const std::uint64_t first = run_count_ * order_.size();
    const double begin = time_;
    std::size_t next = 0;
    std::uint64_t needed = first;
    for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
      const auto& step = schedule_.steps[i];
      read(time_);
      ++gates_open_;
      run_.steps.step_start[i] = time_ - begin;
      for (; next < step.loads_needed; ++next)
        if (runs(next)) ++needed;
      if (!step.prepare || kind_ == Run::kPrologue) {
        if (needed > first) wait_for(needed);
        run_.steps.step_start[i] = time_ - begin;
        time_ += costs_.step[i] * slower_;
      }
      run_.steps.step_end[i + 1] = time_ - begin;
    }
    read(time_);
    tell_loads(first, begin);
    ++run_count_;
    return run_;
  }

 private:
  bool runs(std::size_t load) const { return kind_ == Run::kPrologue || schedule_.loads[load].streamed(); }

  /// What is read until then beside a step, or while one waits for so many loads.
  void read(double until) { read(until, SharedReads::kNone, 1); }
  void read(double until, std::uint64_t enough, double speed) {
    const auto next = [&](std::uint64_t q) {
      const std::uint64_t of_run = order_.empty() ? 1 : q / order_.size();
      if (order_.empty() || of_run > run_count_ + (kind_ == Run::kPeriod ? 1 : 0)) return SharedReads::kNone;
      const std::size_t load = order_[q % order_.size()];
      const std::int64_t gate = static_cast<std::int64_t>(of_run * schedule_.steps.size()) + gates_[load];
      return gate < gates_open_ ? load : SharedReads::kNone;
    };
    const auto begun = [&](std::uint64_t q) { times_[q % times_.size()].begin = reads_.now(); };
    const auto ended = [&](std::uint64_t q) {
      const std::size_t load = order_[q % order_.size()];
      decode_end_ = std::max(decode_end_, reads_.now()) + (costs_.decode.empty() ? 0.0 : costs_.decode[load]);
      times_[q % times_.size()].end = decode_end_;
    };
    reads_.go_on(until, enough, speed, next, begun, ended);
  }

  void wait_for(std::uint64_t loads) {
    read(time_);  // gates that have just opened
    if (reads_.ended() < loads) read(SharedReads::kForever, loads, costs_.read_rate_waiting);
    const double end = times_[(loads - 1) % times_.size()].end;
    if (end > time_) time_ = end + costs_.wake;
  }

  void tell_loads(std::uint64_t first, double begin) {
    run_.load_begin.assign(schedule_.loads.size(), 0.0);
    run_.load_end.assign(schedule_.loads.size(), 0.0);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      run_.load_begin[order_[i]] = times_[(first + i) % times_.size()].begin - begin;
      run_.load_end[order_[i]] = times_[(first + i) % times_.size()].end - begin;
    }
  }

  struct Times {
    double begin = 0, end = 0;
  };
  const AnySchedule& schedule_;
  const Costs& costs_;
  const Gates& gates_;
  const Run kind_;
  SharedReads reads_;
  std::vector<std::size_t> order_;  // the loads that run
  std::vector<Times> times_;        // of this run and the next
  ExpectedRun run_;
  double slower_ = 1;
  double time_ = 0, decode_end_ = 0;
  std::uint64_t run_count_ = 0;
  std::int64_t gates_open_ = 0;  // gates below it are open, over all runs
};

}  // namespace detail

/// The prologue, or one of endless equal periods, of a schedule or a finished plan.
template <class AnySchedule>
ExpectedRun expect(const AnySchedule& schedule, const Costs& costs, const Gates& gates, Run kind) {
  detail::SharedLanes lanes(schedule, costs, gates, kind);
  return detail::run_until_equal(gates, kind, [&] { return lanes.run(); });
}

}  // namespace sluice::planner

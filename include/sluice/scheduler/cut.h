// Cuts a graph into units: where the set of processors that support an operator changes, and, so that work can be interrupted, balanced and
// handed over, at a few cheap places more. The graph comes as a list of operators in the order in which they run, with no more of each than
// is needed here, so that a planner's graph, a profile or a test can give it.
//
//     operators   conv conv conv | nms | conv conv . conv dense
//     supported    ab   ab   ab  |  a  |  ab   ab  .  ab   ab         | must cut: the sets differ     . may cut: little is live here
//
// A piece is cut further while it takes longer than `longest` on its fastest processor, at the place with the fewest live bytes among those
// that leave at least a quarter of its time on either side: a cut is paid in copied bytes, so cheap ones are taken and balance comes
// second.
//
// Invariants: (C1) units are runs of operators, in order, and cover all of them once; (C2) all operators of a unit have one set of
// supporting processors; (C3) a unit reads from units before it. What no processor supports is refused.
#pragma once

#include <vector>

#include "sluice/scheduler/device.h"

namespace sluice::scheduler {

struct CutOperator {
  std::vector<Time> times;              // by processor; kNever: unsupported
  std::vector<std::size_t> reads_from;  // operators before it
  Bytes output;
};

struct CutParameters {
  Time longest = 5 * kMillisecond;  // of a unit on its fastest processor: so long others wait where steps have no boundaries
};

namespace detail {

inline std::uint32_t support_of(const CutOperator& op) noexcept {
  std::uint32_t set = 0;
  for (std::size_t p = 0; p < op.times.size(); ++p) set |= op.times[p] < kNever ? std::uint32_t{1} << p : 0;
  return set;
}

/// Bytes that are made before operator i and read by it or a later one: what a cut before i would hand over.
inline std::vector<std::uint64_t> live_bytes(std::span<const CutOperator> operators) {
  std::vector<std::size_t> last_reader(operators.size(), 0);
  for (std::size_t i = 0; i < operators.size(); ++i)
    for (const std::size_t from : operators[i].reads_from) last_reader[from] = i;
  std::vector<std::uint64_t> live(operators.size() + 1, 0);
  for (std::size_t i = 0; i < operators.size(); ++i)
    for (std::size_t cut = i + 1; cut <= last_reader[i]; ++cut) live[cut] += operators[i].output.count();
  return live;
}

/// The time of operators [first, last) on the processor that is fastest for them.
inline Time fastest(std::span<const CutOperator> operators, std::size_t first, std::size_t last) noexcept {
  Time best = kNever;
  for (std::size_t p = 0; p < operators[first].times.size(); ++p) {
    Time sum = 0;
    for (std::size_t i = first; i < last && sum < kNever; ++i) sum = operators[i].times[p] < kNever ? sum + operators[i].times[p] : kNever;
    best = std::min(best, sum);
  }
  return best;
}

inline void cut_long_piece(std::span<const CutOperator> operators, std::span<const std::uint64_t> live, std::size_t first, std::size_t last,
                           Time longest, std::vector<std::size_t>& ends) {
  const Time whole = fastest(operators, first, last);
  std::size_t best = last;
  if (whole > longest)
    for (std::size_t cut = first + 1; cut < last; ++cut) {
      const bool balanced = fastest(operators, first, cut) * 4 >= whole && fastest(operators, cut, last) * 4 >= whole;
      if (balanced && (best == last || live[cut] < live[best])) best = cut;
    }
  if (best == last) {
    ends.push_back(last);
    return;
  }
  cut_long_piece(operators, live, first, best, longest, ends);
  cut_long_piece(operators, live, best, last, longest, ends);
}

}  // namespace detail

/// The ends of the units: operators [ends[i-1], ends[i]) are unit i.
inline std::vector<std::size_t> cut_ends(std::span<const CutOperator> operators, const CutParameters& parameters = {}) {
  const std::vector<std::uint64_t> live = detail::live_bytes(operators);
  std::vector<std::size_t> ends;
  for (std::size_t first = 0; first < operators.size();) {
    std::size_t last = first + 1;
    while (last < operators.size() && detail::support_of(operators[last]) == detail::support_of(operators[first])) ++last;
    detail::cut_long_piece(operators, live, first, last, parameters.longest, ends);
    first = last;
  }
  return ends;
}

/// The units of a graph as a model: times are sums, an output is what later units read of the unit.
inline Result<Model> cut_units(const Device& device, std::string name, std::span<const CutOperator> operators,
                               const CutParameters& parameters = {}) {
  Model model{std::move(name), {}};
  std::vector<std::size_t> unit_of(operators.size());
  std::size_t first = 0;
  for (const CutOperator& op : operators) {
    const std::size_t own = static_cast<std::size_t>(&op - operators.data());
    for (const std::size_t from : op.reads_from)
      if (from >= own)
        return tl::unexpected(
            make_error(ErrorCode::kInvalidArgument, model.name, "an operator reads from one that does not come before it"));
    if (op.times.size() != device.count())
      return tl::unexpected(make_error(ErrorCode::kInvalidArgument, model.name, "an operator needs a time for each processor"));
  }
  for (const std::size_t end : cut_ends(operators, parameters)) {
    Unit unit{operators[first].times, {}, {}};
    for (std::size_t i = first; i < end; ++i) {
      unit_of[i] = model.units.size();
      for (std::size_t p = 0; i > first && p < unit.times.size(); ++p)
        if (unit.times[p] < kNever) unit.times[p] += operators[i].times[p];
      for (const std::size_t from : operators[i].reads_from)
        if (from < first) unit.reads_from.push_back(static_cast<UnitIndex>(unit_of[from]));
    }
    std::sort(unit.reads_from.begin(), unit.reads_from.end());
    unit.reads_from.erase(std::unique(unit.reads_from.begin(), unit.reads_from.end()), unit.reads_from.end());
    model.units.push_back(std::move(unit));
    first = end;
  }
  std::vector<bool> handed_over(operators.size(), false);
  for (std::size_t i = 0; i < operators.size(); ++i)
    for (const std::size_t from : operators[i].reads_from)
      if (unit_of[from] != unit_of[i] && !handed_over[from]) {
        handed_over[from] = true;
        model.units[unit_of[from]].output += operators[from].output;
      }
  if (Status status = check_model(device, model); !status) return tl::unexpected(status.error());
  return model;
}

}  // namespace sluice::scheduler

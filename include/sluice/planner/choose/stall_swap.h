// Pass: swap by stall attribution. Which weight to keep in place of which, told by what the best candidate waits for.
//
//     steps    | 0 |  | 1 |     | 2 || 3 |          each wait belongs to the last load that its step needs,
//     waits         ^ 1      ^ 4     ^ 0.5          and to the pieces of which that load brings a part
//     kept     {A, B, C}  ->  {A, C, the piece of 4}     it comes in for the kept piece that makes room at the least excess of bytes
//
// A swap leaves the order of residency (planner/stream/residency.h): pieces behind it move when the budget changes, which costs a new read of
// them. So it is only made where the order leaves a good plan out of reach. Invariant: what comes in takes no more bytes than what goes out
// and what was free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/planner/choose/candidate.h"

namespace sluice::planner {

/// Seconds that a run of the candidate waits for each piece.
inline std::vector<double> stalls_by_piece(const Problem& problem, const Candidate& candidate) {
  const Schedule& schedule = candidate.schedule;
  const Timeline times = simulate(schedule, price(problem, schedule), candidate.placement.gates, problem.objective_run());
  std::vector<double> stalls(problem.pieces.all.size(), 0.0);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const double waited = times.step_start[i] - times.step_end[i];
    if (waited <= 0 || schedule.steps[i].loads_needed == 0) continue;
    const LoadSpec& load = schedule.loads[schedule.steps[i].loads_needed - 1];
    for (std::size_t p = 0; p < stalls.size(); ++p) {
      const Piece& piece = problem.pieces.all[p];
      if (piece.first_stretch < load.first_stretch + load.stretch_count && load.first_stretch < piece.first_stretch + piece.stretch_count)
        stalls[p] += waited;
    }
  }
  return stalls;
}

inline std::vector<bool> kept_pieces(const Problem& problem, const Candidate& candidate) {
  std::vector<bool> kept(problem.pieces.all.size(), false);
  for (const LoadSpec& load : candidate.schedule.loads)
    if (load.resident && load.piece != kNoPiece) kept[load.piece] = true;
  return kept;
}

/// Sets of kept pieces that are one swap away and take at most `bytes`, the most promising first: what is waited for longest comes in.
inline std::vector<std::vector<bool>> swaps(const Problem& problem, const Candidate& candidate, std::uint64_t bytes) {
  const std::vector<bool> kept = kept_pieces(problem, candidate);
  const std::vector<double> stalls = stalls_by_piece(problem, candidate);
  std::vector<std::uint32_t> in, out;
  for (std::uint32_t p = 0; p < kept.size(); ++p) {
    if (kept[p]) out.push_back(p);
    if (!kept[p] && stalls[p] > 0) in.push_back(p);
  }
  const std::uint64_t taken = bytes_of(problem.pieces, kept);
  if (taken > bytes) return {};
  std::stable_sort(in.begin(), in.end(), [&](std::uint32_t a, std::uint32_t b) { return stalls[a] > stalls[b]; });
  std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
    return problem.pieces.all[a].region_bytes() < problem.pieces.all[b].region_bytes();
  });
  std::vector<std::vector<bool>> found;
  for (std::size_t i = 0; i < std::min(in.size(), problem.search.swaps_in); ++i) {
    std::size_t tried = 0;
    for (const std::uint32_t gone : out) {
      if (tried == problem.search.swaps_out) break;
      if (taken - problem.pieces.all[gone].region_bytes() + problem.pieces.all[in[i]].region_bytes() > bytes) continue;
      ++tried;
      found.push_back(kept);
      found.back()[gone] = false;
      found.back()[in[i]] = true;
    }
  }
  return found;
}

}  // namespace sluice::planner

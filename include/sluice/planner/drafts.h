// Which drafts are looked at for one capacity: slice sizes x shares of the spare memory that go to pieces and transforms that stay.
//
//     shares   20/20  19/20  17/20  14/20 ... 0        all at one slice size, 1 MiB or less, judged by their fluid bounds
//                       |  the best three
//     sizes    ... 512K <- 1M -> 2M -> 4M ...          from there to larger and to smaller slices, while the bound falls
//     transforms  1/4, 1/2, all of the share           in place of pieces, where kernels gain by them
//
// Then addresses are sought, for the draft of the least bound first. At the least budgets the promising drafts find no place at all; so
// when nothing good was placed, every slice size is tried with little or nothing kept.
// Invariants: a draft is looked at once; what cannot beat the best candidate (by its reading or computing alone) is not drafted.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sluice/planner/candidate.h"
#include "sluice/planner/room.h"
#include "sluice/planner/stream.h"

namespace sluice::planner {

/// Loads of 1-4 MB read at the disk's full rate; smaller ones are for budgets that hold no more. The largest saves steps where memory
/// abounds.
inline constexpr std::array<std::uint64_t, 8> kTargets = {64u << 10, 128u << 10, 256u << 10, 512u << 10,
                                                          1u << 20,  2u << 20,   4u << 20,   32u << 20};

class StreamDrafts {
 public:
  /// `blocks`: where activations lie. `segment`: what every plan keeps. `least`: what a plan of this model needs anyway.
  StreamDrafts(const Problem& problem, const Room& blocks, std::uint64_t segment, std::uint64_t least, Search& search)
      : problem_(problem),
        search_(search),
        room_(blocks),
        segment_(segment),
        spare_(search.capacity - std::min(search.capacity, least)),
        first_size_(middle_size(problem)) {}

  void stream_all() {
    judge_shares();
    place_best();
    if (good()) return;
    for (const unsigned twentieths : {0u, 3u})
      for (std::size_t size = 0; size < kTargets.size(); ++size)
        if (twentieths == 0 || problem_.repeat) judge({twentieths, 0, size});
    place_best();
  }

 private:
  static constexpr std::size_t kLargeSize = 6;  // of kTargets: 4 MiB
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Mix {
    unsigned twentieths;  // of the spare bytes: kept
    unsigned quarters;    // of these: for transforms
    std::size_t size;     // of kTargets
    bool operator==(const Mix&) const = default;
  };
  /// A draft is made again when its turn comes: dozens of them would take megabytes, in a process that has promised not to.
  struct Judged {
    Mix mix;
    double bound;
    bool placed;
  };

  /// Of slices: 1 MiB, less where that leaves a model few of them.
  static std::size_t middle_size(const Problem& problem) {
    constexpr std::uint64_t kLargest = 1u << 20, kSlices = 32;
    std::uint64_t weights = 0;
    for (const Piece& piece : problem.pieces.all) weights += piece.payload.size.count();
    std::size_t size = 0;
    while (kTargets[size] < kLargest && kTargets[size + 1] * kSlices <= weights) ++size;
    return size;
  }

  void judge_shares() {
    // Keeping is only worth it for repeated runs: one run reads everything anyway.
    std::vector<std::pair<double, unsigned>> shares;
    for (const unsigned twentieths : {20u, 19u, 17u, 14u, 10u, 6u, 3u, 0u})
      if (problem_.repeat || twentieths == 0) shares.push_back({judge({twentieths, 0, first_size_}), twentieths});
    std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    constexpr std::size_t kMostShares = 3;
    shares.resize(std::min(shares.size(), kMostShares));
    for (const auto& [bound, twentieths] : shares) {
      const std::size_t size = best_size(bound, twentieths);
      for (const unsigned quarters : {1u, 2u, 4u})
        if (!problem_.options.empty() && twentieths > 0) judge({twentieths, quarters, size});
    }
  }

  std::size_t best_size(double bound, unsigned twentieths) {
    std::size_t best = first_size_;
    const auto walk = [&](std::size_t size) {
      const double next = judge({twentieths, 0, size});
      if (next >= bound) return size == best;
      bound = next;
      best = size;
      return true;
    };
    walk(kLargeSize);  // where it fits, larger slices are easier to place
    for (std::size_t size = first_size_ + 1; size < kTargets.size() && walk(size); ++size) {
    }
    for (std::size_t size = first_size_; size-- > 0 && walk(size);) {
    }
    return best;
  }

  /// The fluid bound of a draft, which is remembered; infinite where it does not fit or cannot win.
  double judge(const Mix& mix) {
    const auto known = std::find_if(judged_.begin(), judged_.end(), [&](const Judged& j) { return j.mix == mix; });
    if (known != judged_.end()) return known->bound;
    judged_.push_back({mix, kNever, false});
    const Draft draft = make_draft(problem_, rule_of(mix));
    // What nothing can beat costs less to find out than the fluid bound.
    const double pipe = std::max(draft.costs.compute, reading_seconds(draft.schedule, draft.costs, problem_.objective_run()));
    if (!search_.promises(pipe)) return kNever;
    const FluidRun run = fluid_run(problem_, draft, search_.capacity);
    if (run.fluid.fits) judged_.back().bound = run.times.seconds();
    return judged_.back().bound;
  }

  void place_best() {
    std::stable_sort(judged_.begin(), judged_.end(), [](const Judged& a, const Judged& b) { return a.bound < b.bound; });
    constexpr std::size_t kMostItems = 2500;  // steps and loads: a few drafts of a large model, many of a small one
    std::size_t items = 0;
    for (Judged& judged : judged_) {
      if (judged.bound == kNever) return;
      search_.bound = std::min(search_.bound, judged.bound);
      if (judged.placed) continue;
      if (judged.bound >= search_.to_beat) return;
      const double enough = items < kMostItems ? kCloseEnough : kGood;
      if (search_.best && search_.best->seconds <= judged.bound * enough) return;
      judged.placed = true;
      Draft draft = make_draft(problem_, rule_of(judged.mix));
      items += draft.schedule.steps.size() + draft.schedule.loads.size();
      stream(search_, draft, fluid_run(problem_, draft, search_.capacity));
    }
  }

  bool good() const noexcept { return search_.best && search_.best->seconds <= search_.bound * kGood; }

  SliceRule rule_of(const Mix& mix) const {
    const std::uint64_t kept = spare_ / 20 * mix.twentieths;
    SliceRule rule = rule_keeping(kept, kept / 4 * mix.quarters);
    rule.target = kTargets[mix.size];
    return rule;
  }

  /// `kept` bytes for pieces and transforms together.
  SliceRule rule_keeping(std::uint64_t kept, std::uint64_t for_transforms) const {
    SliceRule rule{.room = room_.within(search_.capacity - std::min(search_.capacity, segment_ + kept)), .depth = 2};
    rule.pieces = &problem_.pieces;
    std::vector<bool> skipped;
    if (for_transforms > 0) {
      rule.derived = choose_derived_alone(problem_.options, problem_.views.order.size(), for_transforms);
      skipped.assign(problem_.pieces.all.size(), false);
      for (const DeriveOption& option : problem_.options) {
        if (!rule.derived[option.position]) continue;
        kept -= std::min(kept, option.derived_bytes);
        const WeightId weight = problem_.graph->node(problem_.views.order[option.position]).weights[0];
        const Interval<std::uint32_t> pieces = problem_.pieces.of_weight[weight.index()];
        for (std::uint32_t p = pieces.begin; p < pieces.end; ++p) skipped[p] = pieces.size() > 1 || alone(p, weight);
      }
    }
    rule.kept = keep_prefix(problem_.pieces, problem_.residency, kept, skipped);
    return rule;
  }

  bool alone(std::uint32_t piece, WeightId weight) const {
    return problem_.pieces.all[piece].stretch_count == problem_.graph->weight(weight).stretch_count;
  }

  static constexpr double kGood = 1.02;

  const Problem& problem_;
  Search& search_;
  const Room& room_;
  const std::uint64_t segment_;
  const std::uint64_t spare_;
  const std::size_t first_size_;  // of kTargets
  std::vector<Judged> judged_;
};

}  // namespace sluice::planner

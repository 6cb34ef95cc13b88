// Which drafts are looked at for one capacity: shares of the spare memory that are kept x what is kept transformed x slice sizes.
//
//     shares   20/20  19/20  17/20  14/20 ... 0        of the bytes that no plan needs: for pieces and transforms that stay
//     lambda   none   1  1/2  1/4  0                   what a second of reading costs against one of computing: the lower, the more bytes
//                       |                              go to transforms instead of pieces (planner/cut/derive.h)
//              floor: max(computing, reading)          of each mix, without a draft; judged by their fluid bounds from the lowest on,
//                       |  the best one                until no floor is below the best bound
//     order    the model's own, or another one              where the best bound is far above its floor
//     sizes    ... 512K <- 1M -> 2M -> 4M ...          from there to larger and to smaller slices, while the bound falls
//
// Then addresses are sought, for the draft of the least bound first. At the least budgets the promising drafts find no place at all; so
// while nothing good was placed, more drafts are tried: the best mix in smaller slices and with loads apart; in shares between; by every
// order in slices near its own; in every size with little or nothing kept.
//
// Invariants: a draft is looked at once, and one that comes out like another only once; what cannot beat the best candidate (by its reading
// or computing alone) is not drafted.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/choose/candidate.h"
#include "sluice/planner/choose/stream_draft.h"
#include "sluice/planner/place/free_space.h"

namespace sluice::planner {

/// Loads of 1-4 MB read at the disk's full rate; smaller ones are for budgets that hold no more. The largest saves steps if there is plenty
/// of memory.
inline constexpr std::array<std::uint64_t, 8> kTargets = {64u << 10, 128u << 10, 256u << 10, 512u << 10,
                                                          1u << 20,  2u << 20,   4u << 20,   32u << 20};

/// Facts that all plans of a problem share.
struct Ground {
  Room room;                  // beside the activations
  std::uint64_t segment = 0;  // bytes that every plan keeps
  std::uint64_t least = 0;    // bytes that a plan needs anyway
  SliceRule rule;             // of that plan
};

class StreamDrafts {
 public:
  struct Mix {
    unsigned twentieths;    // of the spare bytes: kept
    unsigned price;         // of kPrices: for transforms
    std::size_t size;       // of kTargets
    std::size_t order = 0;  // of Problem::residency
    bool apart = false;     // no load serves two nodes: there may be no one place for what several need
    bool operator==(const Mix&) const = default;
  };

  StreamDrafts(const Problem& problem, Ground ground, Search& search)
      : problem_(problem),
        search_(search),
        ground_(std::move(ground)),
        spare_(search.capacity - std::min(search.capacity, ground_.least)),
        first_size_(middle_size(problem)),
        compute_(least_compute(problem)),
        second_a_byte_(best_rate(problem)) {}

  /// Looks for the mix of the least bound.
  void judge_mixes() {
    std::vector<std::pair<double, Mix>> floors;
    std::vector<Kept> seen;
    // Where computing bounds them all, the first wins, and what it leaves free lets loads come late: with 17 of 20 kept, ViT-B/16 in bf16 in
    // 32 MiB waited for a tenth of its period, with 14 for half a hundredth.
    for (const unsigned twentieths : {14u, 17u, 10u, 0u, 19u, 6u, 20u, 3u}) {
      if (!problem_.repeat && twentieths > 0) continue;  // one run reads everything anyway
      for (unsigned price = 0; price < (problem_.options.empty() ? 1 : kPrices.size()); ++price) {
        const Mix mix{twentieths, price, first_size_};
        const Kept kept = kept_by(mix);
        if (std::any_of(seen.begin(), seen.end(), [&](const Kept& k) { return k == kept; })) continue;
        floors.push_back({floor_of(kept.pieces, kept.derived), mix});
        seen.push_back(std::move(kept));
      }
    }
    sluice::stable_sort(floors.begin(), floors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    floors.resize(std::min(floors.size(), allowed().most_mixes));
    for (const auto& [floor, mix] : floors) {
      if (floor >= best_bound_ * allowed().worthwhile || best_bound_ <= floors.front().first * allowed().close_enough) break;
      judge(mix);
    }
    if (best_bound_ > floors.front().first * allowed().good) judge_orders();
    if (best_bound_ > floors.front().first * allowed().close_enough) judge_sizes();
    if (best_bound_ == kNever) judge({0, 0, kTargets.size() - 1});
  }

  /// The fluid bound of a draft, which is remembered; infinite where it does not fit or cannot win.
  double judge(const Mix& mix) {
    if (const Judged* known = find(mix)) return known->bound;
    if (const Judged* larger = same_in_larger_slices(mix)) {
      judged_.push_back(Judged(*larger));  // it may move
      judged_.back().mix = mix;
      judged_.back().again = true;
      return judged_.back().bound;
    }
    judged_.push_back({mix, kNever, 0});
    const Draft draft = make_draft(problem_, rule_of(mix));
    judged_.back().largest_load = largest_load(draft.schedule);
    // The longer of computing and reading is a lower bound that costs less to find than the fluid bound.
    const double reading = reading_seconds(draft.schedule, draft.costs, problem_.objective_run());
    judged_.back().reading = reading;
    const double pipe = std::max(draft.costs.compute, reading);
    if (!search_.promises(pipe)) return kNever;
    const FluidRun run = fluid_run(problem_, draft, search_.capacity);
    search_.spend(kWorkAnItem * draft.items());
    Judged& judged = judged_.back();
    judged.crowded = run.fluid.crowded;
    if (!run.fluid.fits) return kNever;
    judged.bound = run.times.seconds();
    judged.items = draft.items();
    judged.again = std::any_of(judged_.begin(), judged_.end() - 1,
                               [&](const Judged& j) { return j.bound == judged.bound && j.items == judged.items; });
    search_.bound = std::min(search_.bound, judged.bound);
    if (judged.bound < best_bound_) {
      best_bound_ = judged.bound;
      best_mix_ = mix;
    }
    return judged.bound;
  }

  /// Seconds of all reading of a mix that was judged; 0 of others.
  double reading(const Mix& mix) const noexcept {
    const Judged* known = find(mix);
    return known == nullptr ? 0 : known->reading;
  }

  const Mix& best_mix() const noexcept { return best_mix_; }
  double best_bound() const noexcept { return best_bound_; }

  /// Seeks addresses.
  void place() {
    place_in_all_ways();
    if (good()) return;
    const bool none_fits = best_bound_ == kNever;
    if (none_fits) place_least();
    for (const auto judge_more : {&StreamDrafts::judge_smaller, &StreamDrafts::judge_more_shares, &StreamDrafts::judge_orders_in_sizes,
                                  &StreamDrafts::judge_little_kept}) {
      if (!allowed().more_drafts) break;
      (this->*judge_more)();
      place_in_all_ways();
      if (!none_fits && good()) return;
    }
    if (!good() && !none_fits) place_least();
    if (!good()) place_best(Effort::kLast);
  }

 private:
  static constexpr std::uint64_t kAlwaysJudged = 512u << 10;  // this size and those up to the first
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  /// Lambda: what a second of reading costs against one of computing. None: nothing is transformed.
  static constexpr std::array<double, 5> kPrices = {kNever, 1.0, 0.5, 0.25, 0.0};
  static constexpr std::uint64_t kEndless = ~std::uint64_t{0};

  /// A draft is made again when its turn comes: dozens of them would take megabytes, in a process that has promised not to.
  struct Judged {
    Mix mix;
    double bound;
    std::size_t items;   // steps and loads
    double reading = 0;  // seconds
    std::uint64_t largest_load = kEndless;
    bool crowded = false;   // there is no room even for what does not stream
    bool again = false;     // comes out like another
    int efforts = 0;        // made to place it
    bool together = false;  // was tried together with the activations: it would come out the same
  };

  /// What is known of a mix; null: it was not judged.
  const Judged* find(const Mix& mix) const noexcept {
    const auto known = std::find_if(judged_.begin(), judged_.end(), [&](const Judged& j) { return j.mix == mix; });
    return known == judged_.end() ? nullptr : &*known;
  }

  /// A draft for a larger size that this size would not change.
  const Judged* same_in_larger_slices(const Mix& mix) const {
    for (const Judged& j : judged_) {
      Mix larger = mix;
      larger.size = j.mix.size;
      if (j.mix == larger && larger.size > mix.size && j.largest_load <= kTargets[mix.size]) return &j;
    }
    return nullptr;
  }

  static std::size_t middle_size(const Problem& problem) {
    return static_cast<std::size_t>(std::find(kTargets.begin(), kTargets.end(), middle_target(problem.pieces)) - kTargets.begin());
  }

  /// Seconds of all steps, in large slices or small ones: a profile may price either lower.
  static double least_compute(const Problem& problem) {
    double least = kNever;
    for (const std::uint64_t target : {kTargets.back(), std::uint64_t{512} << 10})
      least = std::min(least, make_draft(problem, {.target = target, .sample = true}).costs.compute);
    return least;
  }

  /// More slices than this are no plan to wait for while there is another.
  bool few_slices(std::size_t size) const { return weight_bytes(problem_.pieces) / kTargets[size] <= 1500; }
  bool may_judge(std::size_t size) const { return few_slices(size) ? search_.may_go_on() : !search_.has_any(); }

  /// Considers all sizes of loads.
  static double best_rate(const Problem& problem) {
    double best = kNever;
    for (const std::uint64_t target : kTargets)
      best = std::min(best, problem.shared->load_seconds(*problem.profile, target) / static_cast<double>(target));
    return best;
  }

  /// A lower bound on the time of a period that keeps these pieces and transforms.
  double floor_of(const std::vector<bool>& kept, const std::vector<bool>& derived) const {
    double compute = compute_;
    double streamed = 0;
    for (std::size_t p = 0; p < problem_.pieces.all.size(); ++p)
      if (kept.empty() || !kept[p])
        streamed += static_cast<double>(problem_.pieces.all[p].payload.size.count() * problem_.pieces.all[p].reads);
    for (const DeriveOption& option : problem_.options) {
      if (derived.empty() || !derived[option.position]) continue;
      compute -= option.gain;
      streamed -= static_cast<double>(option.raw_bytes);
    }
    return std::max(compute, streamed * second_a_byte_);
  }

  /// The best mix by the other orders of residency: pieces move when the budget changes, so only where it may matter.
  void judge_orders() {
    if (best_bound_ == kNever) return;
    Mix mix = best_mix_;
    for (mix.order = 0; mix.order < problem_.residency.size(); ++mix.order)
      if (search_.may_go_on()) judge(mix);
  }

  void judge_sizes() {
    if (best_bound_ == kNever || !allowed().other_sizes) return;
    std::vector<Judged> best = judged_;
    sluice::stable_sort(best.begin(), best.end(), [](const Judged& a, const Judged& b) { return a.bound < b.bound; });
    for (std::size_t i = 0; i < std::min(best.size(), allowed().size_walks); ++i)
      if (best[i].bound < best[0].bound * allowed().good) walk_sizes(best[i].mix);
  }

  void walk_sizes(const Mix& start) {
    // A little worse at first may be better at last; where the room asks for less than the size, a smaller one changes nothing yet.
    const auto walk = [&](std::size_t size) {
      Mix mix = start;
      mix.size = size;
      return judge(mix) < best_bound_ * allowed().good;
    };
    for (std::size_t size = first_size_ + 1; size < kTargets.size() && walk(size); ++size) {
    }
    for (std::size_t size = first_size_; size-- > 0 && few_slices(size);)
      if (!walk(size) && kTargets[size] <= kAlwaysJudged) break;
  }

  void place_in_all_ways() {
    place_best(Effort::kQuick);
    place_best(Effort::kTogether);
    place_best(Effort::kThorough);
  }

  /// Does it come out unlike those before?
  bool judge_another(const Mix& mix) {
    const std::size_t before = judged_.size();
    judge(mix);
    return judged_.size() > before && !judged_.back().again;
  }

  /// The best mix in smaller slices, and with loads apart.
  void judge_smaller() {
    int sizes = 3;  // that differ from those before, whether they fit or not
    const Mix best = best_mix_;
    Mix mix = best;
    for (mix.size = best.size + 1; mix.size-- > 0 && sizes > 0 && may_judge(mix.size);) {
      bool unlike = false;
      for (const bool apart : {false, true}) {
        mix.apart = apart;
        unlike = judge_another(mix) || unlike;
      }
      sizes -= unlike ? 1 : 0;
    }
  }

  /// Another order may stream better in slices of another size.
  void judge_orders_in_sizes() {
    if (best_bound_ == kNever) return;
    const Mix best = best_mix_;
    Mix mix = best;
    for (mix.order = 0; mix.order < problem_.residency.size() && search_.work_left > 0; ++mix.order) {
      const Kept kept = kept_by(mix);
      if (!search_.promises(floor_of(kept.pieces, kept.derived))) continue;
      for (mix.size = std::min(best.size + 2, kTargets.size()); mix.size-- > 0 && mix.size + 2 >= best.size && may_judge(mix.size);)
        judge(mix);
    }
  }

  /// Shares between those that were looked at: what a share leaves free decides whether addresses are found.
  void judge_more_shares() {
    if (!problem_.repeat || best_bound_ == kNever) return;
    const Mix best = best_mix_;
    std::vector<Kept> seen = {kept_by(best)};
    for (unsigned away = 1; away <= 20; ++away)
      for (const unsigned twentieths : {best.twentieths - away, best.twentieths + away}) {
        Mix mix = best;
        mix.twentieths = twentieths;
        if (twentieths > 20 || search_.work_left <= 0) continue;
        Kept kept = kept_by(mix);
        if (std::find(seen.begin(), seen.end(), kept) != seen.end()) continue;
        if (search_.promises(floor_of(kept.pieces, kept.derived))) judge(mix);
        seen.push_back(std::move(kept));
      }
  }

  /// Every size with nothing kept, then with little.
  void judge_little_kept() {
    for (const unsigned twentieths : {0u, 3u}) {
      if (twentieths > 0 && (!problem_.repeat || best_bound_ == kNever || kept_by({twentieths, 0, 0}).bytes == 0)) return;
      for (std::size_t size = kTargets.size(); size-- > 0;) {
        if (!may_judge(size)) continue;
        judge({twentieths, 0, size});
        if (judged_.back().crowded) break;  // smaller slices take more tables
      }
    }
  }

  /// Loads that are placed on demand also move earlier where there is room.
  void place_least() {
    SliceRule rule = ground_.rule;
    rule.sample = false;
    Draft draft = make_draft(problem_, std::move(rule));
    stream(search_, draft, fluid_run(problem_, draft, search_.capacity), ground_.room, Effort::kQuick);
  }

  void place_best(Effort effort) {
    const bool together = effort == Effort::kTogether || effort == Effort::kLast;
    if (effort == Effort::kTogether && search_.exact_share == 0) return;
    sluice::stable_sort(judged_.begin(), judged_.end(), [](const Judged& a, const Judged& b) { return a.bound < b.bound; });
    int thorough = 0;
    for (Judged& judged : judged_) {
      if (together && search_.together_left == 0) return;
      if (effort != Effort::kQuick && good() && thorough++ >= allowed().most_thorough) return;
      if (judged.bound == kNever || judged.bound >= search_.to_beat) return;
      if (judged.again || judged.efforts > static_cast<int>(effort) || (together && judged.together)) continue;
      const double enough = search_.work_left > 0 ? allowed().close_enough : allowed().good;
      if (search_.found() <= judged.bound * enough || (search_.has_any() && search_.work_left < -overdraft())) return;
      judged.efforts = static_cast<int>(effort) + 1;
      judged.together |= together;
      Draft draft = make_draft(problem_, rule_of(judged.mix));
      stream(search_, draft, fluid_run(problem_, draft, search_.capacity), ground_.room, effort);
    }
  }

  bool good() const noexcept { return search_.has_any() && search_.found() <= search_.bound * allowed().good; }

  /// The part of the spare bytes that is kept, pieces and transforms together.
  struct Kept {
    std::vector<bool> pieces;
    std::vector<bool> derived;  // by position; empty: none is
    std::uint64_t bytes = 0;
    bool operator==(const Kept&) const = default;
  };
  Kept kept_by(const Mix& mix) const {
    const std::uint64_t most = spare_ / 20 * mix.twentieths;
    Kept kept;
    std::vector<bool> skipped;
    if (mix.price > 0) {
      kept.derived = choose_derived_at(problem_.options, problem_.views.order.size(), most, kPrices[mix.price] * second_a_byte_);
      skipped.assign(problem_.pieces.all.size(), false);
      for (const DeriveOption& option : problem_.options) {
        if (!kept.derived[option.position]) continue;
        kept.bytes += option.derived_bytes;
        const WeightId weight = problem_.graph->node(problem_.views.order[option.position]).weights[0];
        const Interval<std::uint32_t> pieces = problem_.pieces.of_weight[weight.index()];
        for (std::uint32_t p = pieces.begin; p < pieces.end; ++p) skipped[p] = pieces.size() > 1 || alone(p, weight);
      }
      if (kept.bytes == 0) kept.derived.clear();
    }
    kept.pieces = keep_prefix(problem_.pieces, problem_.residency[mix.order], most - kept.bytes, skipped);
    kept.bytes += bytes_of(problem_.pieces, kept.pieces);
    return kept;
  }

  SliceRule rule_of(const Mix& mix) const {
    Kept kept = kept_by(mix);
    const std::uint64_t taken = std::min(search_.capacity, ground_.segment + align_up(kept.bytes, kBlockBytes));
    return {.target = kTargets[mix.size],
            .span_nodes = !mix.apart,
            .room = ground_.room.within(search_.capacity - taken),
            .depth = 2,
            .derived = std::move(kept.derived),
            .pieces = &problem_.pieces,
            .kept = std::move(kept.pieces)};
  }

  bool alone(std::uint32_t piece, WeightId weight) const {
    return problem_.pieces.all[piece].stretch_count == problem_.graph->weight(weight).stretch_count;
  }

  const SearchParameters& allowed() const noexcept { return problem_.search; }
  /// The work that may go beyond Search::work_left while there is no good plan.
  std::int64_t overdraft() const noexcept { return search_.quick_work() / 2; }

  const Problem& problem_;
  Search& search_;
  const Ground ground_;
  const std::uint64_t spare_;
  const std::size_t first_size_;  // of kTargets
  const double compute_;          // seconds of all steps, at least
  const double second_a_byte_;    // of reading, at best
  std::vector<Judged> judged_;
  double best_bound_ = kNever;
  Mix best_mix_{0, 0, kTargets.size() - 1};
};

}  // namespace sluice::planner

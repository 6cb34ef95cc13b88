#include "sluice/planner/place/place.h"

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "sluice/core/native_thread.h"
#include "sluice/planner/place/best_fit.h"
#include "sluice/planner/place/columns.h"
#include "sluice/planner/place/dive.h"
#include "sluice/planner/place/exact_search.h"
#include "sluice/planner/place/two_ended.h"
#include "src/core/out_of_memory.h"

namespace sluice::planner {
namespace {

struct Searched {
  SearchOutcome outcome = SearchOutcome::kStopped;
  Placement placement;
  std::uint64_t work = 0;  // what one thread would have done
};

/// One round of the search: every rule with the same limit. The first conclusive rule in turn is the result.
class SearchRound {
 public:
  SearchRound(const SearchProblem& problem, const std::vector<Rectangle>& rectangles, std::uint64_t capacity, std::uint64_t limit)
      : problem_(problem), rectangles_(rectangles), capacity_(capacity), limit_(limit) {}

  Searched run(int threads) {
    constexpr std::uint64_t kWorthAThread = 4 * SearchLimit::kWorkPerMillisecond;
    constexpr std::size_t kStackBytes = std::size_t{4} << 20;  // the recursion's depth is bounded by SearchProblem
    std::array<NativeThread, kDiveRules.size() - 1> helpers;
    const std::size_t wanted = limit_ < kWorthAThread ? 0 : std::min<std::size_t>(threads - 1, helpers.size());
    for (std::size_t h = 0; h < wanted; ++h) {
      const auto main = [](void* self) noexcept { static_cast<SearchRound*>(self)->take_rules(); };
      if (!helpers[h].start("placement", kStackBytes, main, this)) break;  // then fewer threads do it
    }
    take_rules();
    for (NativeThread& helper : helpers) helper.join();
    if (!memory_sufficed_) raise_out_of_memory();
    for (std::size_t rule = 0; rule < results_.size(); ++rule) {
      if (results_[rule].outcome == SearchOutcome::kStopped) continue;
      results_[rule].work += rule * limit_;  // those before it went to their limit
      return std::move(results_[rule]);
    }
    return {SearchOutcome::kStopped, {}, results_.size() * limit_};
  }

 private:
  /// No caller can catch exceptions of this thread: `run` reports a failed allocation.
  void take_rules() noexcept {
    if (!or_out_of_memory("placement", [this]() -> Status { return take_rules_in_turn(), Status(); })) memory_sufficed_ = false;
  }

  void take_rules_in_turn() {
    for (std::size_t rule = next_++; rule < kDiveRules.size(); rule = next_++) {
      ExactSearch search(problem_, capacity_, kDiveRules[rule], limit_, &stop_[rule]);
      results_[rule].outcome = search.run();
      results_[rule].work = search.work();
      if (results_[rule].outcome == SearchOutcome::kStopped) continue;
      if (results_[rule].outcome == SearchOutcome::kFound) results_[rule].placement = search.placement(rectangles_);
      for (std::size_t later = rule + 1; later < kDiveRules.size(); ++later) stop_[later] = true;
    }
  }

  const SearchProblem& problem_;
  const std::vector<Rectangle>& rectangles_;
  std::uint64_t capacity_;
  std::uint64_t limit_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> memory_sufficed_{true};
  std::array<std::atomic<bool>, kDiveRules.size()> stop_{};
  std::array<Searched, kDiveRules.size()> results_;
};

class Placer {
 public:
  Placer(const PlacementProblem& problem, const PlaceOptions& options)
      : rectangles_(problem.rectangles), options_(options), capacity_(problem.capacity), columns_(columns_of(rectangles_)) {
    best_.bound = height_bound(rectangles_, columns_);
    best_.placement.height = ~std::uint64_t{0};
    target_ = options.goal == PlaceGoal::kFit ? capacity_ : best_.bound;
  }

  Placed run() {
    if (!try_cheap_rules() && options_.search.work > 0) search();
    return std::move(best_);
  }

 private:
  /// True when the goal is reached.
  bool keep(Placement placement, PlacedBy by) {
    if (placement.height < best_.placement.height) {
      best_.placement = std::move(placement);
      best_.by = by;
    }
    best_.settled = best_.placement.height <= target_;
    return best_.settled;
  }

  bool spent() const noexcept { return best_.placement.height != ~std::uint64_t{0} && best_.work > options_.quick_work; }

  bool try_cheap_rules() {
    const auto overlaps = Overlaps::find(rectangles_, columns_, Overlaps::kMostPairs);
    if (!overlaps) return keep(place_as_time_passes(rectangles_), PlacedBy::kTimeOrder);
    // Costs as measured: a rule looks at each neighbour once; a best fit sorts them.
    constexpr std::uint64_t kSorted = 4;
    const std::uint64_t pass = rectangles_.size() * kSorted + overlaps->count();
    best_.work += pass;
    const std::vector<Measures> measures = measures_of(rectangles_, columns_);
    const Islands islands(rectangles_, *overlaps);
    for (DiveRule rule : kDiveRules) {
      if (spent()) return false;
      best_.work += pass;
      if (keep(dive(rectangles_, *overlaps, islands, measures, rule), PlacedBy::kDive)) return true;
    }
    const auto area = [](const Rectangle& r) { return static_cast<double>(r.size) * static_cast<double>(r.time.size()); };
    const std::array<std::vector<std::uint32_t>, 3> orders = {order_by(rectangles_, [](const Rectangle& r) { return r.size; }),
                                                              order_by(rectangles_, [](const Rectangle& r) { return r.time.size(); }),
                                                              order_by(rectangles_, area)};
    for (const auto& order : orders) {
      if (spent()) return false;
      best_.work += kSorted * pass;
      if (keep(place_in_order(rectangles_, *overlaps, order, GapRule::kSmallest), PlacedBy::kBestFit)) return true;
    }
    if (spent()) return false;
    best_.work += kSorted * pass;
    if (auto placement = place_two_ended(rectangles_, *overlaps, std::min(target_, best_.placement.height)))
      return keep(std::move(*placement), PlacedBy::kTwoEnded);
    return false;
  }

  void search() {
    const bool far = static_cast<double>(best_.placement.height) > options_.search_up_to * static_cast<double>(capacity_);
    if (options_.goal == PlaceGoal::kFit && far) return;
    const auto problem = SearchProblem::make(rectangles_, columns_, std::min(capacity_, best_.placement.height));
    if (!problem) return;
    if (options_.goal == PlaceGoal::kFit) {
      Searched searched = search_within(*problem, target_, options_.search.work);
      best_.work += searched.work;
      if (searched.outcome == SearchOutcome::kFound) keep(std::move(searched.placement), PlacedBy::kExactSearch);
      best_.settled = searched.outcome != SearchOutcome::kStopped;
      return;
    }
    descend(*problem);
  }

  /// Asks for the bound first, which is nearly always the answer, then halves the distance; a question may take half of the work left.
  void descend(const SearchProblem& problem) {
    std::uint64_t least = best_.bound;  // nothing lower is worth asking for
    bool all_known = true;              // and nothing lower exists
    std::uint64_t ask = least;
    std::uint64_t left = options_.search.work;
    while (least < best_.placement.height && left > kLeastRound) {
      Searched searched = search_within(problem, ask, left / 2);
      left -= std::min(left, searched.work);
      best_.work += searched.work;
      if (searched.outcome == SearchOutcome::kFound) {
        keep(std::move(searched.placement), PlacedBy::kExactSearch);
      } else {
        all_known = all_known && searched.outcome == SearchOutcome::kImpossible;
        least = ask / problem.unit * problem.unit + problem.unit;
      }
      if (least < best_.placement.height) ask = least + (best_.placement.height - least - 1) / 2;
    }
    best_.settled = all_known && least >= best_.placement.height;
  }

  /// Rounds with doubling limits.
  Searched search_within(const SearchProblem& problem, std::uint64_t capacity, std::uint64_t work) const {
    std::uint64_t done = 0;
    for (std::uint64_t limit = kLeastRound; done < work; limit *= 2) {
      limit = std::min(limit, (work - done) / kDiveRules.size() + 1);
      Searched searched = SearchRound(problem, rectangles_, capacity, limit).run(options_.threads);
      done += searched.work;
      searched.work = done;
      if (searched.outcome != SearchOutcome::kStopped) return searched;
    }
    return {SearchOutcome::kStopped, {}, done};
  }

  static constexpr std::uint64_t kLeastRound = SearchLimit::kWorkPerMillisecond;

  const std::vector<Rectangle>& rectangles_;
  const PlaceOptions& options_;
  std::uint64_t capacity_;
  Columns columns_;
  std::uint64_t target_ = 0;
  Placed best_;
};

}  // namespace

std::string_view name_of(PlacedBy by) noexcept {
  constexpr std::string_view kNames[] = {"dive", "best fit", "two-ended", "exact search", "time order"};
  return kNames[static_cast<int>(by)];
}

Placed place(const PlacementProblem& problem, const PlaceOptions& options) { return Placer(problem, options).run(); }

}  // namespace sluice::planner

// The plan of our own policy: all live jobs on all processors, found by placing job after job and searching for a good order to do so.
//
//   place one job   unit after unit, each where the job can end soonest: end of the unit + `tail` of the profile. Gaps that earlier
//                   jobs left are used. As the tail is a lower bound, a job that will miss its deadline is given up in the middle,
//                   and left out.
//   the search      starts from four orders: earliest deadline, least slack, least work, and that of the plan before. Then a job
//                   moves towards the front, or two change places, or a job comes to avoid some processors, so that others find them
//                   free; what is not worse stays. The value of a plan: the worth of the jobs that meet their deadline, then how
//                   early they end. The search is over where no plan can be better: each job ends as early as it would alone.
//   in turn         jobs without a deadline that no job with one comes after, by priority, are placed last and in the order in which
//                   they came. Nothing that comes later is before them then, so what is said of their ends stays true.
//   the work        is counted in cells, (unit, processor) pairs looked at, never in time: the same state gives the same plan anywhere.
//                   A draft takes some cells more, so that a thousand drafts of one job are not taken for cheap.
//
// A job is worth 1, and 64 times as much for each priority above 0, so one of a higher priority is not given for any number of lower ones.
// Invariants: (L1) no two slots of a processor overlap; (L2) a unit's slot begins when all it reads from has ended; (L3) each planned job
// ends by its deadline; (L4) what runs keeps running. `tests/scheduler/plan_search_test.cc` checks them with code of its own.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "sluice/scheduler/random.h"
#include "sluice/scheduler/search/timetable.h"
#include "sluice/scheduler/state.h"

namespace sluice::scheduler {

/// Effect, default and price of what can be turned.
struct SearchParameters {
  std::uint64_t cells = 60'000;  // work of a full decision: 0.6 ms; 10 jobs of 6 units on 3 processors are placed 300 times with it
  std::size_t window = 32;       // jobs that a search orders, the most urgent; others wait
  std::size_t in_turn = 64;      // jobs of a plan if all, or all but some of the window, are placed in turn
};

struct PlannedSlot {
  JobSlot job{};
  UnitIndex unit = 0;
  Time begin = 0, end = 0;
  std::uint64_t ticket = 0;  // of the job: its place in the table may be another's by now
};

class PlanSearch {
 public:
  PlanSearch(const State& state, SearchParameters parameters);

  /// A new plan for the state. Processors in `giving_way`, a bit for each, are taken to be free at their next step boundary. Returns the
  /// cells that it took.
  std::uint64_t plan(const State& state, std::uint32_t giving_way = 0) noexcept;

  /// Jobs that came after the plan are added to it, each where it can end soonest. `next`: by processor, how many of
  /// its slots are behind us. False where a search is wanted: a job would miss its deadline, or comes before one of the window.
  bool add(const State& state, std::span<const std::size_t> next) noexcept;

  /// The plan: what each processor is to run, in order; and when each job of the window ends (kNever: left out).
  std::span<const PlannedSlot> slots(std::size_t processor) const noexcept { return slots_[processor]; }
  struct Item {
    JobSlot job{};
    ModelId model{};
    const Profile::Table* table = nullptr;
    Time deadline = kNever, least_end = 0;
    std::int64_t worth = 1;
    std::uint64_t ticket = 0;
    Time promised = kNever;  // when the job was last expected to end, and a share of its response more
    Time end = kNever;       // in the best plan
  };
  std::span<const Item> items() const noexcept { return items_; }
  /// Whether jobs wait for a place in the window.
  bool left_out() const noexcept { return left_out_; }
  /// Whether the plan has jobs that are in no order of their own, so that a search may find a better one.
  bool searched() const noexcept { return movable_ > 0; }

 private:
  struct Value {
    std::int64_t worth = -1;
    Time cost = 0;
    bool operator>(const Value& other) const noexcept { return worth != other.worth ? worth > other.worth : cost < other.cost; }
    bool operator>=(const Value& other) const noexcept { return !(other > *this); }
  };
  struct Draft {
    std::vector<std::uint16_t> order;    // in which items are placed
    std::vector<std::uint64_t> avoided;  // by item, two bits for each processor: so many times its time counts more there
  };

  std::size_t most_items() const noexcept { return movable_ >= parameters_.window ? parameters_.window : most_items_; }
  static Item item_of(const State& state, JobSlot slot) noexcept;
  static bool comes_before(const Item& a, const Item& b) noexcept;
  void gather(const State& state) noexcept;
  void add_slots(std::size_t item, std::span<const std::size_t> next) noexcept;
  void start_tables(const State& state, std::uint32_t giving_way) noexcept;
  void prime(const State& state, std::size_t item) noexcept;
  Time place(const State& state, std::size_t item) noexcept;
  Value build(const State& state) noexcept;
  void keep(const State& state) noexcept;
  void try_order(const State& state) noexcept;
  void vary() noexcept;
  void search(const State& state) noexcept;
  void find_order(const State& state) noexcept;

  /// A delay beyond what was said costs so many times its length: what came later does not push back what was promised.
  static constexpr Time kBrokenPromise = 16;
  /// Copying and varying a draft takes as long as so many cells: 0.1 us against 0.01 (one job on one processor, Zen 5).
  static constexpr std::uint64_t kDraftCells = 10;

  SearchParameters parameters_;
  std::size_t processors_;
  std::size_t most_units_;
  std::size_t most_items_;
  std::vector<Item> items_;
  std::size_t movable_ = 0;  // items before those that are placed in turn
  std::vector<Timetable> tables_;
  std::vector<Timetable> base_;  // what runs, and nothing else
  std::vector<Time> ends_;       // [item * most_units + unit] of the plan in the making
  std::vector<Time> begins_;
  std::vector<std::uint8_t> where_;
  std::vector<Time> primed_ends_;  // the same of what has run or runs
  std::vector<std::uint8_t> primed_where_;
  std::vector<std::uint8_t> pending_;
  std::vector<Time> item_end_;
  Draft draft_, kept_, best_draft_;  // being tried; what it varies; the best so far
  Value best_;
  Value ideal_;  // each job ends as early as it would alone
  std::vector<std::vector<PlannedSlot>> slots_;
  std::vector<std::uint64_t> last_order_;  // tickets, as placed in the plan before
  bool left_out_ = false;
  std::uint64_t cells_ = 0;
  Random random_{0};
};

inline PlanSearch::PlanSearch(const State& state, SearchParameters parameters)
    : parameters_(parameters),
      processors_(state.processors.size()),
      most_units_(state.most_units),
      most_items_(std::max(parameters.window, std::min(parameters.in_turn, state.jobs.size()))),
      tables_(processors_),
      base_(processors_),
      slots_(processors_) {
  const std::size_t all = most_items_ * most_units_;
  items_.reserve(std::max(most_items_, state.jobs.size()));
  for (std::size_t p = 0; p < processors_; ++p) {
    tables_[p].reserve(all + 1);
    base_[p].reserve(1);
    slots_[p].reserve(all);
  }
  for (std::vector<Time>* times : {&ends_, &begins_, &primed_ends_}) times->resize(all);
  for (std::vector<std::uint8_t>* bytes : {&where_, &primed_where_, &pending_}) bytes->resize(all);
  item_end_.resize(most_items_);
  for (Draft* draft : {&draft_, &kept_, &best_draft_}) {
    draft->order.reserve(most_items_);
    draft->avoided.reserve(most_items_);
  }
  last_order_.reserve(most_items_);
}

inline PlanSearch::Item PlanSearch::item_of(const State& state, JobSlot slot) noexcept {
  constexpr Time kTolerated = 8;  // an end may come later by one part in so many of the response, and is still as expected
  const JobState& job = state.job(slot);
  Item item{slot, job.model, &state.profile->table(job.model), job.deadline, state.now + state.least_rest(slot)};
  item.worth = std::int64_t{1} << (6 * std::clamp(job.priority, 0, 8));
  item.ticket = job.ticket;
  if (job.expected_end < kNever) item.promised = job.expected_end + (job.expected_end - job.arrival) / kTolerated;
  return item;
}

/// Higher priority goes first, then the earlier deadline, then the earlier arrival.
inline bool PlanSearch::comes_before(const Item& a, const Item& b) noexcept {
  if (a.worth != b.worth) return a.worth > b.worth;
  return a.deadline != b.deadline ? a.deadline < b.deadline : a.ticket < b.ticket;
}

/// The jobs of the window.
inline void PlanSearch::gather(const State& state) noexcept {
  items_.clear();
  for (const JobSlot slot : state.live) {
    if (state.job(slot).dropped) continue;
    const Item item = item_of(state, slot);
    if (item.least_end <= item.deadline) items_.push_back(item);
  }
  std::sort(items_.begin(), items_.end(), comes_before);
  movable_ = items_.size();
  while (movable_ > 0 && items_[movable_ - 1].deadline >= kNever) --movable_;
  left_out_ = items_.size() > most_items();
  if (left_out_) items_.resize(most_items());
  movable_ = std::min(movable_, items_.size());
}

/// The units that have run or run now: on which processor, and until when.
inline void PlanSearch::prime(const State& state, std::size_t i) noexcept {
  const Item& item = items_[i];
  for (UnitIndex u = 0; u < item.table->units; ++u) {
    const std::size_t at = i * most_units_ + u;
    const UnitPhase phase = state.phase(item.job, u);
    pending_[at] = phase == UnitPhase::kPending;
    if (pending_[at]) continue;
    const std::size_t p = state.place(item.job, u);
    primed_where_[at] = static_cast<std::uint8_t>(p);
    if (phase == UnitPhase::kRunning)
      primed_ends_[at] = std::max(state.processors[p].expected_end, state.now);
    else  // a unit that ended earlier saves the next one no dispatch unless it is the last thing that its processor ran
      primed_ends_[at] = state.runs_last(p, item.job, u) && !state.processors[p].busy ? state.now : state.now - 1;
  }
}

inline void PlanSearch::start_tables(const State& state, std::uint32_t giving_way) noexcept {
  for (std::size_t p = 0; p < processors_; ++p) {
    const Time wait = giving_way >> p & 1 ? std::min(state.wait(p), state.processors[p].step) : state.wait(p);
    base_[p].reset(state.processors[p].usable ? state.now + wait : kNever);
  }
}

/// Places all pending units of a job; its end, or kNever when the deadline would be missed: then nothing is taken.
inline Time PlanSearch::place(const State& state, std::size_t i) noexcept {
  const Item& item = items_[i];
  const Profile::Table& t = *item.table;
  const std::size_t offset = i * most_units_;
  const JobState& job = state.job(item.job);
  std::array<std::size_t, Device::kMostProcessors> cursors{};
  std::array<Time, Device::kMostProcessors> own{};  // the end of the job's own last unit there
  Time end = state.now;
  for (UnitIndex u = 0; u < t.units; ++u) {
    if (!pending_[offset + u]) {
      ends_[offset + u] = primed_ends_[offset + u];
      where_[offset + u] = primed_where_[offset + u];
      end = std::max(end, ends_[offset + u]);
      continue;
    }
    Time ready = state.now;
    for (std::uint32_t s = t.begin[u]; s < t.begin[u + 1]; ++s) ready = std::max(ready, ends_[offset + t.sources[s]]);
    Time best = kNever, begins = 0, finishes = 0;
    std::size_t chosen = processors_;
    for (std::size_t p = 0; p < processors_; ++p) {
      Time work = t.time[u * processors_ + p];
      if (work >= kNever || !state.processors[p].usable) continue;
      ++cells_;
      const Time avoided = static_cast<Time>(draft_.avoided[i] >> (2 * p) & 3) * t.time[u * processors_ + p];
      if (u == job.interrupted && job.interrupted_on.index() == p) work = job.rest;
      for (std::uint32_t s = t.begin[u]; s < t.begin[u + 1]; ++s)
        work += t.copy[(t.sources[s] * processors_ + where_[offset + t.sources[s]]) * processors_ + p];
      const Time tail = t.tail[u * processors_ + p];
      const Time from = std::max(ready, own[p]);
      if (from + work + tail + avoided >= best) continue;
      std::size_t cursor = t.chain ? cursors[p] : 0;
      Time at = tables_[p].fit(from, work, cursor);
      const bool continues = u > 0 && where_[offset + u - 1] == p && ends_[offset + u - 1] == at;
      const Time dispatch = state.profile->dispatch(p);
      if (!continues && dispatch > 0) {
        work += dispatch;
        at = tables_[p].fit(from, work, cursor);
      }
      cursors[p] = cursor;
      if (at + work + tail + avoided < best) {
        best = at + work + tail + avoided;
        begins = at;
        finishes = at + work;
        chosen = p;
      }
    }
    if (chosen == processors_ || finishes + t.tail[u * processors_ + chosen] > item.deadline) return kNever;
    begins_[offset + u] = begins;
    ends_[offset + u] = own[chosen] = finishes;
    where_[offset + u] = static_cast<std::uint8_t>(chosen);
    end = std::max(end, finishes);
  }
  for (UnitIndex u = 0; u < t.units; ++u)
    if (pending_[offset + u]) tables_[where_[offset + u]].take(begins_[offset + u], ends_[offset + u]);
  return end;
}

inline PlanSearch::Value PlanSearch::build(const State& state) noexcept {
  for (std::size_t p = 0; p < processors_; ++p) tables_[p] = base_[p];
  Value value{0, 0};
  const auto add = [&](std::size_t i) {
    item_end_[i] = place(state, i);
    if (item_end_[i] >= kNever) return;
    if (items_[i].deadline < kNever) value.worth += items_[i].worth;
    value.cost += item_end_[i] - state.now;
    if (item_end_[i] > items_[i].promised) value.cost += kBrokenPromise * (item_end_[i] - items_[i].promised);
  };
  for (const std::uint16_t i : draft_.order) add(i);
  for (std::size_t i = movable_; i < items_.size(); ++i) add(i);
  return value;
}

/// The plan that was built last becomes the plan.
inline void PlanSearch::keep(const State& state) noexcept {
  for (std::size_t p = 0; p < processors_; ++p) slots_[p].clear();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    items_[i].end = item_end_[i];
    if (item_end_[i] >= kNever) continue;
    for (UnitIndex u = 0; u < items_[i].table->units; ++u) {
      const std::size_t at = i * most_units_ + u;
      if (pending_[at]) slots_[where_[at]].push_back({items_[i].job, u, begins_[at], ends_[at], items_[i].ticket});
    }
  }
  for (std::size_t p = 0; p < processors_; ++p)
    std::sort(slots_[p].begin(), slots_[p].end(), [](const PlannedSlot& a, const PlannedSlot& b) { return a.begin < b.begin; });
  last_order_.clear();
  for (const std::uint16_t i : draft_.order)
    if (items_[i].end < kNever) last_order_.push_back(state.job(items_[i].job).ticket);
}

inline void PlanSearch::add_slots(std::size_t i, std::span<const std::size_t> next) noexcept {
  for (UnitIndex u = 0; u < items_[i].table->units; ++u) {
    const std::size_t at = i * most_units_ + u, p = where_[at];
    if (!pending_[at]) continue;
    std::vector<PlannedSlot>& slots = slots_[p];
    const auto begins_later = [](Time begin, const PlannedSlot& slot) { return begin < slot.begin; };
    const auto from = slots.begin() + static_cast<std::ptrdiff_t>(std::min(next[p], slots.size()));
    slots.insert(std::upper_bound(from, slots.end(), begins_[at], begins_later),
                 {items_[i].job, u, begins_[at], ends_[at], items_[i].ticket});
  }
}

inline bool PlanSearch::add(const State& state, std::span<const std::size_t> next) noexcept {
  for (const JobSlot slot : state.live) {
    if (state.job(slot).dropped) continue;
    const Item item = item_of(state, slot);
    if (std::any_of(items_.begin(), items_.end(), [&](const Item& known) { return known.ticket == item.ticket; })) continue;
    if (items_.size() >= most_items()) {
      if (std::any_of(items_.begin(), items_.end(), [&](const Item& known) { return comes_before(item, known); })) return false;
      left_out_ = true;  // others come first: it waits for a place in the window
      continue;
    }
    const std::size_t i = items_.size();
    if (item.least_end > item.deadline) return false;
    if (item.deadline < kNever) movable_ = i + 1;
    items_.push_back(item);
    draft_.avoided.push_back(0);
    prime(state, i);
    item_end_[i] = items_[i].end = place(state, i);
    if (items_[i].end >= kNever) return false;
    add_slots(i, next);
    last_order_.push_back(item.ticket);
  }
  return true;
}

inline void PlanSearch::try_order(const State& state) noexcept {
  const Value value = build(state);
  if (!(value > best_)) return;
  best_ = value;
  best_draft_ = draft_;
}

/// One small change of the draft.
inline void PlanSearch::vary() noexcept {
  const std::size_t n = draft_.order.size(), a = random_.below(n), b = random_.below(n);
  if (random_.below(3) == 0) {
    draft_.avoided[a] = random_.bits();
  } else if (random_.below(4) == 0) {
    std::swap(draft_.order[a], draft_.order[b]);
  } else {  // the later one before the earlier one
    const auto at = [&](std::size_t i) { return draft_.order.begin() + static_cast<std::ptrdiff_t>(i); };
    std::rotate(at(std::min(a, b)), at(std::max(a, b)), at(std::max(a, b)) + 1);
  }
}

inline void PlanSearch::search(const State& state) noexcept {
  Value current = best_;
  kept_ = best_draft_;
  while (cells_ < parameters_.cells && ideal_ > best_) {
    const std::uint64_t before = cells_;
    draft_ = kept_;
    vary();
    const Value value = build(state);
    if (value >= current) {
      current = value;
      kept_ = draft_;
      if (value > best_) {
        best_ = value;
        best_draft_ = draft_;
      }
    }
    if (cells_ == before) return;  // nothing is left to place: all runs
    cells_ += kDraftCells;
  }
}

inline std::uint64_t PlanSearch::plan(const State& state, std::uint32_t giving_way) noexcept {
  cells_ = 0;
  gather(state);
  start_tables(state, giving_way);
  for (std::size_t i = 0; i < items_.size(); ++i) prime(state, i);
  draft_.order.clear();
  draft_.avoided.assign(items_.size(), 0);
  if (movable_ > 0) find_order(state);
  build(state);
  keep(state);
  return cells_;
}

/// Leaves the best draft that is found in `draft_`.
inline void PlanSearch::find_order(const State& state) noexcept {
  best_ = {};
  ideal_ = {0, 0};
  for (const Item& item : items_) {
    if (item.deadline < kNever) ideal_.worth += item.worth;
    if (item.least_end < kNever) ideal_.cost += item.least_end - state.now;  // else no processor is left for it
  }
  for (std::size_t i = 0; i < movable_; ++i) draft_.order.push_back(static_cast<std::uint16_t>(i));
  try_order(state);  // earliest deadline first
  const auto by = [&](auto key) {
    std::sort(draft_.order.begin(), draft_.order.end(), [&](std::uint16_t a, std::uint16_t b) {
      if (items_[a].worth != items_[b].worth) return items_[a].worth > items_[b].worth;
      const Time x = key(items_[a]), y = key(items_[b]);
      return x != y ? x < y : a < b;
    });
    try_order(state);
  };
  by([](const Item& item) { return item.deadline - item.least_end; });
  by([](const Item& item) { return item.least_end; });
  by([&](const Item& item) {
    const auto at = std::find(last_order_.begin(), last_order_.end(), state.job(item.job).ticket);
    return static_cast<Time>(at - last_order_.begin());
  });
  search(state);
  draft_ = best_draft_;
}

}  // namespace sluice::scheduler

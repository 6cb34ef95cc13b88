// Expected times of units on processors, and what follows from them. Made from what was measured when a model was registered, kept true
// by each unit that ends (`observe`); whatever is derived is derived again when times change, so nothing is ever stale.
//
// Two things move a time. Against noise each new measurement counts a tenth. A change (another clock rate, another program on the core):
// the last few units of a processor agree that it takes much longer or shorter than was expected of them before the first of these; then all
// its times move at once, because it is the processor that changed. A processor that has become three times slower is known after
// `kAgreeing` units; a smaller change takes `kAgreeingMildly`, because short disturbances often look like one. Two exceptions: where they are
// one unit that has run a few times only, its first estimate was wrong, and it moves alone; and what short units show (cold caches, late
// wakes) moves no unit that is `kReach` times as long. Nor can changes that come and go carry a unit away that nobody measures meanwhile:
// after each it is within a factor of `kApart` of its first time on a processor as the units show it.
//
// `dispatch` is learned too: what a run takes beside its units.
//
// Invariants: (F1) times are > 0 and `kNever` stays `kNever`; (F2) `tail(m, u, p)` is a lower bound of the time from the end of unit u on
// processor p to the end of the job when no other job is there, and exact for chains, by times and dispatch of the last growth; (F3) `version`
// grows whenever a time, or dispatch, changes by more than an eighth of itself since the last growth: code that caches derived values
// compares it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "sluice/scheduler/device.h"

namespace sluice::scheduler {

class Profile {
 public:
  static constexpr double kSmoothing = 0.1;  // what Band uses; the detector is what makes up for its slowness

  /// Takes models that `check_model` accepts. Allocates; no later call does.
  Profile(const Device& device, std::span<const Model> models, double smoothing = kSmoothing)
      : processors_(device.count()), smoothing_(smoothing) {
    for (const Processor& processor : device.processors) {
      dispatch_.push_back(processor.dispatch);
      exact_dispatch_.push_back(static_cast<double>(processor.dispatch));
    }
    settled_dispatch_ = exact_dispatch_;
    for (const Model& model : models) add(device, model);
    recent_.resize(processors_);
  }

  struct Table {
    std::size_t units = 0;
    bool chain = false;
    std::vector<Time> time;            // [unit * processors + processor]
    std::vector<double> exact;         // the same, with the fractions that smoothing leaves
    std::vector<double> settled;       // the same, when the version last grew
    std::vector<double> first;         // the same, in the beginning; where that was wrong, as it was mended
    std::vector<std::uint8_t> seen;    // the same: how often it was measured, up to kYoung
    std::vector<Time> copy;            // [(unit * processors + from) * processors + to], of the unit's output
    std::vector<Time> tail;            // [unit * processors + processor]
    std::vector<UnitIndex> sources;    // all `reads_from`, one after the other
    std::vector<std::uint32_t> begin;  // of a unit's sources; one more than units
  };

  std::size_t processors() const noexcept { return processors_; }
  std::size_t models() const noexcept { return tables_.size(); }
  const Table& table(ModelId model) const noexcept { return tables_[model.index()]; }
  Time dispatch(std::size_t processor) const noexcept { return dispatch_[processor]; }
  std::uint64_t version() const noexcept { return version_; }

  Time time(ModelId model, UnitIndex unit, std::size_t processor) const noexcept {
    return table(model).time[unit * processors_ + processor];
  }
  Time copy(ModelId model, UnitIndex unit, std::size_t from, std::size_t to) const noexcept {
    return table(model).copy[(unit * processors_ + from) * processors_ + to];
  }
  Time tail(ModelId model, UnitIndex unit, std::size_t processor) const noexcept {
    return table(model).tail[unit * processors_ + processor];
  }
  std::span<const UnitIndex> sources(ModelId model, UnitIndex unit) const noexcept {
    const Table& t = table(model);
    return {t.sources.data() + t.begin[unit], t.sources.data() + t.begin[unit + 1]};
  }
  /// The shortest time a whole job can take: with no other jobs, and every processor usable.
  Time shortest(ModelId model) const noexcept {
    const Table& t = table(model);
    Time longest = 0;
    for (UnitIndex u = 0; u < t.units; ++u)
      if (t.begin[u] == t.begin[u + 1]) longest = std::max(longest, shortest_from(t, u));
    return longest;
  }

  /// A unit took `took` where `time` was expected, copies and dispatch not counted.
  void observe(ModelId model, UnitIndex unit, std::size_t processor, Time took) noexcept {
    Table& t = tables_[model.index()];
    const std::size_t at = unit * processors_ + processor;
    const double ratio = static_cast<double>(std::max<Time>(took, 1)) / static_cast<double>(t.time[at]);
    Recent& recent = recent_[processor];
    recent.seen[recent.count++ % kAgreeingMildly] = {ratio, ratio * t.exact[at] / t.first[at], t.time[at], model, unit};
    if (t.seen[at] < kYoung) ++t.seen[at];
    if (const std::span<const Seen> agreeing = agreement(recent); !agreeing.empty()) {
      if (t.seen[at] < kYoung && is_one_unit(agreeing)) {
        const Time before = agreeing.front().expected;  // by the oldest of them
        set(t, at, static_cast<double>(before) * middle(agreeing));
        t.first[at] *= t.exact[at] / static_cast<double>(before);  // else `follow` would take its error for a change of the processor
        settle();
      } else {
        follow(processor, agreeing);
      }
      recent.count = 0;
      return;
    }
    set(t, at, t.exact[at] * (1 + smoothing_ * (std::min(ratio, kLargestStep) - 1)));
    if (std::abs(t.exact[at] - t.settled[at]) * 8 > t.settled[at]) settle();
  }

  /// A run took so much beside its units. Tails follow when that has changed by more than an eighth.
  void observe_dispatch(std::size_t processor, Time took) noexcept {
    double& exact = exact_dispatch_[processor];
    const double most = kLargestStep * exact + static_cast<double>(kMicrosecond);
    exact += smoothing_ * (std::clamp(static_cast<double>(took), 0.0, most) - exact);
    dispatch_[processor] = static_cast<Time>(exact);
    double& settled = settled_dispatch_[processor];
    if (std::abs(exact - settled) * 8 <= settled + static_cast<double>(kMicrosecond)) return;
    settled = exact;
    settle();
  }

  /// All times of a processor times `factor`: what a thermal event that the system reports may do at once.
  void rescale(std::size_t processor, double factor) noexcept {
    for (Table& t : tables_)
      for (std::size_t at = processor; at < t.time.size(); at += processors_)
        if (t.time[at] < kNever) set(t, at, t.exact[at] * factor);
    settle();
  }

 private:
  static constexpr double kLargestStep = 4;  // one outlier moves an expectation by at most three tenths
  // Measurements that make a change; all of them are beyond this ratio, and the largest is less than `kSpread` times the smallest. Two would
  // take a pair of interruptions for a change; noise of single units stays well below the smaller ratio.
  static constexpr std::size_t kAgreeing = 3, kAgreeingMildly = 5;
  static constexpr double kChanged = 2, kChangedMildly = 1.3;
  static constexpr double kSpread = 1.4, kSpreadMildly = 2;

  static constexpr std::uint8_t kYoung = 8;  // measurements of a unit until its time is not taken for a first estimate any more
  static constexpr Time kReach = 8;
  static constexpr double kApart = 1.25;

  struct Seen {
    double ratio = 1;
    double since_first = 1;  // what it took over what was expected of the unit at first
    Time expected = 0;
    ModelId model{};
    UnitIndex unit = 0;
  };
  struct Recent {
    std::array<Seen, kAgreeingMildly> seen{};
    std::array<Seen, kAgreeingMildly> in_order{};  // scratch: the last ones, the oldest first
    std::size_t count = 0;
  };

  static bool less(const Seen& a, const Seen& b) noexcept { return a.ratio < b.ratio; }
  static bool agree(std::span<const Seen> seen, double changed, double spread) noexcept {
    const auto [least, most] = std::minmax_element(seen.begin(), seen.end(), less);
    return (least->ratio > changed || most->ratio < 1 / changed) && most->ratio < spread * least->ratio;
  }
  /// The last measurements of a processor that agree that it has changed, the oldest first; nothing if they do not. Each is compared with what
  /// was expected at the oldest measurement of its unit: what came since has moved the expectation towards itself.
  static std::span<const Seen> agreement(Recent& recent) noexcept {
    const std::size_t known = std::min(recent.count, kAgreeingMildly);
    for (std::size_t i = 0; i < known; ++i) {
      Seen& one = recent.in_order[i];
      one = recent.seen[(recent.count - known + i) % kAgreeingMildly];
      const auto oldest = std::find_if(recent.in_order.begin(), recent.in_order.begin() + static_cast<std::ptrdiff_t>(i),
                                       [&](const Seen& earlier) { return same_unit(earlier, one); });
      one.ratio *= static_cast<double>(one.expected) / static_cast<double>(oldest->expected);
      one.expected = oldest->expected;
    }
    const std::span<const Seen> all(recent.in_order.data(), known);
    if (known >= kAgreeing && agree(all.last(kAgreeing), kChanged, kSpread)) return all.last(kAgreeing);
    return known == kAgreeingMildly && agree(all, kChangedMildly, kSpreadMildly) ? all : std::span<const Seen>();
  }
  template <class Less>
  static Seen middle_by(std::span<const Seen> seen, Less is_less) noexcept {
    for (const Seen& one : seen) {
      const auto before = std::count_if(seen.begin(), seen.end(), [&](const Seen& other) { return is_less(other, one); });
      const auto after = std::count_if(seen.begin(), seen.end(), [&](const Seen& other) { return is_less(one, other); });
      if (std::max(before, after) * 2 < static_cast<std::ptrdiff_t>(seen.size())) return one;
    }
    return seen.front();
  }
  static double middle(std::span<const Seen> seen) noexcept { return middle_by(seen, less).ratio; }
  static bool same_unit(const Seen& a, const Seen& b) noexcept { return a.model == b.model && a.unit == b.unit; }
  static bool is_one_unit(std::span<const Seen> seen) noexcept {
    return std::all_of(seen.begin(), seen.end(), [&](const Seen& one) { return same_unit(one, seen[0]); });
  }
  static Time longest(std::span<const Seen> seen) noexcept {
    Time longest = 0;
    for (const Seen& one : seen) longest = std::max(longest, one.expected);
    return longest;
  }

  /// The processor has changed as these units show.
  void follow(std::size_t processor, std::span<const Seen> seen) noexcept {
    const double factor = middle(seen);
    const Time reach = kReach * longest(seen);
    const double speed = middle_by(seen, [](const Seen& a, const Seen& b) { return a.since_first < b.since_first; }).since_first;
    for (const Seen& one : seen) tables_[one.model.index()].exact[one.unit * processors_ + processor] = static_cast<double>(one.expected);
    for (Table& t : tables_)
      for (std::size_t at = processor; at < t.time.size(); at += processors_)
        if (t.time[at] < kNever && t.time[at] <= reach)
          set(t, at, std::clamp(t.exact[at] * factor, t.first[at] * speed / kApart, t.first[at] * speed * kApart));
    settle();
  }

  void add(const Device& device, const Model& model) {
    Table t;
    t.units = model.units.size();
    t.chain = model.is_chain();
    t.begin.push_back(0);
    for (const Unit& unit : model.units) {
      t.time.insert(t.time.end(), unit.times.begin(), unit.times.end());
      t.sources.insert(t.sources.end(), unit.reads_from.begin(), unit.reads_from.end());
      t.begin.push_back(static_cast<std::uint32_t>(t.sources.size()));
      for (std::size_t from = 0; from < processors_; ++from)
        for (std::size_t to = 0; to < processors_; ++to) t.copy.push_back(device.transfer(from, to, unit.output));
    }
    t.exact.assign(t.time.begin(), t.time.end());
    t.settled = t.first = t.exact;
    t.seen.resize(t.time.size());
    t.tail.resize(t.time.size());
    tables_.push_back(std::move(t));
    derive(tables_.back());
  }

  static void set(Table& t, std::size_t at, double time) noexcept {
    t.exact[at] = std::clamp(time, 1.0, 1e12);
    t.time[at] = static_cast<Time>(t.exact[at]);
  }

  void settle() noexcept {
    for (Table& t : tables_) {
      std::copy(t.exact.begin(), t.exact.end(), t.settled.begin());
      derive(t);
    }
    ++version_;
  }

  Time shortest_from(const Table& t, UnitIndex u) const noexcept {
    Time least = kNever;
    for (std::size_t p = 0; p < processors_; ++p) {
      const std::size_t at = u * processors_ + p;
      if (t.time[at] < kNever) least = std::min(least, dispatch_[p] + t.time[at] + t.tail[at]);
    }
    return least;
  }

  /// Readers come after what they read, so from the last unit to the first every tail that is needed is there.
  void derive(Table& t) noexcept {
    std::fill(t.tail.begin(), t.tail.end(), 0);
    for (UnitIndex u = static_cast<UnitIndex>(t.units); u-- > 0;)
      for (std::uint32_t s = t.begin[u]; s < t.begin[u + 1]; ++s) {
        const UnitIndex source = t.sources[s];
        for (std::size_t from = 0; from < processors_; ++from) {
          Time least = kNever;
          for (std::size_t to = 0; to < processors_; ++to) {
            const std::size_t at = u * processors_ + to;
            if (t.time[at] >= kNever) continue;
            const Time enter = from == to ? 0 : dispatch_[to] + t.copy[(source * processors_ + from) * processors_ + to];
            least = std::min(least, enter + t.time[at] + t.tail[at]);
          }
          Time& tail = t.tail[source * processors_ + from];
          tail = std::max(tail, least);
        }
      }
  }

  std::size_t processors_;
  double smoothing_;
  std::vector<Time> dispatch_;
  std::vector<double> exact_dispatch_, settled_dispatch_;  // the latter: when tails were last derived from it
  std::vector<Table> tables_;
  std::vector<Recent> recent_;
  std::uint64_t version_ = 0;
};

}  // namespace sluice::scheduler

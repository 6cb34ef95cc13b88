// The most jobs of a small instance that can meet their deadlines, all arrivals known in advance: what goodput is compared with. Exact, by
// branch and bound, for chains whose units are not interrupted; where the limit of work is reached, a lower and an upper bound.
//
//   which jobs     from a number that is known to be possible upwards: can one more be met? Each set of that size is tried. None: proven.
//   one set        is there a schedule in which all of it is on time? Units are put behind what is there, in order of their
//                  beginnings; each schedule in which nothing could begin earlier comes up that way.
//   what cuts      (a) a job alone cannot end in time any more (its tail is exact when nobody else is there)
//                  (b) energy: under any prices of processors, what the jobs with deadlines <= d still cost at least (the cheapest
//                      way, copies and dispatch included) exceeds what the processors have left until d. Prices come from fluid
//                      problems (fluid.h)
//                  (c) memory: the same progress was reached before, no processor and no job later than now
//
// `tests/scheduler/optimum_test.cc` holds it against all orders on all processors, for tiny instances. It allocates and takes its time:
// nothing of it runs when jobs are scheduled.
#pragma once

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <vector>

#include "sluice/scheduler/simulator/instance.h"

namespace sluice::scheduler {

struct Optimum {
  std::size_t least = 0;    // so many can be met
  std::size_t most = 0;     // and no more
  std::uint64_t nodes = 0;  // looked at
  bool proven() const noexcept { return least == most; }
};

struct OptimumLimits {
  std::uint64_t nodes_a_set = 20'000;
  std::uint64_t nodes = 2'000'000;
};

class OptimumSearch {
 public:
  OptimumSearch(const Instance& instance, OptimumLimits limits)
      : instance_(instance), limits_(limits), profile_(instance.device, instance.models), processors_(instance.device.count()) {
    std::vector<std::size_t> order(instance.arrivals.size());
    for (std::size_t j = 0; j < order.size(); ++j) order[j] = j;
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return instance.arrivals[a].request.deadline < instance.arrivals[b].request.deadline; });
    SLUICE_CHECK(order.size() < 32, "sets of jobs are the bits of a word");
    for (const Model& model : instance.models)
      SLUICE_CHECK(model.is_chain(), "the search puts the next unit of a job behind the one before");
    for (const std::size_t j : order)
      jobs_.push_back({instance.arrivals[j].request.model, instance.arrivals[j].at, instance.arrivals[j].request.deadline});
  }

  /// `known` jobs are known to be possible, from a schedule that somebody has.
  Optimum run(std::size_t known) {
    Optimum result{known, jobs_.size(), 0};
    while (result.least < jobs_.size()) {
      const Answer answer = any_set(result.least + 1);
      if (answer == Answer::kYes) {
        ++result.least;
        continue;
      }
      result.most = result.least;
      if (answer == Answer::kUnknown) result.most = most_by_bounds(result.least + 1);
      while (result.most > result.least + 1 && any_set(result.most) == Answer::kNo) --result.most;
      break;
    }
    result.most = std::max(result.most, result.least);
    result.nodes = nodes_;
    return result;
  }

 private:
  enum class Answer : std::uint8_t { kYes, kNo, kUnknown };

  struct Job {
    ModelId model{};
    Time arrival = 0, deadline = 0;
  };
  struct Progress {  // of a job
    UnitIndex next = 0;
    std::uint8_t place = 0;
    Time ready = 0;
  };
  struct Node {
    std::vector<Progress> jobs;      // of the set
    std::vector<Time> free;          // by processor
    std::vector<std::uint8_t> last;  // by processor: the job of the set that it ran last; kNobody
    Time from = 0;                   // nothing more begins before it
  };
  struct Choice {
    std::size_t job, processor;
    Time begin, end, urgency;
  };
  static constexpr std::uint8_t kNobody = 255;

  struct Prices {
    std::vector<double> of;                  // by processor
    std::vector<std::vector<double>> parts;  // [model][part_at(...)]: the least price of units [first, last), by the processor before them
  };

  /// 0: no unit has run yet; p + 1: the unit before ran on p.
  std::size_t part_at(std::size_t m, UnitIndex first, std::size_t place, UnitIndex last) const noexcept {
    return (first * (processors_ + 1) + place) * (instance_.models[m].units.size() + 1) + last;
  }

  void add_prices(std::vector<double> of) {
    for (const Prices& known : prices_) {
      double difference = 0;
      for (std::size_t p = 0; p < processors_; ++p) difference += std::abs(known.of[p] - of[p]);
      if (difference < 0.03) return;
    }
    Prices prices{std::move(of), {}};
    for (std::size_t m = 0; m < instance_.models.size(); ++m) prices.parts.push_back(cheapest_parts(m, prices.of));
    prices_.push_back(std::move(prices));
  }

  std::vector<double> cheapest_parts(std::size_t m, const std::vector<double>& price) const {
    const Profile::Table& t = profile_.table(ModelId(m));
    const UnitIndex units = static_cast<UnitIndex>(t.units);
    std::vector<double> parts((units + 1) * (processors_ + 1) * (units + 1), 0);
    for (UnitIndex u = units; u-- > 0;)
      for (std::size_t place = u > 0; place < (u > 0 ? processors_ + 1 : 1); ++place)
        for (UnitIndex last = u + 1; last <= units; ++last) {
          double least = 1e300;
          for (std::size_t p = 0; p < processors_; ++p) {
            const Time time = t.time[u * processors_ + p];
            if (time < kNever)
              least = std::min(least, price[p] * static_cast<double>(time + enter(m, u, place, p)) + parts[part_at(m, u + 1, p + 1, last)]);
          }
          parts[part_at(m, u, place, last)] = least;
        }
    return parts;
  }

  /// Dispatch and copy of unit `u`, the one before it having run at `from` - 1 (0: there is none).
  Time enter(std::size_t m, UnitIndex u, std::size_t from, std::size_t p) const {
    if (from == p + 1) return 0;
    return profile_.dispatch(p) + (from == 0 ? 0 : profile_.copy(ModelId(m), u - 1, from - 1, p));
  }

  Answer any_set(std::size_t size) {
    bool unknown = false;
    const std::uint32_t all = std::uint32_t{1} << jobs_.size();
    for (std::uint32_t set = 0; set < all; ++set) {
      if (static_cast<std::size_t>(std::popcount(set)) != size) continue;
      const Answer answer = possible(set);
      if (answer == Answer::kYes) return answer;
      unknown |= answer == Answer::kUnknown;
    }
    return unknown ? Answer::kUnknown : Answer::kNo;
  }

  /// The largest size at which some set is not refuted by bounds alone.
  std::size_t most_by_bounds(std::size_t from) {
    for (std::size_t size = jobs_.size(); size > from; --size)
      for (std::uint32_t set = 0; set < std::uint32_t{1} << jobs_.size(); ++set)
        if (static_cast<std::size_t>(std::popcount(set)) == size && enter_set(set)) return size;
    return from;
  }

  /// Makes `set` the one that is looked at; false when bounds alone refute it.
  bool enter_set(std::uint32_t set) {
    set_.clear();
    for (std::size_t j = 0; j < jobs_.size(); ++j)
      if (set >> j & 1) set_.push_back(jobs_[j]);
    root_ = {{}, std::vector<Time>(processors_, 0), std::vector<std::uint8_t>(processors_, kNobody), 0};
    for (const Job& job : set_) root_.jobs.push_back({0, 0, job.arrival});
    find_due_units();
    prices_.clear();
    add_prices(std::vector<double>(processors_, 1.0 / static_cast<double>(processors_)));
    std::vector<std::size_t> models;
    for (const Job& job : set_) {
      models.push_back(job.model.index());
      if (models.size() > 1) add_prices(solve_fluid(instance_.device, instance_.models, models).prices);
    }
    return !refuted(root_, true);
  }

  /// due_[j][i]: how many units of job j must be over by the deadline of job i, if j is to end in time.
  void find_due_units() {
    due_.assign(set_.size(), std::vector<UnitIndex>(set_.size(), 0));
    for (std::size_t j = 0; j < set_.size(); ++j) {
      const Profile::Table& t = profile_.table(set_[j].model);
      for (std::size_t i = 0; i < set_.size(); ++i)
        for (UnitIndex u = 0; u < t.units; ++u) {
          const Time tail = *std::min_element(t.tail.begin() + static_cast<std::ptrdiff_t>(u * processors_),
                                              t.tail.begin() + static_cast<std::ptrdiff_t>((u + 1) * processors_));
          if (set_[j].deadline - tail <= set_[i].deadline) due_[j][i] = u + 1;
        }
    }
  }

  Answer possible(std::uint32_t set) {
    if (!enter_set(set)) return Answer::kNo;
    seen_.clear();
    set_nodes_ = 0;
    const Answer answer = extend(root_);
    nodes_ += set_nodes_;
    return answer;
  }

  Time begin_of(const Node& node, std::size_t j, std::size_t p) const { return std::max({node.free[p], node.jobs[j].ready, node.from}); }

  Time work_of(const Node& node, std::size_t j, std::size_t p) const {
    const Progress& progress = node.jobs[j];
    const ModelId model = set_[j].model;
    const Time time = profile_.time(model, progress.next, p);
    if (time >= kNever) return kNever;
    Time enter = 0;
    if (progress.next > 0) enter = profile_.copy(model, progress.next - 1, progress.place, p);
    const bool continues = progress.next > 0 && progress.place == p && node.last[p] == j;
    return time + enter + (continues ? 0 : profile_.dispatch(p));
  }

  bool ended(const Node& node, std::size_t j) const { return node.jobs[j].next == profile_.table(set_[j].model).units; }

  /// (a) and (b). At the root also for jobs that arrive later: what comes after `t` has only the time after `t`.
  bool refuted(const Node& node, bool root) const {
    for (std::size_t j = 0; j < set_.size(); ++j) {
      if (ended(node, j)) continue;
      Time least = kNever;
      for (std::size_t p = 0; p < processors_; ++p) {
        const Time work = work_of(node, j, p);
        if (work < kNever) least = std::min(least, begin_of(node, j, p) + work + profile_.tail(set_[j].model, node.jobs[j].next, p));
      }
      if (least > set_[j].deadline) return true;
    }
    if (out_of_energy(node, node.from)) return true;
    if (root)
      for (const Job& job : set_)
        if (job.arrival > node.from && out_of_energy(node, job.arrival)) return true;
    return false;
  }

  bool out_of_energy(const Node& node, Time from) const {
    for (const Prices& prices : prices_)
      for (std::size_t i = 0; i < set_.size(); ++i) {
        double room = 1;  // one nanosecond for rounding
        for (std::size_t p = 0; p < processors_; ++p)
          room += prices.of[p] * static_cast<double>(std::max<Time>(set_[i].deadline - std::max(node.free[p], from), 0));
        for (std::size_t j = 0; j < set_.size(); ++j) {
          const Progress& progress = node.jobs[j];
          if (due_[j][i] <= progress.next || (progress.ready < from && from > node.from)) continue;
          const std::size_t m = set_[j].model.index();
          room -= prices.parts[m][part_at(m, progress.next, progress.next > 0 ? progress.place + 1u : 0, due_[j][i])];
        }
        if (room < 0) return true;
      }
    return false;
  }

  /// (c): was this progress reached before, nothing later than now? Remembers it otherwise.
  bool dominated(const Node& node) {
    std::uint64_t key = 1469598103934665603u;
    const auto mix = [&](std::uint64_t value) { key = (key ^ value) * 1099511628211u; };
    for (const Progress& progress : node.jobs) mix(progress.next * 64u + progress.place);
    for (const std::uint8_t last : node.last) mix(last);
    std::vector<Time> times;
    for (const Time free : node.free) times.push_back(std::max(free, node.from));
    for (const Progress& progress : node.jobs) times.push_back(std::max(progress.ready, node.from));
    for (const Progress& progress : node.jobs)
      times.push_back(progress.next * 64 + progress.place);  // so that equal keys mean equal progress
    for (const std::uint8_t last : node.last) times.push_back(last);
    const std::size_t compared = node.free.size() + node.jobs.size();
    std::vector<std::vector<Time>>& known = seen_[key];
    for (const std::vector<Time>& other : known) {
      bool earlier = true;
      for (std::size_t i = 0; i < times.size() && earlier; ++i) earlier = i < compared ? other[i] <= times[i] : other[i] == times[i];
      if (earlier) return true;
    }
    known.push_back(std::move(times));
    return false;
  }

  std::vector<Choice> choices(const Node& node) const {
    std::vector<Choice> list;
    for (std::size_t j = 0; j < set_.size(); ++j) {
      if (ended(node, j)) continue;
      for (std::size_t p = 0; p < processors_; ++p) {
        const Time work = work_of(node, j, p);
        if (work >= kNever) continue;
        const Time begin = begin_of(node, j, p), end = begin + work, ends = end + profile_.tail(set_[j].model, node.jobs[j].next, p);
        if (ends <= set_[j].deadline) list.push_back({j, p, begin, end, begin / 4 + (set_[j].deadline - ends)});
      }
    }
    std::sort(list.begin(), list.end(), [](const Choice& a, const Choice& b) { return a.urgency < b.urgency; });
    return list;
  }

  Answer extend(const Node& node) {
    if (++set_nodes_ > limits_.nodes_a_set || nodes_ + set_nodes_ > limits_.nodes) return Answer::kUnknown;
    bool over = true;
    for (std::size_t j = 0; j < set_.size(); ++j) over &= ended(node, j);
    if (over) return Answer::kYes;
    if (refuted(node, false) || dominated(node)) return Answer::kNo;
    for (const Choice& choice : choices(node)) {
      Node next = node;
      next.jobs[choice.job] = {node.jobs[choice.job].next + 1, static_cast<std::uint8_t>(choice.processor), choice.end};
      next.free[choice.processor] = choice.end;
      next.last[choice.processor] = static_cast<std::uint8_t>(choice.job);
      next.from = choice.begin;
      const Answer answer = extend(next);
      if (answer != Answer::kNo) return answer;
    }
    return Answer::kNo;
  }

  const Instance& instance_;
  OptimumLimits limits_;
  Profile profile_;
  std::size_t processors_;
  std::vector<Job> jobs_;  // by deadline
  std::vector<Prices> prices_;
  std::vector<Job> set_;  // by deadline
  std::vector<std::vector<UnitIndex>> due_;
  Node root_;
  std::unordered_map<std::uint64_t, std::vector<std::vector<Time>>> seen_;
  std::uint64_t nodes_ = 0, set_nodes_ = 0;
};

inline Optimum find_optimum(const Instance& instance, std::size_t known = 0, OptimumLimits limits = {}) {
  return OptimumSearch(instance, limits).run(known);
}

}  // namespace sluice::scheduler

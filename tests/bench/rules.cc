// What each rule of the planner's search is worth: every model at budgets from the smallest on, planned with all rules and with each off.
//
//     sluice-bench-rules [--profile FILE] [--threads N] [--cold] [--json] MODEL.sluice ...
//
// T is what the simulator says of the plan, so nothing is run and no clock decides. Of each rule: the geometric mean and the most of T
// without it over T with all, at how many points it is slower by more than 0.1 %, and the same of the smallest capacity that works.
// `planning` is the CPU time of planning without the rule over that with all, for guidance.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"
#include "sluice/planner/planner.h"
#include "src/cli/profile_file.h"
#include "tests/bench/must.h"
#include "tests/planner/search_rules.h"

namespace sluice::bench {
namespace {

using planner::PlanRequest;
using planner::SearchParameters;
using planner::SearchRule;

/// Ratios of one figure without a rule to the same figure with all.
class Ratios {
 public:
  void add(double ratio) {
    sum_ += std::log(ratio);
    most_ = std::max(most_, ratio);
    worse_ += ratio > 1.001 ? 1 : 0;
    ++count_;
  }
  double mean() const { return count_ == 0 ? 1 : std::exp(sum_ / count_); }
  double most() const { return most_; }
  int worse() const { return worse_; }
  int count() const { return count_; }

 private:
  double sum_ = 0, most_ = 0;
  int worse_ = 0, count_ = 0;
};

struct Worth {
  Ratios seconds, least;
  int refused = 0;  // points at which there is no plan without the rule
  double planning_ms = 0;
};

class Bench {
 public:
  Bench(const profiler::DeviceProfile& profile, PlanRequest request)
      : profile_(profile), request_(request), worth_(std::size(planner::kSearchRules)) {}

  void model(const std::string& path) {
    const auto model = must(Model::open(path));
    const model::Graph& graph = model->graph();
    const Bytes least = least_of(graph, {});
    std::vector<Bytes> without;
    for (std::size_t r = 0; r < worth_.size(); ++r) {
      without.push_back(least_of(graph, all_but(r)));
      worth_[r].least.add(static_cast<double>(without.back().count()) / static_cast<double>(least.count()));
    }
    for (const Bytes capacity : capacities(graph, least)) {
      const double all = seconds(graph, capacity, {}, planning_ms_);
      for (std::size_t r = 0; r < worth_.size(); ++r) {
        if (without[r] > capacity) {
          ++worth_[r].refused;
          continue;
        }
        worth_[r].seconds.add(seconds(graph, capacity, all_but(r), worth_[r].planning_ms) / all);
      }
    }
    ++models_;
  }

  void print() const {
    std::printf("| without | T, mean | T, most | slower at | no plan at | smallest, mean | smallest, most | planning |\n");
    std::printf("|---|---|---|---|---|---|---|---|\n");
    for (std::size_t r = 0; r < worth_.size(); ++r) {
      const Worth& w = worth_[r];
      std::printf("| %s | %.4f | %.3f | %d of %d | %d | %.4f | %.3f | %.2f |\n", planner::kSearchRules[r].name, w.seconds.mean(),
                  w.seconds.most(), w.seconds.worse(), w.seconds.count(), w.refused, w.least.mean(), w.least.most(),
                  w.planning_ms / planning_ms_);
    }
    std::printf("\n%d models\n", models_);
  }

  void print_json() const {
    std::printf("{\"models\": %d, \"rules\": [", models_);
    for (std::size_t r = 0; r < worth_.size(); ++r) {
      const Worth& w = worth_[r];
      std::printf(
          "%s\n  {\"without\": \"%s\", \"time_mean\": %.6f, \"time_most\": %.6f, \"slower\": %d, \"points\": %d, \"refused\": %d, "
          "\"smallest_mean\": %.6f, \"smallest_most\": %.6f, \"planning\": %.4f}",
          r == 0 ? "" : ",", planner::kSearchRules[r].name, w.seconds.mean(), w.seconds.most(), w.seconds.worse(), w.seconds.count(),
          w.refused, w.least.mean(), w.least.most(), w.planning_ms / planning_ms_);
    }
    std::printf("\n]}\n");
  }

 private:
  static SearchParameters all_but(std::size_t rule) {
    SearchParameters parameters;
    parameters.*planner::kSearchRules[rule].on = false;
    return parameters;
  }

  Bytes least_of(const model::Graph& graph, const SearchParameters& search) const {
    PlanRequest request = request_;
    request.search = search;
    return must(planner::minimum_capacity(graph, profile_, request));
  }

  /// From the smallest to that which keeps every weight: its ends, and parts of the way between.
  std::vector<Bytes> capacities(const model::Graph& graph, Bytes least) const {
    PlanRequest request = request_;
    request.policy = planner::Policy::kResident;
    const Bytes most = std::max(least, must(planner::minimum_capacity(graph, profile_, request)));
    std::vector<Bytes> found = {least};
    for (const double share : {1.0 / 32, 1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 3.0 / 4})
      found.push_back(align_up(least + Bytes(static_cast<std::uint64_t>(share * static_cast<double>((most - least).count()))), 4096));
    return found;
  }

  double seconds(const model::Graph& graph, Bytes capacity, const SearchParameters& search, double& planning_ms) const {
    PlanRequest request = request_;
    request.capacity = capacity;
    request.search = search;
    const double start = cpu_ms();
    const plan::Plan plan = must(planner::make_plan(graph, profile_, request));
    planning_ms += cpu_ms() - start;
    return request.repeat ? plan.prediction.period_ms : plan.prediction.cold_ms;
  }

  const profiler::DeviceProfile& profile_;
  const PlanRequest request_;
  std::vector<Worth> worth_;
  double planning_ms_ = 0;
  int models_ = 0;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  sluice::planner::PlanRequest request{.repeat = true};
  std::string profile;
  bool json = false;
  std::vector<std::string> models;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--cold") {
      request.repeat = false;
    } else if (word == "--json") {
      json = true;
    } else if (i + 1 < argc && word == "--profile") {
      profile = argv[++i];
    } else if (i + 1 < argc && word == "--threads") {
      request.threads = std::atoi(argv[++i]);
    } else {
      models.push_back(word);
    }
  }
  const sluice::cli::FoundProfile found = sluice::cli::find_profile(profile, request.threads);
  const sluice::profiler::DeviceProfile assumed;
  sluice::bench::Bench bench(found.get() ? *found.get() : assumed, request);
  for (const std::string& model : models) bench.model(model);
  json ? bench.print_json() : bench.print();
  return 0;
}

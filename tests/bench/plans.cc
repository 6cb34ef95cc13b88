// How good plans are and how long they take to make: each model at ten budgets, from the smallest that works to all weights kept.
//
//     sluice-bench-plans [--profile FILE] [--threads N] [--io-limit BYTES_PER_SECOND] [--measure RUNS] [--cold] MODEL.sluice ...
//
// T is what the simulator says of the plan, T_LB the bound at that budget (docs/planner.md); on_demand and flexnn are the baselines' T.
// Planning times are the least of five, in CPU time of the thread that plans (neighbours on shared cores say nothing of a planner), of the
// plan alone: without the exact search, then with its default limit. With --measure a session runs so often at each budget, and for 0.2 s
// at least; the median run is compared with T. A limit on reading emulates a disk that is slower and steadier than the one at hand, whose
// rate may differ by a factor from minute to minute.
//
//     sluice-bench-plans --activations MODEL.sluice ...
//
// How low the activations of each model are packed: their bound (the most that lives at once), height over bound, and what it took.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"
#include "sluice/planner/order/linearise.h"
#include "sluice/planner/place/layout.h"
#include "src/cli/profile_file.h"
#include "tests/bench/must.h"

namespace sluice::bench {
namespace {

using planner::Policy;

constexpr int kPoints = 10;
constexpr int kPlans = 5;

struct Point {
  double seconds_ratio = 0;  // T / T_LB
  double predicted_ms = 0;
  double flexnn_ms = 0;  // infinite where the rule finds no plan
  double on_demand_ms = 0;
  double quick_ms = 0;     // planning without the exact search
  double searched_ms = 0;  // and with it
  double measured_ms = 0;  // 0: not measured
};

double predicted_ms(const plan::Plan& plan) { return plan.repeat ? plan.prediction.period_ms : plan.prediction.cold_ms; }

/// A quantile of a sorted list.
double at_share(const std::vector<double>& sorted, double share) {
  return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

void print_activations(const std::string& path) {
  const auto model = must(Model::open(path));
  const model::Graph& graph = model->graph();
  const double start = cpu_ms();
  const planner::KernelChoice kernels = must(planner::select_kernels(graph));
  planner::Views views = planner::assign_views(graph, kernels, planner::graph_order(graph), false);
  planner::Views greedy = planner::assign_views(graph, kernels, planner::greedy_order(graph), false);
  if (planner::live_peak(greedy) < planner::live_peak(views)) views = std::move(greedy);
  const planner::Placed placed = planner::place({planner::fixed_items(views, std::vector<std::uint64_t>(views.order.size(), 0))});
  std::printf("| %s | %.2f | %.3f | %.1f |\n", path.substr(path.rfind('/') + 1).c_str(), static_cast<double>(placed.bound) / (1 << 20),
              static_cast<double>(placed.placement.height) / static_cast<double>(placed.bound), cpu_ms() - start);
}

class Bench {
 public:
  Bench(SessionOptions options, int runs) : options_(options), runs_(runs) {}

  void model(const std::string& path) {
    const auto model = must(Model::open(path));
    std::printf("\n%s\n\n", path.substr(path.rfind('/') + 1).c_str());
    std::printf("| budget MiB | arena | resident | T ms | T/T_LB | on_demand | flexnn | plan ms | with search |%s\n",
                runs_ > 0 ? " measured |" : "");
    std::printf("|---|---|---|---|---|---|---|---|---|%s\n", runs_ > 0 ? "---|" : "");
    for (const Bytes budget : budgets(*model)) print(point(model, budget), budget);
  }

  void print_summary() const {
    std::vector<double> ratio, gain, quick, searched, error;
    int worse = 0;
    for (const Point& p : points_) {
      ratio.push_back(p.seconds_ratio);
      if (std::isfinite(p.flexnn_ms)) gain.push_back(std::log(p.flexnn_ms / p.predicted_ms));
      quick.push_back(p.quick_ms);
      searched.push_back(p.searched_ms);
      if (p.measured_ms > 0) error.push_back(100 * std::abs(p.predicted_ms / p.measured_ms - 1));
      worse += p.predicted_ms > std::min(p.flexnn_ms, p.on_demand_ms) * 1.0000001 ? 1 : 0;
    }
    const auto all = static_cast<double>(points_.size());
    const auto within = [](const std::vector<double>& times, double most) {
      return std::count_if(times.begin(), times.end(), [&](double t) { return t <= most; });
    };
    const auto near = static_cast<double>(std::count_if(ratio.begin(), ratio.end(), [](double r) { return r <= 1.02; }));
    double sum = 0;
    for (double g : gain) sum += g;
    std::printf("\n%.0f points: T within 2 %% of T_LB at %.0f (%.1f %%), worst %.3f; worse than flexnn or on_demand at %d\n", all, near,
                100 * near / all, *std::max_element(ratio.begin(), ratio.end()), worse);
    std::printf("geomean of flexnn / sluice, over the %zu points at which flexnn finds a plan: %.3f\n", gain.size(),
                std::exp(sum / std::max(1.0, static_cast<double>(gain.size()))));
    std::printf(
        "planning, median and most: %.1f and %.1f ms without the exact search (10 ms or less at %td), %.1f and %.1f ms with it (60 ms or "
        "less at %td)\n",
        median(quick), *std::max_element(quick.begin(), quick.end()), within(quick, 10), median(searched),
        *std::max_element(searched.begin(), searched.end()), within(searched, 60));
    if (error.empty()) return;
    std::sort(error.begin(), error.end());
    std::printf("|T / measured - 1|: median %.1f %%; tenths", at_share(error, 0.5));
    for (int tenth = 1; tenth <= 10; ++tenth) std::printf(" %.1f", at_share(error, tenth / 10.0));
    std::printf(" %%\n");
  }

 private:
  std::vector<Bytes> budgets(const Model& model) const {
    SessionOptions options = options_;
    const Bytes least = must(minimum_budget(model, options));
    options.tuning.policy = Policy::kResident;
    const Bytes most = std::max(least, must(minimum_budget(model, options)));
    std::vector<Bytes> budgets = {least};
    const double ratio = static_cast<double>(most.count()) / static_cast<double>(least.count());
    for (int i = 1; i + 1 < kPoints; ++i)
      budgets.push_back(
          align_up(Bytes(static_cast<std::uint64_t>(static_cast<double>(least.count()) * std::pow(ratio, i / (kPoints - 1.0)))), 4096));
    budgets.push_back(most);
    return budgets;
  }

  double planning_ms(const Model& model, std::uint64_t search_ms) const {
    SessionOptions options = options_;
    options.tuning.search_ms = search_ms;
    double least = 1e9;
    for (int i = 0; i < kPlans; ++i) {
      const double start = cpu_ms();
      (void)must(plan_session(model, options));
      least = std::min(least, cpu_ms() - start);
    }
    return least;
  }

  double baseline_ms(const Model& model, Policy policy) const {
    SessionOptions options = options_;
    options.tuning.policy = policy;
    const auto planned = plan_session(model, options);
    return planned && planned->plan.policy == planner::name_of(policy) ? predicted_ms(planned->plan) : INFINITY;
  }

  double measured_ms(const std::shared_ptr<const Model>& model) const {
    const auto session = must(Session::create(model, options_));
    constexpr double kLongEnoughMs = 200;  // so that a burst of the neighbours' is not all that is seen of a short run
    std::vector<double> times;
    double spent = 0;
    for (int run = 0; run <= runs_ || spent < kLongEnoughMs; ++run) {
      for (std::size_t i = 0; i < model->graph().inputs.size(); ++i) {
        const model::Port& port = model->graph().inputs[i];
        const std::vector<std::byte> zeros(model->graph().tensor(port.tensor).bytes().count());
        if (!session->set_input(i, model->graph().tensor(port.tensor).dtype, zeros)) std::exit(1);
      }
      if (const Status status = session->run(); !status) (void)must(Result<int>(fail(status.error())));
      if (run == 0) continue;
      times.push_back(static_cast<double>(session->stats().wall_ns) * 1e-6);
      spent += times.back();
    }
    return median(times);
  }

  Point point(const std::shared_ptr<const Model>& model, Bytes budget) {
    options_.budget = budget;
    plan_ = must(plan_session(*model, options_)).plan;
    Point point;
    point.predicted_ms = predicted_ms(plan_);
    point.seconds_ratio = point.predicted_ms / plan_.prediction.bound_ms;
    point.on_demand_ms = baseline_ms(*model, Policy::kOnDemand);
    point.flexnn_ms = baseline_ms(*model, Policy::kFlexnn);
    point.quick_ms = planning_ms(*model, 0);
    point.searched_ms = planning_ms(*model, SessionOptions().tuning.search_ms);
    if (runs_ > 0) point.measured_ms = measured_ms(model);
    points_.push_back(point);
    return point;
  }

  void print(const Point& p, Bytes budget) const {
    const auto mib = [](Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 20); };
    char flexnn[32] = "none";
    if (std::isfinite(p.flexnn_ms)) std::snprintf(flexnn, sizeof(flexnn), "%.2f", p.flexnn_ms);
    std::printf("| %.2f | %.2f | %.2f | %.2f | %.3f | %.2f | %s | %.1f | %.1f |", mib(budget), mib(plan_.arena_bytes),
                mib(plan_.resident_bytes), p.predicted_ms, p.seconds_ratio, p.on_demand_ms, flexnn, p.quick_ms, p.searched_ms);
    if (p.measured_ms > 0) std::printf(" %.2f |", p.measured_ms);
    std::printf("\n");
    std::fflush(stdout);
  }

  SessionOptions options_;
  int runs_;
  plan::Plan plan_;
  std::vector<Point> points_;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  sluice::SessionOptions options;
  options.repeat = true;
  options.keep_inputs = false;
  std::string profile;
  int runs = 0;
  bool activations = false;
  std::vector<std::string> models;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--cold") {
      options.repeat = false;
    } else if (word == "--activations") {
      activations = true;
    } else if (i + 1 < argc && word == "--profile") {
      profile = argv[++i];
    } else if (i + 1 < argc && word == "--threads") {
      options.threads = std::atoi(argv[++i]);
    } else if (i + 1 < argc && word == "--measure") {
      runs = std::atoi(argv[++i]);
    } else if (i + 1 < argc && word == "--io-limit") {
      options.emulation.read_bytes_per_second = std::atof(argv[++i]);
    } else {
      models.push_back(word);
    }
  }
  if (activations) {
    std::printf("| model | bound MiB | height / bound | ms |\n|---|---|---|---|\n");
    for (const std::string& model : models) sluice::bench::print_activations(model);
    return 0;
  }
  const sluice::cli::FoundProfile found = sluice::cli::find_profile(profile, options.threads);
  options.profile = found.get();
  std::printf("profile: %s; %d thread%s; %s\n", found.path.empty() ? "assumed rates" : "measured", options.threads,
              options.threads == 1 ? "" : "s", options.repeat ? "repeated runs" : "one cold run");
  sluice::bench::Bench bench(options, runs);
  for (const std::string& model : models) bench.model(model);
  bench.print_summary();
  return 0;
}

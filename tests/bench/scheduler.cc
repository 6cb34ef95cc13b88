// The scheduler's figures (docs/scheduling.md):
//
//   sluice-bench-scheduler start [N] [SEED] [SIZES]     N instances, all jobs known at the start: each policy beside the exact optimum
//   sluice-bench-scheduler arrivals [N] [SEED] [SIZES]  the same with arrivals over time, at the saturation knee of the best published one
//   sluice-bench-scheduler loads [POINTS] [SEED]        goodput over the load, as CSV; the last line is the worst point of ours
//   sluice-bench-scheduler decisions                    how long decisions take: 32 jobs, 5 processors, 64 units
//
// SIZES of models and units are log-uniform, or `uniform`. Everything but `decisions` is counted, not timed: it gives the same figures on
// every machine.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sluice/scheduler/simulator/experiment.h"

namespace sluice::scheduler {
namespace {

constexpr OptimumLimits kThorough{.nodes_a_set = 100'000, .nodes = 2'000'000};
constexpr double kKneeGoodput = 0.9;

void print(const Score& score) {
  std::printf("| policy | met of %llu submitted | of the optimum |\n|---|---|---|\n", static_cast<unsigned long long>(score.submitted));
  for (std::size_t p = 0; p < kPolicies.size(); ++p)
    std::printf("| %.*s | %.2f %% | %.2f %% |\n", static_cast<int>(kPolicies[p].name.size()), kPolicies[p].name.data(),
                100 * score.goodput(p), 100 * static_cast<double>(score.met[p]) / static_cast<double>(score.most));
  std::printf("optimum: %.2f %%; proven %llu of %llu instances, upper bound counted for the others (lower bound: %.2f %%)\n",
              100 * score.optimum(), static_cast<unsigned long long>(score.proven), static_cast<unsigned long long>(score.instances),
              100 * static_cast<double>(score.least) / static_cast<double>(score.submitted));
}

/// All instances, and those alone whose optimum is proven.
void compare(const GeneratorParameters& parameters, std::uint64_t first_seed, std::uint64_t instances) {
  Score all, proven;
  for (std::uint64_t seed = first_seed; seed < first_seed + instances; ++seed) {
    const Score before = all;
    add_with_optimum(random_instance(seed, parameters), kThorough, all);
    if (all.proven == before.proven) continue;
    proven.submitted += all.submitted - before.submitted;
    for (std::size_t p = 0; p < kPolicies.size(); ++p) proven.met[p] += all.met[p] - before.met[p];
    proven.least += all.least - before.least;
    proven.most += all.most - before.most;
    ++proven.proven;
    ++proven.instances;
  }
  print(all);
  std::printf("gap between the best published policy and the bound that is left with ours: %.3f\n\nproven instances alone:\n",
              all.gap_left());
  print(proven);
  std::printf("gap left: %.3f\n", proven.gap_left());
}

int at_start(std::uint64_t instances, std::uint64_t first_seed, bool uniform) {
  compare({.uniform_sizes = uniform}, first_seed, instances);
  return 0;
}

int arrivals(std::uint64_t instances, std::uint64_t first_seed, bool uniform) {
  GeneratorParameters parameters{.uniform_sizes = uniform, .at_start = false};
  parameters.load = find_knee(parameters, kKneeGoodput, first_seed, std::min<std::uint64_t>(instances, 300));
  std::printf("knee (best published policy meets %.0f %%): load %.3f\n", 100 * kKneeGoodput, parameters.load);
  compare(parameters, first_seed, instances);
  return 0;
}

int loads(int points, std::uint64_t first_seed) {
  std::printf("load");
  for (const Policy& policy : kPolicies) std::printf(",%.*s", static_cast<int>(policy.name.size()), policy.name.data());
  std::printf("\n");
  double worst = 1, worst_load = 0;
  for (int point = 0; point < points; ++point) {
    GeneratorParameters parameters{.least_jobs = 60, .most_jobs = 60, .at_start = false};
    parameters.load = 0.02 + 3.0 * point / points;
    const Score score = score_policies(parameters, first_seed + static_cast<std::uint64_t>(point) * 1000, 10);
    std::printf("%.3f", parameters.load);
    for (std::size_t p = 0; p < kPolicies.size(); ++p) std::printf(",%.4f", score.goodput(p));
    std::printf("\n");
    const double margin = score.ours() - score.best_published();
    if (margin < worst) {
      worst = margin;
      worst_load = parameters.load;
    }
  }
  std::fprintf(stderr, "ours less the best published policy, at the worst of %d loads (%.3f): %+.4f\n", points, worst_load, worst);
  return 0;
}

struct Timing {
  double least_full_us = 1e18, least_incremental_us = 1e18;
  std::uint64_t full = 0, incremental = 0;
};

/// The least of many: on a machine that does other things besides, the least is what the decision itself takes.
Timing time_decisions(const Instance& instance, const Policy& policy, int decisions_to_make) {
  using Clock = std::chrono::steady_clock;
  Timing timing;
  Profile profile(instance.device, instance.models);
  Board board(instance.device, profile, {.jobs = 32});
  PolicyMemory memory(board.state());
  Decisions decisions(most_decisions(board.state()));
  std::size_t next = 0;
  for (int i = 0; i < decisions_to_make; ++i) {
    while (board.state().live.size() < 32) board.submit({ModelId(next++ % instance.models.size()), board.state().now + 20 * kSecond});
    decisions.clear();
    const std::uint64_t plans = memory.plans;
    const Clock::time_point begin = Clock::now();
    policy.decide(board.state(), memory, decisions);
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    const bool full = memory.plans > plans || policy.name != "sluice";
    (full ? timing.full : timing.incremental) += 1;
    double& least = full ? timing.least_full_us : timing.least_incremental_us;
    least = std::min(least, us);
    board.apply(decisions.all());
    std::size_t first = Device::kMostProcessors;
    for (std::size_t p = 0; p < instance.device.count(); ++p)
      if (board.state().processors[p].busy &&
          (first == Device::kMostProcessors || board.state().processors[p].expected_end < board.state().processors[first].expected_end))
        first = p;
    if (first == Device::kMostProcessors) break;
    board.set_now(board.state().processors[first].expected_end);
    board.finished(ProcessorId(first));
    board.forget_ended();
  }
  return timing;
}

int decisions() {
  const Instance instance = random_instance(
      11, {.least_jobs = 32, .most_jobs = 32, .least_processors = 5, .most_processors = 5, .least_units = 64, .most_units = 64});
  std::printf("| policy | full, us | incremental, us | share of incremental ones |\n|---|---|---|---|\n");
  for (const Policy& policy : kPolicies) {
    Timing timing = time_decisions(instance, policy, 2000);
    timing.least_full_us = 1e18;  // of the largest problem alone: 32 jobs, nothing of which has run
    for (int i = 0; i < 200; ++i) timing.least_full_us = std::min(timing.least_full_us, time_decisions(instance, policy, 1).least_full_us);
    std::printf("| %.*s | %.1f | ", static_cast<int>(policy.name.size()), policy.name.data(), timing.least_full_us);
    if (timing.incremental > 0)
      std::printf("%.2f | %.1f %% |\n", timing.least_incremental_us,
                  100.0 * static_cast<double>(timing.incremental) / static_cast<double>(timing.full + timing.incremental));
    else
      std::printf("- | 0 |\n");
  }
  return 0;
}

}  // namespace
}  // namespace sluice::scheduler

int main(int argc, char** argv) {
  using namespace sluice::scheduler;
  const std::string_view what = argc > 1 ? argv[1] : "";
  const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0, seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
  const bool uniform = argc > 4 && std::string_view(argv[4]) == "uniform";
  if (what == "start") return at_start(count > 0 ? count : 1000, seed, uniform);
  if (what == "arrivals") return arrivals(count > 0 ? count : 1000, seed, uniform);
  if (what == "loads") return loads(count > 0 ? static_cast<int>(count) : 200, seed);
  if (what == "decisions") return decisions();
  std::fprintf(stderr, "usage: sluice-bench-scheduler start|arrivals [N] [SEED] [uniform] | loads [POINTS] [SEED] | decisions\n");
  return 1;
}

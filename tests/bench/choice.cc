// What it is worth that the budget chooses how kernels run: at ten capacities a model, measured time of plans as they are and of plans whose
// choice is frozen: every weight raw, one slice size, no drafts beyond the first.
//
//     sluice-bench-choice [--profile FILE] [--points N] [--blocks N] [--runs N] MODEL.sluice ...
//
// Capacities lie between the smallest and that which keeps every weight, small ones closer. Repeated runs on one thread in blocks that
// alternate (the first of a block does not count); medians. Behind each: what the plan chose, as steps, transformed weights kept, and the
// smallest, median and largest slice of its loads in KiB. Outputs are compared bit by bit.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sluice/planner/planner.h"
#include "src/cli/profile_file.h"
#include "tests/bench/planned.h"

namespace sluice::bench {
namespace {

using planner::PlanRequest;

struct Settings {
  int points = 10, blocks = 3, runs = 3;
  std::string profile;
};

planner::SearchParameters frozen() {
  planner::SearchParameters search;
  search.kept_transforms = search.other_sizes = search.more_drafts = false;
  return search;
}

std::string chosen(const plan::Plan& plan) {
  const auto transformed = std::count_if(plan.steps.begin(), plan.steps.end(), [](const plan::Step& step) { return step.prepare; });
  std::vector<std::uint64_t> slices;
  for (const plan::Load& load : plan.loads)
    if (load.streamed()) slices.push_back(load.file.size.count() / 1024);
  std::sort(slices.begin(), slices.end());
  std::string text = std::to_string(plan.steps.size()) + ", " + std::to_string(transformed);
  if (!slices.empty())
    text +=
        ", " + std::to_string(slices.front()) + " / " + std::to_string(slices[slices.size() / 2]) + " / " + std::to_string(slices.back());
  return text;
}

class Bench {
 public:
  Bench(const profiler::DeviceProfile& profile, const Settings& settings) : profile_(profile), settings_(settings) {}

  void model(const std::string& path) const {
    const auto model = must(Model::open(path));
    std::string name = path.substr(path.rfind('/') + 1);
    name = name.substr(0, name.rfind('.'));
    for (const Bytes capacity : capacities(model->graph())) {
      Planned free(*model, plan_of(*model, capacity, {})), held(*model, plan_of(*model, capacity, frozen()));
      const auto [with, without] = medians(free, held);
      if (free.outputs() != held.outputs()) {
        std::fprintf(stderr, "%s: the plans differ in what they compute\n", name.c_str());
        std::exit(1);
      }
      std::printf("| %s | %.2f | %.2f | %.2f | %.3f | %s | %s |\n", name.c_str(), static_cast<double>(capacity.count()) / (1 << 20), with,
                  without, without / with, chosen(free.plan()).c_str(), chosen(held.plan()).c_str());
      std::fflush(stdout);
    }
  }

 private:
  plan::Plan plan_of(const Model& model, Bytes capacity, const planner::SearchParameters& search) const {
    PlanRequest request{.repeat = true, .search = search};
    request.capacity = capacity;
    request.model_hash = model.file().hash();
    request.keep_inputs = true;  // runs follow each other
    return must(planner::make_plan(model.graph(), profile_, request));
  }

  /// From the smallest at which the frozen choice has a plan, too.
  std::vector<Bytes> capacities(const model::Graph& graph) const {
    PlanRequest request{.repeat = true, .keep_inputs = true, .search = frozen()};
    const double least = static_cast<double>(must(planner::minimum_capacity(graph, profile_, request)).count());
    request.policy = planner::Policy::kResident;
    const double most = std::max(least, static_cast<double>(must(planner::minimum_capacity(graph, profile_, request)).count()));
    std::vector<Bytes> found;
    for (int i = 0; i < settings_.points; ++i)
      found.push_back(
          align_up(Bytes(static_cast<std::uint64_t>(least * std::pow(most / least, i / std::max(1.0, settings_.points - 1.0)))), 4096));
    return found;
  }

  std::pair<double, double> medians(Planned& first, Planned& second) const {
    std::vector<double> times[2];
    for (int block = 0; block < settings_.blocks; ++block)
      for (int side = 0; side < 2; ++side)
        for (int run = -1; run < settings_.runs; ++run) {
          const double ms = (side == 0 ? first : second).run();
          if (run >= 0) times[side].push_back(ms);
        }
    return {median(times[0]), median(times[1])};
  }

  const profiler::DeviceProfile& profile_;
  const Settings settings_;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  sluice::bench::Settings settings;
  std::vector<std::string> models;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (i + 1 < argc && word == "--profile") {
      settings.profile = argv[++i];
    } else if (i + 1 < argc && word == "--points") {
      settings.points = std::atoi(argv[++i]);
    } else if (i + 1 < argc && word == "--blocks") {
      settings.blocks = std::atoi(argv[++i]);
    } else if (i + 1 < argc && word == "--runs") {
      settings.runs = std::atoi(argv[++i]);
    } else {
      models.push_back(word);
    }
  }
  const sluice::cli::FoundProfile found = sluice::cli::find_profile(settings.profile, 1);
  const sluice::profiler::DeviceProfile assumed;
  std::printf(
      "| model | capacity MiB | chosen, ms | frozen, ms | frozen / chosen | steps, transforms, slices KiB | frozen "
      "|\n|---|---|---|---|---|---|---|\n");
  const sluice::bench::Bench bench(found.get() ? *found.get() : assumed, settings);
  for (const std::string& model : models) bench.model(model);
  return 0;
}

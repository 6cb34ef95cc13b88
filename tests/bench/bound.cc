// How close repeated runs come to what the disk and the budget allow.
//
//     sluice-bench-bound MODEL.sluice RUNS BUDGET...
//
// For each budget a process of its own: a session for repeated runs on one thread, two runs to warm up, then RUNS. T_LB (bound.h) comes
// from the same runs: medians of each step's time and of the rate at which the loader read and checked.
#include "tests/bench/bound.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"
#include "src/cli/profile_file.h"
#include "tests/bench/must.h"

namespace sluice::bench {
namespace {

void set_inputs(Session& session, const model::Graph& graph) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const model::Tensor& tensor = graph.tensor(graph.inputs[i].tensor);
    must(session.set_input(i, tensor.dtype, std::vector<std::byte>(tensor.bytes().count())));
  }
}

/// One entry a run. A neighbour's busy moment slows a run and its own bound alike.
struct Columns {
  std::vector<double> period, bound, compute, reading, rate, over_bound, over_pipe;

  void add(double period_s, const Bounds& bounds, double bytes_per_second) {
    period.push_back(period_s);
    bound.push_back(bounds.period_s);
    compute.push_back(bounds.compute_s);
    reading.push_back(bounds.reading_s);
    rate.push_back(bytes_per_second);
    over_bound.push_back(period_s / bounds.period_s);
    over_pipe.push_back(period_s / std::max(bounds.compute_s, bounds.reading_s));
  }
};

void measure(const std::string& path, int runs, const std::string& budget_text) {
  const auto budget = parse_bytes(budget_text);
  if (!budget) std::exit(1);
  const cli::FoundProfile profile = cli::find_profile("", 1);
  const auto model = must(Model::open(path));
  SessionOptions options{.budget = *budget, .scope = BudgetScope::kProcess, .repeat = true, .time_steps = true, .profile = profile.get()};
  const auto session = must(Session::create(model, options));
  set_inputs(*session, model->graph());
  for (int i = 0; i < 2; ++i) must(session->run());

  const plan::Plan& plan = session->plan();
  Columns columns;
  for (int i = 0; i < runs; ++i) {
    must(session->run());
    const executor::RunStats& stats = session->stats();
    std::vector<double> compute;
    for (const executor::StepTime& step : session->step_times()) compute.push_back(1e-9 * static_cast<double>(step.compute_ns));
    const double rate =
        stats.load_ns == 0 ? 1e12 : 1e9 * static_cast<double>(stats.bytes_read.count()) / static_cast<double>(stats.load_ns);
    columns.add(1e-9 * static_cast<double>(stats.wall_ns), bounds_of(plan, compute, rate), rate);
  }
  const std::string name = path.substr(path.rfind('/') + 1);
  std::printf("%-22s %10s %9.1f %9.1f %9.1f %9.1f %8.2f %8.3f %8.3f %9.1f\n", name.c_str(), budget_text.c_str(),
              median(columns.period) * 1e3, median(columns.bound) * 1e3, median(columns.compute) * 1e3, median(columns.reading) * 1e3,
              median(columns.rate) / 1e9, median(columns.over_bound), median(columns.over_pipe),
              static_cast<double>(session->memory().peak_resident.count()) / (1 << 20));
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: sluice-bench-bound MODEL.sluice RUNS BUDGET...\n");
    return 1;
  }
  std::printf("%-22s %10s %9s %9s %9s %9s %8s %8s %8s %9s\n", "model", "budget", "period", "T_LB", "compute", "reading", "rate", "/T_LB",
              "/pipe", "peak RSS");
  for (int i = 3; i < argc; ++i) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      sluice::bench::measure(argv[1], std::atoi(argv[2]), argv[i]);
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
  }
}

// What the parts of a plan are worth, as in the FlexNN paper: the plan complete; without static memory planning (its buffers get addresses
// from a run-time best-fit pool, tests/bench/pool.h); without preload (each load starts when the step before its first use is over);
// without both. And the planner's own plan under `on_demand`, which cuts and keeps weights knowing that it cannot preload.
//
//     sluice-bench-ablation [--blocks N] [--runs N] MODEL.sluice ...
//
// Three budgets a model: 1/16, 1/4 and 1/2 of the way from the smallest to the one that keeps all weights. Repeated runs on one thread
// in blocks that alternate between the variants (the first of a block does not count); medians. Outputs are compared bit by bit.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/cli/profile_file.h"
#include "tests/bench/planned.h"
#include "tests/bench/pool.h"

namespace sluice::bench {
namespace {

/// The same plan, each streamed load only when the step that needs it is next.
plan::Plan without_preload(plan::Plan plan) {
  for (plan::Load& load : plan.loads) {
    if (!load.streamed()) continue;
    load.gate = load.uses.begin;
    plan.buffers[load.target.index()].lifetime.begin = load.uses.begin;
  }
  return plan;
}

/// A plan ready to run: as it is, and with addresses from a pool.
class Variant {
 public:
  Variant(const Model& model, plan::Plan plan)
      : planned_(model, std::move(plan)),
        pooled_(must(PooledRuns::create(model.graph(), planned_.plan(), model.file().source(), planned_.arena(), planned_.threads(),
                                        planned_.load_cpus()))) {}

  double run_planned() { return planned_.run(); }
  double run_pooled() {
    must(pooled_->run());
    return 1e-6 * static_cast<double>(pooled_->stats().wall_ns);
  }
  Bytes bytes_read() const { return planned_.bytes_read(); }
  const PooledRuns::Stats& pool_stats() const { return pooled_->stats(); }
  std::vector<std::byte> planned_outputs() const { return planned_.outputs(); }
  const std::vector<std::byte>& pooled_outputs() const { return pooled_->outputs(); }

 private:
  Planned planned_;
  std::unique_ptr<PooledRuns> pooled_;
};

void measure_budget(const Model& model, const std::string& name, SessionOptions options, int blocks, int runs) {
  options.tuning.policy = planner::Policy::kSluice;
  const plan::Plan plan = must(plan_session(model, options)).plan;
  options.tuning.policy = planner::Policy::kOnDemand;
  Variant complete(model, plan);
  Variant late(model, without_preload(plan));
  Variant on_demand(model, must(plan_session(model, options)).plan);
  const std::function<double()> columns[] = {[&] { return complete.run_planned(); }, [&] { return complete.run_pooled(); },
                                             [&] { return late.run_planned(); }, [&] { return late.run_pooled(); },
                                             [&] { return on_demand.run_planned(); }};
  std::vector<double> times[std::size(columns)];
  for (int block = 0; block < blocks; ++block)
    for (std::size_t c = 0; c < std::size(columns); ++c)
      for (int run = -1; run < runs; ++run) {
        const double ms = columns[c]();
        if (run >= 0) times[c].push_back(ms);
      }
  const std::vector<std::byte> expected = complete.planned_outputs();
  if (complete.pooled_outputs() != expected || late.planned_outputs() != expected || late.pooled_outputs() != expected ||
      on_demand.planned_outputs() != expected || late.bytes_read() != late.pool_stats().bytes_read) {
    std::fprintf(stderr, "the variants differ in what they read or compute\n");
    std::exit(1);
  }
  std::printf("| %s | %.1f | %.1f |", name.c_str(), static_cast<double>(options.budget.count()) / (1 << 20),
              static_cast<double>(plan.resident_bytes.count()) / (1 << 20));
  const double whole = median(times[0]);
  for (std::size_t c = 0; c < std::size(columns); ++c) {
    if (c == 0) std::printf(" %.0f |", whole);
    if (c > 0) std::printf(" %.0f (%.2f) |", median(times[c]), median(times[c]) / whole);
  }
  for (const Variant* variant : {&complete, &late})
    std::printf(" %d: %.1f |", variant->pool_stats().slides, static_cast<double>(variant->pool_stats().moved_bytes) / (1 << 20));
  std::printf("\n");
  std::fflush(stdout);
}

void measure_model(const std::string& path, int blocks, int runs, const profiler::DeviceProfile* profile) {
  const auto model = must(Model::open(path));
  if (!model->file().source().direct()) std::printf("(buffered reads: the file system refuses direct ones)\n");
  SessionOptions options{.repeat = true, .profile = profile};
  const Bytes least = must(minimum_budget(*model, options));
  options.tuning.policy = planner::Policy::kResident;
  const Bytes most = must(minimum_budget(*model, options));
  std::string name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.rfind('.'));
  for (const double share : {1.0 / 16, 1.0 / 4, 1.0 / 2}) {
    const double between = share * (static_cast<double>(most.count()) - static_cast<double>(least.count()));
    options.budget = align_up(Bytes(least.count() + static_cast<std::uint64_t>(between)), 4096);
    measure_budget(*model, name, options, blocks, runs);
  }
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  int blocks = 3;
  int runs = 3;
  std::vector<std::string> models;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (i + 1 < argc && word == "--blocks") {
      blocks = std::atoi(argv[++i]);
    } else if (i + 1 < argc && word == "--runs") {
      runs = std::atoi(argv[++i]);
    } else {
      models.push_back(word);
    }
  }
  const sluice::cli::FoundProfile profile = sluice::cli::find_profile("", 1);
  std::printf("| model | budget MiB | resident MiB | complete, ms | no static memory | no preload | neither | on_demand |");
  std::printf(" slides of the pool: MiB moved | without preload |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const std::string& model : models) sluice::bench::measure_model(model, blocks, runs, profile.get());
  return 0;
}

// What the parts of a plan are worth, as in the FlexNN paper: the plan complete; without static memory planning (its buffers get addresses
// from a run-time best-fit pool, tests/bench/pool.h); without preload (each load starts when the step before its first use is over);
// without both. And the planner's own plan under `on_demand`, which cuts and keeps weights knowing that it cannot preload.
//
//     sluice-bench-ablation [--runs N] MODEL.sluice ...
//
// Three budgets a model: 1/16, 1/4 and 1/2 of the way from the smallest to the one that keeps all weights. Repeated runs on one thread,
// two to warm up, then the median of N. Outputs of all variants are compared, bit by bit.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"
#include "sluice/plan/verify.h"
#include "src/cli/profile_file.h"
#include "tests/bench/pool.h"

namespace sluice::bench {
namespace {

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().to_string().c_str());
  std::exit(1);
}
void must(Status status) {
  if (!status) (void)must(Result<int>(fail(status.error())));
}

struct Measured {
  double ms = 0;
  double stall_ms = 0;
  double slides = 0;
  double moved_mib = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// The same plan, each streamed load only when the step that needs it is next.
plan::Plan without_preload(plan::Plan plan) {
  for (plan::Load& load : plan.loads) {
    if (!load.streamed()) continue;
    load.gate = load.uses.begin;
    plan.buffers[load.target.index()].lifetime.begin = load.uses.begin;
  }
  return plan;
}

class Variants {
 public:
  Variants(const Model& model, int runs) : model_(model), runs_(runs), threads_(must(make_thread_pool(1))) {}

  /// `plan` as it is and, where asked for, through a pool.
  void measure(const plan::Plan& plan, Measured& planned, Measured* pooled) {
    must(plan::verify(plan, model_.graph(), {.file_size = model_.file().file_size(), .model_hash = model_.file().hash()}));
    Arena arena = must(Arena::reserve(plan.arena_bytes, page_size_within(plan.capacity)));
    must(arena.commit(plan.arena_bytes));
    const auto runner = must(executor::Executor::create(model_.graph(), plan, model_.file().source(), arena, *threads_, {}));
    fill_inputs(*runner);
    planned = time([&] {
      must(runner->run());
      return Measured{1e-6 * static_cast<double>(runner->stats().wall_ns), 1e-6 * static_cast<double>(runner->stats().stall_ns)};
    });
    std::vector<std::byte> outputs;
    for (std::size_t k = 0; k < model_.graph().outputs.size(); ++k) {
      const RowView view = runner->output(k);
      outputs.insert(outputs.end(), view.data, view.data + view.rows * view.row_pitch);
    }
    compare(outputs);
    if (pooled == nullptr) return;
    const auto pool = must(PooledRuns::create(model_.graph(), plan, model_.file().source(), arena, *threads_));
    *pooled = time([&] {
      must(pool->run());
      const PooledRuns::Stats& stats = pool->stats();
      return Measured{1e-6 * static_cast<double>(stats.wall_ns), 1e-6 * static_cast<double>(stats.stall_ns),
                      static_cast<double>(stats.slides), static_cast<double>(stats.moved_bytes) / (1 << 20)};
    });
    compare(pool->outputs());
  }

 private:
  void fill_inputs(executor::Executor& runner) const {
    unsigned state = 1;
    for (std::size_t k = 0; k < model_.graph().inputs.size(); ++k) {
      const RowView view = runner.input(k);
      for (std::int64_t r = 0; view.dtype == DType::kF32 && r < view.rows; ++r)
        for (std::int64_t i = 0; i < view.pixels * view.channels; ++i) {
          state = state * 1664525u + 1013904223u;
          view.at<float>(r)[i] = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
        }
    }
  }

  template <class Run>
  Measured time(const Run& run) const {
    std::vector<double> ms, stall, slides, moved;
    for (int i = -2; i < runs_; ++i) {
      const Measured one = run();
      if (i < 0) continue;
      ms.push_back(one.ms);
      stall.push_back(one.stall_ms);
      slides.push_back(one.slides);
      moved.push_back(one.moved_mib);
    }
    return {median(ms), median(stall), median(slides), median(moved)};
  }

  void compare(const std::vector<std::byte>& outputs) {
    if (expected_.empty()) expected_ = outputs;
    if (outputs == expected_) return;
    std::fprintf(stderr, "the outputs of the variants differ\n");
    std::exit(1);
  }

  const Model& model_;
  int runs_;
  std::unique_ptr<ThreadPool> threads_;
  std::vector<std::byte> expected_;
};

void measure_model(const std::string& path, int runs, const profiler::DeviceProfile* profile) {
  const auto model = must(Model::open(path));
  SessionOptions options{.repeat = true, .profile = profile};
  const Bytes least = must(minimum_budget(*model, options));
  options.policy = planner::Policy::kResident;
  const Bytes most = must(minimum_budget(*model, options));
  Variants variants(*model, runs);
  std::string name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.rfind('.'));
  for (const double share : {1.0 / 16, 1.0 / 4, 1.0 / 2}) {
    const double between = share * (static_cast<double>(most.count()) - static_cast<double>(least.count()));
    options.budget = align_up(Bytes(least.count() + static_cast<std::uint64_t>(between)), 4096);
    options.policy = planner::Policy::kSluice;
    const plan::Plan plan = must(plan_session(*model, options)).plan;
    options.policy = planner::Policy::kOnDemand;
    const plan::Plan on_demand = must(plan_session(*model, options)).plan;
    Measured full, pooled, late, neither, replanned;
    variants.measure(plan, full, &pooled);
    variants.measure(without_preload(plan), late, &neither);
    variants.measure(on_demand, replanned, nullptr);
    std::printf("| %s | %.1f | %.0f | %.0f (%.2f) | %.0f (%.2f) | %.0f (%.2f) | %.0f (%.2f) | %.0f of %.0f MiB, %.0f of %.0f MiB |\n",
                name.c_str(), static_cast<double>(options.budget.count()) / (1 << 20), full.ms, pooled.ms, pooled.ms / full.ms, late.ms,
                late.ms / full.ms, neither.ms, neither.ms / full.ms, replanned.ms, replanned.ms / full.ms, pooled.slides, pooled.moved_mib,
                neither.slides, neither.moved_mib);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  int runs = 5;
  std::vector<std::string> models;
  for (int i = 1; i < argc; ++i) {
    if (i + 1 < argc && std::string(argv[i]) == "--runs") {
      runs = std::atoi(argv[++i]);
    } else {
      models.push_back(argv[i]);
    }
  }
  const sluice::cli::FoundProfile profile = sluice::cli::find_profile("", 1);
  std::printf("| model | budget MiB | complete, ms | no static memory | no preload | neither | on_demand | slides of the pool: moved |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (const std::string& model : models) sluice::bench::measure_model(model, runs, profile.get());
  return 0;
}

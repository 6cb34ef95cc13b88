// Where a model's time goes: every step of its plan for unlimited memory, timed by itself in the order in which they run.
//
//     sluice-bench-steps MODEL.sluice [THREADS] [RUNS]
//
// Clocks wander by a fifth, so each run is measured by the FMA peak before and after it: a step's time is scaled to the highest peak seen.
// Of each step the least such time counts; the last columns are its speed and its share of the peak.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"
#include "sluice/kernels/registry.h"
#include "src/executor/bind.h"
#include "tests/bench/must.h"
#include "tests/bench/peak.h"

namespace sluice::bench {
namespace {

double wall_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void read_weights(const Model& model, const plan::Plan& plan, Arena& arena) {
  const int file = open(model.file().path().c_str(), O_RDONLY | O_CLOEXEC);
  for (const plan::Load& load : plan.loads) {
    std::byte* to = arena.data() + plan.buffer(load.target).offset.count();
    if (pread(file, to, load.file.size.count(), static_cast<off_t>(load.file.offset.count())) < 0) std::exit(1);
  }
  close(file);
}

void fill_inputs(const executor::BoundPlan& bound) {
  unsigned state = 1;
  for (const RowView& view : bound.inputs)
    for (std::int64_t r = 0; view.dtype == DType::kF32 && r < view.rows; ++r)
      for (std::int64_t i = 0; i < view.pixels * view.channels; ++i) {
        state = state * 1664525u + 1013904223u;
        view.at<float>(r)[i] = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
      }
}

std::string what(const model::Graph& graph, const model::Node& node) {
  std::string text(name_of(node.op));
  const auto shape = [&](TensorId id) {
    std::string s;
    for (std::int64_t extent : graph.tensor(id).shape.dims()) s += (s.empty() ? "" : "x") + std::to_string(extent);
    return s;
  };
  if (node.op == model::OpKind::kConv) {
    const auto& conv = node.as<model::ConvAttributes>();
    text += " " + std::to_string(conv.window.kernel_h) + "x" + std::to_string(conv.window.kernel_w) + "s" +
            std::to_string(conv.window.stride_h) + (conv.groups > 1 ? "g" + std::to_string(conv.groups) : "");
  }
  text += "  " + (node.inputs.empty() ? "" : shape(node.inputs[0])) + " -> " + shape(node.outputs[0]);
  return text + (node.epilogue.has_residual ? " +residual" : "");
}

double flops_of(const model::Graph& graph, const plan::Step& step, int threads) {
  const auto cost = kernels::find_kernel(step.kernel)->cost;
  return static_cast<double>(cost(graph, graph.node(step.node), {step.rows, step.channels, threads}).flops);
}

double flops_of(const model::Graph& graph, const plan::Plan& plan, int threads) {
  double sum = 0;
  for (const plan::Step& step : plan.steps) sum += step.prepare ? 0 : flops_of(graph, step, threads);
  return sum;
}

void measure(const char* path, int threads, int runs) {
  const auto model = must(Model::open(path));
  const plan::Plan plan = must(plan_session(*model, {.threads = threads})).plan;
  Arena arena = must(Arena::reserve(plan.arena_bytes));
  if (!arena.commit(plan.arena_bytes)) std::exit(1);
  const auto pool = must(make_thread_pool(threads));
  const executor::BoundPlan bound = must(executor::bind({model->graph(), plan, arena.data(), *pool, kernels::find_kernel}));
  read_weights(*model, plan, arena);
  fill_inputs(bound);

  double peak = fma_peak(active_isa()), before = peak, total = 1e9;
  std::vector<double> least(bound.steps.size(), 1e9), spent(bound.steps.size()), shares;
  for (int run = 0; run < runs; ++run) {
    const double begin = wall_seconds();
    double last = begin;
    for (std::size_t i = 0; i < bound.steps.size(); ++i) {
      if (run == 0 || !bound.steps[i].prologue_only) bound.steps[i].run(bound.steps[i].call);
      const double now = wall_seconds();
      spent[i] = now - last;
      last = now;
    }
    const double after = fma_peak(active_isa());
    const double meanwhile = (before + after) / 2;
    before = after;
    peak = std::max(peak, after);
    for (std::size_t i = 0; i < spent.size(); ++i) least[i] = std::min(least[i], spent[i] * meanwhile);
    total = std::min(total, last - begin);
    shares.push_back(flops_of(model->graph(), plan, threads) * 1e-9 / ((last - begin) * meanwhile * threads));
  }
  for (double& step : least) step /= peak;
  std::sort(shares.begin(), shares.end());
  double sum = 0;
  for (std::size_t i = 0; i < bound.steps.size(); ++i) {
    if (bound.steps[i].prologue_only) continue;
    const kernels::KernelDescriptor& kernel = *kernels::find_kernel(plan.steps[i].kernel);
    const double rate = flops_of(model->graph(), plan.steps[i], threads) / least[i] * 1e-9;
    sum += least[i];
    std::printf("%4zu %-20s %-58s %9.1f us %7.1f GFLOP/s %5.1f %%\n", i, std::string(kernel.name).c_str(),
                what(model->graph(), model->graph().node(plan.steps[i].node)).c_str(), least[i] * 1e6, rate, 100 * rate / (peak * threads));
  }
  std::printf(
      "least run %.3f ms, sum of least steps %.3f ms, peak of a thread %.1f GFLOP/s, share of it: median run %.1f %%, best %.1f %%\n",
      total * 1e3, sum * 1e3, peak, 100 * shares[shares.size() / 2], 100 * shares.back());
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  sluice::bench::measure(argv[1], argc > 2 ? std::atoi(argv[2]) : 1, argc > 3 ? std::atoi(argv[3]) : 20);
  return 0;
}

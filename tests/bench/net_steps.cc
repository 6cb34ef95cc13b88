// sluice-bench-net-steps PROFILE|- SECONDS VISITS [--threads N] MODEL.sluice...: how long each step of a net takes in its place, and what a
// profile says.
//
// All weights resident, one thread if nothing else is said, repeated runs. All nets are visited in turn, so many seconds each time, so many
// times: a shared machine is slower for seconds. A line of comma-separated values for each step, and one of the whole net, whose kernel is
// "run", with what a run takes beside its steps and the microseconds of an anchor of the profiler (src/profiler/step_timer.h). Times are the
// medians of each visit, in anchors; those of runs of one thread are of the processor's time where that is less. With no visits nothing is
// timed, and models may lack their weights.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"
#include "sluice/kernels/registry.h"
#include "sluice/planner/order/select_kernels.h"
#include "sluice/planner/stream/simulate.h"
#include "sluice/profiler/profile_file.h"
#include "src/engine/plan_costs.h"
#include "src/profiler/sample_graph.h"
#include "src/profiler/sampler.h"
#include "tests/bench/inputs.h"
#include "tests/bench/must.h"
#include "tests/bench/step_work.h"

namespace sluice::bench {
namespace {

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The row of what a step is.
std::string row_of(const model::Graph& graph, const plan::Step& step, const profiler::StepWork& w) {
  const model::Node& node = graph.node(step.node);
  const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
  const auto* pool = std::get_if<model::PoolAttributes>(&node.attributes);
  const Window window = conv != nullptr ? conv->window : pool != nullptr ? pool->window : Window();
  const auto input = node.inputs.empty() ? Shape() : graph.tensor(node.inputs[0]).shape;
  char text[600];
  std::snprintf(text, sizeof text, "%s,%s,%d,%d,%llu,%llu,%llu,%llu,%u,%u,%u,%u,%u,%u,%llu,%d,%d,%zu,%lld,%lld,%lld,%lld,%lld",
                std::string(name_of(node.op)).c_str(), std::string(kernels::find_kernel(step.kernel)->name).c_str(),
                step.derived.buffer.valid() ? 1 : 0, w.variant, static_cast<unsigned long long>(w.cost.flops),
                static_cast<unsigned long long>(w.cost.input_bytes), static_cast<unsigned long long>(w.cost.output_bytes),
                static_cast<unsigned long long>(w.cost.weight_bytes), w.shape.rows, w.shape.columns, w.shape.channels, w.shape.depth,
                w.shape.taps, w.shape.stride, static_cast<unsigned long long>(w.run_bytes),
                static_cast<int>(node.epilogue.activation.function), node.epilogue.has_residual ? 1 : 0, node.inputs.size(),
                static_cast<long long>(input.rank() > 0 ? input.back() : 1), static_cast<long long>(window.in_h),
                static_cast<long long>(window.in_w), static_cast<long long>(conv != nullptr ? conv->groups : 1),
                static_cast<long long>(window.pad_top));
  return text;
}

class Net {
 public:
  Net(const char* path, const profiler::DeviceProfile& profile, int threads, profiler::StepTimer* timer)
      : name_(std::filesystem::path(path).stem().string()),
        model_(must(Model::open(path))),
        profile_(profile),
        threads_(threads),
        timer_(timer) {
    SessionOptions options{.budget = kUnlimitedBytes, .threads = threads, .repeat = true, .time_steps = true};
    options.tuning.policy = planner::Policy::kResident;
    options.profile = profile_.kernels.empty() ? nullptr : &profile_;
    if (timer == nullptr) {
      planned_ = must(plan_session(*model_, options));
    } else {
      session_ = must(Session::create(model_, options));
      fill_inputs(*session_);
    }
    visits_.resize(plan().steps.size());
  }

  /// Runs for so many seconds: one more visit.
  void visit(double seconds) {
    std::vector<std::vector<double>> steps(visits_.size());
    std::vector<double> wall, between;
    const double before = timer_->time_anchor();
    for (int i = 0; i < 2; ++i) run(*session_);
    const auto start = std::chrono::steady_clock::now();
    const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    while (wall.size() < 5 || (spent() < seconds && wall.size() < 200)) {
      run(*session_);
      const double all = static_cast<double>(session_->stats().wall_ns) * 1e-3;
      wall.push_back(threads_ > 1 ? all : std::min(all, static_cast<double>(session_->stats().cpu_ns) * 1e-3));
      between.push_back(all);
      for (std::size_t s = 0; s < steps.size(); ++s) {
        steps[s].push_back(static_cast<double>(session_->step_times()[s].compute_ns) * 1e-3);
        between.back() -= steps[s].back();
      }
    }
    anchors_.push_back(0.5e6 * (before + timer_->time_anchor()));
    wall_.push_back(middle(wall));
    between_.push_back(middle(between));
    for (std::size_t s = 0; s < steps.size(); ++s) visits_[s].push_back(middle(std::move(steps[s])));
  }

 private:
  const plan::Plan& plan() const { return session_ != nullptr ? session_->plan() : planned_.plan; }

  static void run(Session& session) {
    if (!session.run()) std::exit(1);
  }

  /// A visit each, in anchors, and what was predicted in microseconds.
  static void print_visits(const std::vector<double>& us, const std::vector<double>& anchors) {
    for (std::size_t v = 0; v < us.size(); ++v) std::printf("%s%.5g", v == 0 ? "" : " ", us[v] / anchors[v]);
  }

 public:
  void print() const {
    const plan::Plan& plan = this->plan();
    const model::Graph& graph = model_->graph();
    profiler::WorkPrices prices(profile_);
    engine::KnownCosts known;
    const planner::Costs costs = must(engine::costs_of(graph, plan, prices, known));
    const profiler::RunWork run = profiler::run_work_of(graph);
    double predicted = 0;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const plan::Step& step = plan.steps[i];
      if (step.prepare) continue;
      const profiler::StepWork work = work_of(graph, step, step.alone ? 1 : threads_, profile_, run).work;
      std::printf("%s,%zu,", name_.c_str(), i);
      print_visits(visits_[i], anchors_);
      std::printf(",%.4f,%s\n", costs.step[i] * 1e6, row_of(graph, step, work).c_str());
      predicted += costs.step[i] * 1e6;
    }
    std::printf("%s,%zu,", name_.c_str(), plan.steps.size());
    print_visits(wall_, anchors_);
    std::printf(",%.4f,run,run,", predicted);
    print_visits(between_, anchors_);
    std::printf(",");
    print_visits(anchors_, std::vector<double>(anchors_.size(), 1));
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  std::string name_;
  std::shared_ptr<const Model> model_;
  const profiler::DeviceProfile& profile_;
  int threads_;
  profiler::StepTimer* timer_;  // null: nothing is timed, and the model may lack its weights
  std::unique_ptr<Session> session_;
  PlannedBudget planned_;                    // without a session
  std::vector<std::vector<double>> visits_;  // by step: median microseconds of each visit
  std::vector<double> wall_, between_, anchors_;
};

int measure(int argc, char** argv) {
  if (argc < 5) return std::fputs("usage: sluice-bench-net-steps PROFILE|- SECONDS VISITS [--threads N] MODEL.sluice...\n", stderr), 1;
  const bool given = std::string(argv[4]) == "--threads" && argc > 6;
  const int threads = given ? static_cast<int>(std::strtol(argv[5], nullptr, 10)) : 1;
  profiler::DeviceProfile profile;
  if (std::string(argv[1]) != "-") profile = profiler::profile_for_threads(must(profiler::load_profiles(argv[1])), threads);
  const model::Graph graph = profiler::sample_graph();
  profiler::StepTimer timer = must(profiler::StepTimer::create(threads));
  if (!timer.set_anchor(profiler::anchor_request(graph))) return 1;
  std::printf(
      "net,step,anchors,predicted_us,op,kernel,derived,variant,flops,input,output,weights,rows,columns,channels,depth,taps,stride,"
      "run_bytes,activation,residual,inputs,in_channels,in_h,in_w,groups,pad\n");
  std::vector<std::unique_ptr<Net>> nets;
  const long visits = std::strtol(argv[3], nullptr, 10);
  for (int i = given ? 6 : 4; i < argc; ++i)
    nets.push_back(std::make_unique<Net>(argv[i], profile, threads, visits > 0 ? &timer : nullptr));
  for (long visit = 0; visit < visits; ++visit)
    for (const auto& net : nets) net->visit(std::strtod(argv[2], nullptr));
  for (const auto& net : nets) net->print();
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::measure(argc, argv); }

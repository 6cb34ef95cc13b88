// How long a prediction of a given plan takes, in microseconds.
//
//     sluice-bench-predictions [--profile FILE] [--threads N] [--rounds N] [--budget MIB] MODEL ...
//
// A model file without weights is enough. Its plan is made before, for the budget (else without a limit) and for repeated runs. Each round makes a Predictor and asks it
// about the plan twice: "made" is the first two of these together, "first" the first question alone, "again" the second. A line for each
// model has the medians and the worst of a few hundred rounds, the last line the most of all models.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sluice/engine/predictor.h"
#include "src/cli/profile_file.h"
#include "tests/bench/must.h"

namespace sluice::bench {
namespace {

double now_us() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Times {
  std::vector<double> made, first, again;
};

void keep_most(double& most, double value) { most = std::max(most, value); }

class Bench {
 public:
  Bench(const SessionOptions& options, int rounds) : options_(options), rounds_(rounds) {
    std::printf("| model | steps | made and first us | first us | worst | again us | worst |\n|---|---|---|---|---|---|---|\n");
  }

  void model(const std::string& path) {
    const std::shared_ptr<const Model> model = must(Model::open(path));
    const PlannedBudget planned = must(plan_session(*model, options_));
    Times times;
    for (int round = 0; round < rounds_; ++round) {
      const double start = now_us();
      const Predictor predictor(model, options_);
      const double made = now_us();
      must(predictor.of(planned.plan, planned.overhead));
      const double first = now_us();
      must(predictor.of(planned.plan, planned.overhead));
      const double again = now_us();
      times.made.push_back(first - start);
      times.first.push_back(first - made);
      times.again.push_back(again - first);
    }
    print(path.substr(path.rfind('/') + 1), planned.plan.steps.size(), times);
  }

  void print_most() const { std::printf("| most of the medians | | %.1f | %.1f | | %.1f | |\n", made_, first_, again_); }

 private:
  void print(const std::string& name, std::size_t steps, const Times& times) {
    const auto worst = [](const std::vector<double>& each) { return *std::max_element(each.begin(), each.end()); };
    const double made = median(times.made), first = median(times.first), again = median(times.again);
    std::printf("| %s | %zu | %.1f | %.1f | %.1f | %.1f | %.1f |\n", name.c_str(), steps, made, first, worst(times.first), again,
                worst(times.again));
    keep_most(made_, made), keep_most(first_, first), keep_most(again_, again);
  }

  const SessionOptions options_;
  const int rounds_;
  double made_ = 0, first_ = 0, again_ = 0;
};

int run(int argc, char** argv) {
  SessionOptions options{.budget = kUnlimitedBytes, .repeat = true};
  std::string profile;
  int rounds = 300, i = 1;
  for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
    const std::string name = argv[i];
    if (name == "--profile") profile = argv[i + 1];
    if (name == "--threads") options.threads = std::atoi(argv[i + 1]);
    if (name == "--budget") options.budget = Bytes(static_cast<std::uint64_t>(std::atof(argv[i + 1]) * (1 << 20)));
    if (name == "--rounds") rounds = std::max(1, std::atoi(argv[i + 1]));
  }
  const cli::FoundProfile found = cli::find_profile(profile, options.threads);
  options.profile = found.get();
  Bench bench(options, rounds);
  for (; i < argc; ++i) bench.model(argv[i]);
  bench.print_most();
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::run(argc, argv); }

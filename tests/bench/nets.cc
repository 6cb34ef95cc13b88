// sluice-bench-nets SECONDS VISITS [--threads N] [--profile FILE] MODEL.sluice...: how long nets take, and beside them an anchor of the profiler.
//
// All weights resident, one thread if nothing else is said, plans by the profile, or by assumed rates. All nets are visited in turn, so many
// times: each is loaded, runs for half a second that does not count, and then for so many seconds. Every 50 ms an anchor is timed
// (src/profiler/step_timer.h), as `sluice profile` does, and those 50 ms count alone at whose ends the machine was quiet (src/profiler/quiet.h),
// unless it is not for a second.
//
// A line of comma-separated values for each visit: net, visit, milliseconds of the median run, the same in anchors, milliseconds of an anchor,
// runs. Those of one thread are of the processor's time where that is less.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "sluice/core/affinity.h"
#include "sluice/engine/engine.h"
#include "sluice/profiler/profile_file.h"
#include "src/profiler/middle.h"
#include "src/profiler/quiet.h"
#include "src/profiler/sample_graph.h"
#include "src/profiler/sampler.h"
#include "src/profiler/step_timer.h"
#include "src/profiler/stopwatch.h"
#include "tests/bench/inputs.h"
#include "tests/bench/must.h"

namespace sluice::bench {
namespace {

using profiler::Clock;
using profiler::seconds_since;

struct Asked {
  double seconds = 0;
  long visits = 0;
  int threads = 1;
  profiler::DeviceProfile profile;  // without kernels: none
  std::vector<const char*> models;
};

/// The anchor, and all that it took so far.
class Anchor {
 public:
  explicit Anchor(int threads) : graph_(profiler::sample_graph()), timer_(must(profiler::StepTimer::create(threads))) {
    constexpr int kSlow = 20;  // the first ones are
    must(timer_.set_anchor(profiler::anchor_request(graph_)));
    for (int i = 0; i < kSlow; ++i) time();
  }

  double time() {
    seconds_.push_back(timer_.time_anchor());
    return seconds_.back();
  }
  bool is_quiet(double seconds) const { return seconds <= profiler::longest_quiet_anchor(seconds_); }

 private:
  model::Graph graph_;
  profiler::StepTimer timer_;
  std::vector<double> seconds_;
};

/// One visit to one net.
class Visit {
 public:
  Visit(const Asked& asked, Anchor& anchor, const char* path) : asked_(asked), anchor_(anchor), model_(must(Model::open(path))) {
    SessionOptions options{.budget = kUnlimitedBytes, .threads = asked.threads, .repeat = true};
    options.tuning.policy = planner::Policy::kResident;
    options.profile = asked.profile.kernels.empty() ? nullptr : &asked.profile;
    session_ = must(Session::create(model_, options));
    fill_inputs(*session_);
  }

  void run() {
    const Clock::time_point warm = Clock::now();
    for (int runs = 0; runs < 2 || seconds_since(warm) < kWarmSeconds; ++runs) once();
    const Clock::time_point start = Clock::now();
    double counted = 0, before = anchor_.time();
    while (counted < asked_.seconds || ms_.size() < kLeastRuns) {
      once();  // the anchor has used the caches
      const Clock::time_point chunk = Clock::now();
      std::vector<double> ms;
      do ms.push_back(once());
      while (seconds_since(chunk) < kAnchorsApart);
      const double after = anchor_.time(), anchor_ms = 0.5e3 * (before + after);
      const bool quiet = anchor_.is_quiet(std::max(before, after));
      before = after;
      if (!quiet && seconds_since(start) < kPatience) continue;
      counted += seconds_since(chunk);
      anchors_ms_.push_back(anchor_ms);
      for (const double each : ms) anchors_.push_back(each / anchor_ms);
      ms_.insert(ms_.end(), ms.begin(), ms.end());
    }
  }

  void print(const char* path, long visit) const {
    std::printf("%s,%ld,%.5g,%.5g,%.5g,%zu\n", std::filesystem::path(path).stem().c_str(), visit, median(ms_), median(anchors_),
                profiler::usual_of(anchors_ms_), ms_.size());
    std::fflush(stdout);
  }

 private:
  static constexpr double kWarmSeconds = 0.5, kAnchorsApart = 0.05, kPatience = 1;
  static constexpr std::size_t kLeastRuns = 3;

  /// Milliseconds.
  double once() {
    must(session_->run());
    const double wall = static_cast<double>(session_->stats().wall_ns) * 1e-6;
    return asked_.threads > 1 ? wall : std::min(wall, static_cast<double>(session_->stats().cpu_ns) * 1e-6);
  }

  const Asked& asked_;
  Anchor& anchor_;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
  std::vector<double> ms_, anchors_, anchors_ms_;
};

template <class Number>
bool read_number(const char* text, Number& number) {
  const char* const end = text + std::strlen(text);
  const auto [behind, error] = std::from_chars(text, end, number);
  return error == std::errc() && behind == end;
}

int measure(int argc, char** argv) {
  Asked asked;
  const char* profile = nullptr;
  bool understood = argc > 3 && read_number(argv[1], asked.seconds) && read_number(argv[2], asked.visits);
  for (int i = 3; i < argc && understood; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--"))
      asked.models.push_back(argv[i]);
    else if (++i == argc)
      understood = false;
    else if (word == "--profile")
      profile = argv[i];
    else
      understood = word == "--threads" && read_number(argv[i], asked.threads);
  }
  if (!understood || asked.models.empty() || asked.threads < 1 || asked.visits < 1)
    return std::fputs("usage: sluice-bench-nets SECONDS VISITS [--threads N] [--profile FILE] MODEL.sluice...\n", stderr), 1;
  if (profile != nullptr) asked.profile = profiler::profile_for_threads(must(profiler::load_profiles(profile)), asked.threads);
  const ScopedAffinity processors(processors_to_compute_on(asked.threads));
  Anchor anchor(asked.threads);
  for (long visit = 0; visit < asked.visits; ++visit)
    for (const char* const path : asked.models) {
      Visit one(asked, anchor, path);
      one.run();
      one.print(path, visit);
    }
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::measure(argc, argv); }

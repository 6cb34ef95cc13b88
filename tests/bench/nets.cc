// sluice-bench-nets SECONDS VISITS [--threads N] [--profile FILE] [--io-limit RATE] MODEL.sluice[@PLAN]...: how long nets take, and beside them
// an anchor of the profiler.
//
// One thread if nothing else is said. A net runs the plan that stands behind it (`sluice plan --save`), or with all weights resident one by the
// profile, or by assumed rates. All are visited in turn, so many times: each is loaded, runs for half a second that does not count, and then
// for so many seconds; one thread, with all weights resident, on the quickest of some processors (src/profiler/quiet_processor.h; where it reads,
// it would share that one with what serves the disk). Every 50 ms an anchor is timed (src/profiler/step_timer.h), as `sluice profile` does, and
// those 50 ms count alone at whose ends the machine was quiet (src/profiler/quiet.h). A net that meets no such times for a second is visited
// again behind all others, up to three times, and at the last one takes what it gets. With --io-limit 500MB/s reads are no faster.
//
// A line of comma-separated values for each visit: net (or plan), visit, milliseconds of the median run, the same in anchors, milliseconds of an
// anchor, runs. Those of one thread with all weights resident are of the processor's time where that is less.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sluice/core/affinity.h"
#include "sluice/engine/engine.h"
#include "sluice/plan/plan_file.h"
#include "sluice/profiler/profile_file.h"
#include "src/profiler/middle.h"
#include "src/profiler/quiet.h"
#include "src/profiler/quiet_processor.h"
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

struct Net {
  std::string model, plan;  // of a plan: empty, all weights are resident
  long visits = 0;          // that were made
  int tries = 0;            // of this visit, which met no quiet machine

  explicit Net(const std::string& word) : model(word) {
    constexpr std::string_view kBetween = ".sluice@";
    if (std::size_t at = word.find(kBetween); at != std::string::npos) {
      at += kBetween.size() - 1;
      model = word.substr(0, at);
      plan = word.substr(at + 1);
    }
  }
  std::string name() const { return std::filesystem::path(plan.empty() ? model : plan).stem().string(); }
};

struct Asked {
  double seconds = 0, bytes_per_second = 0;
  long visits = 0;
  int threads = 1;
  profiler::DeviceProfile profile;  // without kernels: none
  std::deque<Net> nets;
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
  Visit(const Asked& asked, Anchor& anchor, const Net& net)
      : asked_(asked),
        anchor_(anchor),
        in_wall_time_(asked.threads > 1 || !net.plan.empty()),
        keeps_inputs_(net.plan.empty()),
        model_(must(Model::open(net.model))) {
    SessionOptions options{.budget = kUnlimitedBytes, .threads = asked.threads, .repeat = true};
    options.tuning.policy = planner::Policy::kResident;
    options.profile = asked.profile.kernels.empty() ? nullptr : &asked.profile;
    options.emulation.read_bytes_per_second = asked.bytes_per_second;
    if (!net.plan.empty()) options.plan = &plan_.emplace(must(plan::load_plan(net.plan)));
    options.keep_inputs = keeps_inputs_;  // the tool's plans give their place to others
    session_ = must(Session::create(model_, options));
    fill_inputs(*session_);
  }

  /// False: the machine was not quiet for most of it, and what was measured is of another one.
  bool run() {
    const Clock::time_point warm = Clock::now();
    for (int runs = 0; runs < 2 || seconds_since(warm) < kWarmSeconds; ++runs) once();
    const profiler::QuietProcessor processor(!in_wall_time_, [&] { return anchor_.time(); });
    const Clock::time_point start = Clock::now();
    double counted = 0, in_quiet = 0, before = anchor_.time();
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
      const double seconds = seconds_since(chunk);
      counted += seconds;
      in_quiet += quiet ? seconds : 0;
      anchors_ms_.push_back(anchor_ms);
      for (const double each : ms) anchors_.push_back(each / anchor_ms);
      ms_.insert(ms_.end(), ms.begin(), ms.end());
    }
    return in_quiet > 0.5 * counted;
  }

  void print(const Net& net) const {
    std::printf("%s,%ld,%.5g,%.5g,%.5g,%zu\n", net.name().c_str(), net.visits, median(ms_), median(anchors_),
                profiler::usual_of(anchors_ms_), ms_.size());
    std::fflush(stdout);
  }

 private:
  static constexpr double kWarmSeconds = 0.5, kAnchorsApart = 0.05, kPatience = 1;
  static constexpr std::size_t kLeastRuns = 3;

  /// Milliseconds.
  double once() {
    if (!keeps_inputs_) fill_inputs(*session_);
    must(session_->run());
    const double wall = static_cast<double>(session_->stats().wall_ns) * 1e-6;
    return in_wall_time_ ? wall : std::min(wall, static_cast<double>(session_->stats().cpu_ns) * 1e-6);
  }

  const Asked& asked_;
  Anchor& anchor_;
  const bool in_wall_time_, keeps_inputs_;
  std::shared_ptr<const Model> model_;
  std::optional<plan::Plan> plan_;
  std::unique_ptr<Session> session_;
  std::vector<double> ms_, anchors_, anchors_ms_;
};

void visit_all(Asked& asked) {
  constexpr int kMostTries = 3;
  Anchor anchor(asked.threads);
  for (; !asked.nets.empty(); asked.nets.pop_front()) {
    Net& net = asked.nets.front();
    Visit visit(asked, anchor, net);
    if (visit.run() || ++net.tries == kMostTries) {
      visit.print(net);
      net.tries = 0;
      ++net.visits;
    }
    if (net.visits < asked.visits) asked.nets.push_back(net);
  }
}

template <class Number>
bool read_number(const char* text, Number& number) {
  const char* const end = text + std::strlen(text);
  const auto [behind, error] = std::from_chars(text, end, number);
  return error == std::errc() && behind == end;
}

bool read_rate(std::string_view text, double& bytes_per_second) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  const std::optional<Bytes> bytes = parse_bytes(text);
  if (bytes) bytes_per_second = static_cast<double>(bytes->count());
  return bytes.has_value();
}

int measure(int argc, char** argv) {
  Asked asked;
  const char* profile = nullptr;
  bool understood = argc > 3 && read_number(argv[1], asked.seconds) && read_number(argv[2], asked.visits);
  for (int i = 3; i < argc && understood; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--"))
      asked.nets.emplace_back(word);
    else if (++i == argc)
      understood = false;
    else if (word == "--profile")
      profile = argv[i];
    else if (word == "--io-limit")
      understood = read_rate(argv[i], asked.bytes_per_second);
    else
      understood = word == "--threads" && read_number(argv[i], asked.threads);
  }
  if (!understood || asked.nets.empty() || asked.threads < 1 || asked.visits < 1)
    return std::fputs("usage: sluice-bench-nets SECONDS VISITS [--threads N] [--profile FILE] [--io-limit RATE] MODEL.sluice[@PLAN]...\n",
                      stderr),
           1;
  if (profile != nullptr) asked.profile = profiler::profile_for_threads(must(profiler::load_profiles(profile)), asked.threads);
  const ScopedAffinity processors(processors_to_compute_on(asked.threads));
  visit_all(asked);
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::measure(argc, argv); }

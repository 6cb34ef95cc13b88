#include "src/cli/bench/measure.h"

#include <fcntl.h>

#include <algorithm>

#include "sluice/core/file.h"
#include "src/cli/bench/bound.h"
#include "src/cli/bench/energy.h"
#include "src/cli/bench/statistics.h"
#include "src/cli/child.h"
#include "src/cli/failure.h"
#include "src/cli/text.h"

namespace sluice::cli::bench_detail {
namespace {

std::vector<std::string> words_of(const char* command, const BenchOptions& options, const Point& point) {
  std::vector<std::string> words = {command, point.model, "--json", "--budget", point.budget, "--threads", std::to_string(point.threads)};
  for (const std::string& dim : options.dims) words.insert(words.end(), {"--dim", dim});
  if (!options.key.empty()) words.insert(words.end(), {"--key", options.key});
  if (!options.profile.empty()) words.insert(words.end(), {"--profile", options.profile});
  if (!options.io_limit.empty()) words.insert(words.end(), {"--io-limit", options.io_limit});
  return words;
}

/// What the runs of a point gave.
struct Runs {
  std::vector<double> wall_ms, cpu_ms, stall_ms;
  std::uint64_t peak_rss_bytes = 0, bytes_read = 0;
  std::map<std::string, double> operators;
  Json last;
};

void add_values(const Json& list, std::vector<double>& values) {
  for (const Json& value : list) values.push_back(value.get<double>());
}

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : quantile(values, 0.5);
}

void add_child(const Json& json, Runs& runs) {
  add_values(json.at("latency_ms"), runs.wall_ms);
  add_values(json.at("cpu_ms"), runs.cpu_ms);
  add_values(json.at("stall_ms_per_run"), runs.stall_ms);
  runs.peak_rss_bytes = std::max(runs.peak_rss_bytes, json.at("peak_rss_bytes").get<std::uint64_t>());
  runs.bytes_read = json.at("bytes_read").get<std::uint64_t>();
  runs.last = json;
}

/// Drops the file's pages from memory, so that the next process reads the disk.
void forget_file(const std::string& path) {
  if (const auto file = open_for_reading(path)) ::posix_fadvise(file->get(), 0, 0, POSIX_FADV_DONTNEED);
}

void add_warm(const BenchOptions& options, const Point& point, int count, Runs& runs) {
  std::vector<std::string> words = words_of("run", options, point);
  words.insert(words.end(), {"--repeat", std::to_string(count), "--warmup", std::to_string(options.warmup)});
  add_child(json_of_self(words), runs);
}

Runs run_warm(const BenchOptions& options, const Point& point) {
  Runs runs;
  add_warm(options, point, options.repeat, runs);
  return runs;
}

/// The inputs of the model at the extents that are asked for.
Json inputs_of(const BenchOptions& options, const Point& point) {
  std::vector<std::string> words = {"inspect", point.model, "--json"};
  for (const std::string& dim : options.dims) words.insert(words.end(), {"--dim", dim});
  if (!options.key.empty()) words.insert(words.end(), {"--key", options.key});
  return json_of_self(words).at("inputs");
}

/// Our runs and the peer's in alternating blocks, so that a busy minute slows both.
Runs run_beside(const BenchOptions& options, const Point& point, const Peer& peer, PeerFigures& figures) {
  constexpr int kBlocks = 4;
  const Json inputs = inputs_of(options, point);
  const int blocks = std::min(kBlocks, options.repeat);
  Runs ours;
  std::vector<double> wall_ms, cpu_ms;
  for (int block = 0; block < blocks; ++block) {
    const int count = options.repeat / blocks + (block < options.repeat % blocks ? 1 : 0);
    add_warm(options, point, count, ours);
    if (!figures.refusal.empty()) continue;
    try {
      const Json theirs = run_peer(peer, {point.onnx, inputs, point.threads, options.warmup, count});
      add_values(theirs.at("latency_ms"), wall_ms);
      add_values(theirs.at("cpu_ms"), cpu_ms);
      figures.version = theirs.at("version").get<std::string>();
      figures.peak_rss_bytes = std::max(figures.peak_rss_bytes, theirs.at("peak_rss_bytes").get<std::uint64_t>());
    } catch (const Failure& failure) {
      figures.refusal = failure.what();
    }
  }
  if (!figures.refusal.empty()) return ours;
  std::sort(wall_ms.begin(), wall_ms.end());
  figures.median_ms = quantile(wall_ms, 0.5);
  figures.min_ms = wall_ms.front();
  figures.p90_ms = quantile(wall_ms, 0.9);
  figures.cpu_ms = middle(cpu_ms);
  figures.ratio = *std::min_element(ours.wall_ms.begin(), ours.wall_ms.end()) / figures.min_ms;
  return ours;
}

Runs run_cold(const BenchOptions& options, const Point& point) {
  Runs runs;
  for (int i = 0; i < options.repeat; ++i) {
    forget_file(point.model);
    add_child(json_of_self(words_of("run", options, point)), runs);
  }
  return runs;
}

/// Measured in a run of its own, since looking at the clock in each step takes time.
std::map<std::string, double> operators_of(const BenchOptions& options, const Point& point) {
  std::vector<std::string> words = words_of("run", options, point);
  words.insert(words.end(), {"--warmup", "1", "--stats"});
  std::map<std::string, double> operators;
  const Json json = json_of_self(words);
  if (json.contains("steps"))
    for (const Json& step : json.at("steps")) operators[step.at("operator").get<std::string>()] += step.at("compute_ms").get<double>();
  return operators;
}

}  // namespace

Expectation expect(const BenchOptions& options, const Point& point) {
  std::vector<std::string> words = words_of("plan", options, point);
  if (!options.cold) words.emplace_back("--repeat");
  const Json json = json_of_self(words);
  const Json& stalls = json.at("stalls_ms");
  return {json.at("predicted_ms").get<double>(), stalls.at("disk").get<double>(), stalls.at("budget").get<double>(),
          stalls.at("addresses").get<double>(), json.at("minimum_budget_bytes").get<std::uint64_t>()};
}

Row measure(const BenchOptions& options, const Point& point, const Peer* peer) {
  Row row;
  row.model = point.model;
  row.threads = point.threads;
  try {
    const Expectation expected = expect(options, point);
    const EnergyMeter energy;
    if (peer != nullptr) row.peer.emplace();
    Runs runs = options.cold      ? run_cold(options, point)
                : peer != nullptr ? run_beside(options, point, *peer, *row.peer)
                                  : run_warm(options, point);
    if (const auto joules = energy.joules(); joules && peer == nullptr)
      row.joules = *joules / (options.repeat + (options.cold ? 0 : options.warmup));
    std::sort(runs.wall_ms.begin(), runs.wall_ms.end());
    row.budget_bytes = runs.last.at("budget_bytes").get<std::uint64_t>();
    row.limited = runs.last.at("budget_limited").get<bool>();
    row.median_ms = quantile(runs.wall_ms, 0.5);
    row.min_ms = runs.wall_ms.front();
    row.p90_ms = quantile(runs.wall_ms, 0.9);
    row.p99_ms = quantile(runs.wall_ms, 0.99);
    row.cpu_ms = middle(runs.cpu_ms);
    row.stall_ms = middle(runs.stall_ms);
    row.predicted_ms = expected.predicted_ms;
    row.peak_rss_bytes = runs.peak_rss_bytes;
    row.bytes_read = runs.bytes_read;
    if (options.operators) row.operators = operators_of(options, point);
    const Bound bound = bound_of({row.median_ms, row.stall_ms, expected.disk_ms, expected.budget_ms, expected.addresses_ms});
    row.bound_by = bound.word;
    row.reason = bound.sentence;
  } catch (const Failure& failure) {
    if (failure.code() != ErrorCode::kBudgetTooSmall && failure.code() != ErrorCode::kUnsupported) throw;
    row.refusal = failure.what();
    row.refusal_code = failure.code();
    row.peer.reset();
    if (const auto budget = parse_bytes(point.budget)) row.budget_bytes = budget->count();
    row.limited = true;
  }
  return row;
}

}  // namespace sluice::cli::bench_detail

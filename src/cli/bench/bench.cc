#include "src/cli/bench/bench.h"

#include <algorithm>

#include "src/cli/bench/goal.h"
#include "src/cli/bench/measure.h"
#include "src/cli/bench/print.h"
#include "src/cli/duration.h"
#include "src/cli/failure.h"
#include "src/cli/open_model.h"
#include "src/cli/parse_dim.h"
#include "src/cli/process.h"
#include "src/cli/session_options.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

using namespace bench_detail;

std::vector<std::string> split(const std::string& list, const char* option) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    words.push_back(list.substr(at, end - at));
    if (words.back().empty()) throw Failure(ErrorCode::kInvalidArgument, fmt::format("{} {}: is not a list such as a,b,c", option, list));
    at = end + 1;
  }
  return words;
}

std::vector<int> thread_counts(const std::string& list) {
  std::vector<int> counts;
  for (const std::string& word : split(list, "--threads")) {
    const auto count = parse_extent(word);
    if (!count || *count < 1 || *count > 256)
      raise(make_error(ErrorCode::kInvalidArgument, "--threads", "is a list of numbers from 1 to 256"));
    counts.push_back(static_cast<int>(*count));
  }
  return counts;
}

/// The points of the grid; `smallest` is asked of the planner.
std::vector<Point> points_of(const BenchOptions& options) {
  std::vector<std::string> onnx(options.models.size());
  if (!options.peer.empty()) onnx = onnx_files_of(options.models, options.onnx);
  std::vector<Point> points;
  for (std::size_t m = 0; m < options.models.size(); ++m) {
    const std::string& model = options.models[m];
    open_model(model, options.dims, options.key);  // says what is wrong with it before anything is measured
    for (const int threads : thread_counts(options.threads)) {
      if (!options.goal.empty()) {
        points.push_back({model, {}, threads, {}});
        continue;
      }
      for (const std::string& budget : split(options.budgets, "--budget")) {
        Point point{model, budget, threads, onnx[m]};
        if (budget == "smallest") {
          point.budget = "unlimited";
          point.budget = std::to_string(expect(options, point).minimum_budget_bytes);
        } else {
          parse_size(budget, "--budget");
        }
        points.push_back(std::move(point));
      }
    }
  }
  return points;
}

/// A table of refusals alone is no result: the exit status says so, with the code of the first.
void refuse_empty_table(const std::vector<Row>& rows) {
  if (rows.empty() || std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.refusal.empty(); })) return;
  throw Failure(rows.front().refusal_code,
                fmt::format("{}: {}", rows.size() == 1 ? "the point could not be measured" : "no point could be measured; the first",
                            rows.front().refusal));
}

}  // namespace

void bench(const BenchOptions& options) {
  const double goal_ms = options.goal.empty() ? 0 : static_cast<double>(parse_milliseconds(options.goal, "--goal"));
  std::optional<Peer> peer;
  if (!options.peer.empty()) peer = find_peer(options.peer);
  const std::vector<Point> points = points_of(options);
  std::vector<Row> rows;
  {
    Progress progress("bench", points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      progress.update(i, [&] { return fmt::format("point {} of {}: {} {}", i + 1, points.size(), points[i].model, points[i].budget); });
      rows.push_back(options.goal.empty() ? measure(options, points[i], peer ? &*peer : nullptr)
                                          : smallest_budget_for(options, points[i], goal_ms));
    }
  }
  const Machine machine = this_machine();
  if (options.json)
    print_as_json(machine, options, rows);
  else if (options.csv)
    print_csv(rows);
  else if (options.markdown)
    print_markdown(machine, rows);
  else
    print_table(machine, rows);
  finish_stdout();
  refuse_empty_table(rows);
}

}  // namespace sluice::cli

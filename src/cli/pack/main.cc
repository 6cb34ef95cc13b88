// sluice-pack: places the rectangles of a problem file, judges the placement with the independent validator, and writes it down. A bug of
// the planner's placement becomes a file for the tests.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <cstdio>
#include <optional>

#include "sluice/planner/place/columns.h"
#include "sluice/planner/place/place.h"
#include "sluice/planner/place/validate_placement.h"
#include "src/cli/duration.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/guarded_main.h"
#include "src/cli/json.h"
#include "src/cli/pack/problem_file.h"
#include "src/cli/refuse_words.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

struct CommandLine {
  std::string file;
  std::optional<std::uint64_t> capacity;
  std::string search = "1s";
  int threads = 2;
  std::string output;
  bool check = false;
  bool json = false;
};

struct Packed {
  ProblemFile file;
  planner::Placed placed;
  double milliseconds = 0;
};

/// The capacity as an error says it: a problem without one has no limit.
void require_fit(const Packed& packed) {
  if (packed.placed.placement.height <= packed.file.problem.capacity) return;
  const char* const reason = packed.placed.settled ? "no placement fits the capacity: the search has tried all"
                                                   : "no placement that fits the capacity was found within the search limit";
  throw Failure(ErrorCode::kBudgetTooSmall,
                fmt::format("{} (height {}, capacity {})", reason, packed.placed.placement.height, packed.file.problem.capacity));
}

Packed place_file(const CommandLine& line) {
  Packed packed;
  packed.file = unwrap(read_problem(line.file));
  planner::PlacementProblem& problem = packed.file.problem;
  if (line.capacity) problem.capacity = *line.capacity;
  if (line.check) {
    if (!packed.file.offsets) raise(make_error(ErrorCode::kInvalidArgument, line.file, "--check wants a file with a column `offset`"));
    packed.placed.placement = {*packed.file.offsets, planner::height_of(problem.rectangles, *packed.file.offsets)};
    packed.placed.bound = planner::height_bound(problem.rectangles);
    return packed;
  }
  planner::PlaceOptions options;
  const bool limited = line.capacity || packed.file.has_capacity;
  options.goal = limited ? planner::PlaceGoal::kFit : planner::PlaceGoal::kLowest;
  options.search = planner::SearchLimit::of_milliseconds(parse_milliseconds(line.search, "--search"));
  options.threads = line.threads;
  const auto start = std::chrono::steady_clock::now();
  packed.placed = planner::place(problem, options);
  packed.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return packed;
}

void print(const Packed& packed, const CommandLine& line) {
  const planner::Placed& placed = packed.placed;
  const std::string by = line.check ? "the file" : std::string(name_of(placed.by));
  if (line.json) {
    print_json("sluice-pack", {{"file", line.file},
                               {"rectangles", packed.file.ids.size()},
                               {"height", placed.placement.height},
                               {"bound", placed.bound},
                               {"ratio", placed.ratio()},
                               {"capacity", packed.file.problem.capacity},
                               {"fits", placed.placement.height <= packed.file.problem.capacity},
                               {"settled", placed.settled},
                               {"by", by},
                               {"ms", packed.milliseconds}});
    return;
  }
  fmt::print("{}: {} rectangles, height {}, bound {}, ratio {:.3f}, by {}, {:.1f} ms\n", line.file, packed.file.ids.size(),
             placed.placement.height, placed.bound, placed.ratio(), by, packed.milliseconds);
}

void pack(const CommandLine& line) {
  const Packed packed = place_file(line);
  print(packed, line);
  if (!line.check) require_fit(packed);
  unwrap(planner::validate_placement(packed.file.problem, packed.placed.placement.offsets));
  if (line.output.empty()) return;
  const std::string text = solution_text(packed.file, packed.placed.placement.offsets);
  write_atomically(line.output, std::as_bytes(std::span(text)));
}

int run(int argc, char** argv) {
  CLI::App app("Places rectangles of time x bytes: MiniMalloc's problem files", "sluice-pack");
  app.set_version_flag("--version", SLUICE_VERSION);
  CommandLine line;
  app.add_option("file", line.file, "a CSV file: id,lower,upper,size and, if wanted, alignment")->required();
  app.add_option("--capacity", line.capacity, "the height that may not be exceeded (default: the number in the file's name, else none)");
  app.add_option("--search", line.search, "how much the exact search may do, such as 50ms or 1s of a core; 0: none")->capture_default_str();
  app.add_option("--threads", line.threads, "threads of the search")->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("-o,--output", line.output, "write the file with its offsets here");
  app.add_flag("--check", line.check, "place nothing: judge the offsets that the file has");
  app.add_flag("--json", line.json, "print one JSON object");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return refuse_words("sluice-pack", app, "sluice-pack", error);
  }
  refuse_empty_words(app);
  pack(line);
  return 0;
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) { return sluice::cli::guarded_main("sluice-pack", sluice::cli::run, argc, argv); }

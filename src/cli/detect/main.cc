// sluice-detect: which operators a runtime runs as one, found from outside. The result goes to stdout, progress to stderr.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "src/cli/detect/detector.h"
#include "src/cli/failure.h"
#include "src/cli/guarded_main.h"
#include "src/cli/json.h"
#include "src/cli/process.h"
#include "src/cli/refuse_words.h"
#include "src/cli/scratch_folder.h"
#include "src/cli/text.h"

namespace sluice::cli::detect {
namespace {

struct CommandLine {
  std::string runner;
  std::vector<std::string> operators;
  int rounds = 1000;
  double seconds = 90;
  double answer = 60;
  std::string keep;
  bool json = false;
};

Json json_of(const Rule& rule) {
  return {{"form", name_of(rule.pattern.form)},
          {"pattern", rule.pattern.words},
          {"fused", rule.fused ? Json(*rule.fused) : Json()},
          {"saving_ms", rule.saving_ms},
          {"cheaper_ms", rule.cheaper_ms},
          {"p_value", rule.p_value},
          {"rounds", rule.rounds},
          {"simple_rule", rule.simple}};
}

void print_as_json(const CommandLine& line, const Detection& detection) {
  Json rules = Json::array();
  for (const Rule& rule : detection.rules) rules.push_back(json_of(rule));
  print_json("sluice detect", {{"runner", line.runner},
                               {"rules", rules},
                               {"operator_ms", detection.operator_ms},
                               {"separator", name_of(detection.separator)},
                               {"repeats", detection.repeats},
                               {"measurements", detection.measurements},
                               {"seconds", detection.seconds}});
}

void print_as_text(const Detection& detection) {
  fmt::print("{:<32}{:>12}{:>12}{:>12}{:>12}{:>8}\n", "pattern", "answer", "saves ms", "of ms", "p", "rounds");
  for (const Rule& rule : detection.rules)
    fmt::print("{:<32}{:>12}{:>12.4f}{:>12.4f}{:>12.1e}{:>8}\n",
               fmt::format("{} {}", name_of(rule.pattern.form), fmt::join(rule.pattern.words, " ")),
               !rule.fused   ? "abstains"
               : *rule.fused ? "fused"
                             : "apart",
               rule.saving_ms, rule.cheaper_ms, rule.p_value, rule.rounds);
  fmt::print("\n{} measurements in {:.1f} s\n", detection.measurements, detection.seconds);
}

void check_operators(const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (std::find(kOperators.begin(), kOperators.end(), word) == kOperators.end())
      throw Failure(ErrorCode::kInvalidArgument, fmt::format("--operators {}: is none of {}", word, fmt::join(kOperators, ", ")));
}

/// A folder for models that stay, made where it is not there.
std::string prepare_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && !std::filesystem::is_empty(path, error) && !error)
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("--keep {}: the folder is not empty; give a new one", path));
  if (error) raise(make_io_error(path, "the folder cannot be used", error.value()));
  return path;
}

int dispatch(int argc, char** argv) {
  CLI::App app("Finds which operators a runtime runs as one, from the times of small models", "sluice-detect");
  CommandLine line;
  app.add_option("--runner", line.runner, "a command that reads the path of an ONNX file a line and answers with milliseconds a line")
      ->required();
  app.add_option("--operators", line.operators, "a list of operators (default: all): conv,relu,add")->delimiter(',');
  app.add_option("--rounds", line.rounds, "measurements of each pattern at most")->capture_default_str()->check(CLI::Range(8, 10000));
  app.add_option("--seconds", line.seconds, "after which no block of measurements begins, but the first of each separator")
      ->capture_default_str()
      ->check(CLI::Range(0, 86400));
  app.add_option("--answer", line.answer, "seconds that the runner may take for an answer")
      ->capture_default_str()
      ->check(CLI::Range(0, 86400));
  app.add_option("--keep", line.keep, "an empty or new folder in which the models that were measured stay");
  app.add_flag("--json", line.json, "print one JSON object");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return refuse_words("sluice-detect", app, "sluice detect", error);
  }
  refuse_empty_words(app);
  check_operators(line.operators);
  std::optional<ScratchFolder> scratch;
  const std::string folder = line.keep.empty() ? scratch.emplace("sluice-detect").path() : prepare_folder(line.keep);
  ProcessRunner runner(line.runner, line.answer);
  Progress progress("detect", 0);
  Options options{.operators = line.operators, .most_rounds = line.rounds, .seconds = line.seconds, .directory = folder};
  options.progress = [](void* context, std::size_t done, std::size_t) {
    static_cast<Progress*>(context)->update(done, [&] { return fmt::format("{} models measured", done); });
  };
  options.progress_context = &progress;
  const Detection detection = detect(runner, options);
  line.json ? print_as_json(line, detection) : print_as_text(detection);
  finish_stdout();
  return 0;
}

}  // namespace
}  // namespace sluice::cli::detect

int main(int argc, char** argv) { return sluice::cli::guarded_main("sluice-detect", sluice::cli::detect::dispatch, argc, argv); }

#include "src/cli/report/report.h"

#include <filesystem>
#include <fstream>

#include "sluice/plan/plan_file.h"
#include "sluice/plan/verify.h"
#include "src/cli/child.h"
#include "src/cli/dims.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/open_model.h"
#include "src/cli/process.h"
#include "src/cli/profile_file.h"
#include "src/cli/scratch_folder.h"
#include "src/cli/session_options.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

/// `sluice COMMAND MODEL --json` with what each of the children is asked.
std::vector<std::string> words_of(const char* command, const ReportOptions& options) {
  const BudgetOptions& budget = options.budget;
  std::vector<std::string> words = {command, budget.model, "--json", "--scope", budget.scope, "--reserve", budget.reserve};
  words.insert(words.end(),
               {"--threads", std::to_string(budget.threads.value_or(1)), "--compute-slowdown", fmt::format("{}", budget.compute_slowdown)});
  for (const std::string& dim : budget.dims) words.insert(words.end(), {"--dim", dim});
  if (!budget.key.empty()) words.insert(words.end(), {"--key", budget.key});
  if (!budget.profile.empty()) words.insert(words.end(), {"--profile", budget.profile});
  if (!budget.io_limit.empty()) words.insert(words.end(), {"--io-limit", budget.io_limit});
  return words;
}

Json plan_into(const std::string& file, const ReportOptions& options) {
  std::vector<std::string> words = words_of("plan", options);
  words.insert(words.end(), {"--budget", options.budget.budget, "--policy", options.budget.policy, "--save", file});
  if (options.repeat) words.emplace_back("--repeat");
  return json_of_self(words);
}

Json sweep(const ReportOptions& options) {
  std::vector<std::string> words = words_of("plan", options);
  words.emplace_back("--sweep");
  if (options.repeat) words.emplace_back("--repeat");
  return json_of_self(words);
}

Json run_into(const std::string& trace, const std::string& plan, const ReportOptions& options) {
  std::vector<std::string> words = words_of("run", options);
  words.insert(words.end(), {"--budget", options.budget.budget, "--plan", plan, "--trace", trace});
  if (options.repeat) words.insert(words.end(), {"--warmup", "2"});
  for (const std::string& input : options.inputs) words.insert(words.end(), {"--input", input});
  return json_of_self(words);
}

Json json_in(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

/// The options about the device that the children get, for the times of each step.
ExpectedTimes expect(const Model& model, const plan::Plan& plan, const ReportOptions& options) {
  SessionOptions session = session_options(options.budget);
  const FoundProfile profile = find_profile(options.budget.profile, session.threads);
  session.profile = profile.get();
  unwrap(plan::verify(plan, model.graph(), {.file_size = model.file().file_size(), .model_hash = model.file().hash()}));
  return unwrap(expected_times(model, plan, session));
}

}  // namespace

void report(const ReportOptions& options) {
  if (options.budget.budget == "auto") raise(make_error(ErrorCode::kInvalidArgument, "--budget", "a report is of one budget, not of auto"));
  refuse_replacing(options.output, options.budget.model, "the page would replace the model that it is made from");
  session_options(options.budget);  // whose words for what is wrong with an option are better than a child's
  const auto model = open_model(options.budget.model, options.budget.dims, options.budget.key);
  const ScratchFolder workshop("sluice-report");
  const std::string plan_file = workshop.file("plan"), trace_file = workshop.file("trace.json");
  report_detail::Material material;
  material.plan = plan_into(plan_file, options);
  material.sweep = sweep(options);
  if (!options.no_run) {
    material.run = run_into(trace_file, plan_file, options);
    material.trace = json_in(trace_file);
  }
  const plan::Plan plan = unwrap(plan::load_plan(plan_file));
  const Json data = report_detail::data_of(*model, plan, expect(*model, plan, options), material);
  const std::string page =
      report_detail::page_of(std::filesystem::path(options.budget.model).filename().string() + ": sluice report", data);
  write_atomically(options.output, std::as_bytes(std::span(page)));
}

}  // namespace sluice::cli

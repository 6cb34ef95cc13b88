// The command-line tool. Whatever goes wrong ends here as one line on stderr, `sluice: <text>`.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>

#include "sluice/core/cpu.h"
#include "sluice/executor/executor.h"
#include "sluice/profiler/net_type.h"
#include "src/cli/bench/bench.h"
#include "src/cli/commands.h"
#include "src/cli/failure.h"
#include "src/cli/guarded_main.h"
#include "src/cli/process.h"
#include "src/cli/refuse_words.h"
#include "src/cli/report/report.h"
#include "src/cli/serve/command.h"
#include "src/cli/session_options.h"
#include "src/cli/text.h"
#include "src/cli/validators.h"
#include "src/cli/words.h"

namespace sluice::cli {
namespace {

constexpr int kUsage = 1;

/// Every option of every command, where CLI11 puts them.
struct CommandLine {
  InspectOptions inspect;
  VerifyOptions verify;
  TrimOptions trim;
  ProfileOptions profile;
  PlanOptions plan;
  PredictOptions predict;
  RunOptions run;
  BenchOptions bench;
  ReportOptions report;
  ServeOptions serve;
  ProcessorsOptions processors;
  std::string plan_processors;
  std::vector<float> mean;
  std::vector<float> stddev;
  float scale = 1;
};

constexpr int kMostRuns = 10'000'000;
constexpr int kMostTop = 1000;  // they count in the budget
constexpr int kMostSeconds = 86'400;
constexpr int kMostMeasurements = 100'000;

/// A wish that cannot be granted is said, not passed over in silence: a figure would be taken for another processor's.
void check_isa_wish() {
  const char* wish = std::getenv("SLUICE_ISA");
  if (wish == nullptr || active_isa_name() == wish) return;
  throw Failure(ErrorCode::kInvalidArgument,
                fmt::format("SLUICE_ISA={}: not an instruction set of this processor (its best: {})", wish, name_of(best_isa())));
}

void add_key(CLI::App* command, std::string& key) {
  command->add_option("--key", key, "where the key of an encrypted model is: FILE, fd:N (32 bytes) or env:NAME (64 hex digits)");
}

void add_model(CLI::App* command, std::string& model, std::string& key) {
  command->add_option("model", model, "the model file, M.sluice")->required();
  add_key(command, key);
}

void add_dims(CLI::App* command, std::vector<std::string>& dims) {
  command
      ->add_option("--dim", dims,
                   "NAME=EXTENT...: of a model that was converted for several (default: of the arrays given, else the largest)")
      ->allow_extra_args(false);
}

void add_bounds(CLI::App* command, BudgetOptions& options) {
  command
      ->add_option("--budget", options.budget,
                   "bound on memory: 48MiB or 48M, bytes, unlimited, or auto (follows what the system has free)")
      ->capture_default_str();
  command->add_option("--scope", options.scope, "what the budget bounds: process (its peak RSS) or library (what Sluice holds)")
      ->capture_default_str();
  command->add_option("--reserve", options.reserve, "what something else in the process will take, left out of its budget: 4MiB")
      ->capture_default_str();
  command->add_option("--policy", options.policy, policy_names("or"))->capture_default_str();
  command->add_option("--partition", options.partition, "rows of activations in bands: auto (as the budget asks for it), off or least")
      ->capture_default_str();
  command->add_option("--max-overhead", options.max_overhead, "what bands for memory may cost, of the predicted time without them")
      ->capture_default_str();
  command->add_option("--threads", options.threads, "compute threads (default: 1, or those of --plan)")->check(CLI::Range(1, kMaxThreads));
  command->add_option("--profile", options.profile, "what this device can do: a file, or none (default: what `sluice profile` wrote)");
  command->add_option("--io-limit", options.io_limit, "read no faster than this, e.g. 300MB/s: emulates a slower disk");
  command->add_option("--compute-slowdown", options.compute_slowdown, "let each step take so many times its time: emulates a slower CPU")
      ->capture_default_str();
}

/// What `plan` and `run` can do about values that are larger than a budget.
void add_passing(CLI::App* command, BudgetOptions& options) {
  command->add_option("--spill", options.spill,
                      "a directory: where nothing fits otherwise, activations go to a scratch file there and come back");
  command->add_flag("--output-rows", options.output_rows,
                    "outputs are taken as they are made, a block of rows and channels at a time, and have no place in the budget");
}

void add_budget(CLI::App* command, BudgetOptions& options) {
  add_model(command, options.model, options.key);
  add_dims(command, options.dims);
  add_bounds(command, options);
}

CLI::App* add_inspect(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("inspect", "What a model computes, and how large it is");
  add_model(command, line.inspect.model, line.inspect.key);
  add_dims(command, line.inspect.dims);
  command->add_flag("--json", line.inspect.json, "print one JSON object, every node in it");
  command->add_flag("--nodes", line.inspect.nodes, "a line for every node: shapes, bytes, MACs, what was fused into it");
  command->add_flag("--weights", line.inspect.weights, "a line for every weight: shape, type, how it is stored and in how many bytes");
  command->add_flag("--dot", line.inspect.dot, "print the graph in Graphviz's language")->excludes("--json")->excludes("--nodes");
  return command;
}

CLI::App* add_verify(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("verify", "Read a model file whole and check every checksum");
  add_model(command, line.verify.model, line.verify.key);
  return command;
}

CLI::App* add_trim(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("trim", "List what models need of the runtime, for a build that links nothing else");
  command->add_option("models", line.trim.models, "model files, M.sluice")->required();
  add_key(command, line.trim.key);
  command->add_option("-o,--output", line.trim.output, "the list, FILE.cmake, for cmake -DSLUICE_TRIM=FILE.cmake")->required();
  command->add_option("--plan", line.trim.plans,
                      "and for these plans of them alone, by `sluice plan --save`, in a build without a planner");
  command->add_option("--isa", line.trim.isa, "kernels for this instruction set alone: scalar, neon, avx2 or avx512 (default: for all)")
      ->check(CLI::IsMember({"scalar", "neon", "avx2", "avx512"}));
  command->add_flag("--json", line.trim.json, "print one JSON object");
  return command;
}

CLI::App* add_profile(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("profile", "Measure what this device can do, for better plans; takes a minute or so");
  command->add_option("--threads", line.profile.threads, "a list of thread counts, each measured: 1,2")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option(
          "--types", line.profile.types,
          "a list of types of nets, each measured by itself: f32; weights of bf16, f16, int8 or int4 (convert --weights); integers")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::IsMember(std::vector<std::string>(profiler::kNetTypeNames.begin(), profiler::kNetTypeNames.end())));
  command->add_option("-o,--output", line.profile.output, "write here, or --check this file (default: where plan and run look)");
  command->add_option("--file", line.profile.file,
                      "measure reading of this file, of 64 MiB or more (default: the largest model given, or one made for the purpose)");
  command->add_option("--model", line.profile.models, "measure the layers of this model too: its plans become more exact")
      ->allow_extra_args(false);
  add_key(command, line.profile.key);
  command->add_option("--transfer", line.profile.transfer, "make this device's profile out of another one's file, by ten measurements");
  command->add_option("--most", line.profile.most, "measurements of steps at most, for each type")
      ->capture_default_str()
      ->check(CLI::Range(1, kMostMeasurements));
  command->add_option("--seconds", line.profile.seconds, "how long steps of a type may be measured")
      ->capture_default_str()
      ->check(CLI::Range(0, kMostSeconds));
  command->add_flag("--check", line.profile.check, "measure nothing anew: is this machine now as fast as when the profile was measured?");
  command->add_option("--io-limit", line.profile.io_limit, "write no rate of reading above this, e.g. 300MB/s");
  command->add_flag("--json", line.profile.json, "print the file, or what --check found");
  return command;
}

CLI::App* add_plan(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("plan", "What would happen in a budget; reads no weights");
  add_budget(command, line.plan.budget);
  add_passing(command, line.plan.budget);
  command->add_flag("--repeat", line.plan.repeat, "plan for repeated runs, not for one");
  CLI::Option* const table = command->add_flag("--table", line.plan.table, "list every step with its loads");
  CLI::Option* const explain = command->add_flag(
      "--explain", line.plan.explain, "why the smallest budget is what it is: which step, what lives there, what would lower it");
  command->add_option("--search", line.plan.search, "how long bands, drafts, addresses and their exact search may take: 0ms, 50ms, 1s")
      ->capture_default_str();
  CLI::Option* const json = command->add_flag("--json", line.plan.json, "print one JSON object");
  CLI::Option* const svg = command->add_option("--svg", line.plan.svg, "draw the plan into this file: time across, addresses up");
  CLI::Option* const save = command->add_option("--save", line.plan.save, "write the plan to this file, for run --plan");
  command->add_flag("--sweep", line.plan.sweep, "plan ten budgets, from the smallest that works to one that keeps all weights")
      ->excludes(table)
      ->excludes(svg)
      ->excludes(save)
      ->excludes(explain)
      ->excludes("--budget");
  table->excludes(json);
  explain->excludes(json);
  command
      ->add_option("--processors", line.plan_processors,
                   "show how the model is cut into units for these kinds, such as cpu,xnnpack,opencl, and who can run each")
      ->excludes(table)
      ->excludes(svg)
      ->excludes(save)
      ->excludes("--budget")
      ->excludes("--sweep");
  return command;
}

CLI::App* add_predict(CLI::App& app, CommandLine& line) {
  PredictOptions& predict = line.predict;
  CLI::App* command = app.add_subcommand("predict", "How long a model will take, without running it and without its weights");
  CLI::Option* const model =
      command->add_option("model", predict.budget.model, "a model file, or an ONNX file, whose weights need not be there");
  CLI::Option* const compare = command->add_option("--compare", predict.compare, "two models, side by side")->expected(2)->excludes(model);
  add_key(command, predict.budget.key);
  add_dims(command, predict.budget.dims);
  add_bounds(command, predict.budget);
  command->add_flag("--cold", predict.cold, "one run from a cold start, not one of many");
  command->add_option("--budgets", predict.budgets, "a list of budgets: 16MiB,32MiB,unlimited")
      ->delimiter(',')
      ->excludes("--budget")
      ->excludes(compare);
  command->add_option("--numerics", predict.numerics, "of an ONNX file: fast or exact (sluice convert --help)")
      ->check(CLI::IsMember({"fast", "exact"}))
      ->capture_default_str();
  command->add_option("--weights", predict.weights, "of an ONNX file: f32, bf16, f16, int8 or int4")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "int8", "int4"}));
  command->add_flag("--json", predict.json, "print one JSON object, every node in it");
  return command;
}

/// How a picture becomes an input.
void add_picture(CLI::App* command, CommandLine& line) {
  ImageOptions& image = line.run.image;
  command->add_option("--preprocess", image.preset, "for pictures: imagenet, imagenet-caffe or none (default: the model's own)");
  command->add_option("--mean", line.mean, "R,G,B subtracted after scaling, in the model's channel order")->delimiter(',')->expected(3);
  command->add_option("--std", line.stddev, "divisors after the mean, in the model's channel order")->delimiter(',')->expected(3);
  command->add_option("--scale", line.scale, "factor on the 0..255 values of a picture");
  command->add_flag("--bgr", image.bgr, "blue first");
  command->add_option("--fit", image.fit, "a picture of other proportions is cut (crop), stretched, or gets grey bars (letterbox)")
      ->check(CLI::IsMember(std::vector<std::string>(kImageFits.begin(), kImageFits.end())))
      ->capture_default_str();
}

CLI::App* add_run(CLI::App& app, CommandLine& line) {
  RunOptions& run = line.run;
  CLI::App* command = app.add_subcommand("run", "Run a model in a budget");
  add_budget(command, run.budget);
  add_passing(command, run.budget);
  command->add_option("--input", run.inputs, "FILE or NAME=FILE: .png .jpg .npy .npz .pb, or random[:SEED] (the default)")
      ->allow_extra_args(false);
  add_picture(command, line);
  CLI::Option* const top =
      command->add_option("--top", run.top, "show the K largest values of each output")->check(CLI::Range(0, kMostTop));
  command->add_option("--labels", run.labels, "a file with one label a line, for --top")->needs(top);
  CLI::Option* const output =
      command->add_option("-o,--output", run.output_directory, "write each output as NAME.npy into this folder")->check(folder());
  command->get_option("--output-rows")->needs(output);
  CLI::Option* const expect =
      command->add_option("--expect", run.expected, "FILE or NAME=FILE (.npy, .pb): compare; exit 6 when outputs differ")
          ->allow_extra_args(false);
  command->add_option("--tolerance", run.tolerance, "max |difference| allowed, as a share of max |expected|, for --expect")
      ->needs(expect)
      ->capture_default_str()
      ->check(share());
  command->add_option("--repeat", run.repeat, "counted runs")->capture_default_str()->check(CLI::Range(1, kMostRuns));
  command->add_option("--max-turns", run.max_turns, "turns that the loops of one step may take; one that wants more is an error")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--warmup", run.warmup, "runs before the counted ones")->capture_default_str()->check(CLI::Range(0, kMostRuns));
  command->add_option("--reader", run.reader, "how weights are read: auto, ring (io_uring) or threads (pread)")->capture_default_str();
  command->add_option("--read-size", run.read_size, "bytes of one read (default: what the device profile found best, else 512 KiB)");
  command
      ->add_option("--reads-in-flight", run.reads_in_flight, "reads at once, 1 to 16 (default: what the device profile found best, else 4)")
      ->check(CLI::Range(1, executor::kMaxReadsInFlight));
  command->add_option("--read-timeout", run.read_timeout_s, "seconds after which a read is given up; 0: never")
      ->capture_default_str()
      ->check(CLI::Range(0, kMostSeconds));
  command->add_option("--plan", run.plan, "use this plan (plan --save) instead of making one");
  command->add_option("--compute-cpus", run.compute_cpus,
                      "processors that compute, such as 0,2-3 (default: the big ones, where there are both)");
  command->add_option("--load-cpu", run.load_cpu,
                      "processors that read, such as 1 (default: the small ones, where there are both; else, if one is left, that which "
                      "the disk interrupts)");
  command->add_flag("--stats", run.stats, "also what each step computed and waited");
  CLI::Option* const trace =
      command->add_option("--trace", run.trace, "write the last run's timeline into this file, for Perfetto or chrome://tracing");
  command
      ->add_flag(
          "--sandbox", run.sandbox,
          "once the model is open, the system refuses the process all but reading it, computing and writing outputs (docs/security.md)")
      ->excludes(expect)
      ->excludes(trace)
      ->excludes("--spill")
      ->excludes("--output-rows");
  command->add_flag("--json", run.json, "print one JSON object");
  return command;
}

CLI::App* add_bench(CLI::App& app, CommandLine& line) {
  BenchOptions& bench = line.bench;
  CLI::App* command = app.add_subcommand("bench", "Measure models in several budgets, each in a process of its own");
  command->add_option("models", bench.models, "model files")->required();
  add_key(command, bench.key);
  add_dims(command, bench.dims);
  CLI::Option* const budgets =
      command->add_option("--budget,--budgets", bench.budgets, "a list of budgets: 64MiB,24MiB,smallest,unlimited")->capture_default_str();
  command->add_option("--threads", bench.threads, "a list of thread counts: 1,2")->capture_default_str();
  command->add_option("--repeat", bench.repeat, "counted runs of each")->capture_default_str()->check(CLI::Range(1, kMostRuns));
  CLI::Option* const warmup =
      command->add_option("--warmup", bench.warmup, "runs before the counted ones")->capture_default_str()->check(CLI::Range(0, kMostRuns));
  CLI::Option* const cold =
      command->add_flag("--cold", bench.cold, "each run in a process of its own, the model file out of the page cache")->excludes(warmup);
  CLI::Option* const goal =
      command->add_option("--goal", bench.goal, "find the smallest budget whose median is at most this: 150ms")->excludes(budgets);
  CLI::Option* const peer =
      command->add_option("--peer", bench.peer, "also another engine's runs, in turn with ours: onnxruntime, or onnxruntime=FOLDER")
          ->excludes(cold)
          ->excludes(goal);
  command->add_option("--onnx", bench.onnx, "the ONNX file of each model, for the peer (default: M.onnx beside M.sluice)")
      ->allow_extra_args(false)
      ->needs(peer);
  command->add_flag("--operators", bench.operators, "also the time of each kind of operator");
  command->add_option("--profile", bench.profile, "what this device can do: a file, or none (default: what `sluice profile` wrote)");
  command->add_option("--io-limit", bench.io_limit, "read no faster than this, e.g. 300MB/s");
  CLI::Option* const json = command->add_flag("--json", bench.json, "print one JSON object");
  CLI::Option* const csv = command->add_flag("--csv", bench.csv, "print comma-separated values")->excludes(json);
  command->add_flag("--md", bench.markdown, "print a Markdown table")->excludes(json)->excludes(csv);
  return command;
}

CLI::App* add_report(CLI::App& app, CommandLine& line) {
  ReportOptions& report = line.report;
  CLI::App* command = app.add_subcommand("report", "Draw a plan and a run of it into one HTML page");
  add_budget(command, report.budget);
  command->add_option("-o,--output", report.output, "the page, r.html")->required();
  CLI::Option* const input =
      command->add_option("--input", report.inputs, "as of `sluice run`, for the measured run")->allow_extra_args(false);
  command->add_flag("--repeat", report.repeat, "plan for repeated runs, and measure one of those");
  command->add_flag("--no-run", report.no_run, "draw the plan alone")->excludes(input);
  return command;
}

CLI::App* add_serve(CLI::App& app, CommandLine& line) {
  ServeOptions& serve = line.serve;
  CLI::App* command = app.add_subcommand("serve", "Serve several models on several processors in one budget");
  command->add_option("config", serve.config, "the workload, CONFIG.json: models, workers, policy (Band's keys; docs/scheduling.md)")
      ->required();
  command->add_option("--budget", serve.budget, "bound on memory for all models together: 48MiB, bytes or unlimited")
      ->capture_default_str();
  command->add_option("--scope", serve.scope, "what the budget bounds: process (its peak RSS) or library (what Sluice holds)")
      ->capture_default_str();
  command->add_option("--reserve", serve.reserve, "what something else in the process will take, left out of its budget: 4MiB")
      ->capture_default_str();
  command->add_option("--policy", serve.policy, "who runs what and when (default: the configuration's first, else sluice)");
  command->add_option("--profile", serve.profile, "what this device can do: a file, or none (default: what `sluice profile` wrote)");
  command->add_option("--trace", serve.trace, "write what ran where into this file, for Perfetto or chrome://tracing");
  command->add_flag("--json", serve.json, "print one JSON object");
  return command;
}

CLI::App* add_processors(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("processors", "List the kinds of processors, and what each supports");
  command->add_flag("--json", line.processors.json, "print one JSON object");
  return command;
}

/// A number that a picture's values can be computed with.
float checked(float value, const char* option, bool divides) {
  if (!std::isfinite(value)) raise(make_error(ErrorCode::kInvalidArgument, option, "is a finite number"));
  if (divides && value == 0) raise(make_error(ErrorCode::kInvalidArgument, option, "divides, so it is not zero"));
  return value;
}

std::array<float, 3> triple(const std::vector<float>& values, const char* option, bool divides = false) {
  return {checked(values[0], option, divides), checked(values[1], option, divides), checked(values[2], option, divides)};
}

void finish_image_options(const CLI::App* command, CommandLine& line) {
  if (!line.mean.empty()) line.run.image.mean = triple(line.mean, "--mean");
  if (!line.stddev.empty()) line.run.image.stddev = triple(line.stddev, "--std", true);
  if (command->count("--scale") > 0) line.run.image.scale = checked(line.scale, "--scale", false);
}

/// What the command line asks for: a command, or only to exit with a status.
struct Asked {
  void (*command)(const CommandLine&) = nullptr;
  int status = 0;
};

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

/// What was wrong, with the word that was most likely meant.
int refuse(const CLI::App& app, const CLI::ParseError& error) {
  for (const CLI::App* command : app.get_subcommands())  // the one that was named
    return refuse_words("sluice", *command, "sluice " + command->get_name(), error);
  return refuse_words("sluice", app, "sluice", error);
}

/// A first word that is neither a command nor an option of the program.
std::optional<std::string> objection_to_command(const CLI::App& app, const std::string& word) {
  if (word.starts_with("--")) {
    const std::vector<std::string> options = option_names(app);
    if (std::find(options.begin(), options.end(), word) != options.end()) return std::nullopt;
    return fmt::format("there is no option '{}'{} (sluice --help lists the commands)", word, suggestion(word, options));
  }
  const std::vector<std::string> names = command_names(app);
  if (word == "-v" || word == "-V") return fmt::format("there is no option '{}'; did you mean '--version'?", word);
  if (word == "version") return "there is no command 'version'; did you mean 'sluice --version'?";
  if (word.starts_with("-") || std::find(names.begin(), names.end(), word) != names.end()) return std::nullopt;
  const std::string file_hint = command_for_file(word);
  return fmt::format("there is no command '{}'{} (the commands are {})", word, file_hint.empty() ? suggestion(word, names) : file_hint,
                     fmt::join(names, ", "));
}

void plan_or_units(const CommandLine& given) {
  const BudgetOptions& budget = given.plan.budget;
  if (given.plan_processors.empty()) return plan(given.plan);
  plan_units({.model = budget.model, .dims = budget.dims, .key = budget.key, .processors = given.plan_processors, .json = given.plan.json});
}

/// The parser is gone when this returns: what its options and texts take would count in every budget.
Asked parse(const std::vector<std::string>& words, CommandLine& line) {
  CLI::App app("Runs neural networks inside a memory budget", "sluice");
  app.require_subcommand(1);
  app.set_version_flag("--version", SLUICE_VERSION);
  app.add_subcommand("convert", "Turn an ONNX file into a model file (see: sluice convert --help)");
  app.add_subcommand("emit", "Write a model as C99 with one static arena (see: sluice emit --help)");
  app.add_subcommand("quantize", "Turn an ONNX file of floats into one of integers (see: sluice quantize --help)");
  app.add_subcommand("detect", "Find which operators a runtime runs as one (see: sluice detect --help)");
  const std::pair<const CLI::App*, Asked> commands[] = {
      {add_inspect(app, line), {[](const CommandLine& given) { inspect(given.inspect); }}},
      {add_verify(app, line), {[](const CommandLine& given) { verify(given.verify); }}},
      {add_trim(app, line), {[](const CommandLine& given) { trim(given.trim); }}},
      {add_profile(app, line), {[](const CommandLine& given) { profile(given.profile); }}},
      {add_plan(app, line), {plan_or_units}},
      {add_predict(app, line), {[](const CommandLine& given) { predict(given.predict); }}},
      {add_run(app, line), {[](const CommandLine& given) { run(given.run); }}},
      {add_bench(app, line), {[](const CommandLine& given) { bench(given.bench); }}},
      {add_report(app, line), {[](const CommandLine& given) { report(given.report); }}},
      {add_serve(app, line), {[](const CommandLine& given) { serve(given.serve); }}},
      {add_processors(app, line), {[](const CommandLine& given) { processors(given.processors); }}}};
  if (words.empty()) {
    std::fputs(app.help().c_str(), stdout);
    return {};
  }
  if (const auto objection = objection_to_command(app, words.front())) {
    complain("sluice", *objection);
    return {nullptr, kUsage};
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // it takes the last word first
  } catch (const CLI::Success& success) {
    return {nullptr, app.exit(success)};  // --help, --version
  } catch (const CLI::ParseError& error) {
    return {nullptr, refuse(app, error)};
  }
  for (const CLI::App* command : app.get_subcommands()) refuse_empty_words(*command);
  finish_image_options(app.get_subcommand("run"), line);
  for (const auto& [command, asked] : commands)
    if (*command) return asked;
  return {};
}

/// `sluice help` and `sluice help COMMAND`, as other programs have them.
void turn_help_round(int& argc, char** argv) {
  static char help[] = "--help";
  if (argc < 2 || argc > 3 || std::string_view(argv[1]) != "help") return;
  argv[1] = argc == 3 ? argv[2] : help;
  if (argc == 3) argv[2] = help;
}

int dispatch(int argc, char** argv) {
  turn_help_round(argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "convert") start_tool("sluice-convert", argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == "quantize") start_tool("sluice-convert", argv);  // which finds the word before its options
  if (argc > 1 && std::string_view(argv[1]) == "emit") start_tool("sluice-emit", argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == "detect") start_tool("sluice-detect", argv + 1);
  constexpr std::string_view kOfValues[] = {"--dim", "--input", "--expect"};
  const std::span<const char* const> typed(argv, static_cast<std::size_t>(argc));
  CommandLine line;
  const Asked asked = parse(spread_values(typed.subspan(argc > 0 ? 1 : 0), kOfValues), line);
  if (asked.command == nullptr) return asked.status;
  check_isa_wish();
  asked.command(line);
  finish_stdout();
  return 0;
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  sluice::cli::keep_heap_small();
  return sluice::cli::guarded_main("sluice", sluice::cli::dispatch, argc, argv);
}

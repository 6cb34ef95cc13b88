// `sluice run`. The order of things is for the budget's sake: whatever needs memory of its own (decoding, labels)
// happens before the session measures the process, so that the arena gets exactly what is left.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "sluice/engine/auto_budget.h"
#include "sluice/engine/engine.h"
#include "sluice/plan/plan_file.h"
#include "src/cli/commands.h"
#include "src/cli/dims.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/fit_extents.h"
#include "src/cli/inputs.h"
#include "src/cli/open_model.h"
#include "src/cli/output_rows.h"
#include "src/cli/outputs.h"
#include "src/cli/process.h"
#include "src/cli/profile_file.h"
#include "src/cli/run_report.h"
#include "src/cli/sandbox.h"
#include "src/cli/session_options.h"
#include "src/cli/text.h"
#include "src/cli/trace.h"
#include "src/engine/process_memory.h"

namespace sluice::cli {
namespace {

void set_reads(const RunOptions& options, Tuning& tuning) {
  using model::ReadMethod;
  if (options.reader == "ring")
    tuning.read_method = ReadMethod::kRing;
  else if (options.reader == "threads")
    tuning.read_method = ReadMethod::kThreads;
  else if (options.reader != "auto")
    raise(make_error(ErrorCode::kInvalidArgument, "--reader",
                     fmt::format("is one of auto, ring and threads, not '{}'", options.reader).c_str()));
  if (options.sandbox) {
    // Requests to a ring pass no filter of system calls.
    if (tuning.read_method == ReadMethod::kRing)
      raise(make_error(ErrorCode::kInvalidArgument, "--sandbox", "reads by threads: --reader ring cannot be had beside it"));
    tuning.read_method = ReadMethod::kThreads;
  }
  if (!options.read_size.empty()) tuning.read_size = parse_size(options.read_size, "--read-size");
  tuning.reads_in_flight = options.reads_in_flight;
  tuning.read_timeout_ms = static_cast<std::int64_t>(options.read_timeout_s * 1000);
}

/// "0,2-3" as a list of processors.
std::vector<int> parse_cpus(const std::string& text, const char* option) {
  const auto refuse = [&] { throw Failure(ErrorCode::kInvalidArgument, fmt::format("{} {}: is not a list such as 0,2-3", option, text)); };
  std::vector<int> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int first = 0;
    auto read = std::from_chars(at, end, first);
    int last = first;
    if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc() || first < 0 || last < first || last >= 4096) refuse();
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = read.ptr;
    if (at != end && *at++ != ',') refuse();
    if (at == end && text.back() == ',') refuse();
  }
  return cpus;
}

/// The model at the extents of --dim, and where that says nothing at those of the arrays, which are then opened.
std::shared_ptr<const Model> open_for_inputs(const RunOptions& options, std::optional<std::vector<InputSource>>& sources) {
  auto model = open_model(options.budget.model, options.budget.dims, options.budget.key);
  if (model->file().dimensions().empty() || !options.plan.empty()) return model;
  sources = open_inputs(options.inputs, model->graph().inputs);
  return fit_extents(model, parse_dims(options.budget.dims), shapes_of_arrays(*sources));
}

/// The bytes that decoding a picture may take: the budget less what the process holds.
std::uint64_t decoding_limit(const SessionOptions& options) {
  if (options.scope != BudgetScope::kProcess) return ~std::uint64_t{0};
  const std::uint64_t budget = options.budget.count();
  return budget - std::min(budget, current_rss_bytes());
}

/// Refuses ports whose values alone take more than the budget, before room is made for them.
void check_ports_fit(const Model& model, const SessionOptions& options) {
  std::uint64_t bytes = 0;
  for (const std::vector<model::Port>* ports : {&model.graph().inputs, &model.graph().outputs}) {
    if (ports == &model.graph().outputs && options.outputs.take != nullptr) continue;  // taken as they are made
    for (const model::Port& port : *ports) bytes += model.graph().bytes_of(port).count();
  }
  if (options.scope != BudgetScope::kProcess || bytes <= options.budget.count()) return;
  const Bytes minimum = std::max(unwrap(minimum_budget(model, options)), Bytes(bytes));
  raise(make_error(ErrorCode::kBudgetTooSmall, model.file().path(), "the values of inputs and outputs do not fit", minimum.count(),
                   options.budget.count()));
}

/// The outputs, read directly from the arena.
std::vector<Pieces> outputs_of(Session& session, const model::Graph& graph) {
  std::vector<Pieces> outputs;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const model::Port& port = graph.outputs[i];
    outputs.push_back({graph.dtype_of(port), session.output_shape(i),
                       [&session, i](std::size_t first, std::span<std::byte> out) { unwrap(session.get_output_part(i, first, out)); }});
  }
  return outputs;
}

void set_inputs(Session& session, const std::vector<HostTensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) unwrap(session.set_input(i, inputs[i].dtype, inputs[i].data));
}

/// `--budget auto`: what a change would free or use is asked again before each run.
void follow_memory(Session& session) {
  if (const std::optional<Bytes> budget = changed_budget(read_memory_outlook(), session.memory().budget)) {
    const Status changed = session.set_budget(*budget);
    // No plan fits a budget below the minimum: the run goes on with the old one.
    if (!changed && changed.error().code != ErrorCode::kBudgetTooSmall) raise(changed.error());
  }
}

/// A read that hangs would block closing the session, so the program ends without closing it.
[[noreturn]] void abandon(const Error& error) {
  complain("sluice", error.to_string());
  std::fflush(nullptr);
  std::_Exit(exit_status(error.code));
}

/// What is wrong with a plan that a file gave is told with the file's name.
std::unique_ptr<Session> make_session(const std::shared_ptr<const Model>& model, const SessionOptions& config, const std::string& plan) {
  auto session = Session::create(model, config);
  if (!session && session.error().code == ErrorCode::kInvalidPlan && !plan.empty())
    throw Failure(ErrorCode::kInvalidPlan, fmt::format("{}: {} (`sluice plan --save` makes one anew)", plan, describe(session.error())));
  return unwrap(std::move(session));
}

/// A copy that is made while the arena still exists: without the long tables, unless they are printed.
plan::Plan plan_for_report(const plan::Plan& plan, bool with_steps) {
  if (with_steps) return plan;
  plan::Plan head;
  head.policy = plan.policy;
  head.threads = plan.threads;
  head.arena_bytes = plan.arena_bytes;
  return head;
}

/// The times of the last run, which go with the session.
class TimesCopy {
 public:
  TimesCopy(const Session& session, bool wanted) {
    if (!wanted) return;
    steps_.assign(session.step_times().begin(), session.step_times().end());
    loads_.assign(session.load_times().begin(), session.load_times().end());
  }
  RunTimes view() const { return {steps_, loads_}; }

 private:
  std::vector<executor::StepTime> steps_;
  std::vector<executor::LoadTime> loads_;
};

void run_once(Session& session) {
  const Status status = session.run();
  if (!status && status.error().os_error == ETIMEDOUT) abandon(status.error());
  unwrap(status);
}

/// Figures of runs in a fixed number of bytes, because they count in the budget: of more runs than that, every second, fourth, eighth one.
class RunLog {
 public:
  RunLog() { kept_.reserve(kMost); }
  void add(const executor::RunStats& run) {
    if (seen_++ % stride_ != 0) return;
    if (kept_.size() == kMost) {
      for (std::size_t i = 0; i < kMost / 2; ++i) kept_[i] = kept_[2 * i];
      kept_.resize(kMost / 2);
      stride_ *= 2;
    }
    kept_.push_back(run);
  }
  std::vector<executor::RunStats> take() { return std::move(kept_); }

 private:
  static constexpr std::size_t kMost = 1024;
  std::vector<executor::RunStats> kept_;
  std::uint64_t seen_ = 0;
  std::uint64_t stride_ = 1;
};

std::vector<executor::RunStats> run_all(Session& session, const RunOptions& options, const std::vector<HostTensor>& inputs) {
  RunLog counted;
  const int all = options.warmup + options.repeat;
  Progress progress(options.budget.model, static_cast<std::uint64_t>(all));
  for (int i = 0; i < all; ++i) {
    progress.update(static_cast<std::uint64_t>(i), [&] { return fmt::format("run {} of {}", i + 1, all); });
    if (options.budget.budget == "auto" && i > 0) follow_memory(session);
    set_inputs(session, inputs);
    run_once(session);
    if (i >= options.warmup) counted.add(session.stats());
  }
  return counted.take();
}

/// The output files, which are opened before: no file can be opened after this.
std::optional<OutputFiles> enter_sandbox_of(const RunOptions& options, const Model& model) {
  std::optional<OutputFiles> files;
  if (!options.output_directory.empty()) files.emplace(options.output_directory, model.graph().outputs);
  engine::release_code_pages();  // of planning, which a session gives back before its first run where it can
  enter_sandbox({{model.file().source().descriptor()}, files ? files->descriptors() : std::vector<int>()});
  return files;
}

void write_outputs_of(const RunOptions& options, const std::optional<OutputFiles>& files, const model::Graph& graph,
                      const std::vector<Pieces>& outputs) {
  if (files) {
    files->write(outputs);
  } else if (!options.output_directory.empty()) {
    write_outputs(options.output_directory, graph.outputs, outputs);
  }
}

/// Throws Failure (kOutputMismatch) with every output that differs.
void judge(const std::vector<Verdict>& verdicts, const std::vector<model::Port>& ports) {
  std::string text;
  for (const Verdict& verdict : verdicts) {
    if (!verdict.comparison.agrees)
      text += fmt::format("{}'{}': {}", text.empty() ? "" : "\nsluice: ", ports[verdict.port].name, verdict.text);
  }
  if (!text.empty()) throw Failure(ErrorCode::kOutputMismatch, fmt::format("{}: {}", name_of(ErrorCode::kOutputMismatch), text));
}

/// The budget is a promise: where the kernel saw more, the user hears of it.
void warn_of_excess(const RunReport& report) {
  const Bytes peak = report.memory.peak_resident;
  if (report.options.scope == BudgetScope::kProcess && peak > report.options.budget)
    fmt::print(stderr, "sluice: warning: the process's peak of {} bytes is above the budget of {}\n", peak.count(),
               report.options.budget.count());
}

SessionOptions session_options_of(const RunOptions& options) {
  refuse_replacing(options.trace, options.budget.model, "the trace would replace the model that it is made from");
  SessionOptions result = session_options(options.budget);
  result.max_turns = options.max_turns;
  result.repeat = options.warmup + options.repeat > 1;
  set_reads(options, result.tuning);
  result.tuning.compute_cpus = parse_cpus(options.compute_cpus, "--compute-cpus");
  result.tuning.load_cpus = parse_cpus(options.load_cpu, "--load-cpu");
  result.time_steps = options.stats || !options.trace.empty();
  // The text of a profile takes more memory than what is kept of it: the code that has read the command line would come beside it.
  engine::release_code_pages();
  return result;
}

}  // namespace

void run(const RunOptions& options) {
  if (options.sandbox && options.budget.budget == "auto")
    raise(make_error(ErrorCode::kInvalidArgument, "--sandbox", "cannot see what the system has free: state a budget"));
  SessionOptions session_config = session_options_of(options);
  std::optional<plan::Plan> given_plan;
  if (!options.plan.empty()) given_plan = unwrap(plan::load_plan(options.plan));
  if (given_plan) {
    session_config.plan = &*given_plan;
    if (!options.budget.threads) session_config.threads = static_cast<int>(given_plan->threads);
  }
  const FoundProfile profile = find_profile(options.budget.profile, session_config.threads);
  session_config.profile = profile.get();
  // The model comes after the profile, whose text takes more memory than what is kept of it: what is free then is used again.
  std::optional<std::vector<InputSource>> sources;
  const auto model = open_for_inputs(options, sources);
  const model::Graph& graph = model->graph();
  RunReport report;
  if (!options.labels.empty()) report.labels = read_labels(options.labels);
  check_ports_fit(*model, session_config);
  if (!sources) sources = open_inputs(options.inputs, graph.inputs);
  const std::vector<HostTensor> inputs = load_inputs(graph, std::move(*sources), {options.image, decoding_limit(session_config)});
  release_free_memory();

  std::optional<OutputRows> rows;
  if (options.budget.output_rows) session_config.outputs = rows.emplace(options.output_directory, graph).hook();
  std::unique_ptr<Session> session = make_session(model, session_config, options.plan);
  std::optional<OutputFiles> output_files;
  if (options.sandbox) output_files = enter_sandbox_of(options, *model);
  report.runs = run_all(*session, options, inputs);
  engine::release_code_pages();  // of the run, before that of writing and comparing comes beside the arena
  {
    if (rows) rows->finish(*session);
    const std::vector<Pieces> outputs = rows ? rows->outputs() : outputs_of(*session, graph);
    if (!rows) write_outputs_of(options, output_files, graph, outputs);
    report.verdicts = compare_outputs(options.expected, options.tolerance, graph.outputs, outputs);
    if (options.top > 0)
      for (const Pieces& output : outputs) report.top.push_back(top_values(output, static_cast<std::size_t>(options.top)));
  }
  report.memory = session->memory();
  if (options.stats) report.step_times.assign(session->step_times().begin(), session->step_times().end());
  const TimesCopy times(*session, !options.trace.empty());
  const plan::Plan plan = plan_for_report(session->plan(), session_config.time_steps);
  session.reset();  // what is printed may take the arena's place in the budget
  report.options = session_config;
  report.options.budget = report.memory.budget;
  report.memory.peak_resident = std::max(report.memory.peak_resident, Bytes(peak_rss_bytes()));
  report.peaks = read_peaks();
  if (report.memory.peak_resident == Bytes()) report.memory.peak_resident = Bytes(report.peaks.max_rss_bytes);  // in the sandbox
  report.cached_bytes = cached_bytes_of(options.budget.model);
  if (!options.trace.empty()) {
    const std::string trace = trace_of(plan, graph, times.view());
    write_atomically(options.trace, std::as_bytes(std::span(trace)));
  }
  if (options.json)
    print_as_json(report, *model, plan);
  else
    print_as_text(report, *model, plan);
  warn_of_excess(report);
  judge(report.verdicts, graph.outputs);
}

}  // namespace sluice::cli

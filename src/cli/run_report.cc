#include "src/cli/run_report.h"

#include <algorithm>

#include "src/cli/dims.h"
#include "src/cli/json.h"
#include "src/cli/text.h"
#include "src/cli/visible.h"

namespace sluice::cli {
namespace {

double milliseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

const std::string& label_of(const RunReport& report, const model::Graph& graph, std::size_t index) {
  static const std::string none;
  const std::vector<std::string>& labels = report.labels.empty() ? graph.labels : report.labels;
  return index < labels.size() ? labels[index] : none;
}

Json json_of_runs(const RunReport& report, std::int64_t executor::RunStats::*field) {
  Json list = Json::array();
  for (const executor::RunStats& run : report.runs) list.push_back(milliseconds(run.*field));
  return list;
}

Json json_of_outputs(const RunReport& report, const model::Graph& graph) {
  Json list = Json::array();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const model::Port& port = graph.outputs[i];
    Json output = {{"name", port.name}, {"shape", cli::json_of(port.onnx_shape)}, {"dtype", name_of(graph.dtype_of(port))}};
    if (!report.top.empty()) {
      Json top = Json::array();
      for (const TopEntry& entry : report.top[i]) {
        top.push_back({{"index", entry.index}, {"label", label_of(report, graph, entry.index)}, {"score", entry.score}});
      }
      output["top"] = std::move(top);
    }
    list.push_back(std::move(output));
  }
  return list;
}

Json json_of_verdicts(const RunReport& report, const model::Graph& graph) {
  Json list = Json::array();
  for (const Verdict& verdict : report.verdicts) {
    list.push_back({{"output", graph.outputs[verdict.port].name},
                    {"agrees", verdict.comparison.agrees},
                    {"max_difference", verdict.comparison.max_difference},
                    {"allowed", verdict.comparison.allowed}});
  }
  return list;
}

/// All that is not waiting.
Json json_of_compute(const RunReport& report) {
  Json list = Json::array();
  for (const executor::RunStats& run : report.runs) list.push_back(milliseconds(run.wall_ns - run.stall_ns));
  return list;
}

/// The peak as four sources give it. The plan's own is the one that it predicts for the process.
Json json_of_peaks(const RunReport& report, const plan::Plan& plan) {
  return {{"vm_hwm", report.memory.peak_resident.count()},
          {"ru_maxrss", report.peaks.max_rss_bytes},
          {"cgroup", report.peaks.cgroup_peak_bytes ? Json(*report.peaks.cgroup_peak_bytes) : Json()},
          {"plan", (report.memory.overhead + plan.arena_bytes).count()}};
}

/// What a step's loads bring in a repeated run; in the only run the resident ones too.
std::vector<std::uint64_t> bytes_by_step(const RunReport& report, const plan::Plan& plan) {
  std::vector<std::uint64_t> bytes;
  std::size_t load = 0;
  for (const plan::Step& step : plan.steps) {
    bytes.push_back(0);
    for (; load < step.loads_needed; ++load)
      if (report.runs.size() == 1 || plan.loads[load].streamed()) bytes.back() += plan.loads[load].file.size.count();
  }
  return bytes;
}

Json json_of_steps(const RunReport& report, const model::Graph& graph, const plan::Plan& plan) {
  Json list = Json::array();
  const std::vector<std::uint64_t> bytes = bytes_by_step(report, plan);
  for (std::size_t i = 0; i < report.step_times.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    const model::Node& node = graph.node(step.node);
    list.push_back({{"node", node.name},
                    {"operator", name_of(node.op)},
                    {"rows", {step.rows.begin, step.rows.end}},
                    {"channels", {step.channels.begin, step.channels.end}},
                    {"compute_ms", milliseconds(report.step_times[i].compute_ns)},
                    {"stall_ms", milliseconds(report.step_times[i].stall_ns)},
                    {"bytes_loaded", bytes[i]}});
  }
  return list;
}

void print_steps(const RunReport& report, const model::Graph& graph, const plan::Plan& plan) {
  if (report.step_times.empty()) return;
  const std::vector<std::uint64_t> bytes = bytes_by_step(report, plan);
  fmt::print("\n  {:>5}  {:<34}{:>14}{:>12}{:>12}{:>12}\n", "step", "node", "channels", "compute ms", "stall ms", "loaded");
  for (std::size_t i = 0; i < report.step_times.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    fmt::print("  {:>5}  {:<34}{:>14}{:>12.3f}{:>12.3f}{:>12}\n", i, visible(graph.node(step.node).name.substr(0, 33)),
               fmt::format("{}-{}", step.channels.begin, step.channels.end), milliseconds(report.step_times[i].compute_ns),
               milliseconds(report.step_times[i].stall_ns), bytes[i] == 0 ? "" : format_bytes(Bytes(bytes[i])));
  }
}

/// The middle of a sorted copy.
double median_ms(const RunReport& report, std::int64_t executor::RunStats::*field) {
  std::vector<std::int64_t> values;
  for (const executor::RunStats& run : report.runs) values.push_back(run.*field);
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return milliseconds(values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2);
}

void print_row(const char* name, const std::string& value, const std::string& remark = {}) {
  fmt::print("  {:<10}{:>12}   {}\n", name, value, remark);
}

std::string latency_remark(const RunReport& report) {
  if (report.runs.size() == 1) return {};
  const auto [least, most] =
      std::minmax_element(report.runs.begin(), report.runs.end(), [](const auto& a, const auto& b) { return a.wall_ns < b.wall_ns; });
  return fmt::format("median of {} runs, {:.1f} to {:.1f} ms", report.runs.size(), milliseconds(least->wall_ns),
                     milliseconds(most->wall_ns));
}

std::string read_remark(const RunReport& report) {
  const executor::RunStats& last = report.runs.back();
  if (last.load_ns == 0) return {};
  const double rate = static_cast<double>(last.bytes_read.count()) / static_cast<double>(last.load_ns);
  return fmt::format("in {:.1f} ms, {:.2f} GB/s{}", milliseconds(last.load_ns), rate, report.runs.size() == 1 ? "" : ", in the last run");
}

/// What the peak is to be compared with: a budget of the library bounds less than the process.
std::string memory_remark(const RunReport& report, Bytes arena_bytes) {
  const std::string arena = "arena " + format_bytes(arena_bytes);
  if (report.options.budget >= kUnlimitedBytes) return arena;
  const std::string budget = format_bytes(report.options.budget);
  if (report.options.scope == BudgetScope::kProcess) return fmt::format("of {}; {}", budget, arena);
  return fmt::format("of the process; the library has {}, its {}", budget, arena);
}

void print_top(const RunReport& report, const model::Graph& graph) {
  for (std::size_t i = 0; i < report.top.size(); ++i) {
    fmt::print("\n  {} {}\n", visible(graph.outputs[i].name), shape_text(graph.outputs[i].onnx_shape));
    for (const TopEntry& entry : report.top[i]) {
      fmt::print("  {:>8}{:>12.6g}   {}\n", entry.index, entry.score, label_of(report, graph, entry.index));
    }
  }
}

}  // namespace

void print_as_json(const RunReport& report, const Model& model, const plan::Plan& plan) {
  const executor::RunStats& last = report.runs.back();
  Json bytes_read = Json::array();
  for (const executor::RunStats& run : report.runs) bytes_read.push_back(run.bytes_read.count());
  Json json = {{"latency_ms", json_of_runs(report, &executor::RunStats::wall_ns)},
               {"cpu_ms", json_of_runs(report, &executor::RunStats::cpu_ns)},
               {"peak_rss_bytes", report.memory.peak_resident.count()},
               {"peak_bytes_by", json_of_peaks(report, plan)},
               {"page_cache_bytes", report.cached_bytes ? Json(*report.cached_bytes) : Json()},
               {"compute_ms_per_run", json_of_compute(report)},
               {"scope", report.options.scope == BudgetScope::kProcess ? "process" : "library"},
               {"bytes_read", last.bytes_read.count()},
               {"looked_up_bytes", last.bytes_looked_up.count()},
               {"bytes_read_per_run", std::move(bytes_read)},
               {"load_ms_per_run", json_of_runs(report, &executor::RunStats::load_ns)},
               {"scratch_written_bytes", last.scratch_written.count()},
               {"scratch_read_bytes", last.scratch_read.count()},
               {"stall_ms", milliseconds(last.stall_ns)},
               {"stall_ms_per_run", json_of_runs(report, &executor::RunStats::stall_ns)},
               {"dims", json_of_dims(model)},
               {"threads", plan.threads},
               {"policy", plan.policy},
               {"arena_bytes", plan.arena_bytes.count()},
               {"overhead_bytes", report.memory.overhead.count()},
               {"outputs", json_of_outputs(report, model.graph())}};
  add_budget(json, report.options.budget, report.memory.overhead + plan.arena_bytes);
  if (!report.verdicts.empty()) json["expect"] = json_of_verdicts(report, model.graph());
  if (!report.step_times.empty()) json["steps"] = json_of_steps(report, model.graph(), plan);
  print_json("sluice run", json);
}

void print_as_text(const RunReport& report, const Model& model, const plan::Plan& plan) {
  const executor::RunStats& last = report.runs.back();
  const std::string budget = format_bytes(report.options.budget);
  fmt::print("{}{}  budget {}, policy {}, {} thread{}\n\n", model.file().path(), dims_text(model), budget, plan.policy, plan.threads,
             plan.threads == 1 ? "" : "s");
  print_row("latency", fmt::format("{:.1f} ms", median_ms(report, &executor::RunStats::wall_ns)), latency_remark(report));
  print_row("cpu", fmt::format("{:.1f} ms", median_ms(report, &executor::RunStats::cpu_ns)), "all threads, the loader included");
  print_row("read", format_bytes(last.bytes_read), read_remark(report));
  if (last.scratch_written > Bytes())
    print_row("spilled", format_bytes(last.scratch_written), fmt::format("and {} read back", format_bytes(last.scratch_read)));
  print_row("compute", fmt::format("{:.1f} ms", milliseconds(last.wall_ns - last.stall_ns)));
  print_row("stall", fmt::format("{:.1f} ms", milliseconds(last.stall_ns)), "waiting for reads");
  if (report.cached_bytes) print_row("page cache", format_bytes(Bytes(*report.cached_bytes)), "of the model file, after the runs");
  print_row("peak RSS", format_bytes(report.memory.peak_resident), memory_remark(report, plan.arena_bytes));
  print_steps(report, model.graph(), plan);
  print_top(report, model.graph());
  for (const Verdict& verdict : report.verdicts) {
    fmt::print("\n  {}: {}: {}\n", visible(model.graph().outputs[verdict.port].name), verdict.comparison.agrees ? "agrees" : "DIFFERS",
               verdict.text);
  }
}

}  // namespace sluice::cli

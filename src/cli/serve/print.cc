#include <algorithm>
#include <cmath>

#include "src/cli/json.h"
#include "src/cli/serve/serve.h"
#include "src/cli/text.h"

namespace sluice::cli::serve_detail {
namespace {

using scheduler::JobResult;
using scheduler::kNever;
using scheduler::Outcome;
using scheduler::Statistics;

double milliseconds(scheduler::Time time) { return static_cast<double>(time) / 1e6; }

bool completed(const JobResult& result) { return result.outcome == Outcome::kMet || result.outcome == Outcome::kLate; }

/// The least value that a share of all does not exceed; `values` are sorted.
double percentile(const std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

struct Latencies {
  double p50 = 0, p90 = 0, p99 = 0;
};

/// Of completed jobs, of all models or of one.
Latencies latencies_of(const ServeReport& report, std::optional<std::size_t> model = {}) {
  std::vector<double> values;
  for (const Served& served : report.served)
    if (completed(served.result) && (!model || served.result.model.index() == *model))
      values.push_back(milliseconds(served.result.ended - served.result.submitted));
  std::sort(values.begin(), values.end());
  return {percentile(values, 0.5), percentile(values, 0.9), percentile(values, 0.99)};
}

Json json_of(const Latencies& latencies) { return {{"p50", latencies.p50}, {"p90", latencies.p90}, {"p99", latencies.p99}}; }

/// Of the jobs whose end was said when they came: the share whose latency was within 15 % of what was said.
std::optional<double> predicted_share(const ServeReport& report) {
  double told = 0, good = 0;
  for (const Served& served : report.served) {
    if (!report.predicts || !completed(served.result) || served.result.predicted >= kNever) continue;
    const double said = milliseconds(served.result.predicted - served.result.submitted);
    ++told;
    good += std::abs(milliseconds(served.result.ended - served.result.submitted) - said) <= 0.15 * said;
  }
  return told > 0 ? std::optional(good / told) : std::nullopt;
}

double throughput(const ServeReport& report) {
  const auto done = std::count_if(report.served.begin(), report.served.end(), [](const Served& s) { return completed(s.result); });
  return report.elapsed_ms > 0 ? static_cast<double>(done) * 1e3 / report.elapsed_ms : 0;
}

std::pair<std::size_t, std::size_t> checked_and_wrong(const ServeReport& report) {
  std::pair<std::size_t, std::size_t> counts;
  for (const Served& served : report.served) {
    counts.first += served.checked;
    counts.second += served.wrong;
  }
  return counts;
}

Json processors_json(const ServeReport& report) {
  Json list = Json::array();
  for (const scheduler::ProcessorStatistics& processor : report.statistics.processors)
    list.push_back({{"name", processor.name},
                    {"kind", processor.kind},
                    {"runs", processor.runs},
                    {"busy_share", milliseconds(processor.busy) / std::max(report.elapsed_ms, 1e-6)},
                    {"interruptions", processor.interruptions},
                    {"losses", processor.losses},
                    {"usable", processor.usable}});
  return list;
}

Json models_json(const ServeReport& report) {
  Json list = Json::array();
  for (std::size_t m = 0; m < report.config.models.size(); ++m) {
    std::size_t met = 0, ended = 0;
    for (const Served& served : report.served) {
      if (served.result.model.index() != m) continue;
      ++ended;
      met += served.result.outcome == Outcome::kMet;
    }
    Json expected = Json::array();
    for (const scheduler::Time time : report.expected[m]) expected.push_back(time >= kNever ? Json() : Json(milliseconds(time)));
    list.push_back({{"graph", report.config.models[m].graph},
                    {"ended", ended},
                    {"objectives_met", met},
                    {"latency_ms", json_of(latencies_of(report, m))},
                    {"expected_ms", std::move(expected)}});
  }
  return list;
}

Json fallbacks_json(const ServeReport& report) {
  Json list = Json::array();
  for (const scheduler::Fallback& fallback : report.fallbacks)
    list.push_back({{"model", report.config.models[fallback.model.index()].graph},
                    {"unit", fallback.unit},
                    {"processor", report.statistics.processors[fallback.processor.index()].name},
                    {"why", fallback.why.to_string()}});
  return list;
}

void print_as_json(const ServeReport& report) {
  const Statistics& jobs = report.statistics.jobs;
  const auto [checked, wrong] = checked_and_wrong(report);
  const std::optional<double> predicted = predicted_share(report);
  Json json = {{"policy", report.config.policy},
               {"submitted", jobs.submitted},
               {"objectives_met", jobs.met},
               {"late", jobs.late},
               {"dropped", jobs.dropped},
               {"refused", jobs.refused},
               {"failed", jobs.failed},
               {"goodput", jobs.goodput()},
               {"throughput_per_s", throughput(report)},
               {"latency_ms", json_of(latencies_of(report))},
               {"predicted_within_15_percent", predicted ? Json(*predicted) : Json()},
               {"outputs_checked", checked},
               {"outputs_other", wrong},
               {"elapsed_ms", report.elapsed_ms},
               {"models", models_json(report)},
               {"processors", processors_json(report)},
               {"fallbacks", fallbacks_json(report)},
               {"devices_not_here", report.config.not_here},
               {"keys_without_effect", report.config.without_effect},
               {"decisions", report.statistics.decisions},
               {"decision_us",
                {{"mean", static_cast<double>(report.statistics.decision_time) / 1e3 /
                              std::max<double>(static_cast<double>(report.statistics.decisions), 1)},
                 {"longest", static_cast<double>(report.statistics.longest_decision) / 1e3}}},
               {"peak_rss_bytes", report.peak_rss_bytes}};
  add_budget(json, report.budget, report.statistics.memory);
  print_json("sluice serve", json);
}

void print_as_text(const ServeReport& report) {
  const Statistics& jobs = report.statistics.jobs;
  const Latencies all = latencies_of(report);
  fmt::print("{} models on {} processors, policy {}, {:.1f} s\n\n", report.config.models.size(), report.config.processors.size(),
             report.config.policy, report.elapsed_ms / 1e3);
  fmt::print("  submitted    {:>8}\n  met          {:>8}   {:.1f} % of what was submitted\n", jobs.submitted, jobs.met,
             jobs.goodput() * 100);
  fmt::print("  late         {:>8}\n  dropped      {:>8}\n  refused      {:>8}\n  failed       {:>8}\n", jobs.late, jobs.dropped,
             jobs.refused, jobs.failed);
  fmt::print("  throughput   {:>8.1f} /s\n  latency      {:>8.2f} ms   p90 {:.2f}, p99 {:.2f}\n", throughput(report), all.p50, all.p90,
             all.p99);
  const auto [checked, wrong] = checked_and_wrong(report);
  fmt::print("  outputs      {:>8}   compared with the model's alone, {} differ\n", checked, wrong);
  if (const auto predicted = predicted_share(report))
    fmt::print("  predicted    {:>8.1f} %    of the ends within 15 %\n", *predicted * 100);
  fmt::print("  peak         {:>8}   resident set of this process\n\n", format_bytes(Bytes(report.peak_rss_bytes)));
  for (const scheduler::ProcessorStatistics& processor : report.statistics.processors)
    fmt::print("  {:<16}{:<9}{:>8} runs  {:>5.1f} % busy{}\n", processor.name, processor.kind, processor.runs,
               milliseconds(processor.busy) * 100 / std::max(report.elapsed_ms, 1e-6), processor.usable ? "" : "   lost");
}

}  // namespace

void print(const ServeReport& report, bool json) {
  if (json)
    print_as_json(report);
  else
    print_as_text(report);
}

std::string log_of(const ServeReport& report) {
  Json jobs = Json::array();
  for (const Served& served : report.served)
    jobs.push_back({{"model", report.config.models[served.result.model.index()].graph},
                    {"app", served.result.app},
                    {"outcome", std::string(name_of(served.result.outcome))},
                    {"submitted_us", served.result.submitted / 1000},
                    {"ended_us", served.result.ended / 1000}});
  return jobs.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string trace_of(const ServeReport& report) {
  Json events = Json::array();
  events.push_back({{"ph", "M"}, {"pid", 1}, {"tid", 1}, {"name", "process_name"}, {"args", {{"name", "sluice serve"}}}});
  for (std::size_t p = 0; p < report.statistics.processors.size(); ++p)
    events.push_back(
        {{"ph", "M"}, {"pid", 1}, {"tid", p + 1}, {"name", "thread_name"}, {"args", {{"name", report.statistics.processors[p].name}}}});
  for (const scheduler::RunEvent& event : report.events)
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", event.processor.index() + 1},
                      {"name", report.config.models[event.model.index()].graph},
                      {"cat", event.finished ? "run" : "interrupted"},
                      {"ts", static_cast<double>(event.begin) / 1e3},
                      {"dur", static_cast<double>(event.end - event.begin) / 1e3},
                      {"args", {{"job", event.ticket}, {"units", {event.first, event.last}}}}});
  const Json whole = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return whole.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::cli::serve_detail

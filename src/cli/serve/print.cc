#include <algorithm>
#include <cmath>

#include "src/cli/json.h"
#include "src/cli/serve/serve.h"
#include "src/cli/text.h"

namespace sluice::cli::serve_detail {
namespace {

using scheduler::kNever;
using scheduler::Statistics;

double milliseconds(scheduler::Time time) { return static_cast<double>(time) / 1e6; }

struct Latencies {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

/// Latencies of completed jobs.
Latencies latencies_of(const ModelTally& tally) {
  const LatencySketch& sketch = tally.latencies;
  return {sketch.mean() / 1e6, milliseconds(sketch.percentile(0.5)), milliseconds(sketch.percentile(0.9)),
          milliseconds(sketch.percentile(0.99))};
}

Json json_of(const Latencies& latencies) {
  return {{"mean", latencies.mean}, {"p50", latencies.p50}, {"p90", latencies.p90}, {"p99", latencies.p99}};
}

/// Among the jobs whose end was predicted when they came: the share whose latency was within 15 % of the prediction.
std::optional<double> predicted_share(const ServeReport& report) {
  if (!report.predicts || report.served.told() == 0) return std::nullopt;
  return static_cast<double>(report.served.told_well()) / static_cast<double>(report.served.told());
}

double throughput(const ServeReport& report) {
  return report.elapsed_ms > 0 ? static_cast<double>(report.served.all().latencies.count()) * 1e3 / report.elapsed_ms : 0;
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
    const ModelTally& tally = report.served.model(m);
    Json expected = Json::array();
    for (const scheduler::Time time : report.expected[m]) expected.push_back(time >= kNever ? Json() : Json(milliseconds(time)));
    list.push_back({{"graph", report.config.models[m].graph},
                    {"ended", tally.ended},
                    {"objectives_met", tally.met},
                    {"latency_ms", json_of(latencies_of(tally))},
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
  const std::optional<double> predicted = predicted_share(report);
  const scheduler::HandOverStatistics& handed = report.statistics.handed_over;
  Json json = {
      {"policy", report.config.policy},
      {"submitted", jobs.submitted},
      {"objectives_met", jobs.met},
      {"late", jobs.late},
      {"dropped", jobs.dropped},
      {"refused", jobs.refused},
      {"failed", jobs.failed},
      {"goodput", jobs.goodput()},
      {"throughput_per_s", throughput(report)},
      {"latency_ms", json_of(latencies_of(report.served.all()))},
      {"predicted_within_15_percent", predicted ? Json(*predicted) : Json()},
      {"outputs_checked", report.served.checked()},
      {"outputs_other", report.served.wrong()},
      {"elapsed_ms", report.elapsed_ms},
      {"models", models_json(report)},
      {"processors", processors_json(report)},
      {"fallbacks", fallbacks_json(report)},
      {"devices_not_here", report.config.not_here},
      {"keys_without_effect", report.config.without_effect},
      {"handed_over_bytes",
       {{"between_cpus", handed.between_cpus.count()}, {"copied_there", handed.copied_there.count()}, {"others", handed.others.count()}}},
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
  const Latencies all = latencies_of(report.served.all());
  fmt::print("{} models on {} processors, policy {}, {:.1f} s\n\n", report.config.models.size(), report.config.processors.size(),
             report.config.policy, report.elapsed_ms / 1e3);
  fmt::print("  submitted    {:>8}\n  met          {:>8}   {:.1f} % of what was submitted\n", jobs.submitted, jobs.met,
             jobs.goodput() * 100);
  fmt::print("  late         {:>8}\n  dropped      {:>8}\n  refused      {:>8}\n  failed       {:>8}\n", jobs.late, jobs.dropped,
             jobs.refused, jobs.failed);
  fmt::print("  throughput   {:>8.1f} /s\n  latency      {:>8.2f} ms   p90 {:.2f}, p99 {:.2f}\n", throughput(report), all.p50, all.p90,
             all.p99);
  fmt::print("  outputs      {:>8}   compared with the model's alone, {} differ\n", report.served.checked(), report.served.wrong());
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

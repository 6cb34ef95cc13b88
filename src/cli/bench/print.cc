#include "src/cli/bench/print.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "sluice/core/affinity.h"
#include "sluice/core/cpu.h"
#include "sluice/core/units.h"
#include "sluice/profiler/measure.h"
#include "src/cli/json.h"
#include "src/cli/text.h"

namespace sluice::cli::bench_detail {
namespace {

constexpr const char* kColumns[] = {"model", "budget", "threads", "median",  "min",       "p90",
                                    "p99",   "peak",   "read",    "waiting", "predicted", "bound by"};
using Cells = std::array<std::string, std::size(kColumns)>;

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string ms(double value) { return fmt::format("{:.2f}", value); }

Cells cells_of(const Row& row) {
  const std::string budget = row.limited ? format_bytes(Bytes(row.budget_bytes)) : "unlimited";
  if (!row.refusal.empty())
    return {file_name(row.model), budget, std::to_string(row.threads), "-", "-", "-", "-", "-", "-", "-", "-", "refused"};
  return {file_name(row.model),
          budget,
          std::to_string(row.threads),
          ms(row.median_ms),
          ms(row.min_ms),
          ms(row.p90_ms),
          ms(row.p99_ms),
          format_bytes(Bytes(row.peak_rss_bytes)),
          format_bytes(Bytes(row.bytes_read)),
          ms(row.stall_ms),
          ms(row.predicted_ms),
          row.bound_by};
}

/// The text of a CSV field: quoted where it holds what ends a field.
std::string csv(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string sentence_of(const Row& row) { return row.refusal.empty() ? row.reason : row.refusal; }

std::string line_of(const Machine& machine) {
  return fmt::format("{}, {} processors, {}, {}, {}; {}", machine.processor, machine.processors, format_bytes(Bytes(machine.memory_bytes)),
                     machine.isa, machine.system, machine.build);
}

std::string sentence_of(const PeerFigures& peer) {
  if (!peer.refusal.empty()) return "no figures of the peer: " + peer.refusal;
  return fmt::format("onnxruntime {}: median {:.2f}, min {:.2f}, p90 {:.2f}, peak {} with Node.js; our least time is {:.2f} of its",
                     peer.version, peer.median_ms, peer.min_ms, peer.p90_ms, format_bytes(Bytes(peer.peak_rss_bytes)), peer.ratio);
}

Json json_of(const PeerFigures& peer) {
  if (!peer.refusal.empty()) return {{"name", "onnxruntime"}, {"refusal", peer.refusal}};
  return {{"name", "onnxruntime"}, {"version", peer.version}, {"median_ms", peer.median_ms},           {"min_ms", peer.min_ms},
          {"p90_ms", peer.p90_ms}, {"cpu_ms", peer.cpu_ms},   {"peak_rss_bytes", peer.peak_rss_bytes}, {"ratio", peer.ratio}};
}

void print_operators(const Row& row) {
  std::vector<std::pair<double, std::string>> sorted;
  double all = 0;
  for (const auto& [name, time] : row.operators) {
    sorted.emplace_back(time, name);
    all += time;
  }
  std::sort(sorted.rbegin(), sorted.rend());
  for (const auto& [time, name] : sorted) fmt::print("      {:<16}{:>10.3f} ms {:>5.1f} %\n", name, time, all > 0 ? 100 * time / all : 0);
}

Json json_of(const Row& row) {
  Json json = {{"model", row.model}, {"budget_bytes", row.budget_bytes}, {"budget_limited", row.limited}, {"threads", row.threads}};
  if (!row.refusal.empty()) {
    json["refusal"] = row.refusal;
    return json;
  }
  json.update({{"median_ms", row.median_ms},
               {"min_ms", row.min_ms},
               {"p90_ms", row.p90_ms},
               {"p99_ms", row.p99_ms},
               {"cpu_ms", row.cpu_ms},
               {"stall_ms", row.stall_ms},
               {"predicted_ms", row.predicted_ms},
               {"peak_rss_bytes", row.peak_rss_bytes},
               {"bytes_read", row.bytes_read},
               {"joules", row.joules ? Json(*row.joules) : Json()},
               {"bound_by", row.bound_by},
               {"reason", row.reason}});
  if (!row.operators.empty()) json["operators_ms"] = row.operators;
  if (row.peer) json["peer"] = json_of(*row.peer);
  return json;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.processor = profiler::device_name();
  machine.processors = processor_count();
  machine.memory_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  machine.isa = name_of(active_isa());
  utsname system{};
  if (::uname(&system) == 0) machine.system = fmt::format("{} {}", system.sysname, system.release);
  machine.build = fmt::format("sluice {} ({})", SLUICE_VERSION, SLUICE_COMMIT);
  return machine;
}

void print_table(const Machine& machine, std::span<const Row> rows) {
  std::vector<Cells> lines;
  Cells head;
  std::copy(std::begin(kColumns), std::end(kColumns), head.begin());
  lines.push_back(head);
  for (const Row& row : rows) lines.push_back(cells_of(row));
  std::array<std::size_t, std::size(kColumns)> widths{};
  for (const Cells& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  fmt::print("{}\n\n", line_of(machine));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    fmt::print("  {:<{}}", lines[i][0], widths[0]);
    for (std::size_t c = 1; c < widths.size(); ++c) fmt::print("  {:>{}}", lines[i][c], widths[c]);
    fmt::print("\n");
    if (i > 0) print_operators(rows[i - 1]);
  }
  fmt::print("\n  milliseconds of wall time; peak: of the process, by the kernel\n");
  for (const Row& row : rows) {
    fmt::print("  {}, {}: {}\n", file_name(row.model), cells_of(row)[1], sentence_of(row));
    if (row.peer) fmt::print("  {}, {}: {}\n", file_name(row.model), cells_of(row)[1], sentence_of(*row.peer));
  }
}

void print_markdown(const Machine& machine, std::span<const Row> rows) {
  fmt::print("{}\n\n|", line_of(machine));
  for (const char* column : kColumns) fmt::print(" {} |", column);
  fmt::print("\n|");
  for (std::size_t i = 0; i < std::size(kColumns); ++i) fmt::print("---|");
  fmt::print("\n");
  for (const Row& row : rows) {
    fmt::print("|");
    for (const std::string& cell : cells_of(row)) fmt::print(" {} |", cell);
    fmt::print("\n");
  }
  for (const Row& row : rows)
    if (row.peer) fmt::print("\n{}, {}: {}\n", file_name(row.model), cells_of(row)[1], sentence_of(*row.peer));
}

void print_csv(std::span<const Row> rows) {
  fmt::print(
      "model,budget_bytes,budget_limited,threads,median_ms,min_ms,p90_ms,p99_ms,cpu_ms,stall_ms,predicted_ms,peak_rss_bytes,bytes_read,"
      "joules,bound_by,reason,peer_median_ms,peer_min_ms,peer_p90_ms,peer_peak_rss_bytes,ratio\n");
  for (const Row& row : rows) {
    fmt::print("{},{},{},{},", csv(row.model), row.budget_bytes, row.limited ? 1 : 0, row.threads);
    if (row.refusal.empty()) {
      fmt::print("{},{},{},{},{},{},{},{},{},{},{},{}", row.median_ms, row.min_ms, row.p90_ms, row.p99_ms, row.cpu_ms, row.stall_ms,
                 row.predicted_ms, row.peak_rss_bytes, row.bytes_read, row.joules ? fmt::format("{}", *row.joules) : "", row.bound_by,
                 csv(row.reason));
    } else {
      fmt::print(",,,,,,,,,,refused,{}", csv(row.refusal));
    }
    if (row.peer && row.peer->refusal.empty())
      fmt::print(",{},{},{},{},{}\n", row.peer->median_ms, row.peer->min_ms, row.peer->p90_ms, row.peer->peak_rss_bytes, row.peer->ratio);
    else
      fmt::print(",,,,,\n");
  }
}

void print_as_json(const Machine& machine, const BenchOptions& options, std::span<const Row> rows) {
  Json list = Json::array();
  for (const Row& row : rows) list.push_back(json_of(row));
  print_json("sluice bench", {{"machine",
                               {{"processor", machine.processor},
                                {"processors", machine.processors},
                                {"memory_bytes", machine.memory_bytes},
                                {"isa", machine.isa},
                                {"system", machine.system},
                                {"build", machine.build}}},
                              {"cold", options.cold},
                              {"repeat", options.repeat},
                              {"warmup", options.cold ? 0 : options.warmup},
                              {"rows", std::move(list)}});
}

}  // namespace sluice::cli::bench_detail

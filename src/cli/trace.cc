#include "src/cli/trace.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "sluice/kernels/registry.h"
#include "src/cli/json.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

/// A row of the timeline, a thread to a viewer, whose slices must not overlap.
struct Row {
  int number = 0;
  std::int64_t end_ns = 0;  // of its last slice
};
constexpr int kProcess = 1, kComputeRow = 1;

/// Rows of one kind: where several things are under way at once, each takes the first row that is free, or a new one.
struct Rows {
  const char* name;
  std::vector<Row> rows;
};

class TraceWriter {
 public:
  TraceWriter(const plan::Plan& plan, const model::Graph& graph, const RunTimes& times)
      : plan_(plan), graph_(graph), times_(times), first_ns_(first_moment()) {}

  std::string write() {
    name_row("process_name", kComputeRow, "sluice");
    name_row("thread_name", kComputeRow, "compute");
    for (std::size_t i = 0; i < times_.steps.size(); ++i) add_step(i);
    name_weights();
    for (std::size_t k = 0; k < times_.loads.size(); ++k) add_load(k);
    const Json whole = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events_)}};
    return whole.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  std::int64_t first_moment() const {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const executor::StepTime& step : times_.steps) first = std::min(first, step.begin_ns - step.stall_ns);
    for (const executor::LoadTime& load : times_.loads)
      if (load.begin_ns > 0) first = std::min(first, load.begin_ns);
    return first;
  }

  double microseconds(std::int64_t moment_ns) const { return static_cast<double>(moment_ns - first_ns_) / 1e3; }

  void name_row(const char* kind, int row, const std::string& text) {
    events_.push_back({{"ph", "M"}, {"pid", kProcess}, {"tid", row}, {"name", kind}, {"args", {{"name", text}}}});
  }

  int row_for(Rows& kind, std::int64_t begin_ns, std::int64_t end_ns) {
    auto row = std::find_if(kind.rows.begin(), kind.rows.end(), [&](const Row& other) { return other.end_ns <= begin_ns; });
    if (row == kind.rows.end()) {
      kind.rows.push_back({++rows_, 0});
      row = kind.rows.end() - 1;
      name_row("thread_name", row->number, kind.rows.size() == 1 ? kind.name : fmt::format("{} {}", kind.name, kind.rows.size()));
    }
    row->end_ns = end_ns;
    return row->number;
  }

  void add_slice(int row, const std::string& name, const char* category, std::int64_t begin_ns, std::int64_t duration_ns, Json arguments) {
    events_.push_back({{"ph", "X"},
                       {"pid", kProcess},
                       {"tid", row},
                       {"name", name},
                       {"cat", category},
                       {"ts", microseconds(begin_ns)},
                       {"dur", static_cast<double>(duration_ns) / 1e3},
                       {"args", std::move(arguments)}});
  }

  void add_step(std::size_t i) {
    const executor::StepTime& time = times_.steps[i];
    const plan::Step& step = plan_.steps[i];
    const model::Node& node = graph_.node(step.node);
    const kernels::KernelDescriptor* const kernel = kernels::find_kernel(step.kernel);
    if (time.stall_ns > 0) add_stall(i);
    add_slice(kComputeRow, node.name, "step", time.begin_ns, time.compute_ns,
              {{"step", i},
               {"operator", name_of(node.op)},
               {"kernel", kernel == nullptr ? "" : std::string(kernel->name)},
               {"rows", {step.rows.begin, step.rows.end}},
               {"channels", {step.channels.begin, step.channels.end}}});
    events_.push_back({{"ph", "C"},
                       {"pid", kProcess},
                       {"name", "arena"},
                       {"ts", microseconds(time.begin_ns)},
                       {"args", {{"bytes", bytes_in_use(static_cast<std::int64_t>(i))}}}});
  }

  void add_stall(std::size_t i) {
    const executor::StepTime& time = times_.steps[i];
    Json arguments = {{"step", i}};
    const std::int64_t load = awaited_load(plan_, times_, i);
    if (load >= 0) {
      const auto k = static_cast<std::size_t>(load);
      const bool disk = cause_of_stall(time, times_.loads[k]) == StallCause::kDisk;
      arguments["load"] = load;
      arguments["cause"] = disk ? "the disk: the load had begun and was not over"
                                : fmt::format("its place: the load had to wait until {} steps were over", plan_.loads[k].gate);
    }
    add_slice(kComputeRow, load < 0 ? "stall" : fmt::format("stall: load {}", load), "stall", time.begin_ns - time.stall_ns, time.stall_ns,
              std::move(arguments));
  }

  /// A load is called by the first weight that a step reads from it.
  void name_weights() {
    names_.resize(plan_.loads.size());
    for (const plan::WeightOperand& operand : plan_.operands)
      if (operand.load.valid() && names_[operand.load.index()].empty()) names_[operand.load.index()] = graph_.weight(operand.weight).name;
  }

  void add_load(std::size_t k) {
    const executor::LoadTime& time = times_.loads[k];
    if (time.begin_ns == 0 || time.end_ns == 0) return;
    const plan::Load& load = plan_.loads[k];
    const int row = row_for(loads_, time.begin_ns, time.end_ns);
    add_slice(row, fmt::format("load {}: {}", k, names_[k]), "load", time.begin_ns, time.end_ns - time.begin_ns,
              {{"load", k},
               {"bytes", load.file.size.count()},
               {"file_offset", load.file.offset.count()},
               {"gate", load.gate},
               {"first_use", load.uses.begin},
               {"end_of_use", load.uses.end},
               {"resident", load.resident}});
    if (time.decode_ns > 0)
      add_slice(row_for(decodes_, time.end_ns - time.decode_ns, time.end_ns), fmt::format("decode {}", k), "decode",
                time.end_ns - time.decode_ns, time.decode_ns, {{"load", k}});
    add_flow(k, row);
  }

  /// An arrow from a load to the step of this run that uses it first; loads for the next run have none.
  void add_flow(std::size_t k, int row) {
    const std::int64_t first_use = plan_.loads[k].uses.begin;
    if (first_use < 0 || static_cast<std::size_t>(first_use) >= times_.steps.size()) return;
    const executor::StepTime& step = times_.steps[static_cast<std::size_t>(first_use)];
    if (step.begin_ns < times_.loads[k].end_ns) return;
    const Json flow = {{"pid", kProcess}, {"name", "weights"}, {"cat", "load"}, {"id", k}};
    Json from = flow, to = flow;
    from.update({{"ph", "s"}, {"tid", row}, {"ts", microseconds(times_.loads[k].begin_ns)}});
    to.update({{"ph", "f"}, {"bp", "e"}, {"tid", kComputeRow}, {"ts", microseconds(step.begin_ns)}});
    events_.push_back(std::move(from));
    events_.push_back(std::move(to));
  }

  /// The bytes of the buffers that live in a step. A lifetime that begins below 0 also covers the end of the period before.
  std::uint64_t bytes_in_use(std::int64_t step) const {
    const auto steps = static_cast<std::int64_t>(plan_.steps.size());
    std::uint64_t bytes = 0;
    for (const plan::Buffer& buffer : plan_.buffers) {
      const bool here = buffer.lifetime.begin <= step && step < buffer.lifetime.end;
      const bool wrapped = buffer.lifetime.begin + steps <= step;
      if (buffer.whole_period || here || (buffer.lifetime.begin < 0 && wrapped)) bytes += buffer.size.count();
    }
    return bytes;
  }

  const plan::Plan& plan_;
  const model::Graph& graph_;
  const RunTimes& times_;
  const std::int64_t first_ns_;
  std::vector<std::string> names_;
  Rows loads_{"loads", {}}, decodes_{"decode", {}};
  int rows_ = kComputeRow;
  Json events_ = Json::array();
};

}  // namespace

StallCause cause_of_stall(const executor::StepTime& step, const executor::LoadTime& load) noexcept {
  return load.begin_ns > step.begin_ns - step.stall_ns ? StallCause::kPlace : StallCause::kDisk;
}

std::int64_t awaited_load(const plan::Plan& plan, const RunTimes& times, std::size_t step) noexcept {
  const std::size_t before = step == 0 ? 0 : plan.steps[step - 1].loads_needed;
  std::int64_t last = -1;
  for (std::size_t k = before; k < plan.steps[step].loads_needed && k < times.loads.size(); ++k)
    if (times.loads[k].end_ns > 0 && (last < 0 || times.loads[k].end_ns >= times.loads[static_cast<std::size_t>(last)].end_ns))
      last = static_cast<std::int64_t>(k);
  return last;
}

std::string trace_of(const plan::Plan& plan, const model::Graph& graph, const RunTimes& times) {
  return TraceWriter(plan, graph, times).write();
}

}  // namespace sluice::cli

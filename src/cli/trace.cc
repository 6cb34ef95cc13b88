#include "src/cli/trace.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "sluice/kernels/registry.h"
#include "src/cli/json.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

/// Rows of the timeline.
enum Row { kCompute = 1, kLoads = 2, kDecode = 3 };

class TraceWriter {
 public:
  TraceWriter(const plan::Plan& plan, const model::Graph& graph, const RunTimes& times)
      : plan_(plan), graph_(graph), times_(times), first_ns_(first_moment()) {}

  std::string write() {
    name_rows();
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

  void name_rows() {
    const auto name = [&](const char* kind, int row, const char* text) {
      events_.push_back({{"ph", "M"}, {"pid", 1}, {"tid", row}, {"name", kind}, {"args", {{"name", text}}}});
    };
    name("process_name", kCompute, "sluice");
    name("thread_name", kCompute, "compute");
    name("thread_name", kLoads, "loads");
    name("thread_name", kDecode, "decode");
  }

  void add_slice(Row row, const std::string& name, const char* category, std::int64_t begin_ns, std::int64_t duration_ns, Json arguments) {
    events_.push_back({{"ph", "X"},
                       {"pid", 1},
                       {"tid", static_cast<int>(row)},
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
    add_slice(kCompute, node.name, "step", time.begin_ns, time.compute_ns,
              {{"step", i},
               {"operator", name_of(node.op)},
               {"kernel", kernel == nullptr ? "" : std::string(kernel->name)},
               {"rows", {step.rows.begin, step.rows.end}},
               {"channels", {step.channels.begin, step.channels.end}}});
    events_.push_back({{"ph", "C"},
                       {"pid", 1},
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
    add_slice(kCompute, load < 0 ? "stall" : fmt::format("stall: load {}", load), "stall", time.begin_ns - time.stall_ns, time.stall_ns,
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
    add_slice(kLoads, fmt::format("load {}: {}", k, names_[k]), "load", time.begin_ns, time.end_ns - time.begin_ns,
              {{"load", k},
               {"bytes", load.file.size.count()},
               {"file_offset", load.file.offset.count()},
               {"gate", load.gate},
               {"first_use", load.uses.begin},
               {"end_of_use", load.uses.end},
               {"resident", load.resident}});
    if (time.decode_ns > 0)
      add_slice(kDecode, fmt::format("decode {}", k), "decode", time.end_ns - time.decode_ns, time.decode_ns, {{"load", k}});
  }

  /// Of the buffers that live in a step. A lifetime that begins below 0 also holds at the end of the period before.
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

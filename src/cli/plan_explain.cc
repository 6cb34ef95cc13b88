#include "src/cli/plan_explain.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/operators/definition.h"
#include "sluice/plan/peak.h"
#include "src/cli/failure.h"
#include "src/cli/text.h"
#include "src/cli/visible.h"

namespace sluice::cli {
namespace {

constexpr std::size_t kMostLines = 12;

struct Line {
  Bytes size;
  std::string what;
  TensorId tensor;  // invalid: weights, a workspace
};

class Explanation {
 public:
  Explanation(const plan::Plan& plan, const model::Graph& graph)
      : plan_(plan), graph_(graph), peak_(plan::peak_of(plan, [](const plan::Buffer&) { return true; })), load_of_(plan.buffers.size()) {
    for (std::size_t k = 0; k < plan.loads.size(); ++k) load_of_[plan.loads[k].target.index()] = LoadId(k);
  }

  void print(Bytes minimum, Bytes overhead) const {
    const plan::Step& step = plan_.steps[peak_.step];
    const model::Node& node = graph_.node(step.node);
    fmt::print("\nThe smallest budget is {}: {} that is not arena, and {} at step {}, {} {}, rows {}-{}, channels {}-{}:\n",
               rounded_up(minimum.count()), format_bytes(overhead), format_bytes(peak_.bytes), peak_.step, name_of(node.op),
               visible(node.name), step.rows.begin, step.rows.end, step.channels.begin, step.channels.end);
    const std::vector<Line> lines = live();
    for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
      fmt::print("  {:>12}   {}\n", format_bytes(lines[i].size), lines[i].what);
    if (lines.size() > kMostLines) fmt::print("  {:>12}   in {} more\n", "", lines.size() - kMostLines);
    fmt::print("What would lower it:\n");
    std::size_t said = 0;
    for (const Line& line : lines) {
      if (said == 3) break;
      if (line.size.count() * 10 < peak_.bytes.count()) continue;
      fmt::print("  {}\n", remedy(line));
      ++said;
    }
    if (said == 0) fmt::print("  no single tensor: many small ones live there together\n");
  }

 private:
  /// What lives at the peak, largest first.
  std::vector<Line> live() const {
    std::vector<Line> lines;
    const std::vector<bool> inside = plan::lie_inside(plan_);
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b)
      if (!inside[b] && plan::lives_at(plan_.buffers[b], peak_.step, plan_.steps.size())) lines.push_back(line_of(b));
    std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.size > b.size; });
    return lines;
  }

  Line line_of(std::size_t b) const {
    const plan::Buffer& buffer = plan_.buffers[b];
    if (plan::holds_weights(buffer)) return {buffer.size, weights_in(b), TensorId::invalid()};
    if (buffer.kind == plan::BufferKind::kWorkspace) return {buffer.size, "workspace of the step", TensorId::invalid()};
    Line line{buffer.size, std::string(name_of(buffer.kind)), TensorId::invalid()};
    Bytes largest;
    std::size_t others = 0;
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      if (plan_.tensors[t].buffer != BufferId(b)) continue;
      ++others;
      if (line.tensor.valid() && graph_.tensors[t].bytes() <= largest) continue;
      line.tensor = TensorId(t);
      largest = graph_.tensors[t].bytes();
    }
    if (!line.tensor.valid()) return line;
    const model::Tensor& tensor = graph_.tensor(line.tensor);
    line.what += fmt::format(" {} {}", visible(tensor.name), tensor.shape.to_string());
    const std::int64_t ring = plan_.tensors[line.tensor.index()].ring_rows;
    if (ring > 0) line.what += fmt::format(", {} rows of it", ring);
    if (others > 1) line.what += fmt::format(", with {} more {}", others - 1, ring > 0 ? "in bands" : "on the same bytes");
    return line;
  }

  std::string weights_in(std::size_t b) const {
    if (!load_of_[b].valid()) return "weights, transformed";
    const plan::Load& load = plan_.loads[load_of_[b].index()];
    std::string names;
    std::size_t count = 0;
    for (const model::Weight& weight : graph_.weights) {
      const bool meets = weight.first_stretch < load.first_stretch + load.stretch_count &&
                         load.first_stretch < weight.first_stretch + weight.stretch_count;
      if (!meets) continue;
      if (count < 2) names += (count == 0 ? " " : ", ") + visible(weight.name);
      ++count;
    }
    if (count > 2) names += fmt::format(" and {} more", count - 2);
    return fmt::format("weights{}{}", names, load.resident ? ", kept" : "");
  }

  std::string remedy(const Line& line) const {
    if (!line.tensor.valid())
      return line.what.starts_with("weights")
                 ? line.what + ": finer slices are not stored; fewer bits for each weight would make it smaller"
                 : line.what + ": fewer threads take less of it";
    const std::string name = visible(graph_.tensor(line.tensor).name);
    for (const model::Port& port : graph_.inputs)
      if (port.tensor == line.tensor) return name + ": an input, which is set whole: a smaller one";
    for (const model::Port& port : graph_.outputs)
      if (port.tensor == line.tensor) return name + ": an output, which is kept whole for the caller: a smaller one";
    for (const model::Node& node : graph_.nodes)
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] == line.tensor && !reads_by_rows(node, i))
          return fmt::format("{}: {} {} reads all of its rows at once, so that bands cannot end it earlier", name, name_of(node.op),
                             visible(node.name));
    if (plan_.tensors[line.tensor.index()].ring_rows > 0) return name + ": already in bands; more of them cost more time (--max-overhead)";
    return name + ": goes row by row, but no region round it paid within the limit: a larger --max-overhead or --search";
  }

  /// Does a band of the node's output read a part of this input only?
  bool reads_by_rows(const model::Node& node, std::size_t input) const {
    const Shape& in = graph_.tensor(node.inputs[input]).shape;
    if (in.rank() != graph_.tensor(node.outputs[0]).shape.rank()) return false;
    const operators::AxisRelations axes = operators::Relations(graph_, node).input(input);
    const int rows = in.rank() == 4 ? 1 : in.rank() - 2;
    if (rows < 0 || in[rows] == 1) return true;
    return axes[rows].kind == operators::AxisKind::kSame || axes[rows].kind == operators::AxisKind::kWindow;
  }

  const plan::Plan& plan_;
  const model::Graph& graph_;
  const plan::Peak peak_;
  std::vector<LoadId> load_of_;  // by buffer
};

}  // namespace

void explain_minimum(const Model& model, SessionOptions options, Bytes minimum) {
  options.budget = minimum;
  const PlannedBudget least = unwrap(plan_session(model, options));
  Explanation(least.plan, model.graph()).print(minimum, least.overhead);
}

}  // namespace sluice::cli

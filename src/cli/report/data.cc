#include <algorithm>

#include "sluice/kernels/registry.h"
#include "sluice/operators/definition.h"
#include "src/cli/report/report.h"
#include "src/cli/text.h"

namespace sluice::cli::report_detail {
namespace {

/// Microseconds are enough for a picture, and short.
double rounded(double milliseconds) {
  return static_cast<double>(static_cast<std::int64_t>(milliseconds * 1e3 + (milliseconds < 0 ? -0.5 : 0.5))) / 1e3;
}

Json json_of(const std::vector<ExpectedTime>& times) {
  Json list = Json::array();
  for (const ExpectedTime& time : times) list.push_back({rounded(time.begin_ms), rounded(time.end_ms)});
  return list;
}

std::uint64_t weight_bytes_of(const model::Graph& graph, const model::Node& node) {
  std::uint64_t bytes = 0;
  for (const WeightId id : node.weights) bytes += graph.weight(id).bytes.count();
  return bytes;
}

Json nodes_of(const model::Graph& graph, const plan::Plan& plan) {
  std::vector<std::string> kernels(graph.nodes.size());
  for (const plan::Step& step : plan.steps)
    if (const kernels::KernelDescriptor* kernel = kernels::find_kernel(step.kernel); kernel != nullptr && !step.prepare)
      kernels[step.node.index()] = std::string(kernel->name);
  Json list = Json::array();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const model::Node& node = graph.nodes[i];
    const model::Tensor& out = graph.tensor(node.outputs[0]);
    list.push_back({{"name", node.name},
                    {"operator", name_of(node.op)},
                    {"kernel", kernels[i]},
                    {"shape", cli::json_of(out.shape)},
                    {"macs", operators::macs_of(graph, node)},
                    {"weight_bytes", weight_bytes_of(graph, node)}});
  }
  return list;
}

/// What each buffer holds, in words, and the node that makes or reads it first.
struct Contents {
  std::vector<std::string> name;
  std::vector<std::int64_t> node;
  std::vector<std::int64_t> load;
};

Contents contents_of(const model::Graph& graph, const plan::Plan& plan) {
  const std::size_t count = plan.buffers.size();
  Contents contents{std::vector<std::string>(count), std::vector<std::int64_t>(count, -1), std::vector<std::int64_t>(count, -1)};
  const auto say = [&](BufferId buffer, const std::string& text) {
    if (buffer.valid() && contents.name[buffer.index()].empty()) contents.name[buffer.index()] = text;
  };
  const auto of = [&](BufferId buffer, NodeId node) {
    if (buffer.valid() && contents.node[buffer.index()] < 0) contents.node[buffer.index()] = static_cast<std::int64_t>(node.index());
  };
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) say(plan.tensors[t].buffer, graph.tensors[t].name);
  for (std::size_t k = 0; k < plan.loads.size(); ++k) contents.load[plan.loads[k].target.index()] = static_cast<std::int64_t>(k);
  for (const plan::Step& step : plan.steps) {
    const model::Node& node = graph.node(step.node);
    say(step.workspace, node.name);
    say(step.derived.buffer, node.name);
    of(step.workspace, step.node);
    of(step.derived.buffer, step.node);
    for (const TensorId output : node.outputs) of(plan.tensors[output.index()].buffer, step.node);
    for (std::uint32_t o = step.first_operand; o < step.first_operand + step.operand_count; ++o) {
      const plan::WeightOperand& operand = plan.operands[o];
      if (!operand.load.valid()) continue;
      say(plan.loads[operand.load.index()].target, graph.weight(operand.weight).name);
      of(plan.loads[operand.load.index()].target, step.node);
    }
  }
  return contents;
}

Json buffers_of(const plan::Plan& plan, const Contents& contents) {
  Json list = Json::array();
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const plan::Buffer& buffer = plan.buffers[b];
    list.push_back({{"kind", name_of(buffer.kind)},
                    {"name", contents.name[b]},
                    {"node", contents.node[b]},
                    {"load", contents.load[b]},
                    {"offset", buffer.offset.count()},
                    {"size", buffer.size.count()},
                    {"life", {buffer.lifetime.begin, buffer.lifetime.end}},
                    {"always", buffer.whole_period}});
  }
  return list;
}

/// The buffer whose bytes a load takes over: of those that overlap it, the one that lives longest until its gate. -1: none; its gate
/// follows from the order of the loads.
std::int64_t holder_before(const plan::Plan& plan, const plan::Load& load) {
  const plan::Buffer& place = plan.buffer(load.target);
  std::int64_t holder = -1;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const plan::Buffer& other = plan.buffers[b];
    const bool apart = other.offset + other.size <= place.offset || place.offset + place.size <= other.offset;
    if (apart || other.whole_period || b == load.target.index() || other.lifetime.end != load.gate) continue;
    holder = static_cast<std::int64_t>(b);
  }
  return holder;
}

Json loads_of(const plan::Plan& plan) {
  Json list = Json::array();
  for (const plan::Load& load : plan.loads)
    list.push_back({{"bytes", load.file.size.count()},
                    {"gate", load.gate},
                    {"uses", {load.uses.begin, load.uses.end}},
                    {"resident", load.resident},
                    {"buffer", load.target.index()},
                    {"holder", load.resident || load.gate <= 0 ? -1 : holder_before(plan, load)}});
  return list;
}

Json steps_of(const plan::Plan& plan) {
  Json list = Json::array();
  for (const plan::Step& step : plan.steps)
    list.push_back({{"node", step.node.index()},
                    {"rows", {step.rows.begin, step.rows.end}},
                    {"channels", {step.channels.begin, step.channels.end}},
                    {"prepare", step.prepare},
                    {"loads_needed", step.loads_needed}});
  return list;
}

/// A trace's slices by step and by load of the plan: [begin, end] in milliseconds, and of steps the wait before.
Json measured_of(const Json& run, const Json& trace, const plan::Plan& plan) {
  Json steps = Json::array(), loads = Json::array(), stalls = Json::array();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) steps.push_back(nullptr);
  for (std::size_t k = 0; k < plan.loads.size(); ++k) loads.push_back(nullptr);
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const Json& about = event.at("args");
    const double begin = event.at("ts").get<double>() / 1e3;
    const Json span = {rounded(begin), rounded(begin + event.at("dur").get<double>() / 1e3)};
    if (event.at("cat") == "step") steps[about.at("step").get<std::size_t>()] = span;
    if (event.at("cat") == "load") loads[about.at("load").get<std::size_t>()] = span;
    if (event.at("cat") == "stall")
      stalls.push_back(
          {{"step", about.at("step")}, {"span", span}, {"load", about.value("load", -1)}, {"cause", about.value("cause", "")}});
  }
  return {{"latency_ms", run.at("latency_ms").back()},
          {"stall_ms", run.at("stall_ms")},
          {"bytes_read", run.at("bytes_read")},
          {"peak_rss_bytes", run.at("peak_rss_bytes")},
          {"steps", std::move(steps)},
          {"loads", std::move(loads)},
          {"stalls", std::move(stalls)}};
}

}  // namespace

Json data_of(const Model& model, const plan::Plan& plan, const ExpectedTimes& expected, const Material& material) {
  const model::Graph& graph = model.graph();
  std::uint64_t weight_bytes = 0;
  for (const model::Weight& weight : graph.weights) weight_bytes += weight.bytes.count();
  Json data = {{"file", model.file().path()},
               {"weight_bytes", weight_bytes},
               {"plan", material.plan},
               {"sweep", material.sweep},
               {"nodes", nodes_of(graph, plan)},
               {"steps", steps_of(plan)},
               {"loads", loads_of(plan)},
               {"buffers", buffers_of(plan, contents_of(graph, plan))},
               {"expected", {{"steps", json_of(expected.steps)}, {"loads", json_of(expected.loads)}}}};
  data["measured"] = material.trace.is_null() ? Json() : measured_of(material.run, material.trace, plan);
  return data;
}

}  // namespace sluice::cli::report_detail

#include "sluice/emit/emit.h"

#include <algorithm>

#include "src/emit/kernels.h"
#include "src/emit/text.h"
#include "src/emit/weights.h"
#include "src/emit/write.h"

namespace sluice::emit {
namespace {

Error too_small(const std::string& name, std::uint64_t needed, std::uint64_t given) {
  return make_error(ErrorCode::kBudgetTooSmall, name, "arena and stack of the emitted code", needed, given);
}

Result<MemoryPlan> plan_for(const Network& network, const EmitOptions& options, std::uint64_t stack) {
  const auto extra_macs = static_cast<std::uint64_t>(static_cast<double>(network.macs) * options.max_overhead);
  if (options.ram == 0) return plan_smallest(network, extra_macs);
  auto plan = plan_memory(network, {.arena_bytes = options.ram > stack ? options.ram - stack : 0, .extra_macs = extra_macs});
  if (!plan) return fail(too_small(options.name, plan.error().needed + stack, options.ram));
  return plan;
}

/// Is byte b of a table b with the other sign bit?
bool flips_signs(const std::vector<std::byte>& table) {
  constexpr std::size_t kValues = 256;
  constexpr std::byte kSign{128};
  if (table.size() < kValues) return false;
  for (std::size_t b = 0; b < kValues; ++b)
    if (table[b] != (static_cast<std::byte>(b) ^ kSign)) return false;
  return true;
}

/// See NetworkOptions.
Result<std::set<NodeId>> sign_tables_of(const model::ModelFile& model) {
  const model::Graph& graph = model.graph();
  std::set<NodeId> tables;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const model::Node& node = graph.nodes[i];
    if (node.op != model::OpKind::kUnary || node.numeric != model::NumericClass::kInt8) continue;
    const bool from = graph.tensor(node.inputs[0]).dtype == DType::kI8, to = graph.tensor(node.outputs[0]).dtype == DType::kI8;
    if (from == to) continue;
    SLUICE_ASSIGN_OR_RETURN(const std::vector<std::byte> table, read_weight(model, node.weights[0]));
    if (flips_signs(table)) tables.insert(NodeId(i));
  }
  return tables;
}

}  // namespace

std::string c_name_of(const std::string& stem) { return c_name(stem); }

Result<Emission> emit(const model::ModelFile& model, const EmitOptions& options) {
  const model::Graph& graph = model.graph();
  Emission made;
  NetworkOptions network_options = options.network;
  SLUICE_ASSIGN_OR_RETURN(network_options.sign_tables, sign_tables_of(model));
  SLUICE_ASSIGN_OR_RETURN(made.network, make_network(graph, network_options));
  const StackBytes stack = stack_bound(graph, made.network);
  made.stack_bound_bytes = stack.narrow;
  const std::size_t stages = made.network.stages.size();
  const auto tell = [&](std::size_t done) {
    if (options.progress) options.progress(done, stages);
  };
  tell(0);
  SLUICE_ASSIGN_OR_RETURN(const MemoryPlan plan, plan_for(made.network, options, made.stack_bound_bytes));
  made.arena_bytes = plan.arena_bytes;
  made.lower_bound_bytes = plan.lower_bound_bytes;
  if (made.network.macs > 0) made.macs_factor = static_cast<double>(plan.macs) / static_cast<double>(made.network.macs);
  if (options.network.input == InputForm::kStreamed) made.input_passes = input_passes(plan);
  ParameterWriter parameters(model, made.network, plan);
  for (std::size_t i = 0; i < stages; ++i) {
    tell(i);
    SLUICE_RETURN_IF_ERROR(parameters.write(i));
  }
  made.weight_bytes = parameters.weight_bytes;
  made.constant_bytes = parameters.constant_bytes;
  made.source = write_source(graph, options, made.network, plan, parameters.text);
  made.header = write_header(graph, options, made.network, plan, stack);
  return made;
}

}  // namespace sluice::emit

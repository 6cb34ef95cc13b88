// What nodes resolve to: code for each instruction set, and parameters that say what the node says.
#include <catch2/catch.hpp>
#include <set>

#include "sluice/kernels/reference.h"
#include "sluice/kernels/registry.h"
#include "sluice/operators/parameters/movement.h"
#include "sluice/operators/parameters/weighted.h"
#include "tests/model/sample_graph.h"

namespace sluice::kernels {
namespace {

const model::Node& node_of(const model::Graph& graph, model::OpKind op) {
  for (const model::Node& node : graph.nodes)
    if (node.op == op) return node;
  FAIL("the sample graph has a node of each operator");
  return graph.nodes.front();
}

operators::Parameters parameters_of(const model::Graph& graph, const model::Node& node) {
  return kernels_for(graph, node).front()->resolve(graph, node, active_isa()).parameters;
}

}  // namespace

TEST_CASE("every kernel resolves its nodes to code for each instruction set and to parameters of its operator's kind") {
  const model::Graph graph = model::sample_graph();
  std::set<model::OpKind> seen;
  for (const model::Node& node : graph.nodes) {
    for (const KernelDescriptor* kernel : kernels_for(graph, node)) {
      INFO(kernel->name);
      seen.insert(node.op);
      for (const Isa isa : {Isa::kScalar, Isa::kNeon, Isa::kAvx2, Isa::kAvx512}) {
        const ResolvedCall call = kernel->resolve(graph, node, isa);
        CHECK(call.run != nullptr);
        CHECK((call.prepare != nullptr) == (kernel->derived_panel_bytes != nullptr));
        CHECK(call.parameters.size() == kernel->parameter_bytes);
        // Tables count a node's parameters before its kernel is chosen.
        CHECK(kernel->parameter_bytes == reference_kernel(node.op, node.numeric).parameter_bytes);
      }
    }
  }
  CHECK(seen.size() > 10);
}

TEST_CASE("a kernel with inner loops for each instruction set has an entry for each") {
  const model::Graph graph = model::sample_graph();
  const model::Node& dense = node_of(graph, model::OpKind::kDense);
  const KernelDescriptor& fast = *find_kernel(kernel_id::kDense);
  CHECK(fast.resolve(graph, dense, Isa::kScalar).run != fast.resolve(graph, dense, Isa::kAvx2).run);
  const KernelDescriptor& reference = reference_kernel(model::OpKind::kDense);
  CHECK(reference.resolve(graph, dense, Isa::kScalar).run == reference.resolve(graph, dense, Isa::kAvx2).run);
}

TEST_CASE("parameters say what the node and its weight say") {
  const model::Graph graph = model::sample_graph();
  const model::Node& conv = node_of(graph, model::OpKind::kConv);
  const operators::Parameters parameters = parameters_of(graph, conv);
  const auto& p = parameters.as<operators::ConvolutionParameters>();
  const auto& attributes = conv.as<model::ConvAttributes>();
  const model::Weight& weight = graph.weight(conv.weights[0]);
  CHECK(p.window == attributes.window);
  CHECK(p.groups == attributes.groups);
  CHECK(p.in_channels == attributes.in_channels);
  CHECK(p.out_channels == attributes.out_channels);
  CHECK(p.weighted.epilogue == conv.epilogue);
  CHECK(p.weighted.panels.panel_bytes == weight.panel_bytes);
  CHECK(p.weighted.panels.outputs_per_group == model::outputs_per_group(conv));
  CHECK(p.weighted.input_elements == graph.tensor(conv.inputs[0]).shape.element_count());
  CHECK(p.weighted.out_rows == row_extents(graph.tensor(conv.outputs[0]).shape).rows);

  const model::Node& slice = node_of(graph, model::OpKind::kSlice);
  const operators::Parameters of_slice = parameters_of(graph, slice);
  CHECK(of_slice.as<operators::SliceParameters>().start == slice.as<model::SliceAttributes>().start);
  CHECK(of_slice.as<operators::SliceParameters>().step == slice.as<model::SliceAttributes>().step);
}

}  // namespace sluice::kernels

#include "src/executor/bind.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sluice/operators/parameters/weighted.h"
#include "tests/executor/toy.h"

namespace sluice::executor {

TEST_CASE("steps of one node share its parameters and tensors, whatever lies between them") {
  const toy::ToyModel model = toy::make_toy_model({});
  plan::Plan plan = toy::make_toy_plan(model, {.panels_per_step = 1});
  std::rotate(plan.steps.begin(), plan.steps.begin() + 1, plan.steps.end());
  Arena arena = *Arena::reserve(plan.arena_bytes);
  const auto pool = *make_thread_pool(static_cast<int>(plan.threads));
  const auto bound = bind({model.graph, plan, arena.data(), *pool, &toy::find_toy_kernel});
  REQUIRE(bound);
  REQUIRE(plan.steps.front().node == plan.steps.back().node);
  const kernels::KernelCall &first = bound->steps.front().call, &last = bound->steps.back().call;
  CHECK(first.parameter_data == last.parameter_data);
  CHECK(first.inputs.data() == last.inputs.data());
  CHECK(first.outputs.data() == last.outputs.data());
  CHECK(bound->operands.size() == model.graph.tensors.size());
  const OperandCount counted = count_operands(model.graph, plan);
  CHECK(bound->steps.size() * sizeof(BoundStep) + bound->operands.size() * sizeof(kernels::Operand) + bound->parameters.size() <=
        bound->steps.size() * kStepTable + counted.tensors * sizeof(kernels::Operand));
  for (std::size_t i = 0; i < bound->steps.size(); ++i) {
    const auto& parameters = bound->steps[i].call.parameters<operators::DenseParameters>();
    CHECK(parameters.out_features == model.graph.node(plan.steps[i].node).as<model::DenseAttributes>().out_features);
  }
}

}  // namespace sluice::executor

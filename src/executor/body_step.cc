#include "src/executor/body_step.h"

#include <utility>

#include "sluice/kernels/turns.h"
#include "src/core/stack.h"
#include "src/executor/step_runner.h"

namespace sluice::executor {
namespace {

constexpr const char* kUnread = "a weight of its body could not be read";

/// Operands of ports, as the plan places them.
std::vector<kernels::Operand> operands_of(const model::Graph& graph, const std::vector<model::Port>& ports,
                                          const std::vector<RowView>& views, std::size_t count) {
  std::vector<kernels::Operand> operands;
  for (std::size_t i = 0; i < count; ++i) {
    const model::Tensor& tensor = graph.tensor(ports[i].tensor);
    operands.push_back({dense_view(views[i].data, tensor.shape, tensor.dtype), tensor.shape, nullptr});
  }
  return operands;
}

}  // namespace

Status BodyStep::add(model::Body body, const plan::Plan& plan, std::byte* arena, kernels::FindKernel find_kernel,
                     const BoundOutside& outside) {
  BoundBody& made = bodies_.emplace_back();
  made.body = std::move(body);
  made.plan = &plan;
  made.arena = arena;
  const model::Graph& graph = made.body.graph;
  SLUICE_ASSIGN_OR_RETURN(made.bound, bind({graph, plan, arena, pool_, find_kernel, &outside}));
  made.inputs = operands_of(graph, graph.inputs, made.bound.inputs, made.body.inputs);
  made.outputs = operands_of(graph, graph.outputs, made.bound.outputs, graph.outputs.size());
  for (std::size_t i = 0; i < made.outputs.size(); ++i)
    made.outputs[i].extents = const_cast<Shape*>(made.bound.output_extents[i]);  // the steps that make it write them
  std::uint32_t streamed = 0, counted = 0;
  for (std::size_t i = 0; i < made.bound.steps.size(); ++i) {
    BoundStep& step = made.bound.steps[i];
    const std::uint32_t needed = plan.steps[i].loads_needed;
    for (; counted < needed; ++counted) streamed += plan.loads[counted].streamed() ? 1 : 0;
    step.loads_needed = {needed, needed, streamed};
    step.call.fault = &fault_;
  }
  return {};
}

Status BodyStep::run_step(const BoundStep& step, StepRunner& runner) noexcept {
  // Of 96 KiB that a run asks for, a step takes up to 53: one within a body begins where its runner's have begun.
  constexpr Bytes kStepStack(std::uint64_t{56} * 1024);
  SLUICE_RETURN_IF_ERROR(check_stack(kStepStack));
  runner_ = &runner;
  for (BoundBody& body : bodies_)
    for (const BoundPlan::Captured& captured : body.bound.captured) {
      const kernels::Operand& from = step.call.inputs[captured.input];
      kernels::Operand& to = body.bound.operands[captured.operand];
      to.view.data = from.view.data;
      to.extents = from.extents;
    }
  step.run(step.call);
  runner_ = nullptr;
  const bool reads = std::exchange(reading_, kNone) != kNone;
  return reads ? runner.loader().end() : Status();
}

const char* BodyStep::run(std::size_t index) noexcept {
  BoundBody& body = bodies_[index];
  if (body.plan->loads.empty()) return run_steps(body);
  TurnLoader& loader = runner_->loader();
  if (reading_ != index) {
    loader.begin(*body.plan, body.body.stretches, body.bound.guards, body.arena);
    reading_ = index;
  } else {
    loader.next_turn();
  }
  return run_steps(body);
}

const char* BodyStep::run_steps(BoundBody& body) noexcept {
  const bool loads = !body.plan->loads.empty();
  TurnLoader& loader = runner_->loader();
  auto guarded = body.bound.guards.runs().begin();
  const auto guards_end = body.bound.guards.runs().end();
  for (std::size_t i = 0; i < body.bound.steps.size(); ++i) {
    const BoundStep& step = body.bound.steps[i];
    if (runner_->cancelled()) return kernels::kRunEnded;
    if (loads && !loader.await(step.loads_needed)) return kUnread;
    while (guarded != guards_end && guarded->end <= i) ++guarded;
    const bool wanted = guarded == guards_end || i < guarded->begin || body.bound.guards.met(guarded->guard);
    if (wanted) {
      const Status read = runner_->run(body.bound, step, body.body.graph.node(body.plan->steps[i].node));
      if (const char* const reason = std::exchange(fault_, {}).reason) return reason;
      if (!read) return kUnread;
    }
    if (loads) loader.step_over();
  }
  return nullptr;
}

}  // namespace sluice::executor

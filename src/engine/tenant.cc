#include "src/engine/tenant.h"

#include <utility>

#include "sluice/core/affinity.h"
#include "sluice/core/storage_interrupts.h"
#include "sluice/plan/passing.h"
#include "src/core/build_list.h"
#include "src/engine/planning.h"
#include "src/plan/built_needs.h"

namespace sluice::engine {
namespace {

Result<std::vector<BoundPort>> bind_ports(const model::Graph& graph, const std::vector<model::Port>& ports, executor::Executor& executor,
                                          RowView (executor::Executor::*view)(std::size_t) noexcept) {
  std::vector<BoundPort> bound;
  bound.reserve(ports.size());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(const PortCopy copy, PortCopy::make(graph, ports[i]));
    bound.push_back({copy, graph.dtype_of(ports[i]), (executor.*view)(i)});
  }
  return bound;
}

}  // namespace

Tenant::Tenant(std::shared_ptr<const Model> opened, const SessionOptions& given) : model(std::move(opened)), options(given) {
  options.arena = nullptr;  // it holds us
  options.dims.clear();     // the model has them
  if (kUsesProfiles && given.profile != nullptr) options.profile = &profile_.emplace(*given.profile);
}

Status Tenant::open(int threads, const std::vector<int>& compute_cpus) {
  if (options.tuning.load_cpus.empty()) {
    options.tuning.load_cpus = processors_to_load_on(model->file().has_path() ? model->file().path() : "", threads, compute_cpus);
  } else {
    SLUICE_RETURN_IF_ERROR(ScopedAffinity(options.tuning.load_cpus).status());  // are they to be had?
  }
  source_ = &model->file().source();
  if (options.tuning.read_mode == model::ReadMode::kAuto) return {};
  if (!model->file().has_path())
    return fail(ErrorCode::kInvalidArgument, model->file().path(), "a model that has no path of its own is read in one way only");
  SLUICE_ASSIGN_OR_RETURN(own_source_, model::open_weight_source(model->file().path(), options.tuning.read_mode));
  source_ = own_source_.get();
  return {};
}

Result<BoundSession> Tenant::bind(const PlacedPlan& placed, const executor::Holding& held, Arena& arena, ThreadPool& pool) {
  const executor::BlockSink outputs{[](void* self, const executor::MadeBlock& made) noexcept {
                                      return static_cast<Tenant*>(self)->hand_over(made.port, made.view, made.rows, made.channels);
                                    },
                                    this};
  BoundSession next;
  if constexpr (plan::is_built(plan::Need::kPassing)) {
    if (const Bytes spilled = plan::scratch_bytes(placed.plan(), graph()); spilled > Bytes() && !options.scratch_directory.empty()) {
      SLUICE_ASSIGN_OR_RETURN(executor::ScratchFile scratch, executor::ScratchFile::create(options.scratch_directory, spilled));
      next.scratch = std::make_unique<executor::ScratchFile>(std::move(scratch));
    }
  }
  const executor::ExecutorOptions executor_options{
      .read = reads_of(options),
      .load_cpus = options.tuning.load_cpus,
      .held = held,
      .time_steps = options.time_steps,
      .compute_slowdown = options.emulation.compute_slowdown,
      .max_turns = options.max_turns,
      .before_step = options.before_step,
      .between_parts = options.between_parts,
      .after_step = options.after_step,
      .key = model->file().key(),
      .outputs = !plan::is_built(plan::Need::kPassing) || options.outputs.take == nullptr ? executor::BlockSink() : outputs,
      .scratch = next.scratch.get(),
      .ports_move = options.ports_elsewhere};
  SLUICE_ASSIGN_OR_RETURN(next.executor, executor::Executor::create(graph(), placed.plan(), *source_, arena, pool, executor_options));
  SLUICE_ASSIGN_OR_RETURN(next.inputs, bind_ports(graph(), graph().inputs, *next.executor, &executor::Executor::input));
  SLUICE_ASSIGN_OR_RETURN(next.outputs, bind_ports(graph(), graph().outputs, *next.executor, &executor::Executor::output));
  return next;
}

void Tenant::take(BoundSession next, std::shared_ptr<const PlacedPlan> next_plan) noexcept {
  {
    const std::lock_guard lock(executor_mutex);
    bound.executor.swap(next.executor);
    if (next.executor && next.executor->cancelled()) bound.executor->cancel();
  }
  next.executor.reset();
  bound.scratch.swap(next.scratch);
  bound.inputs = std::move(next.inputs);
  bound.outputs = std::move(next.outputs);
  plan = std::move(next_plan);
  outputs_hold = false;
}

Status Tenant::hand_over(std::size_t port, const RowView& view, RowRange rows, ChannelRange channels) noexcept {
  const BoundPort& output = bound.outputs[port];
  return output.copy.for_each_box(view, rows, channels, [&](OutputBlock block) {
    block.port = port;
    block.port_dtype = output.dtype;
    return options.outputs.take(options.outputs.context, block);
  });
}

Status Tenant::hand_over_rest() noexcept {
  for (std::size_t port = 0; port < bound.outputs.size(); ++port) {
    const BoundPort& output = bound.outputs[port];
    if (output.view.data == nullptr) continue;  // steps handed it over, or it has no elements
    if (graph().tensor(graph().outputs[port].tensor).bounded == 0) {
      SLUICE_RETURN_IF_ERROR(hand_over(port, output.view, {0, output.view.rows}, {0, output.view.channels}));
      continue;
    }
    const Shape shape = executor()->output_shape(port);
    if (shape.element_count() == 0) continue;
    const OutputBlock whole{port, output.view.data, output.view.dtype, output.dtype, shape, {}, dense_strides(shape, output.view.dtype)};
    SLUICE_RETURN_IF_ERROR(options.outputs.take(options.outputs.context, whole));
  }
  return {};
}

void Tenant::bring_ports_back() noexcept {
  for (std::size_t i = 0; i < bound.inputs.size(); ++i)
    if (std::exchange(bound.inputs[i].elsewhere, false)) {
      executor()->place_input(i, nullptr);
      bound.inputs[i].set = false;
    }
  for (std::size_t i = 0; i < bound.outputs.size(); ++i) {
    bound.outputs[i].left = std::exchange(bound.outputs[i].elsewhere, false);
    if (bound.outputs[i].left) executor()->place_output(i, nullptr);
  }
}

void Tenant::end_turn() noexcept {
  for (BoundPort& input : bound.inputs) {
    turn_lost = turn_lost || input.set;
    input.set = false;
  }
  bring_ports_back();
  outputs_hold = false;
  runs_in_turn = 0;
}

}  // namespace sluice::engine

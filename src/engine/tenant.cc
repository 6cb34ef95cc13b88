#include "src/engine/tenant.h"

#include <utility>

#include "sluice/core/affinity.h"
#include "sluice/core/storage_interrupts.h"
#include "src/engine/planning.h"

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
  if (given.profile != nullptr) options.profile = &profile_.emplace(*given.profile);
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

Result<BoundSession> Tenant::bind(const PlacedPlan& placed, const executor::Holding& held, Arena& arena, ThreadPool& pool) const {
  const executor::ExecutorOptions executor_options{.read = reads_of(options),
                                                   .load_cpus = options.tuning.load_cpus,
                                                   .held = held,
                                                   .time_steps = options.time_steps,
                                                   .compute_slowdown = options.emulation.compute_slowdown,
                                                   .max_turns = options.max_turns,
                                                   .before_step = options.before_step,
                                                   .after_step = options.after_step,
                                                   .key = model->file().key()};
  BoundSession next;
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
  bound.inputs = std::move(next.inputs);
  bound.outputs = std::move(next.outputs);
  plan = std::move(next_plan);
  outputs_hold = false;
}

void Tenant::end_turn() noexcept {
  for (BoundPort& input : bound.inputs) {
    turn_lost = turn_lost || input.set;
    input.set = false;
  }
  outputs_hold = false;
}

}  // namespace sluice::engine

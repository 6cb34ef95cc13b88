#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/core/affinity.h"
#include "sluice/engine/engine.h"
#include "src/engine/budget.h"
#include "src/engine/planning.h"
#include "src/engine/port_copy.h"
#include "src/engine/process_memory.h"

namespace sluice {
namespace {

/// One input or output of the session.
struct BoundPort {
  engine::PortCopy copy;
  DType dtype;
  RowView view;
  bool set = false;  // inputs: the arena holds the caller's values
};

/// Marks a session as in use by one thread; a second one is told so instead of racing.
class Occupation {
 public:
  explicit Occupation(std::atomic<bool>& busy) noexcept : busy_(busy), held_(!busy.exchange(true, std::memory_order_acquire)) {}
  Occupation(const Occupation&) = delete;
  Occupation& operator=(const Occupation&) = delete;
  ~Occupation() {
    if (held_) busy_.store(false, std::memory_order_release);
  }
  Status status() const noexcept {
    if (held_) return {};
    return fail(ErrorCode::kInvalidArgument, "session", "the session is in use by another thread");
  }

 private:
  std::atomic<bool>& busy_;
  const bool held_;
};

class PlannedSession final : public Session {
 public:
  PlannedSession(std::shared_ptr<const Model> model, const SessionOptions& options, Bytes overhead, PlannedBudget planned) noexcept
      : model_(std::move(model)), options_(options), overhead_(overhead), planned_(std::make_unique<PlannedBudget>(std::move(planned))) {
    options_.plan = nullptr;
    options_.read = engine::reads_of(options);
    options_.dims.clear();  // `model` has them
    if (options.profile != nullptr) options_.profile = &profile_.emplace(*options.profile);
  }

  /// Everything that can fail, in the order of its cost in memory: the arena's pages come last.
  Status build() {
    choose_processors();
    {
      const ScopedAffinity processors(options_.compute_cpus);
      SLUICE_RETURN_IF_ERROR(processors.status());
      SLUICE_ASSIGN_OR_RETURN(pool_, make_thread_pool(options_.threads));
    }
    SLUICE_ASSIGN_OR_RETURN(arena_, Arena::reserve(bytes_to_reserve(), page_size_within(options_.budget)));
    SLUICE_RETURN_IF_ERROR(open_source());
    SLUICE_ASSIGN_OR_RETURN(Prepared prepared, prepare(planned_->plan, {}));
    take(std::move(prepared));
    SLUICE_RETURN_IF_ERROR(engine::check_floor(*model_, options_, planned_->plan));
    return arena_.commit(planned_->plan.arena_bytes);
  }

  Status set_budget(Bytes budget) override {
    const Occupation occupation(busy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    SessionOptions options = options_;
    options.budget = budget;
    SLUICE_ASSIGN_OR_RETURN(PlannedBudget made, engine::plan_within(*model_, options, overhead_));
    auto next = std::make_unique<PlannedBudget>(std::move(made));
    if (next->plan.arena_bytes > arena_.reserved()) return move_to(std::move(next), budget);
    const std::vector<bool> held = executor::held_by_both(planned_->plan, executor_->held(), next->plan, graph().stretches.size());
    SLUICE_ASSIGN_OR_RETURN(Prepared prepared, prepare(next->plan, held));
    if (next->plan.arena_bytes > arena_.committed()) SLUICE_RETURN_IF_ERROR(arena_.commit(next->plan.arena_bytes));
    take(std::move(prepared));
    return settle_in(std::move(next), budget);
  }

  Status set_input(std::size_t port, DType dtype, std::span<const std::byte> data) noexcept override {
    const Occupation occupation(busy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    if (port >= inputs_.size()) return no_port("input", port, inputs_.size());
    BoundPort& input = inputs_[port];
    const std::string_view name = graph().inputs[port].name;
    if (dtype != input.dtype) return fail(ErrorCode::kInvalidArgument, name, "the input has another element type");
    SLUICE_RETURN_IF_ERROR(check_size(name, input, data.size()));
    outputs_hold_ = false;
    if (input.view.data != nullptr) input.copy.to_arena(data, input.view);
    input.set = true;
    return {};
  }

  Shape output_shape(std::size_t port) const noexcept override {
    if (port >= outputs_.size()) return {};
    return outputs_hold_ ? executor_->output_shape(port) : graph().outputs[port].onnx_shape;
  }

  Status get_output(std::size_t port, std::span<std::byte> data) noexcept override {
    const Occupation occupation(busy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    SLUICE_RETURN_IF_ERROR(check_output(port));
    const BoundPort& output = outputs_[port];
    const std::size_t present = elements_of(port) * size_of(output.dtype);
    if (data.size() != present) SLUICE_RETURN_IF_ERROR(check_size(graph().outputs[port].name, output, data.size()));
    copy_out(port, 0, data.first(present));
    return {};
  }

  Status get_output_part(std::size_t port, std::uint64_t first_element, std::span<std::byte> data) noexcept override {
    const Occupation occupation(busy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    SLUICE_RETURN_IF_ERROR(check_output(port));
    const std::size_t size = size_of(outputs_[port].dtype);
    const std::uint64_t elements = elements_of(port);
    if (data.size() % size != 0 || first_element > elements || data.size() / size > elements - first_element) {
      return fail(make_error(ErrorCode::kInvalidArgument, graph().outputs[port].name,
                             "the part does not lie in the tensor, or cuts an element", elements, first_element));
    }
    copy_out(port, first_element, data);
    return {};
  }

  Status run() noexcept override {
    const Occupation occupation(busy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].set && inputs_[i].copy.bytes() > Bytes())
        return fail(ErrorCode::kInvalidArgument, graph().inputs[i].name, "the input was not set");
    }
    outputs_hold_ = false;
    const ScopedAffinity processors(options_.compute_cpus);
    const Status status = executor_->run();
    outputs_hold_ = status.has_value();
    // The plan may have put other tensors where the inputs were.
    if (!options_.keep_inputs)
      for (BoundPort& input : inputs_) input.set = false;
    return status;
  }

  void cancel() noexcept override {
    const std::lock_guard lock(executor_mutex_);
    executor_->cancel();
  }

  const Model& model() const noexcept override { return *model_; }
  const executor::RunStats& stats() const noexcept override { return executor_->stats(); }
  const plan::Plan& plan() const noexcept override { return planned_->plan; }
  std::span<const executor::StepTime> step_times() const noexcept override { return executor_->step_times(); }
  MemoryReport memory() const noexcept override {
    return {options_.budget, planned_->overhead, planned_->plan.arena_bytes, engine::read_process_memory().peak_resident};
  }

 private:
  const model::Graph& graph() const noexcept { return model_->graph(); }

  /// What follows from a plan.
  struct Prepared {
    std::unique_ptr<executor::Executor> executor;
    std::vector<BoundPort> inputs;
    std::vector<BoundPort> outputs;
  };

  void choose_processors() {
    const CpuKinds kinds = read_cpu_kinds();
    if (kinds.small.empty()) return;
    if (options_.compute_cpus.empty() && kinds.big.size() >= static_cast<std::size_t>(options_.threads)) options_.compute_cpus = kinds.big;
    if (options_.load_cpus.empty()) options_.load_cpus = kinds.small;
  }

  /// The model's own source, or one of the session's when it asks for another way of reading.
  Status open_source() {
    source_ = &model_->file().source();
    if (options_.read_mode == model::ReadMode::kAuto) return {};
    SLUICE_ASSIGN_OR_RETURN(own_source_, model::open_weight_source(model_->file().path(), options_.read_mode));
    source_ = own_source_.get();
    return {};
  }

  /// Addresses for the largest plan that is to come. They hold no memory.
  Bytes bytes_to_reserve() const {
    Bytes bytes = planned_->plan.arena_bytes;
    if (options_.largest_budget <= options_.budget) return bytes;
    SessionOptions options = options_;
    options.budget = options_.largest_budget;
    const Result<PlannedBudget> largest = engine::plan_within(*model_, options, overhead_);
    return largest ? std::max(bytes, largest->plan.arena_bytes) : bytes;
  }

  Result<Prepared> prepare(const plan::Plan& plan, const std::vector<bool>& held) {
    const executor::ExecutorOptions executor_options{.read = options_.read, .held = held, .time_steps = options_.time_steps};
    Prepared prepared;
    const ScopedAffinity processors(options_.load_cpus);
    SLUICE_RETURN_IF_ERROR(processors.status());
    SLUICE_ASSIGN_OR_RETURN(prepared.executor, executor::Executor::create(graph(), plan, *source_, arena_, *pool_, executor_options));
    for (std::size_t i = 0; i < graph().inputs.size(); ++i) {
      SLUICE_ASSIGN_OR_RETURN(BoundPort port, bind_port(graph().inputs[i], prepared.executor->input(i)));
      prepared.inputs.push_back(port);
    }
    for (std::size_t i = 0; i < graph().outputs.size(); ++i) {
      SLUICE_ASSIGN_OR_RETURN(BoundPort port, bind_port(graph().outputs[i], prepared.executor->output(i)));
      prepared.outputs.push_back(port);
    }
    return prepared;
  }

  /// The executor before ends here, and with it the loads that it had wrapped. A cancellation that no run has taken goes on to the next.
  void take(Prepared prepared) noexcept {
    {
      const std::lock_guard lock(executor_mutex_);
      executor_.swap(prepared.executor);
      if (prepared.executor && prepared.executor->cancelled()) executor_->cancel();
    }
    prepared.executor.reset();
    inputs_ = std::move(prepared.inputs);
    outputs_ = std::move(prepared.outputs);
    outputs_hold_ = false;
  }

  /// After `take`: nothing refers to the plan before, and what lies above the new one goes back to the system.
  Status settle_in(std::unique_ptr<PlannedBudget> next, Bytes budget) {
    planned_ = std::move(next);
    options_.budget = budget;
    const Status committed = arena_.commit(planned_->plan.arena_bytes);
    if (options_.scope == BudgetScope::kProcess) engine::release_free_heap();
    return committed;
  }

  /// Into another range of addresses, with nothing kept: for plans beyond what was reserved.
  Status move_to(std::unique_ptr<PlannedBudget> next, Bytes budget) {
    SLUICE_ASSIGN_OR_RETURN(Arena arena, Arena::reserve(next->plan.arena_bytes, page_size_within(budget)));
    std::swap(arena_, arena);
    Result<Prepared> prepared = prepare(next->plan, {});
    if (!prepared) {
      std::swap(arena_, arena);
      return fail(prepared.error());
    }
    take(std::move(*prepared));
    arena = Arena();  // the one before: it must be gone before the new one takes memory
    return settle_in(std::move(next), budget);
  }

  Result<BoundPort> bind_port(const model::Port& port, const RowView& view) const {
    SLUICE_ASSIGN_OR_RETURN(const engine::PortCopy copy, engine::PortCopy::make(graph(), port));
    return BoundPort{copy, graph().tensor(port.tensor).dtype, view};
  }

  Status check_output(std::size_t port) const noexcept {
    if (port >= outputs_.size()) return no_port("output", port, outputs_.size());
    if (outputs_hold_) return {};
    return fail(ErrorCode::kInvalidArgument, graph().outputs[port].name, "outputs hold from a successful run to the next input or run");
  }

  /// Of an output in the last run.
  std::size_t elements_of(std::size_t port) const noexcept { return static_cast<std::size_t>(output_shape(port).element_count()); }

  /// As many elements of an output as `data` holds, which lie in it.
  void copy_out(std::size_t port, std::uint64_t first_element, std::span<std::byte> data) const noexcept {
    const BoundPort& output = outputs_[port];
    if (graph().tensor(graph().outputs[port].tensor).bounded == 0) {
      output.copy.from_arena(output.view, static_cast<std::int64_t>(first_element), data);
    } else if (!data.empty()) {  // dense in the extents of this run
      std::memcpy(data.data(), output.view.data + first_element * size_of(output.dtype), data.size());
    }
  }

  static Status no_port(std::string_view kind, std::size_t port, std::size_t count) noexcept {
    return fail(make_error(ErrorCode::kInvalidArgument, kind, "the model has no port of this number", port, count));
  }
  static Status check_size(std::string_view name, const BoundPort& port, std::size_t given) noexcept {
    if (given == port.copy.bytes().count()) return {};
    return fail(
        make_error(ErrorCode::kInvalidArgument, name, "the data does not have the size of the tensor", port.copy.bytes().count(), given));
  }

  // In the order in which each needs those before it.
  std::shared_ptr<const Model> model_;
  SessionOptions options_;
  const Bytes overhead_;  // measured at the beginning, when there was no arena yet
  std::optional<profiler::DeviceProfile> profile_;
  std::unique_ptr<PlannedBudget> planned_;
  std::unique_ptr<model::WeightSource> own_source_;
  model::WeightSource* source_ = nullptr;
  std::unique_ptr<ThreadPool> pool_;
  Arena arena_;
  std::mutex executor_mutex_;  // cancel() may come while set_budget changes the executor
  std::unique_ptr<executor::Executor> executor_;
  std::vector<BoundPort> inputs_;
  std::vector<BoundPort> outputs_;
  bool outputs_hold_ = false;
  std::atomic<bool> busy_{false};
};

}  // namespace

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Model> model, const SessionOptions& options) {
  if (!model) return fail(ErrorCode::kInvalidArgument, "session", "a session needs a model");
  SLUICE_RETURN_IF_ERROR(engine::check_options(options));
  if (!options.dims.empty()) {
    SLUICE_ASSIGN_OR_RETURN(model, model->with_dims(options.dims));
  }
  const Bytes overhead = engine::overhead_of(*model, options);
  SLUICE_ASSIGN_OR_RETURN(PlannedBudget planned, engine::plan_within(*model, options, overhead));
  std::unique_ptr<PlannedSession> session(new (std::nothrow) PlannedSession(std::move(model), options, overhead, std::move(planned)));
  if (!session) return fail(ErrorCode::kOutOfMemory, "session", "no memory for the session");
  SLUICE_RETURN_IF_ERROR(session->build());
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace sluice

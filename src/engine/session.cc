#include <cstring>
#include <new>
#include <utility>

#include "sluice/core/affinity.h"
#include "sluice/engine/engine.h"
#include "sluice/engine/shared_arena.h"
#include "src/core/build_list.h"
#include "src/core/out_of_memory.h"
#include "src/core/stack.h"
#include "src/engine/planning.h"
#include "src/engine/session_log.h"
#include "src/engine/stuck_reads.h"
#include "src/engine/tenancy.h"
#include "src/plan/built_needs.h"

namespace sluice {
namespace {

using engine::BoundPort;
using engine::dense_strides;
using engine::Occupation;
using engine::Tenancy;

class PlannedSession final : public Session {
 public:
  PlannedSession(std::shared_ptr<Tenancy> tenancy, std::shared_ptr<const Model> model, const SessionOptions& options)
      : tenancy_(std::move(tenancy)), owned_(std::make_unique<engine::Tenant>(std::move(model), options)), tenant_(*owned_) {}
  ~PlannedSession() override {
    if (tenancy_->foreign()) {
      // Its loader is a thread of the parent: nothing here can end it, and what it holds goes with this process.
      static_cast<void>(owned_.release());
      return;
    }
    if (tenancy_->busy()) cancel();  // a run under way may never end by itself
    {
      const Occupation occupation(*tenancy_, Occupation::Wait::kYes);
      tenancy_->remove(std::move(owned_));
    }
    engine::StuckReads::keep(std::move(tenancy_));
  }

  Status join() {
    const Occupation occupation(*tenancy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    SLUICE_RETURN_IF_ERROR(tenancy_->join(tenant_));
    engine::tell_plan(log(), model(), plan(), tenancy_->memory());
    engine::tell_doubts(log(), tenant_.options, plan(), tenant_.source());
    return {};
  }

  Status set_budget(Bytes budget) override {
    const Occupation occupation(*tenancy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    SLUICE_RETURN_IF_ERROR(check_stack(kLeastStack));
    if constexpr (!kSharesArenas)
      return fail(ErrorCode::kUnsupported, "budget",
                  "this build has no planner: a session keeps the plan and the budget that it was made with");
    if (tenancy_->shared())
      return fail(ErrorCode::kInvalidArgument, "budget", "a session in a shared arena has the arena's budget: set that");
    const Status changed = or_out_of_memory("budget", [&] { return tenancy_->set_budget(budget); });
    if (!changed) return engine::tell_failure(log(), "set_budget", changed);
    engine::tell_plan(log(), model(), plan(), tenancy_->memory());
    return {};
  }

  Status set_input(std::size_t port, DType dtype, std::span<const std::byte> data) noexcept override {
    const Occupation occupation(*tenancy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    if (port >= tenant_.bound.inputs.size()) return no_port("input", port, tenant_.bound.inputs.size());
    BoundPort& input = tenant_.bound.inputs[port];
    const std::string_view name = graph().inputs[port].name;
    if (dtype != input.dtype && dtype != input.copy.dtype())
      return fail(ErrorCode::kInvalidArgument, name, "the input has another element type");
    SLUICE_RETURN_IF_ERROR(check_size(name, input.copy.bytes_as(dtype), data.size()));
    if (!engine::within_f32(dtype, data))
      return fail(ErrorCode::kUnsupported, name, "a value of f64 is beyond the range of f32, as which it would be computed");
    SLUICE_RETURN_IF_ERROR(begin_input(port));
    if (std::exchange(input.elsewhere, false)) tenant_.executor()->place_input(port, nullptr);
    if (input.view.data != nullptr) input.copy.to_arena(dtype, data, input.view, tenancy_->pool());
    input.set = true;
    return {};
  }

  Shape output_shape(std::size_t port) const noexcept override {
    if (port >= tenant_.bound.outputs.size()) return {};
    return tenant_.outputs_hold ? tenant_.executor()->output_shape(port) : graph().outputs[port].onnx_shape;
  }

  Status get_output(std::size_t port, std::span<std::byte> data) noexcept override {
    const Occupation occupation(*tenancy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    SLUICE_RETURN_IF_ERROR(check_output(port));
    const BoundPort& output = tenant_.bound.outputs[port];
    const std::size_t present = elements_of(port) * size_of(output.dtype);
    if (data.size() != present)
      SLUICE_RETURN_IF_ERROR(check_size(graph().outputs[port].name, output.copy.bytes_as(output.dtype), data.size()));
    copy_out(port, 0, data.first(present));
    return {};
  }

  Status get_output_part(std::size_t port, std::uint64_t first_element, std::span<std::byte> data) noexcept override {
    const Occupation occupation(*tenancy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    SLUICE_RETURN_IF_ERROR(check_output(port));
    const std::size_t size = size_of(tenant_.bound.outputs[port].dtype);
    const std::uint64_t elements = elements_of(port);
    if (data.size() % size != 0 || first_element > elements || data.size() / size > elements - first_element) {
      return fail(make_error(ErrorCode::kInvalidArgument, graph().outputs[port].name,
                             "the part does not lie in the tensor, or cuts an element", elements, first_element));
    }
    copy_out(port, first_element, data);
    return {};
  }

  Result<TensorInPlace> input_in_place(std::size_t port) noexcept override {
    const Occupation occupation(*tenancy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    SLUICE_RETURN_IF_ERROR(begin_input(port));
    BoundPort& input = tenant_.bound.inputs[port];
    if (input.view.data == nullptr)
      return fail(ErrorCode::kUnsupported, graph().inputs[port].name, "no step reads this input: it has no place");
    if (std::exchange(input.elsewhere, false)) tenant_.executor()->place_input(port, nullptr);
    input.set = true;
    return TensorInPlace{input.view.data, input.copy.dtype(), graph().inputs[port].onnx_shape, input.copy.strides(input.view)};
  }

  Result<TensorInPlace> output_in_place(std::size_t port) noexcept override {
    const Occupation occupation(*tenancy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    SLUICE_RETURN_IF_ERROR(check_output(port));
    const BoundPort& output = tenant_.bound.outputs[port];
    TensorInPlace tensor{output.view.data, output.copy.dtype(), output_shape(port), output.copy.strides(output.view)};
    if (is_bounded(port)) tensor.strides = dense_strides(tensor.shape, tensor.dtype);
    return tensor;
  }

  Status place_input(std::size_t port, std::span<std::byte> memory) noexcept override {
    const Occupation occupation(*tenancy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    SLUICE_RETURN_IF_ERROR(begin_input(port));
    BoundPort& input = tenant_.bound.inputs[port];
    const model::Port& of_model = graph().inputs[port];
    SLUICE_RETURN_IF_ERROR(check_place(of_model, input, memory));
    if (!tenant_.executor()->place_input(port, memory.data())) return stays(of_model.name);
    input.elsewhere = input.set = true;
    return {};
  }

  Status place_output(std::size_t port, std::span<std::byte> memory) noexcept override {
    const Occupation occupation(*tenancy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    if (port >= tenant_.bound.outputs.size()) return no_port("output", port, tenant_.bound.outputs.size());
    SLUICE_RETURN_IF_ERROR(tenancy_->take_turn(tenant_));
    tenant_.outputs_hold = false;
    BoundPort& output = tenant_.bound.outputs[port];
    const model::Port& of_model = graph().outputs[port];
    SLUICE_RETURN_IF_ERROR(check_place(of_model, output, memory));
    if (!tenant_.executor()->place_output(port, memory.data())) return stays(of_model.name);
    output.elsewhere = true;
    return {};
  }

  Status run() noexcept override {
    executor::RunStats of_this_run;
    const Status status = run_in_turn(of_this_run);
    if (!status) return engine::tell_failure(log(), "run", status);
    engine::tell_run(log(), of_this_run);
    return status;
  }

  void cancel() noexcept override {
    if (tenancy_->foreign()) return;  // the lock may be held, by a thread that is not here
    const std::lock_guard lock(tenant_.executor_mutex);
    if (tenant_.executor() != nullptr) tenant_.executor()->cancel();
  }

  void forget_cancel() noexcept override {
    if (tenancy_->foreign()) return;
    const std::lock_guard lock(tenant_.executor_mutex);
    if (tenant_.executor() != nullptr) tenant_.executor()->forget_cancel();
  }

  const Model& model() const noexcept override { return *tenant_.model; }
  const executor::RunStats& stats() const noexcept override { return tenant_.executor()->stats(); }
  const plan::Plan& plan() const noexcept override { return tenant_.plan->plan(); }
  std::span<const executor::StepTime> step_times() const noexcept override { return tenant_.executor()->step_times(); }
  std::span<const executor::LoadTime> load_times() const noexcept override { return tenant_.executor()->load_times(); }
  MemoryReport memory() const noexcept override { return tenancy_->memory(); }

 private:
  const model::Graph& graph() const noexcept { return tenant_.graph(); }
  const LogHook& log() const noexcept { return tenant_.options.log; }

  /// `stats` of a run that succeeded are copied while the executor is ours: behind that another thread may replace it.
  Status run_in_turn(executor::RunStats& stats) noexcept {
    const Occupation occupation(*tenancy_);
    SLUICE_RETURN_IF_ERROR(occupation.status());
    SLUICE_RETURN_IF_ERROR(check_stack(kLeastStack));
    SLUICE_RETURN_IF_ERROR(check_inputs());
    tenant_.turn_lost = false;
    if (const Status turn = tenancy_->take_turn(tenant_); !turn) {
      // A cancellation is of the run that waited: it takes it, and ends before it begins.
      return turn.error().code == ErrorCode::kCancelled && tenant_.executor()->cancelled() ? tenant_.executor()->run() : turn;
    }
    tenant_.outputs_hold = false;
    tenancy_->release_code();
    const ScopedAffinity processors(tenancy_->options().compute_cpus);
    // A session that has the turn twice in a row is likely to have it again.
    tenant_.executor()->read_ahead(!tenancy_->shared() || tenant_.runs_in_turn++ > 0);
    Status status = tenant_.executor()->run();
    if (status && hands_over()) status = tenant_.hand_over_rest();
    tenant_.outputs_hold = status.has_value();
    if (status) stats = tenant_.executor()->stats();
    tenant_.bring_ports_back();
    // The plan may have put other tensors where the inputs were.
    if (!tenant_.options.keep_inputs)
      for (BoundPort& input : tenant_.bound.inputs) input.set = false;
    return status;
  }

  /// The arena is ours, and nothing of a run before writes to it: an input may be written.
  Status begin_input(std::size_t port) noexcept {
    if (port >= tenant_.bound.inputs.size()) return no_port("input", port, tenant_.bound.inputs.size());
    SLUICE_RETURN_IF_ERROR(tenancy_->take_turn(tenant_));
    SLUICE_RETURN_IF_ERROR(tenant_.executor()->settle());
    tenant_.outputs_hold = false;
    return {};
  }

  /// Whether an output's extents are known at run only: it then lies dense in those of this run.
  bool is_bounded(std::size_t port) const noexcept { return graph().tensor(graph().outputs[port].tensor).bounded != 0; }

  Status check_inputs() const noexcept {
    const std::vector<BoundPort>& inputs = tenant_.bound.inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].set || inputs[i].copy.bytes() == Bytes()) continue;
      return fail(ErrorCode::kInvalidArgument, graph().inputs[i].name,
                  tenancy_->shared() && tenant_.turn_lost
                      ? "the input no longer holds: the arena went to another session or got another budget"
                      : "the input was not set");
    }
    return {};
  }

  Status check_output(std::size_t port) const noexcept {
    if (port >= tenant_.bound.outputs.size()) return no_port("output", port, tenant_.bound.outputs.size());
    if (hands_over())
      return fail(ErrorCode::kInvalidArgument, graph().outputs[port].name, "outputs went to the hook as they were made: none are kept");
    if (tenant_.outputs_hold && tenant_.bound.outputs[port].left)
      return fail(ErrorCode::kInvalidArgument, graph().outputs[port].name, "the last run made this output where the caller wanted it");
    if (tenant_.outputs_hold) return {};
    return fail(ErrorCode::kInvalidArgument, graph().outputs[port].name,
                tenancy_->shared() ? "outputs hold from a successful run to the next input or run of any session of the arena"
                                   : "outputs hold from a successful run to the next input or run");
  }

  bool hands_over() const noexcept { return plan::is_built(plan::Need::kPassing) && tenant_.options.outputs.take != nullptr; }

  /// The number of an output's elements in the last run.
  std::size_t elements_of(std::size_t port) const noexcept { return static_cast<std::size_t>(output_shape(port).element_count()); }

  /// Copies as many elements of an output as `data` holds; they must exist.
  void copy_out(std::size_t port, std::uint64_t first_element, std::span<std::byte> data) const noexcept {
    const BoundPort& output = tenant_.bound.outputs[port];
    if (!is_bounded(port)) {
      output.copy.from_arena(output.dtype, output.view, static_cast<std::int64_t>(first_element), data);
    } else if (!data.empty()) {  // dense in the extents of this run
      output.copy.from_dense(output.dtype, output.view.data, static_cast<std::int64_t>(first_element), data);
    }
  }

  /// Whether the port's bytes are the same in the arena and with the caller.
  static Status check_place(const model::Port& port, const BoundPort& bound, std::span<std::byte> memory) noexcept {
    const TensorInPlace lies{bound.view.data, bound.copy.dtype(), port.onnx_shape, bound.copy.strides(bound.view)};
    if (bound.view.data == nullptr || bound.dtype != bound.copy.dtype() || !lies.dense()) return stays(port.name);
    SLUICE_RETURN_IF_ERROR(check_size(port.name, bound.copy.bytes() + kPortTail, memory.size()));
    if (reinterpret_cast<std::uintptr_t>(memory.data()) % 64 != 0)
      return fail(ErrorCode::kInvalidArgument, port.name, "a port that lies with the caller begins on 64 bytes");
    return {};
  }
  static Status stays(std::string_view port) noexcept {
    return fail(ErrorCode::kUnsupported, port, "the port lies in the arena alone: its values are copied");
  }
  static Status no_port(std::string_view kind, std::size_t port, std::size_t count) noexcept {
    return fail(make_error(ErrorCode::kInvalidArgument, kind, "the model has no port of this number", port, count));
  }
  static Status check_size(std::string_view name, Bytes wanted, std::size_t given) noexcept {
    if (given == wanted.count()) return {};
    return fail(make_error(ErrorCode::kInvalidArgument, name, "the data does not have the size of the tensor", wanted.count(), given));
  }

  std::shared_ptr<Tenancy> tenancy_;  // outlives the tenant, which uses its arena and pool
  std::unique_ptr<engine::Tenant> owned_;
  engine::Tenant& tenant_;
};

/// Options that an arena decides for its sessions are left to it.
Status check_in_arena(const SessionOptions& options, const engine::TenancyOptions& arena) noexcept {
  if (options.threads != 1 && options.threads != arena.threads)
    return fail(ErrorCode::kInvalidArgument, "threads", "sessions of a shared arena compute with its threads");
  if (options.scope != BudgetScope::kLibrary && options.scope != arena.scope)
    return fail(ErrorCode::kInvalidArgument, "scope", "the budget of a shared arena has another scope");
  if (options.reserve != Bytes() && options.reserve != arena.reserve)
    return fail(ErrorCode::kInvalidArgument, "reserve", "what the program will take is said to the shared arena");
  if (!options.tuning.compute_cpus.empty() && options.tuning.compute_cpus != arena.compute_cpus)
    return fail(ErrorCode::kInvalidArgument, "processors", "sessions of a shared arena compute on its processors");
  return {};
}

std::shared_ptr<Tenancy> tenancy_of_its_own(const SessionOptions& options) {
  return std::make_shared<Tenancy>(engine::TenancyOptions{.budget = options.budget,
                                                          .largest_budget = options.largest_budget,
                                                          .scope = options.scope,
                                                          .reserve = options.reserve,
                                                          .threads = options.threads,
                                                          .compute_cpus = options.tuning.compute_cpus});
}

Result<std::unique_ptr<Session>> create_session(std::shared_ptr<const Model> model, const SessionOptions& options) {
  if (!model) return fail(ErrorCode::kInvalidArgument, "session", "a session needs a model");
  SLUICE_RETURN_IF_ERROR(check_stack(kLeastStack));
  SLUICE_RETURN_IF_ERROR(engine::check_options(options));
  SLUICE_RETURN_IF_ERROR(model->file().check_has_weights());
  engine::StuckReads::sweep();
  if (!options.dims.empty()) {
    SLUICE_ASSIGN_OR_RETURN(model, model->with_dims(options.dims));
  }
  if (!plan::is_built(plan::Need::kPassing) && options.outputs.take != nullptr)
    return fail(ErrorCode::kUnsupported, "outputs", "this build was trimmed to plans that do not hand outputs over as they are made");
  if (!kSharesArenas && options.arena)
    return fail(ErrorCode::kUnsupported, "shared arena", "this build has no planner: each session has an arena of its own");
  if (options.arena) SLUICE_RETURN_IF_ERROR(check_in_arena(options, options.arena->tenancy()->options()));
  std::shared_ptr<Tenancy> tenancy = kSharesArenas && options.arena ? options.arena->tenancy() : tenancy_of_its_own(options);
  std::unique_ptr<PlannedSession> session(new (std::nothrow) PlannedSession(std::move(tenancy), std::move(model), options));
  if (!session) return fail(ErrorCode::kOutOfMemory, "session", "no memory for the session");
  SLUICE_RETURN_IF_ERROR(session->join());
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace

bool TensorInPlace::dense() const noexcept {
  const auto wanted = engine::dense_strides(shape, dtype);
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] > 1 && strides[static_cast<std::size_t>(axis)] != wanted[static_cast<std::size_t>(axis)]) return false;
  return true;
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Model> model, const SessionOptions& options) {
  auto created = or_out_of_memory("session", [&] { return create_session(std::move(model), options); });
  if (!created) engine::tell_failure(options.log, "create", fail(created.error()));
  return created;
}

}  // namespace sluice

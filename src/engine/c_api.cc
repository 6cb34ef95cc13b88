#include "src/engine/c_api.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <new>

#include "sluice/engine/async.h"
#include "sluice/engine/engine.h"
#include "sluice/engine/predictor.h"
#include "sluice/engine/shared_arena.h"
#include "sluice/profiler/profile_file.h"
#include "sluice/sluice_c.h"
#include "src/core/out_of_memory.h"
#include "src/engine/c_hooks.h"

struct sluice_arena {
  std::shared_ptr<sluice::SharedArena> arena;
};
struct sluice_profile {
  std::vector<sluice::profiler::DeviceProfile> profiles;
};
struct sluice_session {
  std::shared_ptr<const sluice::Model> model;
  sluice::c_api::Hooks hooks;
  std::unique_ptr<sluice::Session> session{};
  std::atomic<bool> asked{false};  // a run was begun with `done`, which was not called yet
  sluice_done done = nullptr;
  void* done_context = nullptr;
  std::atomic<sluice::AsyncSession*> runner{nullptr};  // made by the first call that wants it; owned

  ~sluice_session() { delete runner.load(); }  // before all else ends
};

namespace {

using sluice::DType;
using sluice::Error;
using sluice::ErrorCode;

// Long enough for any Error: a subject, a reason, two numbers and an errno text.
thread_local std::array<char, 512> last_error{};

using sluice::c_api::report;
using sluice::c_api::status_of;
static_assert(static_cast<int>(ErrorCode::kInvalidArgument) + 1 == SLUICE_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorCode::kUnsupported) + 1 == SLUICE_UNSUPPORTED);
static_assert(static_cast<int>(ErrorCode::kBudgetTooSmall) + 1 == SLUICE_BUDGET_TOO_SMALL);
static_assert(static_cast<int>(ErrorCode::kInternal) + 1 == SLUICE_INTERNAL);
static_assert(static_cast<int>(ErrorCode::kWrongKey) + 1 == SLUICE_WRONG_KEY);
static_assert(static_cast<int>(DType::kU64) == SLUICE_U64 && static_cast<int>(DType::kF64) == SLUICE_F64 &&
              static_cast<int>(DType::kBF16) == SLUICE_BF16);
static_assert(SLUICE_MAX_RANK == sluice::Shape::kMaxRank);

void keep_text(std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), last_error.size() - 1);
  std::copy_n(text.data(), length, last_error.data());
  last_error[length] = '\0';
}

sluice_status null_argument() noexcept {
  return report(sluice::make_error(ErrorCode::kInvalidArgument, "argument", "a pointer is null that must not be"));
}

sluice::Bytes budget_of(std::uint64_t bytes) noexcept { return std::min(sluice::Bytes(bytes), sluice::kUnlimitedBytes); }

sluice::Result<sluice::BudgetScope> scope_of(std::int32_t scope) noexcept {
  if (scope == SLUICE_SCOPE_LIBRARY) return sluice::BudgetScope::kLibrary;
  if (scope == SLUICE_SCOPE_PROCESS) return sluice::BudgetScope::kProcess;
  return sluice::fail(ErrorCode::kInvalidArgument, "scope", "neither SLUICE_SCOPE_LIBRARY nor SLUICE_SCOPE_PROCESS");
}

sluice::model::KeyCallback callback_of(const sluice_key& key) {
  return [key](std::span<std::byte, sluice::model::kKeyBytes> bytes) -> sluice::Status {
    if (key.give(key.context, reinterpret_cast<std::uint8_t*>(bytes.data())) == 0) return {};
    return sluice::fail(ErrorCode::kWrongKey, "model", "the program gave no key");
  };
}

/// A C program's options as ours; the profile that they have in them is of their number of threads. The owner of the hooks sets them.
class Options {
 public:
  static sluice::Result<std::unique_ptr<Options>> make(const sluice_session_options* given) noexcept {
    return sluice::or_out_of_memory("options", [&]() -> sluice::Result<std::unique_ptr<Options>> {
      auto made = std::make_unique<Options>();
      SLUICE_RETURN_IF_ERROR(made->read(given == nullptr ? sluice_default_options() : *given));
      return made;
    });
  }

  sluice::SessionOptions session;

 private:
  sluice::Status read(const sluice_session_options& options);

  sluice::profiler::DeviceProfile profile_;
};

sluice::Status Options::read(const sluice_session_options& options) {
  SLUICE_ASSIGN_OR_RETURN(session.scope, scope_of(options.scope));
  if (options.log.least < SLUICE_LOG_DEBUG || options.log.least > SLUICE_LOG_ERROR)
    return sluice::fail(ErrorCode::kInvalidArgument, "log", "the least level is none of sluice_log_level");
  if (options.profile != nullptr) {
    profile_ = sluice::profiler::profile_for_threads(options.profile->profiles, options.threads);
    session.profile = &profile_;
  }
  if (options.largest_budget_bytes != 0) session.largest_budget = budget_of(options.largest_budget_bytes);
  session.time_steps = options.time_steps != 0;
  if (options.scratch_directory != nullptr) session.scratch_directory = options.scratch_directory;
  // The hook is known when the session is made; until then only that there is one.
  if (options.outputs.take != nullptr) session.outputs.take = [](void*, const sluice::OutputBlock&) noexcept { return sluice::Status(); };
  session.budget = budget_of(options.budget_bytes);
  if (options.arena != nullptr) session.arena = options.arena->arena;
  session.reserve = sluice::Bytes(options.reserve_bytes);
  session.threads = options.threads;
  session.repeat = options.repeat != 0;
  session.keep_inputs = options.keep_inputs != 0;
  return {};
}

sluice_status describe(const sluice::model::Graph& graph, const std::vector<sluice::model::Port>& ports, std::size_t index,
                       sluice_port_info* info) noexcept {
  if (index >= ports.size()) {
    return report(sluice::make_error(ErrorCode::kInvalidArgument, "port", "the model has no port of this number", index, ports.size()));
  }
  const sluice::model::Port& port = ports[index];
  *info = {};
  info->name = port.name.c_str();
  info->dtype = static_cast<sluice_dtype>(graph.dtype_of(port));
  info->rank = port.onnx_shape.rank();
  std::copy(port.onnx_shape.dims().begin(), port.onnx_shape.dims().end(), info->shape);
  info->bytes = graph.bytes_of(port).count();
  return SLUICE_OK;
}

/// Makes the caller's handle of an opened model.
sluice_status hand_out(sluice::Result<std::shared_ptr<const sluice::Model>> opened, const char* subject, sluice_model** model) noexcept {
  if (!opened) return report(opened.error());
  *model = new (std::nothrow) sluice_model{std::move(*opened)};
  if (*model == nullptr) return report(sluice::make_error(ErrorCode::kOutOfMemory, subject, "no memory for the model"));
  return SLUICE_OK;
}

sluice_status hand_out(const sluice::Result<sluice::TensorInPlace>& in_place, sluice_tensor* tensor) noexcept {
  if (!in_place) return report(in_place.error());
  *tensor = {};
  tensor->data = in_place->data;
  tensor->dtype = static_cast<sluice_dtype>(in_place->dtype);
  tensor->rank = in_place->shape.rank();
  std::copy(in_place->shape.dims().begin(), in_place->shape.dims().end(), tensor->shape);
  std::copy_n(in_place->strides.begin(), tensor->rank, tensor->strides);
  tensor->dense = in_place->dense() ? 1 : 0;
  return SLUICE_OK;
}

sluice_status hand_out(sluice::Result<std::vector<sluice::profiler::DeviceProfile>> profiles, sluice_profile** profile) noexcept {
  if (!profiles) return report(profiles.error());
  *profile = new (std::nothrow) sluice_profile{std::move(*profiles)};
  if (*profile == nullptr) return report(sluice::make_error(ErrorCode::kOutOfMemory, "device profile", "no memory for the profile"));
  return SLUICE_OK;
}

/// The session's runner, made now if there is none. Of threads that call at the same time the first one's is kept.
sluice::Result<sluice::AsyncSession*> runner_of(sluice_session& session) noexcept {
  if (sluice::AsyncSession* const runner = session.runner) return runner;
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<sluice::AsyncSession> made, sluice::AsyncSession::create(*session.session));
  sluice::AsyncSession* kept = nullptr;
  return session.runner.compare_exchange_strong(kept, made.get()) ? made.release() : kept;
}

void tell_done(void* self, const sluice::Status& status) noexcept {
  sluice_session& session = *static_cast<sluice_session*>(self);
  const sluice_done done = session.done;
  void* const context = session.done_context;
  const sluice_status code = report(status);
  session.asked = false;
  if (done != nullptr) done(context, code);
}

}  // namespace

namespace sluice::c_api {

sluice_status status_of(ErrorCode code) noexcept { return static_cast<sluice_status>(static_cast<int>(code) + 1); }

/// If there is no memory for the text, the fixed text of the error code is given.
sluice_status report(const Error& error) noexcept {
  const auto keep_all = [&]() -> sluice::Status { return keep_text(error.to_string()), sluice::Status(); };
  if (!sluice::or_out_of_memory("", keep_all)) keep_text(sluice::name_of(error.code));
  return status_of(error.code);
}

sluice_status report(const Status& status) noexcept { return status ? SLUICE_OK : report(status.error()); }

}  // namespace sluice::c_api

extern "C" {

const char* sluice_version(void) { return SLUICE_VERSION; }

const char* sluice_last_error(void) { return last_error.data(); }

sluice_status sluice_model_open(const char* path, sluice_model** model) {
  if (path == nullptr || model == nullptr) return null_argument();
  *model = nullptr;
  // The path's copy is made out here.
  auto opened = sluice::or_out_of_memory("model", [&] { return sluice::Model::open(path); });
  return hand_out(std::move(opened), path, model);
}

sluice_status sluice_model_open_buffer(const void* data, size_t size, sluice_model** model) {
  if (data == nullptr || model == nullptr) return null_argument();
  *model = nullptr;
  return hand_out(sluice::Model::open_buffer({static_cast<const std::byte*>(data), size}), "buffer", model);
}

sluice_status sluice_model_open_part(int descriptor, uint64_t offset, uint64_t size, sluice_model** model) {
  if (model == nullptr) return null_argument();
  *model = nullptr;
  return hand_out(sluice::Model::open_part(descriptor, sluice::Bytes(offset), sluice::Bytes(size)), "part of a file", model);
}

sluice_status sluice_model_open_reader(const sluice_reader* reader, sluice_model** model) {
  if (reader == nullptr || model == nullptr) return null_argument();
  *model = nullptr;
  return hand_out(sluice::Model::open_reader({reader->context, reader->read, sluice::Bytes(reader->size)}), "reader", model);
}

sluice_status sluice_model_open_with_key(const char* path, const sluice_key* key, sluice_model** model) {
  if (path == nullptr || key == nullptr || key->give == nullptr || model == nullptr) return null_argument();
  *model = nullptr;
  auto opened = sluice::or_out_of_memory("model", [&] { return sluice::Model::open(path, {}, callback_of(*key)); });
  return hand_out(std::move(opened), path, model);
}

sluice_status sluice_model_open_reader_with_key(const sluice_reader* reader, const sluice_key* key, sluice_model** model) {
  if (reader == nullptr || key == nullptr || key->give == nullptr || model == nullptr) return null_argument();
  *model = nullptr;
  const sluice::model::Reader source{reader->context, reader->read, sluice::Bytes(reader->size)};
  auto opened = sluice::or_out_of_memory("model", [&] { return sluice::Model::open_reader(source, {}, callback_of(*key)); });
  return hand_out(std::move(opened), "reader", model);
}

void sluice_model_close(sluice_model* model) { delete model; }

sluice_status sluice_model_with_dims(const sluice_model* model, const sluice_dim* dims, size_t count, sluice_model** other) {
  if (model == nullptr || other == nullptr || (dims == nullptr && count > 0)) return null_argument();
  *other = nullptr;
  for (size_t i = 0; i < count; ++i)
    if (dims[i].name == nullptr) return null_argument();
  auto opened = sluice::or_out_of_memory("dims", [&] {
    sluice::model::Extents extents;
    for (size_t i = 0; i < count; ++i) extents[dims[i].name] = dims[i].extent;
    return model->model->with_dims(extents);
  });
  return hand_out(std::move(opened), "dims", other);
}

size_t sluice_dimension_count(const sluice_model* model) { return model == nullptr ? 0 : model->model->file().dimensions().size(); }

sluice_status sluice_model_dimension_info(const sluice_model* model, size_t index, sluice_dimension_info* info) {
  if (model == nullptr || info == nullptr) return null_argument();
  const auto& dimensions = model->model->file().dimensions();
  if (index >= dimensions.size()) {
    return report(sluice::make_error(ErrorCode::kInvalidArgument, "dimension", "the model has no dimension of this number", index,
                                     dimensions.size()));
  }
  const sluice::model::Dimension& dimension = dimensions[index];
  *info = {dimension.name.c_str(), dimension.extent, dimension.extents.front(), dimension.bound()};
  return SLUICE_OK;
}

size_t sluice_input_count(const sluice_model* model) { return model == nullptr ? 0 : model->model->graph().inputs.size(); }
size_t sluice_output_count(const sluice_model* model) { return model == nullptr ? 0 : model->model->graph().outputs.size(); }

sluice_status sluice_input_info(const sluice_model* model, size_t port, sluice_port_info* info) {
  if (model == nullptr || info == nullptr) return null_argument();
  return describe(model->model->graph(), model->model->graph().inputs, port, info);
}

sluice_status sluice_output_info(const sluice_model* model, size_t port, sluice_port_info* info) {
  if (model == nullptr || info == nullptr) return null_argument();
  return describe(model->model->graph(), model->model->graph().outputs, port, info);
}

sluice_status sluice_profile_open(const char* path, sluice_profile** profile) {
  if (profile == nullptr) return null_argument();
  *profile = nullptr;
  return hand_out(sluice::or_out_of_memory(
                      "device profile",
                      [&] { return sluice::profiler::load_profiles(path != nullptr ? path : sluice::profiler::default_profile_path()); }),
                  profile);
}

sluice_status sluice_profile_open_buffer(const void* data, size_t size, sluice_profile** profile) {
  if (data == nullptr || profile == nullptr) return null_argument();
  *profile = nullptr;
  return hand_out(sluice::profiler::parse_profiles({static_cast<const char*>(data), size}), profile);
}

void sluice_profile_close(sluice_profile* profile) { delete profile; }

sluice_session_options sluice_default_options(void) {
  sluice_session_options options{};
  options.budget_bytes = SLUICE_UNLIMITED;
  options.scope = SLUICE_SCOPE_LIBRARY;
  options.threads = 1;
  options.keep_inputs = 1;
  options.log.least = SLUICE_LOG_INFO;
  return options;
}

sluice_status sluice_minimum_budget(const sluice_model* model, const sluice_session_options* options, uint64_t* bytes) {
  if (model == nullptr || bytes == nullptr) return null_argument();
  const auto checked = Options::make(options);
  if (!checked) return report(checked.error());
  const auto minimum = sluice::minimum_budget(*model->model, (*checked)->session);
  if (!minimum) return report(minimum.error());
  *bytes = minimum->count();
  return SLUICE_OK;
}

sluice_status sluice_predict(const sluice_model* model, const sluice_session_options* options, sluice_prediction* prediction) {
  if (model == nullptr || prediction == nullptr) return null_argument();
  *prediction = {};
  const auto checked = Options::make(options);
  if (!checked) return report(checked.error());
  sluice::SessionOptions& wanted = (*checked)->session;
  const auto predicted = sluice::Predictor(model->model, wanted).at(wanted.budget);
  if (!predicted) return report(predicted.error());
  *prediction = {predicted->latency_ms, predicted->low_ms, predicted->high_ms, predicted->peak.count(), predicted->bytes_read.count()};
  return SLUICE_OK;
}

sluice_status sluice_session_create(const sluice_model* model, const sluice_session_options* options, sluice_session** session) {
  if (model == nullptr || session == nullptr) return null_argument();
  *session = nullptr;
  const auto checked = Options::make(options);
  if (!checked) return report(checked.error());
  const sluice::c_api::Hooks hooks =
      options == nullptr ? sluice::c_api::Hooks{} : sluice::c_api::Hooks{options->log, options->steps, options->outputs};
  std::unique_ptr<sluice_session> handle(new (std::nothrow) sluice_session{model->model, hooks});
  if (handle == nullptr) return report(sluice::make_error(ErrorCode::kOutOfMemory, "session", "no memory for the session"));
  sluice::SessionOptions& wanted = (*checked)->session;
  sluice::c_api::set_hooks(handle->hooks, wanted);
  auto created = sluice::Session::create(model->model, wanted);
  if (!created) return report(created.error());
  handle->session = std::move(*created);
  *session = handle.release();
  return SLUICE_OK;
}

void sluice_session_close(sluice_session* session) { delete session; }

sluice_status sluice_arena_create(uint64_t budget_bytes, int32_t scope, int32_t threads, sluice_arena** arena) {
  if (arena == nullptr) return null_argument();
  *arena = nullptr;
  const auto checked = scope_of(scope);
  if (!checked) return report(checked.error());
  auto created = sluice::SharedArena::create({.budget = budget_of(budget_bytes), .scope = *checked, .threads = threads});
  if (!created) return report(created.error());
  *arena = new (std::nothrow) sluice_arena{std::move(*created)};
  if (*arena == nullptr) return report(sluice::make_error(ErrorCode::kOutOfMemory, "arena", "no memory for the arena"));
  return SLUICE_OK;
}

void sluice_arena_close(sluice_arena* arena) { delete arena; }

sluice_status sluice_arena_set_budget(sluice_arena* arena, uint64_t budget_bytes) {
  if (arena == nullptr) return null_argument();
  return report(arena->arena->set_budget(budget_of(budget_bytes)));
}

sluice_status sluice_session_set_budget(sluice_session* session, uint64_t budget_bytes) {
  if (session == nullptr) return null_argument();
  return report(session->session->set_budget(budget_of(budget_bytes)));
}

sluice_status sluice_session_cancel(sluice_session* session) {
  if (session == nullptr) return null_argument();
  session->session->cancel();
  return SLUICE_OK;
}

sluice_status sluice_session_set_input(sluice_session* session, size_t port, const void* data, size_t bytes) {
  if (session == nullptr || (data == nullptr && bytes > 0)) return null_argument();
  const sluice::model::Graph& graph = session->model->graph();
  // The session refuses a port that does not exist, whatever the type.
  const DType dtype = port < graph.inputs.size() ? graph.dtype_of(graph.inputs[port]) : DType::kF32;
  return report(session->session->set_input(port, dtype, {static_cast<const std::byte*>(data), bytes}));
}

sluice_status sluice_session_run(sluice_session* session) {
  if (session == nullptr) return null_argument();
  return report(session->session->run());
}

sluice_status sluice_session_input_in_place(sluice_session* session, size_t port, sluice_tensor* tensor) {
  if (session == nullptr || tensor == nullptr) return null_argument();
  return hand_out(session->session->input_in_place(port), tensor);
}

sluice_status sluice_session_run_within(sluice_session* session, int64_t limit_ns) {
  if (session == nullptr) return null_argument();
  const auto runner = runner_of(*session);
  return runner ? report((*runner)->run_within(std::chrono::nanoseconds(limit_ns))) : report(runner.error());
}

sluice_status sluice_session_run_async(sluice_session* session, sluice_done done, void* context) {
  if (session == nullptr) return null_argument();
  const auto runner = runner_of(*session);
  if (!runner) return report(runner.error());
  // `done` is the session's own until it is called, so a second run may not put its own there.
  if (session->asked.exchange(true)) {
    return report(sluice::make_error(ErrorCode::kInvalidArgument, "run", "another run of this session is under way"));
  }
  session->done = done;
  session->done_context = context;
  const sluice::Status begun = (*runner)->start(&tell_done, session);
  if (!begun) session->asked = false;
  return report(begun);
}

sluice_status sluice_session_wait(sluice_session* session) {
  if (session == nullptr) return null_argument();
  sluice::AsyncSession* const runner = session->runner;
  return runner == nullptr ? SLUICE_OK : report(runner->wait());
}

sluice_status sluice_session_stats(const sluice_session* session, sluice_run_stats* stats) {
  if (session == nullptr || stats == nullptr) return null_argument();
  const sluice::executor::RunStats& run = session->session->stats();
  *stats = {run.wall_ns, run.cpu_ns, run.stall_ns, run.load_ns, run.bytes_read.count()};
  return SLUICE_OK;
}

sluice_status sluice_session_memory(const sluice_session* session, sluice_memory* memory) {
  if (session == nullptr || memory == nullptr) return null_argument();
  const sluice::MemoryReport report = session->session->memory();
  *memory = {report.budget.count(), report.overhead.count(), report.arena.count(), report.peak_resident.count()};
  return SLUICE_OK;
}

sluice_status sluice_session_output_info(const sluice_session* session, size_t port, sluice_port_info* info) {
  if (session == nullptr || info == nullptr) return null_argument();
  const sluice::model::Graph& graph = session->model->graph();
  if (const sluice_status status = describe(graph, graph.outputs, port, info); status != SLUICE_OK) return status;
  const sluice::Shape shape = session->session->output_shape(port);
  std::copy(shape.dims().begin(), shape.dims().end(), info->shape);
  info->bytes = static_cast<std::size_t>(shape.element_count()) * size_of(graph.dtype_of(graph.outputs[port]));
  return SLUICE_OK;
}

sluice_status sluice_session_get_output_part(sluice_session* session, size_t port, uint64_t first_element, void* data, size_t bytes) {
  if (session == nullptr || (data == nullptr && bytes > 0)) return null_argument();
  return report(session->session->get_output_part(port, first_element, {static_cast<std::byte*>(data), bytes}));
}

sluice_status sluice_session_output_in_place(sluice_session* session, size_t port, sluice_tensor* tensor) {
  if (session == nullptr || tensor == nullptr) return null_argument();
  return hand_out(session->session->output_in_place(port), tensor);
}

sluice_status sluice_session_get_output(sluice_session* session, size_t port, void* data, size_t bytes) {
  if (session == nullptr || (data == nullptr && bytes > 0)) return null_argument();
  return report(session->session->get_output(port, {static_cast<std::byte*>(data), bytes}));
}

}  // extern "C"

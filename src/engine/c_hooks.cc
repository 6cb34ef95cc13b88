#include "src/engine/c_hooks.h"

#include <algorithm>
#include <array>

namespace sluice::c_api {
namespace {

static_assert(static_cast<int>(LogLevel::kDebug) == SLUICE_LOG_DEBUG && static_cast<int>(LogLevel::kError) == SLUICE_LOG_ERROR);

const Hooks& hooks_of(void* context) noexcept { return *static_cast<const Hooks*>(context); }

/// C wants a text that ends.
void log(void* context, LogLevel level, std::string_view text) noexcept {
  std::array<char, kLogTextBytes + 1> whole{};
  std::copy_n(text.data(), std::min(text.size(), kLogTextBytes), whole.data());
  const sluice_log_hook& hook = hooks_of(context).log;
  hook.log(hook.context, static_cast<sluice_log_level>(level), whole.data());
}

sluice_step step_of(const executor::StepEvent& event) noexcept {
  sluice_step step{};
  step.index = event.index;
  step.count = event.count;
  step.node = event.node->name.c_str();
  step.operator_name = model::name_of(event.node->op).data();  // of a literal, which ends
  step.ran = event.ran ? 1 : 0;
  if (event.time != nullptr) {
    step.stall_ns = event.time->stall_ns;
    step.compute_ns = event.time->compute_ns;
  }
  return step;
}

void before(void* context, const executor::StepEvent& event) noexcept {
  const sluice_step_hook& hook = hooks_of(context).steps;
  const sluice_step step = step_of(event);
  hook.before(hook.context, &step);
}

void after(void* context, const executor::StepEvent& event) noexcept {
  const sluice_step_hook& hook = hooks_of(context).steps;
  const sluice_step step = step_of(event);
  hook.after(hook.context, &step);
}

Status take(void* context, const OutputBlock& block) noexcept {
  const sluice_output_hook& hook = hooks_of(context).outputs;
  sluice_output_block given{};
  given.port = block.port;
  given.data = block.data;
  given.dtype = static_cast<sluice_dtype>(block.dtype);
  given.rank = block.shape.rank();
  std::copy(block.shape.dims().begin(), block.shape.dims().end(), given.shape);
  std::copy_n(block.begin.begin(), given.rank, given.begin);
  std::copy_n(block.strides.begin(), given.rank, given.strides);
  if (hook.take(hook.context, &given) == 0) return {};
  return fail(ErrorCode::kCancelled, "output", "the program took no more of it");
}

}  // namespace

void set_hooks(const Hooks& hooks, SessionOptions& options) noexcept {
  void* const context = const_cast<Hooks*>(&hooks);  // read only, but hooks of C++ take what they may write
  if (hooks.log.log != nullptr) options.log = {&log, context, static_cast<LogLevel>(hooks.log.least)};
  if (hooks.steps.before != nullptr) options.before_step = {&before, context};
  if (hooks.steps.after != nullptr) options.after_step = {&after, context};
  if (hooks.outputs.take != nullptr) options.outputs = {&take, context};
}

}  // namespace sluice::c_api

// A C program's log and step hooks, called from the C++ ones.
#pragma once

#include "sluice/engine/session_options.h"
#include "sluice/sluice_c.h"

namespace sluice::c_api {

/// Holds a session's hooks while it lives.
struct Hooks {
  sluice_log_hook log;
  sluice_step_hook steps;
  sluice_output_hook outputs;
};

/// Makes `options` call `hooks`, which stay where they are while the session lives.
void set_hooks(const Hooks& hooks, SessionOptions& options) noexcept;

}  // namespace sluice::c_api

// What the parts of the C API share: a model's handle, and errors as statuses with a text for sluice_last_error().
#pragma once

#include <memory>

#include "sluice/core/error.h"
#include "sluice/engine/engine.h"
#include "sluice/sluice_c.h"

struct sluice_model {
  std::shared_ptr<const sluice::Model> model;
};

namespace sluice::c_api {

sluice_status status_of(ErrorCode code) noexcept;
/// Keeps the error's text for this thread.
sluice_status report(const Error& error) noexcept;
sluice_status report(const Status& status) noexcept;

}  // namespace sluice::c_api

// The words for weights that are not those that were written: the model and where in its file, as `sluice verify` says it.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "sluice/core/error.h"
#include "sluice/core/units.h"

namespace sluice::executor {

/// Allocates nothing: it comes from the loader, in a run.
inline Error checksum_error(std::string_view model, Bytes offset) noexcept {
  if (model.empty()) model = "the model";  // an ONNX graph need not have a name
  char subject[Error::kSubjectCapacity];
  constexpr int kMostOfName = 80;  // so that the offset is never what is cut
  std::snprintf(subject, sizeof subject, "%.*s at file offset %llu", static_cast<int>(std::min<std::size_t>(model.size(), kMostOfName)),
                model.data(), static_cast<unsigned long long>(offset.count()));
  return make_error(ErrorCode::kChecksumMismatch, subject, "the weights there are not those that were written");
}

}  // namespace sluice::executor

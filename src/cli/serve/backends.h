// Backends that lie beside the program as modules of their own: what they link would count in every budget of who does not use them.
//
//     sluice --dlopen--> libsluice_xnnpack.so, libsluice_opencl.so, in the program's folder --> a Backend
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sluice/backends/backend.h"

namespace sluice::cli {

/// A backend that this build knows of.
struct BackendKind {
  std::string_view name;      // as `sluice processors` and `plan --processors` say it
  std::string_view device;    // as a configuration of `serve` says it
  std::string_view what;      // in words
  std::string_view built_of;  // which package its module needs
};
std::span<const BackendKind> backend_kinds();
/// Null where no backend has this name.
const BackendKind* find_backend_kind(std::string_view name);

struct BackendHere {
  std::string why_not;                         // where there is none
  std::shared_ptr<backends::Backend> backend;  // its module stays loaded while the process lives
};
/// Looks for the module, and loads it.
BackendHere find_backend(const BackendKind& kind);

inline constexpr std::string_view kBackendOperators =
    "convolutions, dense layers, pools, unary and binary functions, softmax, concatenation and reshapes, f32";

}  // namespace sluice::cli

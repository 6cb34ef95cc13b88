// Backends that lie beside the program as modules of their own: what they link would count in every budget of who does not use them.
//
//     sluice --dlopen--> libsluice_xnnpack.so, in the program's folder or where the system looks --> a Backend
#pragma once

#include <memory>
#include <string>

#include "sluice/backends/backend.h"

namespace sluice::cli {

struct XnnpackHere {
  bool available = false;
  std::string supports;  // operators, in words
  std::string why_not;
  std::shared_ptr<backends::Backend> backend;  // stays loaded while the process lives
};
/// Looks for the module, and loads it.
XnnpackHere find_xnnpack();

}  // namespace sluice::cli

#include "src/cli/serve/backends.h"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <array>

namespace sluice::cli {
namespace {

/// The folder of this program, with the slash; empty where the system does not say.
std::string own_folder() {
  std::array<char, 4096> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  const std::string program(self.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return program.substr(0, program.rfind('/') + 1);
}

}  // namespace

XnnpackHere find_xnnpack() {
  XnnpackHere here;
  if (::getauxval(AT_BASE) == 0) {  // no loader of shared libraries: the static program
    here.why_not = "the static program loads no modules";
    return here;
  }
  void* const module = ::dlopen((own_folder() + "libsluice_xnnpack.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    here.why_not = "libsluice_xnnpack.so does not lie beside the program (it is built where XNNPACK is found: scripts/setup --extras)";
    return here;
  }
  const auto make = reinterpret_cast<backends::Backend* (*)()>(::dlsym(module, "sluice_make_xnnpack_backend"));
  here.backend.reset(make == nullptr ? nullptr : make());
  here.available = here.backend != nullptr;
  here.supports = "convolutions, dense layers, pools, binary functions, softmax, concatenation and reshapes, f32";
  if (!here.available) here.why_not = "libsluice_xnnpack.so is of another version, or XNNPACK does not support this CPU";
  return here;
}

}  // namespace sluice::cli

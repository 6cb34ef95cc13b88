#include "src/cli/serve/backends.h"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "sluice/profiler/profile_file.h"
#include "src/backends/module.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

constexpr BackendKind kKinds[] = {
    {"xnnpack", "XNNPACK", "XNNPACK on a CPU core", "XNNPACK"},
    {"opencl", "OPENCL", "an OpenCL device", "OpenCL"},
};

/// The folder of this program, with the slash; empty where the system does not say.
std::string own_folder() {
  std::array<char, 4096> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  const std::string program(self.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return program.substr(0, program.rfind('/') + 1);
}

}  // namespace

std::span<const BackendKind> backend_kinds() { return kKinds; }

const BackendKind* find_backend_kind(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const BackendKind& kind) { return kind.name == name; });
  return found == std::end(kKinds) ? nullptr : found;
}

BackendHere find_backend(const BackendKind& kind) {
  BackendHere here;
  if (::getauxval(AT_BASE) == 0) {  // no loader of shared libraries: the static program
    here.why_not = "the static program loads no modules";
    return here;
  }
  const std::string file = fmt::format("libsluice_{}.so", kind.name);
  const std::string installed = std::filesystem::path(own_folder() + SLUICE_MODULE_FOLDER "/").lexically_normal().string();
  void* module = nullptr;
  for (const std::string& folder : {own_folder(), installed}) {
    const std::string path = folder + file;
    module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module != nullptr) break;
    if (::access(path.c_str(), F_OK) != 0) continue;
    const char* const why = ::dlerror();
    here.why_not = fmt::format("{} cannot be loaded: {}", path, why == nullptr ? "the system does not say why" : why);
    return here;
  }
  if (module == nullptr) {
    here.why_not = fmt::format("{} lies neither beside the program nor in {} (it is built where {} is found: scripts/setup --extras)", file,
                               installed, kind.built_of);
    return here;
  }
  const auto make = reinterpret_cast<backends::MakeBackend>(::dlsym(module, backends::kModuleDoor));
  if (make == nullptr) {
    here.why_not = fmt::format("{} is of another version", file);
    return here;
  }
  const std::string cache = std::filesystem::path(profiler::default_profile_path()).parent_path().string();
  std::array<char, 512> why_not{};
  here.backend.reset(make(cache.c_str(), why_not.data(), why_not.size()));
  if (!here.backend) here.why_not = why_not.data();
  return here;
}

}  // namespace sluice::cli

// `sluice processors`: what can run a model here, and which operators each supports.
#include "sluice/core/affinity.h"
#include "sluice/core/cpu.h"
#include "src/cli/json.h"
#include "src/cli/serve/backends.h"
#include "src/cli/serve/command.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

struct Kind {
  std::string name, what, supports;
  bool available = true, same_bits = true;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all = {
      {"cpu", "a set of CPU cores with our kernels", "every operator"},
      {"timed", "for experiments: takes the time that a table says, gives outputs computed beforehand", "every operator"}};
  for (const BackendKind& kind : backend_kinds()) {
    const BackendHere here = find_backend(kind);
    std::string what(kind.what);
    if (here.backend && !here.backend->device().empty()) what = fmt::format("{} ({})", kind.what, here.backend->device());
    all.push_back(
        {std::string(kind.name), what, here.backend ? std::string(kBackendOperators) : here.why_not, here.backend != nullptr, false});
  }
  return all;
}

}  // namespace

void processors(const ProcessorsOptions& options) {
  Json list = Json::array();
  for (const Kind& kind : kinds()) {
    if (!options.json)
      fmt::print("{:<9}{:<11}{}\n{:20}{}\n", kind.name, kind.available ? "available" : "not here", kind.what, "", kind.supports);
    list.push_back({{"kind", kind.name},
                    {"available", kind.available},
                    {"what", kind.what},
                    {"supports", kind.supports},
                    {"same_bits", kind.same_bits}});
  }
  const CpuKinds cpus = read_cpu_kinds();
  if (options.json) {
    print_json("sluice processors", {{"kinds", std::move(list)},
                                     {"cpus", {{"count", processor_count()}, {"big", cpus.big}, {"small", cpus.small}}},
                                     {"isa", std::string(active_isa_name())}});
    return;
  }
  fmt::print("\n{} CPUs, {} of them small; kernels for {}\n", processor_count(), cpus.small.size(), active_isa_name());
}

}  // namespace sluice::cli

// Reads the #include lines of include/ and src/ and fails on an edge that the architecture does not allow (docs/architecture.md).
//
// The linker cannot find these: static libraries resolve a back edge quietly when some other target pulls the library in.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Modules = std::set<std::string>;

/// What each module may include besides itself.
const std::map<std::string, Modules>& allowed_edges() {
  static const std::map<std::string, Modules> edges = {
      {"core", {}},
      {"model", {"core"}},
      {"operators", {"core", "model"}},
      {"plan", {"core", "model", "operators"}},
      {"kernels", {"core", "model", "operators"}},
      {"importer", {"core", "model", "operators", "plan", "kernels"}},
      {"profiler", {"core", "model", "operators", "plan", "kernels"}},
      {"planner", {"core", "model", "operators", "plan", "kernels", "profiler"}},
      {"executor", {"core", "model", "operators", "plan", "kernels"}},
      {"engine", {"core", "model", "operators", "plan", "kernels", "profiler", "planner", "executor"}},
      {"emit", {"core", "model", "operators", "plan", "kernels", "profiler", "planner", "executor"}},
      {"portable", {}},
      {"backends", {"core", "model", "operators", "kernels"}},
      {"scheduler", {"core", "model", "operators", "plan", "kernels", "profiler", "planner", "executor", "engine", "backends"}},
      {"quantiser", {"core", "model", "operators", "plan", "kernels", "importer", "profiler", "planner", "executor", "engine"}},
      {"cli", {"core", "model", "operators", "plan", "kernels", "profiler", "planner", "executor", "engine", "backends", "scheduler"}},
      {"convert", {"core", "model", "operators", "plan", "kernels", "importer", "quantiser", "cli"}},
      {"emit-program", {"core", "model", "operators", "plan", "kernels", "profiler", "planner", "executor", "engine", "emit", "cli"}},
      {"umbrella", {"core", "model", "operators", "plan", "kernels", "profiler", "planner", "executor", "engine", "importer", "scheduler"}},
  };
  return edges;
}

/// The module of a path relative to the repository, such as include/sluice/core/arena.h or src/kernels/weighted/dense.cc.
std::string module_of(const fs::path& path) {
  std::vector<std::string> parts;
  for (const fs::path& part : path) parts.push_back(part.string());
  const std::size_t first = parts.front() == "include" ? 2 : 1;
  if (parts.back() == "sluice_c.h") return "engine";  // its C face
  if (parts.size() <= first + 1) return "umbrella";
  if (parts[first] == "cli" && parts[first + 1] == "convert") return "convert";
  if (parts[first] == "cli" && parts[first + 1] == "emit") return "emit-program";
  return parts[first];
}

struct Include {
  std::string target;
  bool angled = false;
};

std::optional<Include> parse_include(const std::string& line) {
  std::size_t at = line.find_first_not_of(" \t");
  if (at == std::string::npos || line[at] != '#') return std::nullopt;
  at = line.find_first_not_of(" \t", at + 1);
  if (at == std::string::npos || line.compare(at, 7, "include") != 0) return std::nullopt;
  at = line.find_first_of("<\"", at);
  if (at == std::string::npos) return std::nullopt;
  const bool angled = line[at] == '<';
  const std::size_t end = line.find(angled ? '>' : '"', at + 1);
  return Include{line.substr(at + 1, end - at - 1), angled};
}

/// The module that a quoted include names, or nothing for a neighbour in the same folder or a generated header.
std::optional<std::string> module_of_include(const std::string& target) {
  if (target.starts_with("sluice/")) return module_of(fs::path("include") / target);
  if (target.starts_with("src/")) return module_of(target);
  return std::nullopt;
}

/// The C++ library's own, and those of C and the system that a public header needs.
bool is_system_header(const std::string& target) {
  static const std::set<std::string> from_c = {"arm_acle.h", "arm_mve.h", "float.h",  "math.h",   "pthread.h",  "stdio.h",
                                               "string.h",   "time.h",    "stddef.h", "stdint.h", "sys/stat.h", "sys/types.h"};
  return from_c.contains(target) || (target.find('/') == std::string::npos && target.find('.') == std::string::npos);
}

/// What kernels may see of a graph: the tables of the families, which resolve nodes, and what packs weights at convert.
bool sees_graphs(const std::string& path) {
  static const std::set<std::string> files = {
      "include/sluice/kernels/kernel.h",
      "include/sluice/kernels/left_out.h",
      "include/sluice/kernels/packing.h",
      "include/sluice/kernels/reference.h",
      "include/sluice/kernels/registry.h",
      "include/sluice/kernels/sparse_packing.h",
      "src/kernels/elementwise/elementwise.cc",
      "src/kernels/families.h",
      "src/kernels/integer/integer.cc",
      "src/kernels/integer/parameters.cc",
      "src/kernels/integer/parameters.h",
      "src/kernels/movement/movement.cc",
      "src/kernels/packing.cc",
      "src/kernels/plain/resolve.cc",
      "src/kernels/plain/resolve.h",
      "src/kernels/reference/reference.cc",
      "src/kernels/reference/table.h",
      "src/kernels/registry.cc",
      "src/kernels/resolve.cc",
      "src/kernels/resolve.h",
      "src/kernels/sparse_packing.cc",
      "src/kernels/transformer/transformer.cc",
      "src/kernels/weighted/sparse_kernels.cc",
      "src/kernels/weighted/weighted.cc",
  };
  return files.contains(path);
}

/// Inner loops, the parameters that they read, and what they share with definitions of the long tail: they see neither a graph nor what
/// sees one.
bool is_inner_loop(const std::string& path) {
  if (path.starts_with("include/sluice/operators/parameters/")) return true;
  if (path.starts_with("include/sluice/operators/generic/") || path == "include/sluice/operators/generic.h") return true;
  const bool kernels = path.starts_with("src/kernels/") || path.starts_with("include/sluice/kernels/");
  return kernels && !sees_graphs(path);
}

/// Headers without a graph: each of those below is held to the same.
bool is_free_of_graphs(const std::string& target) {
  return target.starts_with("sluice/core/") || target.starts_with("src/core/") || is_inner_loop("include/" + target) ||
         is_inner_loop(target);
}

/// The rooms of the planner, in the order in which its passes run: each may include those before it (docs/planner.md).
const std::vector<std::string>& planner_rooms() {
  static const std::vector<std::string> rooms = {"order", "cut", "place", "stream", "bands", "choose"};
  return rooms;
}

/// The place of a header's room among the planner's, nothing for other files and for the door itself.
std::optional<std::size_t> planner_room(const std::string& path) {
  const std::string folder = "include/sluice/planner/";
  if (!path.starts_with(folder)) return std::nullopt;
  const std::string room = path.substr(folder.size(), path.find('/', folder.size()) - folder.size());
  const auto found = std::find(planner_rooms().begin(), planner_rooms().end(), room);
  if (found == planner_rooms().end()) return std::nullopt;
  return static_cast<std::size_t>(found - planner_rooms().begin());
}

/// Why `file` may not have this include; empty when it may.
std::string objection(const fs::path& file, const Include& include) {
  const std::string path = file.generic_string();
  if (include.angled) {
    const bool is_public = path.starts_with("include/");
    const bool is_result_type = path == "include/sluice/core/error.h" && include.target == "tl/expected.hpp";
    if (is_public && !is_result_type && !is_system_header(include.target)) return "a third-party header in a public header";
    return {};
  }
  const std::optional<std::string> target = module_of_include(include.target);
  if (!target) return {};
  if (is_inner_loop(path) && !is_free_of_graphs(include.target)) return "an inner loop sees no graph: the parameters have what it needs";
  const std::optional<std::size_t> room = planner_room(path), other = planner_room("include/" + include.target);
  if (room && other && *room < *other)
    return "'" + planner_rooms()[*room] + "' stands below '" + planner_rooms()[*other] + "' in the planner";
  const std::string own = module_of(file);
  if (own == *target) return {};
  const auto row = allowed_edges().find(own);
  if (row == allowed_edges().end()) return "module '" + own + "' is not in the table of allowed edges";
  if (!row->second.contains(*target)) return "'" + own + "' may not include '" + *target + "'";
  return {};
}

/// All objections to the sources below `root`, as "path:line: include: why".
std::vector<std::string> objections_below(const fs::path& root, int& files) {
  std::vector<std::string> found;
  for (const char* folder : {"include", "src"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cc") continue;
      ++files;
      const fs::path file = fs::relative(entry.path(), root);
      std::ifstream stream(entry.path());
      std::string line;
      for (int number = 1; std::getline(stream, line); ++number) {
        const std::optional<Include> include = parse_include(line);
        if (!include) continue;
        const std::string why = objection(file, *include);
        if (!why.empty()) found.push_back(file.generic_string() + ":" + std::to_string(number) + ": " + include->target + ": " + why);
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Does a line decide by the kind of operator, as a case of a switch or as the value that one looks at?
bool switches_over_operators(const std::string& line) {
  static const std::regex pattern(R"((^|[^\w])(case\s+((sluice::)?model::)?OpKind::|switch\s*\(.*(\.|->)op\)))");
  return std::regex_search(line, pattern);
}

/// Who may: the operators themselves, the importer's lowering table, and the verifier, which shares no code with the planner.
bool may_switch_over_operators(const std::string& path) {
  return path.starts_with("src/operators/") || path.starts_with("include/sluice/operators/") || path.starts_with("src/plan/verify") ||
         path == "src/importer/lowering_table.cc";
}

}  // namespace

TEST_CASE("nothing switches over operators but operators/, the lowering table and the verifier") {
  std::vector<std::string> found;
  for (const char* folder : {"include", "src"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(SLUICE_SOURCE_DIR) / folder)) {
      const std::string path = fs::relative(entry.path(), SLUICE_SOURCE_DIR).generic_string();
      if (!entry.is_regular_file() || may_switch_over_operators(path)) continue;
      std::ifstream stream(entry.path());
      std::string line;
      for (int number = 1; std::getline(stream, line); ++number)
        if (switches_over_operators(line)) found.push_back(path + ":" + std::to_string(number) + ": " + line);
    }
  }
  for (const std::string& line : found) UNSCOPED_INFO(line);
  CHECK(found.empty());
  CHECK(switches_over_operators("    case model::OpKind::kConv:"));
  CHECK(switches_over_operators("  switch (node.op) {"));
  CHECK(switches_over_operators("  switch (graph.node(id)->op) {"));
  CHECK_FALSE(switches_over_operators("  if (node.op == model::OpKind::kConv) return;"));
  CHECK_FALSE(switches_over_operators("  switch (a.cell) {"));
}

TEST_CASE("includes go downwards only and public headers are free of third parties") {
  int files = 0;
  const std::vector<std::string> found = objections_below(SLUICE_SOURCE_DIR, files);
  for (const std::string& line : found) UNSCOPED_INFO(line);
  CHECK(found.empty());
  CHECK(files > 30);
}

TEST_CASE("each header of the planner but its door and what that takes stands in a room") {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(SLUICE_SOURCE_DIR) / "include/sluice/planner")) {
    const std::string path = fs::relative(entry.path(), SLUICE_SOURCE_DIR).generic_string();
    CAPTURE(path);
    const bool is_door = path == "include/sluice/planner/planner.h" || path == "include/sluice/planner/search_parameters.h";
    if (entry.is_regular_file()) CHECK((planner_room(path) || is_door));
  }
}

TEST_CASE("the layering check sees what it must") {
  const auto refused = [](const char* file, const char* line) {
    const std::optional<Include> include = parse_include(line);
    REQUIRE(include);
    return !objection(file, *include).empty();
  };
  CHECK(refused("include/sluice/plan/plan.h", "#include \"sluice/kernels/kernel.h\""));
  CHECK(refused("src/kernels/registry.cc", "#include \"sluice/plan/plan.h\""));
  CHECK(refused("src/model/model_file.cc", "#include \"sluice/operators/validate.h\""));
  CHECK(refused("src/operators/validate_node.cc", "#include \"sluice/plan/plan.h\""));
  CHECK(refused("src/executor/session.cc", "#include \"sluice/planner/planner.h\""));
  CHECK(refused("include/sluice/planner/place/place.h", "#include \"sluice/planner/stream/simulate.h\""));
  CHECK_FALSE(refused("include/sluice/planner/stream/fluid.h", "#include \"sluice/planner/place/layout.h\""));
  CHECK_FALSE(refused("include/sluice/planner/choose/flexnn.h", "#include \"sluice/planner/planner.h\""));
  CHECK(refused("src/core/arena.cc", "#  include \"src/model/reader.h\""));
  CHECK(refused("src/engine/engine.cc", "#include \"sluice/importer/importer.h\""));
  CHECK(refused("src/cli/main.cc", "#include \"sluice/importer/importer.h\""));
  CHECK(refused("src/novel/thing.cc", "#include \"sluice/core/arena.h\""));
  CHECK(refused("include/sluice/kernels/kernel.h", "#include <hwy/highway.h>"));
  CHECK(refused("include/sluice/core/units.h", "#include <tl/expected.hpp>"));
  CHECK(refused("include/sluice/core/arena.h", "#include <xnnpack.h>"));
  CHECK(refused("src/kernels/weighted/tile.cc", "#include \"sluice/model/attributes.h\""));
  CHECK(refused("src/kernels/plain/kernel.cc", "#include \"sluice/kernels/kernel.h\""));
  CHECK(refused("src/kernels/reference/dense.cc", "#include \"src/kernels/resolve.h\""));
  CHECK(refused("src/kernels/weighted/new_inner_loop.cc", "#include \"sluice/model/graph.h\""));
  CHECK(refused("include/sluice/kernels/call.h", "#include \"sluice/model/graph.h\""));
  CHECK(refused("include/sluice/operators/parameters/weighted.h", "#include \"sluice/model/weight.h\""));
  CHECK(refused("src/kernels/weighted/blocks.h", "#include \"sluice/operators/validate.h\""));
  CHECK_FALSE(refused("src/kernels/weighted/weighted.cc", "#include \"sluice/model/graph.h\""));
  CHECK_FALSE(refused("src/kernels/weighted/blocks.h", "#include \"sluice/operators/parameters/weighted.h\""));
  CHECK(refused("include/sluice/operators/generic/pool.h", "#include \"sluice/operators/definition.h\""));
  CHECK(refused("src/operators/generic/pool.cc", "#include \"sluice/kernels/plain.h\""));
  CHECK_FALSE(refused("src/kernels/plain/scan.cc", "#include \"sluice/kernels/plain.h\""));
  CHECK_FALSE(refused("src/kernels/plain/pool.cc", "#include \"sluice/operators/generic/pool.h\""));
  CHECK_FALSE(refused("src/kernels/reference/dense.cc", "#include \"src/kernels/reference/panels.h\""));
  CHECK_FALSE(refused("include/sluice/core/error.h", "#include <tl/expected.hpp>"));
  CHECK_FALSE(refused("include/sluice/planner/planner.h", "#include \"sluice/plan/plan.h\""));
  CHECK_FALSE(refused("include/sluice/sluice.h", "#include \"sluice/engine/engine.h\""));
  CHECK_FALSE(refused("src/cli/convert/main.cc", "#include \"sluice/importer/importer.h\""));
  CHECK_FALSE(refused("src/kernels/elementwise/runs.cc", "#include <hwy/highway.h>"));
}

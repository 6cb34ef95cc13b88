// ONNX's own operator tests against the whole way: importer, planner, kernels, executor. The cases are not in the repository;
// SLUICE_SHARED_DIR names the folder that holds onnx-node-tests/. Where it is absent the test says so and passes.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>

#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"
#include "tests/importer/onnx_suite.h"

using namespace sluice;
namespace fs = std::filesystem;

namespace {

std::string file_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string shared_folder() {
  if (const char* named = std::getenv("SLUICE_SHARED_DIR")) return named;
  return *SLUICE_SHARED_DIR != '\0' ? SLUICE_SHARED_DIR : SLUICE_SHARED_DIR_DEFAULT;
}

struct Documented {
  int passed = 0, refused = 0;
};

/// The rows of the generated table of docs/operators.md: | operator | runs | agree | refused | why |.
std::map<std::string, Documented> documented_operators(const std::string& text) {
  std::map<std::string, Documented> rows;
  std::istringstream lines(text.substr(text.find("| operator | runs |")));
  for (std::string line; std::getline(lines, line) && line.starts_with("|");) {
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string cell; std::getline(parts, cell, '|');) cells.push_back(cell);
    if (cells.size() > 4) rows[cells[1].substr(1, cells[1].size() - 2)] = {std::atoi(cells[3].c_str()), std::atoi(cells[4].c_str())};
  }
  return rows;
}

}  // namespace

TEST_CASE("the counts of docs/operators.md add up") {
  const std::string text = file_text(fs::path(SLUICE_SOURCE_DIR) / "docs/operators.md");
  int passed = 0, all = 0, refused = 0, failed = 0, by_kind = 0;
  const char* const head = std::strstr(text.c_str(), " cases agree, ");
  REQUIRE(head != nullptr);
  const std::size_t line = text.rfind('\n', static_cast<std::size_t>(head - text.c_str())) + 1;
  REQUIRE(std::sscanf(text.c_str() + line, "%d of %d cases agree, %d are refused, %d fail", &passed, &all, &refused, &failed) == 4);
  CHECK(passed + refused + failed == all);
  Documented sum;
  for (const auto& [op, row] : documented_operators(text)) {
    sum.passed += row.passed;
    sum.refused += row.refused;
  }
  CHECK(sum.passed == passed);
  CHECK(sum.refused == refused + failed);
  std::istringstream kinds(text.substr(text.find("| refused or failed |"), text.find("| operator | runs |")));
  for (std::string row; std::getline(kinds, row) && row.starts_with("|");)
    by_kind += std::atoi(row.c_str() + row.rfind('|', row.size() - 2) + 1);
  CHECK(by_kind == refused + failed);
}

TEST_CASE("an initialiser that an old file lists as an input too is no input of a case") {
  const TemporaryFolder scratch;
  const fs::path folder = scratch.path("test_old_add");
  fs::create_directories(folder / "test_data_set_0");
  const auto write = [&](const char* name, const std::string& bytes) { std::ofstream(folder / name, std::ios::binary) << bytes; };
  const test::Ints dims{3};
  write("model.onnx", test::OnnxBuilder(6)
                          .input("w", dims)
                          .input("x", dims)
                          .initializer(test::tensor("w", dims, test::Floats{10, 20, 30}))
                          .node("Add", {"x", "w"}, {"y"})
                          .output("y")
                          .bytes());
  write("test_data_set_0/input_0.pb", test::tensor("x", dims, test::Floats{1, 2, 3}));
  write("test_data_set_0/output_0.pb", test::tensor("y", dims, test::Floats{11, 22, 33}));
  const test::CaseResult result = test::run_case(folder, scratch.path(""));
  INFO(result.why);
  CHECK(result.outcome == test::Outcome::kPassed);
}

TEST_CASE("ONNX's operator tests") {
  const fs::path root = fs::path(shared_folder()) / "onnx-node-tests";
  if (!fs::is_directory(root)) {
    std::cout << "SKIPPED: onnx-node-tests is not here; SLUICE_SHARED_DIR names the folder that holds it\n";
    return;
  }
  // What the documentation counts is the whole suite, of which these cases are a part.
  std::map<std::string, Documented> documented = documented_operators(file_text(fs::path(SLUICE_SOURCE_DIR) / "docs/operators.md"));
  const TemporaryFolder scratch;
  int passed = 0;
  for (const test::CaseResult& result : test::run_suite(root, scratch.path(""))) {
    INFO(result.name << ": " << result.why);
    CHECK(result.outcome != test::Outcome::kFailed);
    passed += result.outcome == test::Outcome::kPassed ? 1 : 0;
    --(result.outcome == test::Outcome::kPassed ? documented[result.op].passed : documented[result.op].refused);
  }
  for (const auto& [op, row] : documented) {
    INFO(op << " does better or worse than docs/operators.md says: scripts/onnx-suite --table makes the table anew");
    CHECK((row.passed >= 0 && row.refused >= 0));
  }
  CHECK(passed >= 940);
}

// ONNX's own operator tests against the whole way: importer, planner, kernels, executor. The cases are not in the repository;
// SLUICE_SHARED_DIR names the folder that holds onnx-node-tests/. Where it is absent the test says so and passes.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "tests/cli/temporary.h"
#include "tests/importer/onnx_suite.h"

using namespace sluice;
namespace fs = std::filesystem;

namespace {

std::string shared_folder() {
  if (const char* named = std::getenv("SLUICE_SHARED_DIR")) return named;
  return *SLUICE_SHARED_DIR != '\0' ? SLUICE_SHARED_DIR : SLUICE_SHARED_DIR_DEFAULT;
}

}  // namespace

TEST_CASE("ONNX's operator tests") {
  const fs::path root = fs::path(shared_folder()) / "onnx-node-tests";
  if (!fs::is_directory(root)) {
    std::cout << "SKIPPED: onnx-node-tests is not here; SLUICE_SHARED_DIR names the folder that holds it\n";
    return;
  }
  const TemporaryFolder scratch;
  int passed = 0;
  for (const test::CaseResult& result : test::run_suite(root, scratch.path(""))) {
    INFO(result.name << ": " << result.why);
    CHECK(result.outcome != test::Outcome::kFailed);
    passed += result.outcome == test::Outcome::kPassed ? 1 : 0;
  }
  CHECK(passed >= 940);
}

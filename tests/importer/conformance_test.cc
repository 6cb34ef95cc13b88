// ONNX's own operator tests against the whole way: importer, planner, kernels, executor. The cases are not in the repository;
// SLUICE_SHARED_DIR names the folder that holds onnx-node-tests/. Where it is absent the test says so and passes.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"
#include "tests/importer/onnx_suite.h"

using namespace sluice;
namespace fs = std::filesystem;

namespace {

std::string shared_folder() {
  if (const char* named = std::getenv("SLUICE_SHARED_DIR")) return named;
  return *SLUICE_SHARED_DIR != '\0' ? SLUICE_SHARED_DIR : SLUICE_SHARED_DIR_DEFAULT;
}

}  // namespace

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
  const TemporaryFolder scratch;
  int passed = 0;
  for (const test::CaseResult& result : test::run_suite(root, scratch.path(""))) {
    INFO(result.name << ": " << result.why);
    CHECK(result.outcome != test::Outcome::kFailed);
    passed += result.outcome == test::Outcome::kPassed ? 1 : 0;
  }
  CHECK(passed >= 940);
}

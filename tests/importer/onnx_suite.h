// ONNX's own operator tests (onnx/backend/test/data/node): each case is converted, planned and run, at an unlimited budget and at its
// smallest, and compared with the answer that comes with it. Used by the program onnx-suite and by the conformance test.
//
// Inputs stay inputs, as the cases have them. Where values decide the extents of an output and no bound follows, convert says so and the
// case states one, larger than what will come (ConvertOptions::bounds, `sluice convert --bound`); where that does not help, it binds the
// input (ConvertOptions::values, `--value`).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sluice::test {

enum class Outcome { kPassed, kRefused, kFailed };

struct CaseResult {
  std::string name;
  std::string op;  // of the case, or of the function that it expands
  Outcome outcome = Outcome::kFailed;
  std::string why;  // refused or failed: in words
  int bound_inputs = 0;
  bool stated_bounds = false;  // outputs whose extents come at run time were given a bound
  bool wide = false;           // agrees within an absolute 1e-5, the tolerance of long sums, and not within 1e-7
};

/// Runs one case; `scratch` is a folder for its files.
CaseResult run_case(const std::filesystem::path& folder, const std::filesystem::path& scratch);

/// Runs all cases of a folder, each in a process of its own, so that a crash is a result like any other.
std::vector<CaseResult> run_suite(const std::filesystem::path& root, const std::filesystem::path& scratch);

}  // namespace sluice::test

// What the command line says of reading an ONNX file, and what is told of its problems: of `convert` and `quantize`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/importer/importer.h"
#include "src/cli/json.h"

namespace CLI {
class App;
}

namespace sluice::cli {

struct ImportWords {
  std::vector<std::string> dims;
  std::vector<std::string> values;
  std::vector<std::string> bounds;
  std::string preprocess = "none";
  std::string labels;
  std::string max_constants;
};
/// The options among them that take several values.
inline constexpr std::string_view kOptionsOfValues[] = {"--dim", "--value", "--bound"};

void add_import_options(CLI::App& app, ImportWords& words);
/// Throws Failure (kInvalidArgument, kIo).
void apply(const ImportWords& words, importer::ConvertOptions& options);

/// On stderr, with the options that would help.
void print_problems(const char* program, const std::string& onnx, const std::vector<importer::Problem>& problems);
void print_problems(const char* program, const std::string& onnx, const importer::ConvertReport& report);
Json json_of_problems(const std::vector<importer::Problem>& problems);

}  // namespace sluice::cli
